//! Reading along: what an agent's own output says about its session and its cost. Lines that are not JSON objects, and
//! those that are too long, are passed over; nothing an agent writes can do more than name a session or an amount.

use memchr::memchr;
use serde_json::Value;
use yard_engine::money::Usd;
use yard_engine::session::Session;

use crate::preset::AgentPreset;

/// Longer lines are not looked at.
const LONGEST_LINE: usize = 1 << 20;

/// What the output of one dispatch told so far.
#[derive(Debug, Default)]
pub(super) struct Meter {
    preset: Option<AgentPreset>,
    line: Vec<u8>,
    /// The rest of a line that is too long.
    skipping: bool,
    /// Of the steps before this one.
    before: Bill,
    /// Of this step.
    current: Bill,
    session: Option<Session>,
}

/// What was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Bill {
    pub(super) usd: Usd,
    pub(super) tokens: u64,
}

impl Bill {
    fn plus(mut self, other: Self) -> Self {
        self.usd += other.usd;
        Self { usd: self.usd, tokens: self.tokens.saturating_add(other.tokens) }
    }
}

impl Meter {
    pub(super) fn of_session(session: Option<Session>) -> Self {
        Self { session, ..Self::default() }
    }

    /// Another step begins, whose agent is this one.
    pub(super) fn begin(&mut self, preset: Option<AgentPreset>) {
        self.end_line();
        self.before = self.bill();
        self.current = Bill::default();
        self.line.clear();
        self.skipping = false;
        self.preset = preset;
    }

    pub(super) fn session(&self) -> Option<&Session> {
        self.session.as_ref()
    }

    /// Everything used so far.
    pub(super) fn bill(&self) -> Bill {
        self.before.plus(self.current)
    }

    /// Looks at more output; true if it told something new.
    pub(super) fn read(&mut self, mut bytes: &[u8]) -> bool {
        if self.preset.is_none() {
            return false;
        }
        let before = (self.session.clone(), self.current);
        while let Some(end) = memchr(b'\n', bytes) {
            self.take(&bytes[..end]);
            self.end_line();
            bytes = &bytes[end + 1..];
        }
        self.take(bytes);
        before != (self.session.clone(), self.current)
    }

    /// The line that was being read is over, be it without a newline.
    pub(super) fn end_line(&mut self) {
        let mut line = std::mem::take(&mut self.line);
        if !std::mem::take(&mut self.skipping) {
            self.look_at(&line);
        }
        line.clear();
        self.line = line;
    }

    fn take(&mut self, part: &[u8]) {
        if self.skipping || self.line.len() + part.len() > LONGEST_LINE {
            self.skipping = true;
            self.line.clear();
        } else {
            self.line.extend_from_slice(part);
        }
    }

    fn look_at(&mut self, line: &[u8]) {
        let Some(preset) = self.preset.as_ref().filter(|_| line.trim_ascii_start().starts_with(b"{")) else {
            return;
        };
        let Ok(document) = serde_json::from_slice::<Value>(line) else { return };
        let at = |places: &[String]| places.iter().find_map(|place| document.pointer(place)).cloned();
        if let Some(Value::String(id)) = at(&preset.session)
            && let Ok(session) = Session::new(Some(&preset.name), &id)
        {
            self.session = Some(session);
        }
        let counts = |(place, word): (&String, &String)| {
            document.pointer(place).and_then(Value::as_str) == Some(word.as_str())
        };
        if !preset.only.iter().all(counts) {
            return;
        }
        let cost = at(&preset.cost).and_then(|cost| Usd::from_dollars(cost.as_f64()?).ok());
        if let Some(cost) = cost {
            // A run's own figure is its sum so far, so the largest is the latest.
            self.current.usd = self.current.usd.max(cost);
        }
        let tokens = preset.tokens.iter().filter_map(|place| document.pointer(place)?.as_u64());
        self.current.tokens = tokens.fold(self.current.tokens, u64::saturating_add);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claude() -> Meter {
        let mut meter = Meter::default();
        meter.begin(AgentPreset::of("claude"));
        meter
    }

    #[test]
    fn session_and_cost_are_found_however_the_output_is_cut() {
        let output = concat!(
            "{\"type\":\"system\",\"session_id\":\"s-7\"}\nplain words\n",
            "{\"type\":\"result\",\"total_cost_usd\":0.125,\"session_id\":\"s-7\",",
            "\"usage\":{\"input_tokens\":10,\"output_tokens\":5}}\n",
        );
        for size in [1, 7, 1000] {
            let mut meter = claude();
            let mut news = 0;
            for piece in output.as_bytes().chunks(size) {
                news += usize::from(meter.read(piece));
            }
            assert_eq!(meter.session(), "claude/s-7".parse().ok().as_ref());
            assert_eq!(meter.bill(), Bill { usd: "0.125".parse().expect("an amount"), tokens: 15 });
            assert!((1..=2).contains(&news), "{news}");
        }
    }

    #[test]
    fn a_last_line_without_a_newline_counts() {
        let mut meter = claude();
        meter.read(b"{\"type\":\"result\",\"total_cost_usd\":0.7,\"session_id\":\"s\"}");
        meter.end_line();
        assert_eq!(
            (meter.bill().usd, meter.session()),
            ("0.7".parse().expect("an amount"), "claude/s".parse().ok().as_ref())
        );
    }

    #[test]
    fn absurd_numbers_stay_what_they_are() {
        let mut meter = claude();
        for _ in 0..2 {
            meter.read(b"{\"type\":\"result\",\"total_cost_usd\":900000000,\"usage\":{\"input_tokens\":18446744073709551615,\"output_tokens\":99}}\n");
            meter.begin(AgentPreset::of("claude"));
        }
        assert_eq!(meter.bill(), Bill { usd: Usd::MOST, tokens: u64::MAX });
    }

    #[test]
    fn each_step_adds_to_the_bill() {
        let mut meter = claude();
        meter.read(b"{\"type\":\"result\",\"total_cost_usd\":1}\n");
        meter.begin(AgentPreset::of("claude"));
        meter.read(b"{\"type\":\"result\",\"total_cost_usd\":0.5}\n");
        assert_eq!(meter.bill().usd, "1.5".parse().expect("an amount"));
    }

    #[test]
    fn nonsense_is_passed_over() {
        let mut meter = claude();
        let long = [b"{\"session_id\":\"".as_slice(), &vec![b'x'; 2 << 20], b"\"}\n"].concat();
        for line in [
            b"{\"session_id\":7}\n".as_slice(),
            b"{\"session_id\":\"\"}\n",
            b"{\"session_id\":\"--dangerously-skip-permissions\"}\n",
            b"{\"session_id\":\"a b\"}\n",
            b"{\"type\":\"result\",\"total_cost_usd\":-4}\n",
            b"{\"type\":\"result\",\"total_cost_usd\":1e300}\n",
            b"{\"type\":\"other\",\"total_cost_usd\":3}\n",
            b"{\"session_id\": \n",
            b"\xff\xfe{\n",
            &long,
        ] {
            assert!(!meter.read(line), "{}", String::from_utf8_lossy(&line[..line.len().min(60)]));
        }
        assert!(meter.read(b"{\"session_id\":\"after\"}\n"));
    }

    #[test]
    fn a_program_without_a_preset_is_not_read() {
        let mut meter = Meter::default();
        meter.begin(AgentPreset::of("cat"));
        assert!(!meter.read(b"{\"session_id\":\"s-7\"}\n"));
    }
}
