//! Asking another program something: what it prints, what it complains about, and no waiting for one that hangs.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Runs a program and returns what it printed, or what it complained about; an error if it cannot be run.
pub(crate) fn ask(command: &mut Command, patience: Duration) -> io::Result<Result<String, String>> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let heard = listen(&mut child, patience);
    if heard.is_err() {
        let _ = child.kill();
    }
    let well = child.wait()?.success();
    Ok(match heard {
        Ok([answer, _]) if well => Ok(answer),
        // Some say on standard output what is wrong.
        Ok([answer, complaint]) if complaint.trim().is_empty() => Err(answer.trim().to_owned()),
        Ok([_, complaint]) => Err(complaint.trim().to_owned()),
        Err(error) => Err(error.to_string()),
    })
}

/// Reads what a program prints and what it complains about, until it ends. Both at once: who is not heard on one stops on
/// the other.
fn listen(child: &mut Child, patience: Duration) -> io::Result<[String; 2]> {
    let until = Instant::now() + patience;
    let mut pipes = [child.stdout.take().map(OwnedFd::from), child.stderr.take().map(OwnedFd::from)]
        .map(|pipe| pipe.map(File::from));
    let mut said = [Vec::new(), Vec::new()];
    while pipes.iter().any(Option::is_some) {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "its server does not answer"));
        }
        let millis = u16::try_from(left.as_millis()).unwrap_or(u16::MAX).max(1);
        let open = pipes.iter().flatten().map(|pipe| PollFd::new(pipe.as_fd(), PollFlags::POLLIN));
        let mut fds: Vec<PollFd<'_>> = open.collect();
        if poll(&mut fds, PollTimeout::from(millis)).unwrap_or(0) == 0 {
            continue;
        }
        let has_news: Vec<bool> = fds.iter().map(|fd| fd.any() == Some(true)).collect();
        let mut has_news = has_news.into_iter();
        for (pipe, said) in pipes.iter_mut().zip(&mut said) {
            let Some(open) = pipe else { continue };
            if has_news.next() != Some(true) {
                continue;
            }
            let mut piece = [0; 4096];
            match open.read(&mut piece)? {
                0 => *pipe = None,
                n => said.extend_from_slice(&piece[..n]),
            }
        }
    }
    Ok(said.map(|text| String::from_utf8_lossy(&text).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(script: &str, patience: Duration) -> Result<String, String> {
        ask(Command::new("sh").args(["-c", script]), patience).expect("a shell")
    }

    #[test]
    fn who_complains_at_length_before_answering_is_heard_out() {
        let long = Duration::from_mins(1);
        let script = "yes complaint | head -c 300000 >&2; echo answer";
        assert_eq!(asked(script, long).as_deref(), Ok("answer\n"));
        let complaint = asked(&format!("{script}; exit 1"), long).expect_err("it failed");
        assert_eq!(complaint.lines().count(), 30_000);
        assert_eq!(asked("echo it is down; exit 1", long), Err("it is down".to_owned()));
    }

    #[test]
    fn who_does_not_answer_is_not_waited_for() {
        let answer = asked("exec sleep 1000", Duration::from_millis(50));
        assert_eq!(answer, Err("its server does not answer".to_owned()));
    }
}
