//! `ym logs`: what a worker wrote, straight from its files.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use yard_client::views::LogView;
use yard_client::{Ask, Safe};
use yard_engine::DispatchId;

use super::{Done, newlines};
use crate::errors::Report;
use crate::output::Out;
use crate::session::{Session, reach};

/// How often a followed log is looked at.
pub(super) const LOOK: Duration = Duration::from_millis(100);
/// After how many quiet looks the town is asked whether more may come.
const ASK_AFTER: u32 = 5;

pub(super) fn logs(session: &mut Session, id: &str, follow: bool, lines: Option<usize>) -> Done {
    if session.there().is_some() && !session.out.json() {
        return super::logs_there::logs(session, id, follow, lines);
    }
    let mut view: LogView = session.ask_for(Ask::LogOf { id: id.to_owned() })?;
    if session.out.json() {
        session.out.line(serde_json::to_string(&view)?)?;
        return Ok(0);
    }
    let (mut older, mut current) = both(Path::new(&view.path))?;
    let silent = current.is_none() && older.is_none();
    if silent && let Some(leader) = session.town()?.leader_elsewhere() {
        session.go_to(reach(&leader)?, Vec::new());
        return super::logs_there::logs(session, id, follow, lines);
    }
    if silent && !(follow && (view.live || view.goes_on)) {
        session.out.notice(&format!("{} has no output yet", view.dispatch_id));
        return Ok(0);
    }
    let skip = match lines {
        Some(n) => lines_in([&mut older, &mut current].into_iter().flatten())?.saturating_sub(n),
        None => 0,
    };
    let mut printer = Printer { skip, bytes: Vec::new() };
    for file in [&mut older, &mut current].into_iter().flatten() {
        printer.copy(file, &mut session.out)?;
    }
    if follow {
        // In the moment between two files the one moved aside is the last that was read.
        view = follow_on(session, view, current.or(older), &mut printer)?;
        // Whoever names one attempt wants that one.
        let names_one = view.dispatch_id.to_string() == id;
        while !names_one && let Some(next) = wait_for_next(session, view)? {
            printer.finish(&mut session.out)?;
            session.out.flush()?;
            session.out.notice(&format!("{next} begins"));
            view = session.ask_for(Ask::LogOf { id: next.to_string() })?;
            let current = print_all(Path::new(&view.path), None, &mut printer, session)?;
            view = follow_on(session, view, current, &mut printer)?;
        }
    }
    printer.finish(&mut session.out)?;
    Ok(0)
}

/// Waits for the attempt after an ended one; none if its bead is over.
fn wait_for_next(session: &mut Session, mut view: LogView) -> Result<Option<DispatchId>, Report> {
    while view.next.is_none() && view.goes_on {
        session.out.flush()?;
        std::thread::sleep(LOOK * ASK_AFTER);
        view = session.ask_for(Ask::LogOf { id: view.dispatch_id.to_string() })?;
    }
    Ok(view.next)
}

/// Goes on until the dispatch has ended and everything it wrote is printed; says how things stand then.
fn follow_on(
    session: &mut Session,
    mut view: LogView,
    mut current: Option<File>,
    printer: &mut Printer,
) -> Result<LogView, Report> {
    let path = PathBuf::from(&view.path);
    let mut quiet = 0;
    loop {
        session.out.flush()?;
        let mut moved = 0;
        if let Some(file) = &mut current {
            moved += printer.copy(file, &mut session.out)?;
        }
        if was_replaced(current.as_ref(), &path) {
            moved += 1;
            current = print_all(&path, current, printer, session)?;
        }
        if moved > 0 {
            quiet = 0;
            continue;
        }
        if !view.live {
            return Ok(view);
        }
        quiet += 1;
        if quiet % ASK_AFTER == 0 {
            view = session.ask_for(Ask::LogOf { id: view.dispatch_id.to_string() })?;
        }
        if view.live {
            std::thread::sleep(LOOK);
        }
    }
}

/// Prints what was not read yet of a log that was moved aside: the end of what we hold open, which nobody writes to any
/// more, then the files that took its place. Returns the one being written.
fn print_all(
    path: &Path,
    mut held: Option<File>,
    printer: &mut Printer,
    session: &mut Session,
) -> Result<Option<File>, Report> {
    let (older, mut current) = both(path)?;
    if let Some(file) = &mut held {
        printer.copy(file, &mut session.out)?;
    }
    // What we hold may be the one moved aside; another one there came and went meanwhile.
    let mut unseen = older.filter(|older| held.as_ref().is_none_or(|held| !is_same(held, older)));
    for file in [&mut unseen, &mut current].into_iter().flatten() {
        printer.copy(file, &mut session.out)?;
    }
    Ok(current)
}

