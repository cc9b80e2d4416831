//! The console on a town elsewhere: what it shows, does, and how it comes back.

use nix::sys::signal::Signal;
use yard_tests::ssh::Sshd;
use yard_tests::terminal::{Terminal, WIDE};
use yard_tests::town::Town;

use super::{Web, by_ssh};

#[test]
fn by_ssh_it_is_the_console_one_has_at_home() {
    let (mut town, sshd) = by_ssh();
    let mut terminal = by_ssh_on(&town, &sshd);
    terminal.until("a live console", is_live);
    terminal.shows("yard on 127.0.0.1");
    works(&mut town, &terminal);
    terminal.press(&["D"]);
    terminal.shows("a daemon runs on the host of its town");
    terminal.press(&["q"]);
    terminal.left_with(0);
    assert_eq!(town.json(["status"])["daemon"]["running"], true);
}

#[test]
fn by_https_it_is_the_console_one_has_at_home() {
    let mut web = Web::start();
    let (token, ca) = (web.token_file(), web.authority.ca());
    let script =
        format!("exec \"$YM\" --server {} --token-file {} --ca {}", web.url(), token.display(), ca.display());
    let mut terminal = Terminal::script(&web.town, &script, WIDE);
    terminal.until("a live console", is_live);
    works(&mut web.town, &terminal);
    terminal.press(&["q"]);
    terminal.left_with(0);
}

#[test]
fn whoever_cannot_get_in_is_told_before_the_screen_is_taken() {
    let (town, sshd) = (Town::new(), Sshd::start());
    let address = format!("ssh://127.0.0.1:{}/x", yard_tests::ssh::free_port());
    let env = sshd.environment();
    let mut env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (*name, value.as_str())).collect();
    env.push(("YM_TOWN", &address));
    let mut terminal = Terminal::console_with(&town, WIDE, &env);
    terminal.shows("ssh did not get through to 127.0.0.1");
    terminal.left_with(1);
    // Nobody serving a town is another matter: somebody may soon.
    let mut terminal = by_ssh_on(&town, &sshd);
    terminal.until("a console without a town", |screen| screen.contains("DISCONNECTED"));
    terminal.shows("nobody serves");
    terminal.signal(Signal::SIGTERM);
    terminal.left_with(0);
}

fn by_ssh_on(town: &Town, sshd: &Sshd) -> Terminal {
    let (address, env) = (sshd.address(town), sshd.environment());
    let mut env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (*name, value.as_str())).collect();
    env.push(("YM_TOWN", &address));
    Terminal::console_with(town, WIDE, &env)
}

fn is_live(screen: &str) -> bool {
    screen.lines().next().unwrap_or_default().contains("LIVE")
}

/// What happens there is seen here, what is asked for here is done there, and a loss is only a while.
fn works(town: &mut Town, terminal: &Terminal) {
    town.run(["bead", "add", "far away", "--id", "y-far", "--", "sh", "-c", "echo written there"]).ok();
    terminal.shows("y-far");
    terminal.press(&[":"]);
    terminal.type_text("sling y-far");
    terminal.press(&["Enter"]);
    town.await_state("y-far", "closed");
    terminal.shows("written there");
    town.kill_daemon();
    terminal.until("the loss", |screen| screen.contains("DISCONNECTED"));
    town.start_daemon();
    terminal.until("a live console again", is_live);
    town.run(["bead", "add", "back again", "--id", "y-back"]).ok();
    terminal.shows("y-back");
}
