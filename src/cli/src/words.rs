//! Words of the command line that mean a time, a span or a priority.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use yard_engine::{Seq, Timestamp};

/// The wall clock.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(since.as_millis() as i64)
}

/// A span such as `30s` or `2h`.
pub(crate) fn span(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text)
        .map_err(|_| format!("{text:?} is not a duration: write it like 30s, 10m or 2h"))
}

/// A moment to come: a time, or a span from now.
pub(crate) fn moment(text: &str) -> Result<Timestamp, String> {
    match humantime::parse_duration(text) {
        Ok(span) => Ok(now().after(span)),
        Err(_) => Timestamp::parse_rfc3339(text).map_err(|error| format!("{error}, or as a span like 2h")),
    }
}

/// Where the log is to be read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Since {
    /// After this position.
    Seq(Seq),
    /// From this time on.
    Time(Timestamp),
}

/// A position, a time, or a span ago.
pub(crate) fn since(text: &str) -> Result<Since, String> {
    if let Ok(seq) = text.parse::<u64>() {
        return Ok(Since::Seq(Seq(seq)));
    }
    if let Ok(span) = humantime::parse_duration(text) {
        let millis = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        return Ok(Since::Time(Timestamp::from_millis(now().as_millis().saturating_sub(millis))));
    }
    Timestamp::parse_rfc3339(text).map(Since::Time).map_err(|_| {
        format!("{text:?} is neither a position, nor a time like 2026-11-16T09:30:00Z, nor a span like 10m")
    })
}

/// A bead's priority: `P0` to `P4`.
pub(crate) fn bead_priority(text: &str) -> Result<u8, String> {
    let digits = text.strip_prefix(['P', 'p']).unwrap_or(text);
    match digits.parse::<u8>() {
        Ok(n @ 0..=4) => Ok(n),
        _ => Err(format!("{text:?} is not a bead priority: use P0 (first) to P4")),
    }
}

/// `key=value`.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.to_owned())),
        _ => Err(format!("{text:?} is not a variable: write it like name=value")),
    }
}

/// A span in short words: `3m`, `2h5m`.
pub(crate) fn short(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86400 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86400, seconds / 3600 % 24),
    }
}

/// So many bytes, as people say it.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KiB", bytes.div_ceil(1024)),
        1_048_576..10_737_418_240 => format!("{} MiB", bytes >> 20),
        _ => format!("{} GiB", bytes >> 30),
    }
}

/// A number with its noun.
pub(crate) fn count(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_of_the_log_is_a_position_a_time_or_a_span_ago() {
        assert_eq!(since("17"), Ok(Since::Seq(Seq(17))));
        let time = Timestamp::parse_rfc3339("2026-11-16T09:30:00Z").expect("a time");
        assert_eq!(since("2026-11-16T09:30:00Z"), Ok(Since::Time(time)));
        assert!(matches!(since("10m"), Ok(Since::Time(_))));
        assert!(since("yesterday").is_err());
    }

    #[test]
    fn priorities_of_beads_go_from_p0_to_p4() {
        assert_eq!((bead_priority("P0"), bead_priority("4")), (Ok(0), Ok(4)));
        assert!(bead_priority("P5").is_err() && bead_priority("high").is_err());
    }

    #[test]
    fn spans_are_short() {
        let of = |s| short(Duration::from_secs(s));
        assert_eq!([of(5), of(65), of(7500), of(90_000)], ["5s", "1m05s", "2h05m", "1d01h"]);
    }
}
