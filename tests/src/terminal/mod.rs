//! A real terminal around a real program: a pseudo-terminal of its own session, a screen that is kept up to date by
//! whatever the program writes, and keys by the names the console gives them. Tests wait for what the screen shows.

mod asked;
mod keys;

use std::ffi::OsStr;
use std::num::NonZeroU16;
use std::os::fd::AsFd as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::termios::{Termios, tcgetattr};
use pty_process::blocking::{Command, Pts, Pty};
use vt100::{MouseProtocolEncoding, MouseProtocolMode, Parser, Screen};

use crate::town::{Town, environment_has, is_alive, kill_nine, processes, wait_until, ym_binary};

pub use self::asked::Asked;
use self::keys::bytes_of;

/// Columns and rows of a common large terminal.
pub const WIDE: (u16, u16) = (120, 40);
/// Columns and rows of the smallest terminal that people use.
pub const NARROW: (u16, u16) = (80, 24);

/// How long a screen is waited for before the test fails.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(5);
/// How long a console that a test leaves behind may take to drain.
const FAREWELL: Duration = Duration::from_secs(5);

/// A program in a terminal.
pub struct Terminal {
    child: Child,
    ended: Option<ExitStatus>,
    master: Option<Arc<Pty>>,
    // Kept open, so that what a program wrote before its end can still be read.
    slave: Option<Pts>,
    parser: Arc<Mutex<Parser<Asked>>>,
    gone: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
    before: Termios,
    town: Vec<u8>,
}

impl Terminal {
    /// Plain `ym` on a town: the console, in a terminal of this many columns and rows.
    pub fn console(town: &Town, size: (u16, u16)) -> Self {
        Self::start(on(town, ym_binary()), town.root(), size)
    }

    /// The same, with more in its environment.
    pub fn console_with(town: &Town, size: (u16, u16), env: &[(&str, &str)]) -> Self {
        Self::start(on(town, ym_binary()).envs(env.iter().copied()), town.root(), size)
    }

    /// A shell script on a town, which finds the program under test as `$YM`.
    pub fn script(town: &Town, script: &str, size: (u16, u16)) -> Self {
        let shell = on(town, "/bin/sh").args(["-c", script]).env("YM", ym_binary());
        Self::start(shell, town.root(), size)
    }

    /// `ym` with these arguments in a directory that need not be in a town; temporary files go there too.
    pub fn in_directory(dir: &Path, args: &[&str], size: (u16, u16)) -> Self {
        let command = clean(ym_binary(), dir).args(args).env("TMPDIR", dir).current_dir(dir);
        Self::start(command, dir, size)
    }

    /// Any command; `town` is whose processes are ended should the test fail.
    fn start(mut command: Command, town: &Path, size: (u16, u16)) -> Self {
        let (master, slave) = pty_process::blocking::open().expect("a pseudo-terminal");
        master.resize(pty_process::Size::new(size.1, size.0)).expect("a size");
        let before = tcgetattr(&master).expect("the modes of the terminal");
        let child = command.spawn_borrowed(&slave).expect("the program starts");
        let parser = Parser::new_with_callbacks(side(size.1), side(size.0), 0, Asked::default());
        let (master, parser) = (Arc::new(master), Arc::new(Mutex::new(parser)));
        let gone = Arc::new(AtomicBool::new(false));
        let reader = {
            let (master, parser, gone) = (Arc::clone(&master), Arc::clone(&parser), Arc::clone(&gone));
            std::thread::spawn(move || read(&master, &parser, &gone))
        };
        let town = format!("YM_TOWN={}", town.display()).into_bytes();
        let (master, slave, reader) = (Some(master), Some(slave), Some(reader));
        Self { child, ended: None, master, slave, parser, gone, reader, before, town }
    }

    /// The program's process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What is left of everything the program started that stayed in its session.
    pub fn session(&self) -> Vec<u32> {
        let ours = |pid: &u32| session_of(*pid) == Some(self.pid()) && is_alive(*pid);
        processes().into_iter().filter(ours).collect()
    }

    /// Presses keys by name: `j`, `Enter`, `Ctrl-p`. After `Esc` wait for what it does: a key that follows at once is
    /// taken for Alt and that key, as in every terminal.
    pub fn press(&self, names: &[&str]) {
        for name in names {
            self.send(&bytes_of(name));
        }
    }

