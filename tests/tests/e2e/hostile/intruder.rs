//! Other users of the machine: they see nothing of a town, say nothing to it, and cannot make anybody enter theirs.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use yard_tests::town::{Ran, Town, ym_binary};

/// Somebody who owns nothing: `nobody`.
const STRANGER: u32 = 65534;

/// Whether there can be a second user. Only root can become one; where that must be, it must not be left out quietly.
fn can_be_somebody_else() -> bool {
    if nix::unistd::geteuid().is_root() {
        return true;
    }
    assert!(std::env::var_os("CI").is_none(), "these tests need root to become another user");
    false
}

/// A shell command as somebody else.
fn as_stranger(script: &str, arguments: &[&Path]) -> Ran {
    let id = STRANGER.to_string();
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid", &id, "--regid", &id, "--clear-groups", "sh", "-c", script, "sh"])
        .args(arguments);
    let output = command.current_dir("/").output().expect("setpriv can be run");
    Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("it is ours");
}

/// Everything below a directory, itself included; what git makes in worktrees is the user's own.
fn below(directory: &Path) -> Vec<PathBuf> {
    let mut all = vec![directory.to_owned()];
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_worktree = directory.ends_with("worktrees") && path.is_dir();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && !is_worktree => all.extend(below(&path)),
            _ => all.push(path),
        }
    }
    all
}

#[test]
fn a_town_is_private_whatever_the_umask() {
    for umask in ["000", "027", "077"] {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let root = dir.path().join("yard");
        std::fs::create_dir(&root).expect("made");
        let script = r#"
            umask "$1"; ym=$2; export YM_TOWN=$3; cd "$3" || exit 9
            git init -q . && git -c user.name=n -c user.email=e commit -q --allow-empty -m first || exit 8
            "$ym" init "$3" --prefix y && "$ym" config set http.listen 127.0.0.1:0 || exit 7
            mkdir -p .yardmaster/formulas
            printf 'isolation = "worktree"\n[[steps]]\nid = "w"\nargv = ["sh", "-c", "echo hello"]\n' > .yardmaster/formulas/iso.toml
            chmod 600 .yardmaster/formulas/iso.toml
            "$ym" --daemon & daemon=$!
            until "$ym" --json status | grep -q '"running":true'; do sleep 0.05; done
            "$ym" http token > /dev/null && "$ym" add --id y-1 -- sh -c 'echo out' && "$ym" bead add t --id y-2 &&
            "$ym" sling y-2 --formula iso && "$ym" wait y-1 y-2 --timeout 60s
            "$ym" scheduler pause
            ls -R .yardmaster > /dev/null
            "$ym" stop && wait $daemon
        "#;
        let mut command = Command::new("bash");
        command.args(["-c", script, "bash", umask]).arg(ym_binary()).arg(&root).env("USER", "tester");
        let output = command.env("GIT_CONFIG_GLOBAL", "/dev/null").output().expect("bash");
        assert!(output.status.success(), "umask {umask}: {}", String::from_utf8_lossy(&output.stderr));
        let folder = root.join(".yardmaster");
        let all = below(&folder);
        assert!(all.len() > 12, "{all:?}");
        for path in all {
            let found = std::fs::symlink_metadata(&path).expect("it is there");
            let mode = found.mode() & 0o777;
            let is_worktree =
                path.parent().is_some_and(|parent| parent.ends_with("worktrees")) && found.is_dir();
            let others_may = mode & 0o077;
            assert!(others_may == 0 || is_worktree, "umask {umask}: {} has mode {mode:o}", path.display());
        }
    }
}

#[test]
fn a_town_that_came_from_elsewhere_is_shut_when_it_is_opened() {
    let town = Town::new();
    let folder = town.root().join(".yardmaster");
    chmod(&folder, 0o755);
    town.run(["bead", "add", "t"]).ok();
    assert_eq!(std::fs::metadata(&folder).expect("there").mode() & 0o777, 0o700);
}

