//! Times, spans, sizes and amounts as people write them.

use yard_daemon::config::parse_size;
use yard_engine::money::Usd;
use yard_engine::{Millis, Timestamp};

pub(super) const WORDS: &[&str] = &[
    "1h 30m",
    "2w",
    "0.42",
    "1e9",
    "$5",
    "64MiB",
    "2026-11-16T09:30:00.123456789+01:00",
    "24:00:00",
    "-00:00",
    ":60Z",
    "T",
    "z",
];

pub(super) fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    if let Ok(time) = Timestamp::parse_rfc3339(&text) {
        assert_eq!(Timestamp::parse_rfc3339(&time.to_string()), Ok(time), "{text:?}");
        let _ = time.after(std::time::Duration::MAX).since(time);
    }
    if let Ok(amount) = text.parse::<Usd>() {
        let json = serde_json::to_string(&amount).expect("a number");
        assert_eq!(serde_json::from_str::<Usd>(&json).ok(), Some(amount), "{text:?}");
        assert!(amount <= Usd::MOST);
    }
    if let Ok(amount) = serde_json::from_str::<Usd>(&text) {
        assert!(amount <= Usd::MOST);
    }
    if let Ok(span) = humantime::parse_duration(&text) {
        let _ = Millis::default().plus(span).duration();
        let _ = Timestamp::from_millis(0).after(span);
        let _ = yard_ui::text::span(i64::try_from(span.as_millis()).unwrap_or(i64::MAX));
    }
    let millis = super::number(input) as i64;
    let _ = (yard_ui::text::span(millis), yard_ui::text::span_exact(millis), parse_size(&text));
}
