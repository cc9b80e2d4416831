//! Points in time and spans, as the engine sees them: milliseconds that come in with each input.
//! Written as RFC 3339 in UTC wherever a person or a script may read them.

use std::fmt;
use std::num::NonZeroU64;
use std::time::Duration;

use chrono::{DateTime, Datelike, SecondsFormat, Timelike, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// 0001-01-01T00:00:00Z and the last millisecond of the year 9999.
const FIRST_MILLI: i64 = -62_135_596_800_000;
const LAST_MILLI: i64 = 253_402_300_799_999;

/// Milliseconds since the Unix epoch, UTC. Kept as those since just before the year 1, which are never zero: then a time
/// that may be none takes no more room than one that is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(NonZeroU64);

impl Default for Timestamp {
    fn default() -> Self {
        Self::from_millis(0)
    }
}

impl Timestamp {
    /// From milliseconds since the Unix epoch, kept within the years 1 to 9999 so that it can be written as
    /// RFC 3339 and read back unchanged.
    pub fn from_millis(millis: i64) -> Self {
        let since_first = millis.clamp(FIRST_MILLI, LAST_MILLI) - FIRST_MILLI;
        Self(NonZeroU64::MIN.saturating_add(since_first as u64))
    }

    /// Milliseconds since the Unix epoch.
    pub fn as_millis(self) -> i64 {
        (self.0.get() - 1) as i64 + FIRST_MILLI
    }

    /// This moment plus a span, stopping at the end of time.
    pub fn after(self, span: Duration) -> Self {
        Self::from_millis(
            self.as_millis().saturating_add(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)),
        )
    }

    /// The span from `earlier` to here; zero if it lies in the future.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.get().saturating_sub(earlier.0.get()))
    }

    /// Reads RFC 3339 with any number of fractional digits and any offset.
    pub fn parse_rfc3339(text: &str) -> Result<Self, BadTime> {
        if let Some(time) = Self::parse_usual(text.as_bytes()) {
            return Ok(time);
        }
        DateTime::parse_from_rfc3339(text)
            .map(|t| Self::from_millis(t.timestamp_millis()))
            .map_err(|_| BadTime(text.chars().take(40).collect()))
    }
}

