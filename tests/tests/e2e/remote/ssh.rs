//! Commands by ssh: the words as they were typed, the streams, the exit code.

use std::io::Write as _;
use std::process::Stdio;

use yard_tests::ssh::Sshd;
use yard_tests::terminal::{NARROW, Terminal};
use yard_tests::town::Town;

use super::{by_ssh, ran, ym_by_ssh};

#[test]
fn a_command_is_carried_out_there_as_it_was_typed() {
    let (town, sshd) = by_ssh();
    let status = ym_by_ssh(&town, &sshd, &["--json", "status"]).ok().json();
    assert_eq!(status["daemon"]["pid"], town.daemon_pid().expect("a daemon"));
    let title = r#"it's "$HOME" \ `id` $(id) ; & | * ? ~ # ! {a,b} <x> % 'é'"#;
    let id = ym_by_ssh(&town, &sshd, &["-q", "bead", "add", title]).ok().stdout;
    assert_eq!(town.json(["show", id.trim()])["title"], title);
    let argv = ["add", "-q", "--", "sh", "-c", "printf '%s|' \"$@\"", "x", "", "two words", "--town", "$X"];
    let id = ym_by_ssh(&town, &sshd, &argv).ok().stdout;
    let waited = ym_by_ssh(&town, &sshd, &["-q", "wait", id.trim()]).ok();
    assert_eq!(waited.stdout, id);
    assert_eq!(ym_by_ssh(&town, &sshd, &["logs", id.trim()]).ok().stdout, "|two words|--town|$X|");
    let failing = ym_by_ssh(&town, &sshd, &["add", "-q", "--", "false"]).ok().stdout;
    assert_eq!(ym_by_ssh(&town, &sshd, &["wait", failing.trim(), "--timeout", "1ms"]).code, 1);
    assert_eq!(ym_by_ssh(&town, &sshd, &["--json", "show", "nothing-like-it"]).error_code(), "unknown-bead");
}

#[test]
fn standard_input_goes_along_and_so_does_the_name() {
    let (town, sshd) = by_ssh();
    let mut command = town.command(["--town", &sshd.address(&town), "add", "-q", "--file", "-"]);
    command.envs(sshd.environment()).env("YM_ACTOR", "ann 'b'").env_remove("YM_TOWN");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("ym can be run");
    let jobs = b"{\"argv\": [\"true\"], \"id\": \"y-a\"}\n{\"argv\": [\"true\"], \"id\": \"y-b\", \"after\": [\"y-a\"]}\n";
    child.stdin.take().expect("piped").write_all(jobs).expect("ym reads its input");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout), "y-a\ny-b\n");
    let created = &town.events(Some("bead.added"))[0];
    assert!(created.to_string().contains("ann 'b'"), "{created}");
}

#[test]
fn without_a_daemon_commands_work_there_too() {
    let (town, sshd) = (Town::new(), Sshd::start());
    let id = ym_by_ssh(&town, &sshd, &["-q", "bead", "add", "work"]).ok().stdout;
    assert_eq!(town.state_of(id.trim()), "open");
    assert_eq!(ym_by_ssh(&town, &sshd, &["--json", "status"]).ok().json()["daemon"]["running"], false);
}

#[test]
fn what_stands_in_the_way_is_said() {
    let (town, sshd) = (Town::new(), Sshd::start());
    let with = |name: &str, value: &str, args: &[&str]| {
        let mut command = town.command(args);
        ran(command.env("YM_TOWN", sshd.address(&town)).envs(sshd.environment()).env(name, value))
    };
    let status = ["--json", "status"];
    assert_eq!(with("YM_REMOTE_BIN", "/nowhere/ym", &status).error_code(), "no-ym-there");
    assert_eq!(with("YM_SSH", "false", &status).code, 1);
    assert_eq!(with("YM_SSH", "/nowhere/ssh", &status).error_code(), "unreachable");
    assert_eq!(with("YM_SSH", "ssh 'open", &status).error_code(), "usage");
    let closed = format!("ssh://127.0.0.1:{}/x", yard_tests::ssh::free_port());
    assert_eq!(with("YM_TOWN", &closed, &status).error_code(), "unreachable");
    assert_eq!(with("YM_TOWN", &sshd.address_of("/".as_ref()), &status).error_code(), "usage");
    let none = sshd.address_of(town.root().parent().expect("a directory"));
    assert_eq!(with("YM_TOWN", &none, &status).error_code(), "no-town");
    for hostile in
        ["ssh://-oProxyCommand=touch%20x/x", "ssh://h;id/x", "ssh://h", "ssh://a@-b/x", "ssh://h/%00"]
    {
        let refused = with("YM_TOWN", hostile, &status);
        assert_eq!((refused.code, refused.error_code().as_str()), (2, "usage"), "{hostile}");
    }
    assert_eq!(with("YM_LOG", "info", &["--json", "--daemon"]).error_code(), "usage");
    // What needs no town needs no ssh.
    with("YM_SSH", "/nowhere/ssh", &["help", "remote"]).ok();
}

#[test]
fn what_a_worker_wrote_there_cannot_act_on_the_terminal_here() {
    let (town, sshd) = by_ssh();
    let script = r"printf '\033[?1049h\033[?25lplain\n'";
    let id = town.run(["add", "-q", "--", "sh", "-c", script]).ok().stdout;
    town.run(["wait", id.trim()]).ok();
    let [ssh, bin] = sshd.environment().map(|(name, value)| format!("{name}='{value}'"));
    let script = format!("{ssh} {bin} \"$YM\" --town {} logs {}", sshd.address(&town), id.trim());
    let mut terminal = Terminal::script(&town, &script, NARROW);
    terminal.shows("plain");
    terminal.left_with(0);
}