#[test]
fn another_user_sees_and_says_nothing() {
    if !can_be_somebody_else() {
        return;
    }
    let mut town = Town::new();
    town.set("http.listen", "127.0.0.1:0");
    town.start_daemon();
    town.run(["http", "token"]).ok();
    town.shell_bead("y-1", "echo out; exec sleep 60");
    town.run(["sling", "y-1"]).ok();
    town.await_state("y-1", "running");
    let folder = town.root().join(".yardmaster");
    // All that leads to it may be looked into; only its own folder keeps others out.
    chmod(town.root().parent().expect("a directory"), 0o755);
    chmod(town.root(), 0o755);
    let seen = as_stranger(
        "ls \"$1\"; cat \"$1\"/journal.db \"$1\"/http-token \"$1\"/logs/* \"$1\"/run/*.claim",
        &[&folder],
    );
    assert_eq!((seen.stdout.as_str(), seen.code), ("", 1), "{seen:?}");
    for script in [
        "echo x > \"$1\"/run/y-9@1.claim",
        "ln -s /etc \"$1\"/logs/x",
        "echo x >> \"$1\"/config.toml",
        "rm \"$1\"/ym.sock",
        "mv \"$1\" \"$1\".old",
        "python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])' \"$1\"/ym.sock",
    ] {
        assert_ne!(as_stranger(script, &[&folder]).code, 0, "{script}");
    }
    // Even where the folder was opened by mistake, files stay shut, and who connects is looked at.
    chmod(&folder, 0o755);
    chmod(&folder.join("ym.sock"), 0o666);
    let seen = as_stranger(
        "cat \"$1\"/journal.db \"$1\"/http-token \"$1\"/logs/* \"$1\"/run/*.claim \"$1\"/run/*",
        &[&folder],
    );
    assert_eq!(seen.stdout, "", "{seen:?}");
    let say = "import socket, sys\ns = socket.socket(socket.AF_UNIX)\ns.settimeout(30)\ns.connect(sys.argv[1])\n\
               try:\n  s.sendall(b'{\"actor\":\"x\",\"ask\":{\"ask\":\"stop\",\"timeout_ms\":0,\"leave_running\":false}}\\n')\n  print(s.recv(9999))\n\
               except OSError as e: print(e)\n";
    let script = format!("exec python3 -c \"$2\" \"$1\"/ym.sock # {STRANGER}");
    let heard = as_stranger(&script, &[&folder, Path::new(say)]);
    assert!(!heard.stdout.contains("daemon") && !heard.stdout.contains("\"ym\""), "{heard:?}");
    assert_eq!(town.json(["status"])["daemon"]["pid"], town.daemon_pid().expect("it runs"), "it serves on");
}

/// A directory that anybody may write to, with a town of somebody else in it, and a place inside to stand in.
fn planted(script: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    chmod(dir.path(), 0o777);
    let ran = as_stranger(script, &[dir.path()]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let inside = dir.path().join("inside");
    std::fs::create_dir(&inside).expect("made");
    (dir, inside)
}

#[test]
fn nobody_enters_a_town_that_somebody_else_has_planted() {
    if !can_be_somebody_else() {
        return;
    }
    let ours = Town::new();
    let plant = "mkdir -p \"$1\"/.yardmaster/run \"$1\"/.yardmaster/formulas && echo '[alerts]\ncommand = [\"touch\", \"/tmp/owned\"]' > \"$1\"/.yardmaster/config.toml && chmod -R a+rwX \"$1\"/.yardmaster";
    let link = format!("ln -s {}/.yardmaster \"$1\"/.yardmaster", ours.root().display());
    for script in [plant, link.as_str()] {
        let (dir, inside) = planted(script);
        let before = below(&dir.path().join(".yardmaster"));
        for words in [
            &["status"][..],
            &["--daemon"],
            &["add", "--", "true"],
            &["config", "set", "scheduler.batch_size", "1"],
            &["doctor"],
            &["poke"],
        ] {
            let mut command = Command::new(ym_binary());
            command
                .arg("--json")
                .args(words)
                .current_dir(&inside)
                .env_remove("YM_TOWN")
                .env("USER", "tester");
            let output = command.output().expect("ym can be run");
            let said = String::from_utf8_lossy(&output.stdout).into_owned()
                + &String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success() && said.contains("foreign-town"), "{words:?}: {said}");
        }
        let init =
            Command::new(ym_binary()).arg("init").arg(dir.path()).env_remove("YM_TOWN").output().expect("ym");
        assert!(!init.status.success(), "a town was made in somebody else's folder");
        assert_eq!(below(&dir.path().join(".yardmaster")), before, "something was left in it");
        let named =
            Command::new(ym_binary()).args(["status", "--town"]).arg(dir.path()).output().expect("ym");
        let said = String::from_utf8_lossy(&named.stderr);
        let lacks_a_journal = said.contains("there is no journal");
        assert!(named.status.success() || lacks_a_journal, "who names a town trusts it: {said}");
    }
    assert!(!Path::new("/tmp/owned").exists());
}