impl Timestamp {
    /// `2026-11-16T09:30:00Z`, with or without a fraction: what trackers and our own log write. By hand, because every
    /// bead and every event has one. Everything else, be it wrong, is left to chrono.
    fn parse_usual(text: &[u8]) -> Option<Self> {
        let (start, rest) = text.split_first_chunk::<19>()?;
        let [y1, y2, y3, y4, b'-', mo1, mo2, b'-', d1, d2, b'T', h1, h2, b':', mi1, mi2, b':', s1, s2] =
            start
        else {
            return None;
        };
        let fraction = match rest {
            [b'Z'] => &[][..],
            [b'.', fraction @ .., b'Z'] if !fraction.is_empty() => fraction,
            _ => return None,
        };
        let number = |digits: &[&u8]| {
            let digit = |digit: &u8| digit.is_ascii_digit().then(|| i64::from(digit - b'0'));
            digits.iter().try_fold(0, |number, next| Some(number * 10 + digit(next)?))
        };
        let year = number(&[y1, y2, y3, y4]).filter(|year| *year >= 1)?;
        let month = number(&[mo1, mo2]).filter(|month| (1..=12).contains(month))?;
        let day = number(&[d1, d2]).filter(|day| (1..=days_of_month(year, month)).contains(day))?;
        let hour = number(&[h1, h2]).filter(|hour| *hour < 24)?;
        let minute = number(&[mi1, mi2]).filter(|minute| *minute < 60)?;
        let second = number(&[s1, s2]).filter(|second| *second < 60)?;
        if !fraction.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let milli = (0..3).fold(0, |milli, place| {
            milli * 10 + fraction.get(place).map_or(0, |digit| i64::from(digit - b'0'))
        });
        let minutes = (days_since_epoch(year, month, day) * 24 + hour) * 60 + minute;
        Some(Self::from_millis((minutes * 60 + second) * 1000 + milli))
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_of_month(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Of a day from the year 1 on. Years are counted from March, so that a leap day is the last of its year.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    const FIRST_OF_1970: i64 = 719_468;
    let year = if month < 3 { year - 1 } else { year };
    let month = (month + 9) % 12;
    let days_before = 365 * year + year / 4 - year / 100 + year / 400;
    days_before + (153 * month + 2) / 5 + day - 1 - FIRST_OF_1970
}

/// A text that is no point in time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a time: write it like 2026-11-16T09:30:00Z")]
pub struct BadTime(String);

impl Timestamp {
    /// `2026-11-16T09:30:00.000Z`. By hand, because every event and every row of a list holds one: chrono takes
    /// several times as long. Years beyond four digits are left to chrono.
    fn write_rfc3339(self, out: &mut [u8; 24]) -> Option<&str> {
        let time = DateTime::<Utc>::from_timestamp_millis(self.as_millis())?;
        let year = u32::try_from(time.year()).ok().filter(|y| *y <= 9999)?;
        let milli = time.timestamp_subsec_millis();
        let fields = [
            (0, 4, year, b'-'),
            (5, 2, time.month(), b'-'),
            (8, 2, time.day(), b'T'),
            (11, 2, time.hour(), b':'),
            (14, 2, time.minute(), b':'),
            (17, 2, time.second(), b'.'),
            (20, 3, milli, b'Z'),
        ];
        for (start, width, mut value, end) in fields {
            for place in (start..start + width).rev() {
                out[place] = b'0' + (value % 10) as u8;
                value /= 10;
            }
            out[start + width] = end;
        }
        std::str::from_utf8(out).ok()
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = self.write_rfc3339(&mut [0; 24]) {
            return f.write_str(text);
        }
        let time = DateTime::<Utc>::from_timestamp_millis(self.as_millis()).unwrap_or_default();
        f.write_str(&time.to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self.write_rfc3339(&mut [0; 24]) {
            Some(text) => s.serialize_str(text),
            None => s.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
        Self::parse_rfc3339(&text).map_err(serde::de::Error::custom)
    }
}

/// A span in milliseconds, for records and settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub u64);

impl Millis {
    /// A span of whole seconds.
    pub const fn seconds(n: u64) -> Self {
        Self(n * 1000)
    }

    /// A span of whole minutes.
    pub const fn minutes(n: u64) -> Self {
        Self(n * 60_000)
    }

    /// Whether it is no time at all.
    pub fn is_zero(&self) -> bool {
        self.0 == 0
    }

    /// Longer by a span.
    pub fn plus(self, span: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(span.as_millis()).unwrap_or(u64::MAX)))
    }

    /// As a standard duration.
    pub fn duration(self) -> Duration {
        Duration::from_millis(self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_are_written_and_read_as_rfc_3339() {
        let time = Timestamp::from_millis(1_700_000_000_123);
        assert_eq!(time.to_string(), "2023-11-14T22:13:20.123Z");
        assert_eq!(Timestamp::parse_rfc3339("2023-11-14T23:13:20.123456789+01:00"), Ok(time));
        assert!(Timestamp::parse_rfc3339("yesterday").is_err());
        for millis in [0, -1, 951_782_399_999, 253_402_300_799_999, -62_135_596_800_000] {
            let time = Timestamp::from_millis(millis);
            let chrono = DateTime::<Utc>::from_timestamp_millis(millis).expect("in range");
            assert_eq!(time.to_string(), chrono.to_rfc3339_opts(SecondsFormat::Millis, true));
            assert_eq!(Timestamp::parse_rfc3339(&time.to_string()), Ok(time));
        }
    }

    proptest! {
        #[test]
        fn times_are_what_chrono_reads(
            millis in FIRST_MILLI..=LAST_MILLI, digits in "[0-9]{0,12}", change in 0..19_usize, to in "[0-9:TZz+. -]",
        ) {
            let usual = Timestamp::from_millis(millis).to_string();
            let dot = if digits.is_empty() { "" } else { "." };
            let text = format!("{}{dot}{digits}Z", &usual[..19]);
            let mut changed = text.clone();
            changed.replace_range(change..=change, &to);
            for text in [usual, text, changed] {
                let chrono = DateTime::parse_from_rfc3339(&text).ok();
                let chrono = chrono.map(|time| Timestamp::from_millis(time.timestamp_millis()));
                prop_assert_eq!(Timestamp::parse_rfc3339(&text).ok(), chrono, "{}", text);
            }
        }
    }

    #[test]
    fn the_ends_of_time_survive_being_written_down() {
        let ends = [Timestamp::from_millis(i64::MIN), Timestamp::from_millis(0).after(Duration::MAX)];
        for end in ends {
            assert_eq!(Timestamp::parse_rfc3339(&end.to_string()), Ok(end));
        }
    }
}
