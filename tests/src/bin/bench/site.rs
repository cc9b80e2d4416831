//! Where one program is measured: a directory of its own, how many tasks at a time, and until when. Programs see a bare
//! environment, so that nobody's settings change a figure.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use yard_tests::town::{kill_nine, parent_of, processes};

use crate::Fallible;
use crate::peers::search_path;

/// How often a condition is looked at.
const LOOK: Duration = Duration::from_millis(5);
/// How long a server may take to end by itself.
const LEAVE: Duration = Duration::from_secs(10);

/// A place to measure in.
pub(crate) struct Site {
    pub(crate) dir: PathBuf,
    pub(crate) slots: usize,
    until: Instant,
    env: Vec<(String, OsString)>,
}

impl Site {
    pub(crate) fn new(dir: &Path, slots: usize, until: Instant) -> Self {
        Self { dir: dir.to_owned(), slots, until, env: Vec::new() }
    }

    /// Something every command from here on sees.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.env.push((name.to_owned(), value.into()));
    }

    /// A path in the directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The same, as text.
    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// A command, not yet run.
    pub(crate) fn command<S: AsRef<str>>(&self, argv: &[S]) -> Command {
        let (program, args) =
            argv.split_first().map_or(("", argv), |(program, args)| (program.as_ref(), args));
        let mut command = Command::new(program);
        command.args(args.iter().map(AsRef::as_ref)).env_clear().envs(self.env.iter().map(|(k, v)| (k, v)));
        command.env("PATH", search_path()).env("HOME", &self.dir).env("TMPDIR", &self.dir);
        command.env("LANG", "C").env("USER", "root").current_dir(&self.dir).stdin(Stdio::null());
        command
    }

    /// Runs a command that must succeed; what it printed.
    pub(crate) fn call<S: AsRef<str>>(&self, argv: &[S]) -> Fallible<String> {
        let output = self.command(argv).output()?;
        if !output.status.success() {
            let (first, error) =
                (argv.first().map_or("", AsRef::as_ref), String::from_utf8_lossy(&output.stderr));
            let tail: String = error.chars().rev().take(300).collect::<Vec<_>>().into_iter().rev().collect();
            return Err(format!("{first}: {}: {tail}", output.status).into());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs a command that must succeed, without its output; how long it took.
    pub(crate) fn foreground<S: AsRef<str>>(&self, argv: &[S], input: Stdio) -> Fallible<Duration> {
        let mut command = self.command(argv);
        command.stdin(input).stdout(Stdio::null()).stderr(self.log("foreground.log")?);
        let began = Instant::now();
        let status = command.status()?;
        let took = began.elapsed();
        if !status.success() {
            let log = std::fs::read_to_string(self.path("foreground.log")).unwrap_or_default();
            let last = log.lines().last().unwrap_or_default();
            return Err(format!("{}: {status}: {last}", argv.first().map_or("", AsRef::as_ref)).into());
        }
        Ok(took)
    }

    /// Starts a server.
    pub(crate) fn serve<S: AsRef<str>>(&self, argv: &[S]) -> Fallible<Child> {
        let log = self.log("server.log")?;
        Ok(self.command(argv).stdout(log.try_clone()?).stderr(log).spawn()?)
    }

    fn log(&self, name: &str) -> Fallible<std::fs::File> {
        Ok(OpenOptions::new().create(true).append(true).open(self.path(name))?)
    }

    /// Asks again and again until the answer is as wanted.
    pub(crate) fn until<S: AsRef<str>>(&self, argv: &[S], wanted: impl Fn(&str) -> bool) -> Fallible<()> {
        while Instant::now() < self.until {
            if self.call(argv).is_ok_and(|answer| wanted(&answer)) {
                return Ok(());
            }
            thread::sleep(LOOK);
        }
        Err(format!("{} never answered as wanted", argv.first().map_or("", AsRef::as_ref)).into())
    }
}

/// Waits for a server to end, and ends it if it does not.
pub(crate) fn end(server: &mut Child) -> Fallible<()> {
    let until = Instant::now() + LEAVE;
    while Instant::now() < until {
        if server.try_wait()?.is_some() {
            return Ok(());
        }
        thread::sleep(LOOK);
    }
    server.kill()?;
    server.wait()?;
    Ok(())
}

/// Asks a process to end.
pub(crate) fn ask_to_end(server: &Child) {
    use nix::sys::signal::{Signal, kill};
    let _ = kill(nix::unistd::Pid::from_raw(server.id() as i32), Signal::SIGTERM);
}

/// All processes below this one, the nearest first. Orphans are among them where this process is their reaper.
pub(crate) fn descendants() -> Vec<u32> {
    let parents: Vec<(u32, u32)> =
        processes().into_iter().filter_map(|pid| Some((pid, parent_of(pid)?))).collect();
    let mut found = vec![std::process::id()];
    let mut at = 0;
    while let Some(parent) = found.get(at).copied() {
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        at += 1;
    }
    found.split_off(1)
}

/// Ends everything this process has started, however it was started.
pub(crate) fn end_descendants() {
    let until = Instant::now() + LEAVE;
    loop {
        let left: Vec<u32> =
            descendants().into_iter().filter(|pid| yard_tests::town::is_alive(*pid)).collect();
        if left.is_empty() || Instant::now() > until {
            return;
        }
        left.into_iter().for_each(kill_nine);
        thread::sleep(LOOK);
    }
}
