//! What workers wrote, piece by piece, for those who cannot open the file: a log goes on in another file when one is full,
//! so a place in it is a file and how far into it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use yard_client::Reply;
use yard_client::views::{LogPiece, LogPlace, LogView};
use yard_engine::Refusal;

use crate::input::ReplyTo;

/// Bytes of one piece at most.
const AT_ONCE: usize = 256 * 1024;
/// How far back the last lines are looked for.
const LOOK_BACK: u64 = 8 * 1024 * 1024;

/// Sends what a log holds from a place on, on a thread of its own: a disk may be slow, and the loop must not wait for it.
pub(crate) fn send_piece(log: LogView, from: Option<LogPlace>, lines: Option<usize>, reply_to: ReplyTo) {
    let spare = reply_to.clone();
    let started = std::thread::Builder::new().name("ym-log".to_owned()).spawn(move || {
        let reply = match read_piece(Path::new(&log.path), from, lines) {
            Ok(Piece { next, bytes, from_start, cut }) => {
                Reply::document(&LogPiece { log, next, bytes, from_start, cut })
            }
            Err(error) => Reply::Error(Refusal::new("io", format!("the log cannot be read: {error}"))),
        };
        reply_to.send(reply);
    });
    if let Err(error) = started {
        spare.send(Reply::Error(Refusal::new("internal", format!("cannot start a thread: {error}"))));
    }
}

/// What was read.
struct Piece {
    next: Option<LogPlace>,
    bytes: Vec<u8>,
    from_start: bool,
    cut: bool,
}

fn read_piece(path: &Path, from: Option<LogPlace>, lines: Option<usize>) -> io::Result<Piece> {
    let mut files = both(path)?;
    let (mut index, mut at, cut) = match from {
        // A file that is gone was moved aside twice: what is left is what came after it.
        Some(place) => match files.iter().position(|file| file.id == place.file) {
            Some(index) => (index, place.at, false),
            None => (0, 0, false),
        },
        None => match lines {
            Some(lines) => last_lines(&mut files, lines)?,
            None => (0, 0, false),
        },
    };
    let from_start = (index, at) == (0, 0);
    let mut bytes = Vec::new();
    while let Some(file) = files.get_mut(index) {
        // A log that was cut short is read from its start again.
        at = if file.len < at { 0 } else { at };
        file.inner.seek(SeekFrom::Start(at))?;
        (&file.inner).take(AT_ONCE as u64).read_to_end(&mut bytes)?;
        if !bytes.is_empty() || index + 1 == files.len() {
            break;
        }
        (index, at) = (index + 1, 0);
    }
    let next = files.get(index).map(|file| LogPlace { file: file.id, at: at + bytes.len() as u64 });
    Ok(Piece { next, bytes, from_start, cut })
}

struct LogFile {
    inner: File,
    id: u64,
    len: u64,
}

/// The file that was moved aside, if there is one, and the one being written. Opened again if one became the other
/// meanwhile.
fn both(path: &Path) -> io::Result<Vec<LogFile>> {
    loop {
        let current = open(path)?;
        let mut older = path.as_os_str().to_owned();
        older.push(".1");
        let older = open(&PathBuf::from(older))?;
        let there = std::fs::metadata(path).ok().map(|meta| meta.ino());
        if there == current.as_ref().map(|file| file.id) {
            return Ok(older.into_iter().chain(current).collect());
        }
    }
}

fn open(path: &Path) -> io::Result<Option<LogFile>> {
    let inner = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let meta = inner.metadata()?;
    Ok(Some(LogFile { id: meta.ino(), len: meta.len(), inner }))
}

/// Where the last lines begin, or, if they are longer than that, as far back as is looked, and which of the two.
fn last_lines(files: &mut [LogFile], lines: usize) -> io::Result<(usize, u64, bool)> {
    if lines == 0 {
        return Ok(files.last().map_or((0, 0, false), |file| (files.len() - 1, file.len, false)));
    }
    let mut wanted = lines;
    let mut left = LOOK_BACK;
    let mut is_end = true;
    for (index, file) in files.iter_mut().enumerate().rev() {
        let start = file.len.saturating_sub(left);
        left -= file.len - start;
        file.inner.seek(SeekFrom::Start(start))?;
        let mut text = Vec::new();
        (&file.inner).take(file.len - start).read_to_end(&mut text)?;
        for (offset, byte) in text.iter().enumerate().rev() {
            if *byte != b'\n' {
                is_end = false;
                continue;
            }
            // The end of the last line begins no line.
            if !std::mem::take(&mut is_end) {
                wanted = wanted.saturating_sub(1);
            }
            if wanted == 0 {
                return Ok((index, start + offset as u64 + 1, false));
            }
        }
        if start > 0 || (left == 0 && index > 0) {
            return Ok((index, start, true));
        }
    }
    Ok((0, 0, false))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Log(tempfile::TempDir);

    impl Log {
        fn new(older: Option<&str>, current: Option<&str>) -> Self {
            let log = Self(tempfile::tempdir().expect("a directory"));
            for (name, text) in [("x.log.1", older), ("x.log", current)] {
                if let Some(text) = text {
                    std::fs::write(log.0.path().join(name), text).expect("written");
                }
            }
            log
        }

        fn piece(&self, from: Option<LogPlace>, lines: Option<usize>) -> Piece {
            read_piece(&self.0.path().join("x.log"), from, lines).expect("readable")
        }

        /// All there is from a place on, and the place after it.
        fn rest(&self, mut from: Option<LogPlace>, lines: Option<usize>) -> (String, Option<LogPlace>) {
            let mut all = Vec::new();
            loop {
                let piece = self.piece(from, lines);
                from = piece.next;
                if piece.bytes.is_empty() {
                    return (String::from_utf8(all).expect("text"), from);
                }
                all.extend(piece.bytes);
            }
        }
    }

    #[test]
    fn a_log_is_one_text_however_many_files_it_has() {
        assert_eq!(Log::new(None, None).piece(None, None).next, None);
        let log = Log::new(Some("a\nb"), Some("b\nc\n"));
        let (text, place) = log.rest(None, None);
        assert_eq!(text, "a\nbb\nc\n");
        std::fs::rename(log.0.path().join("x.log"), log.0.path().join("x.log.1")).expect("moved aside");
        std::fs::write(log.0.path().join("x.log"), "d\n").expect("written");
        assert_eq!(log.rest(place, None).0, "d\n");
        let whole = "line\n".repeat(200_000);
        assert_eq!(Log::new(None, Some(&whole)).rest(None, None).0, whole);
    }

    #[test]
    fn the_last_lines_are_found_across_files() {
        let last = |older: Option<&str>, current: &str, lines| {
            Log::new(older, Some(current)).rest(None, Some(lines)).0
        };
        assert_eq!(last(None, "a\nb\nc\n", 2), "b\nc\n");
        assert_eq!(last(None, "a\nb\nc", 2), "b\nc");
        assert_eq!(last(Some("a\nb"), "b\nc\n", 2), "bb\nc\n");
        assert_eq!(last(Some("a\nb\n"), "c\n", 2), "b\nc\n");
        assert_eq!(last(Some("a\n"), "b\n", 9), "a\nb\n");
        assert_eq!(last(Some("a\n"), "b\nc", 0), "");
        let long = format!("{}\nend\n", "x".repeat(9 * 1024 * 1024));
        let log = Log::new(None, Some(&long));
        assert!(log.piece(None, Some(2)).cut && !log.piece(None, Some(1)).cut);
        assert!(log.rest(None, Some(2)).0.len() as u64 == LOOK_BACK);
    }
}