fn is_same(one: &File, other: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    let place = |file: &File| file.metadata().ok().map(|meta| (meta.dev(), meta.ino()));
    place(one).is_some() && place(one) == place(other)
}

fn rotated(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    PathBuf::from(name)
}

fn open(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The log that was moved aside, and the one being written. Opened again if one became the other meanwhile.
fn both(path: &Path) -> io::Result<(Option<File>, Option<File>)> {
    loop {
        let current = open(path)?;
        let older = open(&rotated(path))?;
        if !was_replaced(current.as_ref(), path) {
            return Ok((older, current));
        }
    }
}

fn was_replaced(open: Option<&File>, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let Ok(there) = std::fs::metadata(path) else { return false };
    match open.map(File::metadata) {
        Some(Ok(ours)) => (ours.dev(), ours.ino()) != (there.dev(), there.ino()),
        _ => true,
    }
}

/// How many lines the files hold as one text: a log is moved aside wherever it is full, also within a line. Leaves
/// each at its start.
fn lines_in<'a>(files: impl Iterator<Item = &'a mut File>) -> io::Result<usize> {
    let (mut lines, mut open_line) = (0, false);
    let mut buffer = vec![0; 1 << 16];
    for file in files {
        loop {
            let read = file.read(&mut buffer)?;
            let Some(last) = buffer[..read].last() else { break };
            lines += newlines(&buffer[..read]);
            open_line = *last != b'\n';
        }
        file.rewind()?;
    }
    Ok(lines + usize::from(open_line))
}

/// Prints bytes as they are, or, for a person's terminal, line by line without anything that could act on it.
#[derive(Default)]
pub(super) struct Printer {
    /// Lines still to be left out.
    skip: usize,
    /// The start of a line whose end has not been written yet.
    bytes: Vec<u8>,
}

impl Printer {
    /// Prints what follows in a file; says how much that was.
    fn copy(&mut self, file: &mut File, out: &mut Out) -> io::Result<usize> {
        let mut buffer = vec![0; 1 << 16];
        let mut all = 0;
        // A log that was cut short is read from its start again.
        let here = file.stream_position()?;
        if file.metadata()?.len() < here {
            file.seek(SeekFrom::Start(0))?;
        }
        loop {
            let read = file.read(&mut buffer)?;
            if read == 0 {
                return Ok(all);
            }
            all += read;
            self.print(&buffer[..read], out)?;
        }
    }

    pub(super) fn print(&mut self, mut chunk: &[u8], out: &mut Out) -> io::Result<()> {
        while self.skip > 0 {
            let Some(end) = chunk.iter().position(|b| *b == b'\n') else { return Ok(()) };
            chunk = &chunk[end + 1..];
            self.skip -= 1;
        }
        if !out.is_terminal() {
            return out.raw(chunk);
        }
        for piece in chunk.split_inclusive(|b| *b == b'\n') {
            self.bytes.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.bytes.len() > 1 << 16 {
                self.finish(out)?;
            }
        }
        Ok(())
    }

    pub(super) fn finish(&mut self, out: &mut Out) -> io::Result<()> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&self.bytes);
        out.line(Safe(text.trim_end_matches(['\n', '\r'])))?;
        self.bytes.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(older: Option<&str>, current: Option<&str>) -> usize {
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().join("x.log");
        for (path, text) in [(rotated(&path), older), (path.clone(), current)] {
            if let Some(text) = text {
                std::fs::write(path, text).expect("written");
            }
        }
        let (mut older, mut current) = both(&path).expect("readable");
        let lines = lines_in([&mut older, &mut current].into_iter().flatten()).expect("readable");
        for file in [&mut older, &mut current].into_iter().flatten() {
            assert_eq!(file.stream_position().expect("a position"), 0);
        }
        lines
    }

    #[test]
    fn a_line_that_goes_on_in_the_next_file_is_one_line() {
        assert_eq!(lines_of(None, None), 0);
        assert_eq!(lines_of(None, Some("a\nb\n")), 2);
        assert_eq!(lines_of(Some("a\nb"), Some("b\nc\n")), 3);
        assert_eq!(lines_of(Some("a\nb\n"), Some("c\nd")), 4);
        assert_eq!(lines_of(Some("a\nb"), Some("")), 2);
        assert_eq!(lines_of(Some("a\nb"), None), 2);
        assert_eq!(lines_of(Some("a"), Some("b")), 1);
    }
}