    /// Types a text.
    pub fn type_text(&self, text: &str) {
        self.send(text.as_bytes());
    }

    fn send(&self, bytes: &[u8]) {
        let master = self.master.as_ref().expect("the terminal is still there");
        let written = nix::unistd::write(master, bytes).expect("the terminal takes keys");
        assert_eq!(written, bytes.len());
    }

    /// Writes on the screen as another program on the same terminal would.
    pub fn scribble(&self, text: &str) {
        lock(&self.parser).process(text.as_bytes());
    }

    /// Changes the size.
    pub fn resize(&self, (columns, rows): (u16, u16)) {
        let master = self.master.as_ref().expect("the terminal is still there");
        // Both under the reader's lock: what is read afterwards was written for the new size, or is drawn over.
        let mut parser = lock(&self.parser);
        parser.set_size(side(rows), side(columns));
        master.resize(pty_process::Size::new(rows, columns)).expect("a size");
    }

    /// What the screen shows, a line per row, each as wide as the screen.
    pub fn rows(&self) -> Vec<String> {
        rows_of(lock(&self.parser).screen())
    }

    /// What the screen shows.
    pub fn text(&self) -> String {
        self.rows().join("\n")
    }

    /// What was asked of the terminal besides text.
    pub fn asked(&self) -> Asked {
        lock(&self.parser).callbacks().clone()
    }

    /// Whether the program has the terminal: it draws on the other screen.
    pub fn is_taken(&self) -> bool {
        lock(&self.parser).screen().alternate_screen()
    }

    /// Waits until the screen satisfies a condition; fails the test, with the screen, when it takes too long.
    pub fn until(&self, what: &str, mut condition: impl FnMut(&str) -> bool) {
        let until = Instant::now() + PATIENCE;
        loop {
            let text = self.text();
            if condition(&text) {
                return;
            }
            assert!(Instant::now() < until, "waited too long for {what}; the screen:\n{text}");
            std::thread::park_timeout(LOOK);
        }
    }

    /// Waits until a text is on the screen.
    pub fn shows(&self, text: &str) {
        self.until(&format!("{text:?} on the screen"), |screen| screen.contains(text));
    }

    /// Waits until a text is no longer on the screen.
    pub fn hides(&self, text: &str) {
        self.until(&format!("{text:?} to go from the screen"), |screen| !screen.contains(text));
    }

    /// Waits until one row has all these words.
    pub fn shows_row(&self, words: &[&str]) {
        self.until(&format!("a row with {words:?}"), |screen| has_row(screen, words));
    }

    /// What is wrong with the terminal now that nobody should use it; nothing if it is as it was.
    fn damage(&self) -> Vec<&'static str> {
        let parser = lock(&self.parser);
        let screen = parser.screen();
        let mut damage = Vec::new();
        let mut note = |wrong: bool, what| damage.extend(wrong.then_some(what));
        note(screen.alternate_screen(), "the other screen is shown");
        note(screen.hide_cursor(), "the cursor is hidden");
        note(screen.bracketed_paste(), "pasted text is bracketed");
        note(screen.mouse_protocol_mode() != MouseProtocolMode::None, "the mouse is captured");
        note(screen.mouse_protocol_encoding() != MouseProtocolEncoding::Default, "the mouse is encoded");
        note(screen.application_cursor(), "cursor keys are the application's");
        if let Some(master) = &self.master {
            let now = tcgetattr(master).expect("the modes of the terminal");
            note(now != self.before, "the modes of the terminal are others");
        }
        damage
    }

    /// Waits until the terminal is as it was before the program took it.
    pub fn is_restored(&self) {
        let until = Instant::now() + PATIENCE;
        while !self.damage().is_empty() {
            assert!(
                Instant::now() < until,
                "not restored: {:?}; the screen:\n{}",
                self.damage(),
                self.text()
            );
            std::thread::park_timeout(LOOK);
        }
    }

    /// Waits for the program's end; its exit code, 128 + n after signal n.
    pub fn exit_code(&mut self) -> i32 {
        let until = Instant::now() + PATIENCE;
        while !self.has_ended() {
            assert!(Instant::now() < until, "it does not end; the screen:\n{}", self.text());
            std::thread::park_timeout(LOOK);
        }
        let status = self.ended.expect("it has ended");
        status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
    }

    /// Whether the program has ended.
    pub fn has_ended(&mut self) -> bool {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().expect("it is our child");
        }
        self.ended.is_some()
    }

    /// Waits until the program has left with this exit code and the terminal is as it was.
    pub fn left_with(&mut self, code: i32) {
        assert_eq!(self.exit_code(), code, "the screen:\n{}", self.text());
        self.is_restored();
    }

    /// Sends a signal to the program.
    pub fn signal(&self, signal: Signal) {
        let pid = nix::unistd::Pid::from_raw(self.pid() as i32);
        nix::sys::signal::kill(pid, signal).expect("it can be told");
    }

    /// Hangs up: the terminal is gone, as when its window is closed or the network breaks.
    pub fn hang_up(&mut self) {
        self.gone.store(true, Ordering::SeqCst);
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        self.slave = None;
        self.master = None;
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.hang_up();
        let until = Instant::now() + FAREWELL;
        while !self.has_ended() && Instant::now() < until {
            std::thread::park_timeout(LOOK);
        }
        if !self.has_ended() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        if std::thread::panicking() {
            // A failed test must not leave workers behind that make the next one fail.
            processes().into_iter().filter(|pid| environment_has(*pid, &self.town)).for_each(kill_nine);
        }
    }
}

/// Keeps the screen up to date until the terminal is gone.
fn read(master: &Pty, parser: &Mutex<Parser<Asked>>, gone: &AtomicBool) {
    let mut buffer = vec![0; 65_536];
    while !gone.load(Ordering::SeqCst) {
        let mut polled = [PollFd::new(master.as_fd(), PollFlags::POLLIN)];
        if poll(&mut polled, PollTimeout::from(20u8)).unwrap_or(0) == 0 {
            continue;
        }
        let Ok(read) = nix::unistd::read(master, &mut buffer) else { return };
        let replies = {
            let mut parser = lock(parser);
            parser.process(&buffer[..read]);
            std::mem::take(&mut parser.callbacks_mut().replies)
        };
        if !replies.is_empty() {
            let _ = nix::unistd::write(master, &replies);
        }
    }
}

/// A program on a town, with the environment of a fresh login.
fn on(town: &Town, program: impl AsRef<OsStr>) -> Command {
    let home = town.root().parent().expect("a town lies somewhere");
    let cluster = town.cluster_config().map(|config| ("SLURM_CONF", config));
    clean(program, home).env("YM_TOWN", town.root()).envs(cluster).current_dir(home)
}

fn clean(program: impl AsRef<OsStr>, home: &Path) -> Command {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    let fixed = [("USER", "tester"), ("SHELL", "/bin/sh"), ("LANG", "C.UTF-8"), ("TERM", "xterm-256color")];
    Command::new(program).env_clear().env("PATH", path).env("HOME", home).envs(fixed)
}

fn side(cells: u16) -> NonZeroU16 {
    NonZeroU16::new(cells).expect("a side has at least one cell")
}

fn rows_of(screen: &Screen) -> Vec<String> {
    let (rows, columns) = screen.size();
    let row_of = |row: u16| {
        let cells = (0..columns.get()).filter_map(|column| screen.cell(row, column));
        // The second half of a wide character has no text of its own, and an empty cell is a blank.
        let shown = cells.filter(|cell| !cell.is_wide_continuation());
        shown.map(|cell| if cell.has_contents() { cell.contents() } else { " " }).collect()
    };
    (0..rows.get()).map(row_of).collect()
}

/// Whether one row of a screen has all these words.
pub fn has_row(screen: &str, words: &[&str]) -> bool {
    screen.lines().any(|row| words.iter().all(|word| row.contains(word)))
}

/// Waits until no process of a town is left: no worker, no shim, no fork server.
pub fn nobody_is_left(town: &Town) {
    let mut left = Vec::new();
    let gone = || {
        left = town.processes();
        left.is_empty()
    };
    wait_until("every process of the town to end", gone);
}

/// The session that a process belongs to.
fn session_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(3)?.parse().ok()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
