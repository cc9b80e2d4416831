//! Reading along: what an agent's own output says about its session and its cost, what it is doing, and whether its
//! service refused. Lines that are too long are passed over; nothing an agent writes can do more than name a session, an
//! amount, a sentence for people, or a refusal at the places its preset names.

use memchr::{memchr, memrchr2};
use serde_json::Value;
use yard_engine::money::Usd;
use yard_engine::session::Session;

use super::said::said;
use crate::preset::{AgentPreset, holds};

/// Longer lines are not looked at.
const LONGEST_LINE: usize = 1 << 20;
/// So much of a line is kept of which only a sentence is wanted.
const SENTENCE: usize = 4096;

/// What the output of one dispatch told so far.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    preset: Option<AgentPreset>,
    line: Vec<u8>,
    /// The rest of a line that is too long.
    skipping: bool,
    /// Of the steps before this one.
    before: Bill,
    /// Of this step.
    current: Bill,
    session: Option<Session>,
    /// The last sentence of this step.
    last_line: Option<String>,
    /// How this step's service refused, as long as nothing shows that it went on.
    refusal: Option<String>,
}

/// What was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Bill {
    pub(crate) usd: Usd,
    pub(crate) tokens: u64,
}

impl Bill {
    fn plus(mut self, other: Self) -> Self {
        self.usd += other.usd;
        Self { usd: self.usd, tokens: self.tokens.saturating_add(other.tokens) }
    }
}

/// What a piece of output told that was not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct News {
    /// A session, a cost, tokens.
    pub(crate) figures: bool,
    /// Another last line.
    pub(crate) line: bool,
}

impl Meter {
    pub(crate) fn of_session(session: Option<Session>) -> Self {
        Self { session, ..Self::default() }
    }

    /// Another step begins, whose agent is this one.
    pub(crate) fn begin(&mut self, preset: Option<AgentPreset>) {
        self.end_line();
        self.before = self.bill();
        self.current = Bill::default();
        self.line.clear();
        self.skipping = false;
        self.last_line = None;
        self.refusal = None;
        self.preset = preset;
    }

    pub(crate) fn session(&self) -> Option<&Session> {
        self.session.as_ref()
    }

    /// Everything used so far.
    pub(crate) fn bill(&self) -> Bill {
        self.before.plus(self.current)
    }

    /// What a person would read of the output's end.
    pub(crate) fn last_line(&self) -> Option<&str> {
        self.last_line.as_deref()
    }

    /// How the agent's service refused, if that was its last word.
    pub(crate) fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// The program has ended with this code, after all of its output was read.
    pub(crate) fn end_program(&mut self, code: Option<i32>) {
        self.end_line();
        let Some(preset) = &self.preset else { return };
        if let Some(code) = code.filter(|code| preset.unavailable_codes.contains(code)) {
            self.refusal.get_or_insert_with(|| format!("{} says so with exit code {code}", preset.name));
        }
    }

    /// Looks at more output.
    pub(crate) fn read(&mut self, mut bytes: &[u8]) -> News {
        if self.preset.is_none() {
            return News { figures: false, line: self.skim(bytes) };
        }
        let before = (self.session.clone(), self.current);
        let mut news = News::default();
        while let Some(end) = memchr(b'\n', bytes) {
            self.take(&bytes[..end]);
            news.line |= self.end_line();
            bytes = &bytes[end + 1..];
        }
        self.take(bytes);
        news.figures = before != (self.session.clone(), self.current);
        news
    }

    /// The line that was being read is over, be it without a newline; true if it was worth a sentence.
    pub(crate) fn end_line(&mut self) -> bool {
        let mut line = std::mem::take(&mut self.line);
        let skipped = std::mem::take(&mut self.skipping);
        let news = !skipped && if self.preset.is_some() { self.look_at(&line) } else { self.say(&line) };
        line.clear();
        self.line = line;
        news
    }

    fn take(&mut self, part: &[u8]) {
        if self.skipping || self.line.len() + part.len() > LONGEST_LINE {
            self.skipping = true;
            self.line.clear();
        } else {
            self.line.extend_from_slice(part);
        }
    }

    /// Of a program that is no agent only the last line is wanted, so most of what it writes is not looked at.
    fn skim(&mut self, bytes: &[u8]) -> bool {
        let Some(end) = memrchr2(b'\n', b'\r', bytes) else {
            self.keep_start(bytes);
            return false;
        };
        let mut lines = bytes[..end].rsplit(|byte| matches!(byte, b'\n' | b'\r')).peekable();
        let mut news = false;
        while let Some(line) = lines.next() {
            if lines.peek().is_none() {
                // It began in an earlier piece.
                self.keep_start(line);
                let line = std::mem::take(&mut self.line);
                news = self.say(&line);
            } else if !line.trim_ascii().is_empty() {
                news = self.say(line);
                break;
            }
        }
        self.line.clear();
        self.keep_start(&bytes[end + 1..]);
        news
    }

    fn keep_start(&mut self, part: &[u8]) {
        let room = SENTENCE.saturating_sub(self.line.len());
        self.line.extend_from_slice(&part[..part.len().min(room)]);
    }

    fn say(&mut self, line: &[u8]) -> bool {
        let text = String::from_utf8_lossy(&line[..line.len().min(SENTENCE)]);
        self.note(&text)
    }

    fn note(&mut self, text: &str) -> bool {
        let sentence = said(text);
        if sentence.is_none() || sentence == self.last_line {
            return false;
        }
        self.last_line = sentence;
        true
    }

    /// Takes from a line what the preset names; true if it was worth a sentence.
    fn look_at(&mut self, line: &[u8]) -> bool {
        let Some(preset) = self.preset.take() else { return false };
        let text = line.trim_ascii();
        let document = if text.starts_with(b"{") { serde_json::from_slice::<Value>(text).ok() } else { None };
        let sentence = match &document {
            Some(document) => preset.says.iter().find_map(|saying| saying.heard(document)),
            None => Some(String::from_utf8_lossy(&text[..text.len().min(SENTENCE)]).into_owned()),
        };
        let document = document.unwrap_or_else(|| String::from_utf8_lossy(text).into());
        self.weigh(&preset, &document);
        self.judge(&preset, &document);
        self.preset = Some(preset);
        sentence.is_some_and(|sentence| self.note(&sentence))
    }

    /// Session, cost and tokens.
    fn weigh(&mut self, preset: &AgentPreset, line: &Value) {
        let id = preset.session.iter().find_map(|place| line.pointer(place)?.as_str());
        if let Some(Ok(session)) = id.map(|id| Session::new(Some(&preset.name), id)) {
            self.session = Some(session);
        }
        if !holds(&preset.only, line) {
            return;
        }
        let cost = preset.cost.iter().find_map(|place| Usd::from_dollars(place.number(line)?).ok());
        match cost {
            Some(cost) if preset.cost_adds => self.current.usd += cost,
            // A run's own figure is its sum so far, so the largest is the latest.
            Some(cost) => self.current.usd = self.current.usd.max(cost),
            None => {}
        }
        let tokens = preset.tokens.iter().filter_map(|place| place.count(line));
        self.current.tokens = tokens.fold(self.current.tokens, u64::saturating_add);
    }

    /// Whether the service refused, or goes on.
    fn judge(&mut self, preset: &AgentPreset, line: &Value) {
        if preset.recovered.iter().any(|sign| sign.found(line).is_some()) {
            self.refusal = None;
        }
        if let Some(words) = preset.unavailable.iter().find_map(|sign| sign.found(line)) {
            self.refusal = Some(said(&words).unwrap_or_else(|| format!("{} gave no reason", preset.name)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset::Presets;

    fn agent(name: &str) -> Option<AgentPreset> {
        Presets::built_in().find(name).cloned()
    }

    fn meter_of(name: &str) -> Meter {
        let mut meter = Meter::default();
        meter.begin(agent(name));
        meter
    }

    fn claude() -> Meter {
        meter_of("claude")
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
                news += usize::from(meter.read(piece).figures);
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
            meter.begin(agent("claude"));
        }
        assert_eq!(meter.bill(), Bill { usd: Usd::MOST, tokens: u64::MAX });
    }

    #[test]
    fn each_step_adds_to_the_bill() {
        let mut meter = claude();
        meter.read(b"{\"type\":\"result\",\"total_cost_usd\":1}\n");
        meter.begin(agent("claude"));
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
            assert!(!meter.read(line).figures, "{}", String::from_utf8_lossy(&line[..line.len().min(60)]));
        }
        assert!(meter.read(b"{\"session_id\":\"after\"}\n").figures);
    }

    #[test]
    fn a_program_without_a_preset_is_not_read() {
        let mut meter = Meter::default();
        meter.begin(agent("cat"));
        assert!(!meter.read(b"{\"session_id\":\"s-7\"}\n").figures);
    }

    #[test]
    fn the_last_line_is_the_last_with_something_in_it() {
        let output = "one\n\x1b[32mtwo\x1b[0m words\t here\n\n  \nthree";
        for size in [1, 5, 1000] {
            let mut meter = Meter::default();
            let mut news = 0;
            for piece in output.as_bytes().chunks(size) {
                news += usize::from(meter.read(piece).line);
            }
            assert_eq!(meter.last_line(), Some("two words here"), "pieces of {size}");
            assert!((1..=2).contains(&news), "{news}");
            meter.end_line();
            assert_eq!(meter.last_line(), Some("three"));
        }
        let mut bar = Meter::default();
        bar.read(b"10 %\r20 %\r30 %\r");
        assert_eq!(bar.last_line(), Some("30 %"));
    }

    #[test]
    fn of_an_agents_line_a_person_reads_what_it_does() {
        for (name, line, sentence) in [
            (
                "claude",
                r#"{"type":"assistant","message":{"content":[{"type":"text","text":"First.\nNow the tests."}]}}"#,
                "Now the tests.",
            ),
            (
                "claude",
                r#"{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Bash","input":{"command":"cargo test"}}]}}"#,
                "Bash cargo test",
            ),
            (
                "codex",
                r#"{"type":"item.started","item":{"id":"1","type":"command_execution","command":"ls"}}"#,
                "ls",
            ),
            (
                "gemini",
                r#"{"type":"tool_use","tool_name":"run_shell_command","tool_id":"1","parameters":{"command":"ls"}}"#,
                "run_shell_command ls",
            ),
            (
                "opencode",
                r#"{"type":"tool_use","sessionID":"s","part":{"tool":"bash","state":{"title":"List files"}}}"#,
                "bash List files",
            ),
            ("aider", "Applied edit to a.py", "Applied edit to a.py"),
        ] {
            let mut meter = meter_of(name);
            assert!(meter.read(format!("{line}\n").as_bytes()).line, "{name}");
            assert_eq!(meter.last_line(), Some(sentence));
            assert!(!meter.read(b"{\"type\":\"system\"}\n").line, "{name}");
        }
    }

    #[test]
    fn a_refusal_of_the_service_is_the_last_word_of_its_errors() {
        for (name, line) in [
            (
                "claude",
                r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"You've hit your session limit"}"#,
            ),
            (
                "claude",
                r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":null,"result":"Not logged in · Please run /login"}"#,
            ),
            (
                "claude",
                r#"{"type":"assistant","message":{"content":[{"type":"text","text":"Overloaded"}]},"error":"overloaded"}"#,
            ),
            (
                "codex",
                r#"{"type":"turn.failed","error":{"message":"exceeded retry limit, last status: 429 Too Many Requests"}}"#,
            ),
            ("codex", r#"{"type":"error","message":"You've hit your usage limit. Try again later."}"#),
            (
                "gemini",
                r#"{"type":"result","status":"error","error":{"type":"Error","message":"RESOURCE_EXHAUSTED"}}"#,
            ),
            ("gemini", "[API Error: You have exhausted your daily quota]"),
            (
                "opencode",
                r#"{"type":"error","sessionID":"s","error":{"name":"APIError","data":{"message":"slow down","statusCode":429,"isRetryable":true}}}"#,
            ),
            (
                "opencode",
                r#"{"type":"error","sessionID":"s","error":{"name":"ProviderAuthError","data":{"providerID":"x","message":"no key"}}}"#,
            ),
            ("aider", "The API provider has rate limited you. Try again later or check your quotas."),
        ] {
            let mut meter = meter_of(name);
            meter.read(format!("{line}\n").as_bytes());
            assert!(meter.refusal().is_some(), "{name}: {line}");
        }
    }

    #[test]
    fn what_an_agent_says_about_rate_limits_is_no_refusal() {
        for (name, line) in [
            (
                "claude",
                r#"{"type":"assistant","message":{"content":[{"type":"text","text":"API Error: 429 rate limit"}]}}"#,
            ),
            (
                "claude",
                r#"{"type":"result","subtype":"success","is_error":false,"result":"You've hit your rate limit code"}"#,
            ),
            (
                "claude",
                r#"{"type":"result","subtype":"error_max_turns","is_error":true,"result":"I worked on the rate limit"}"#,
            ),
            (
                "codex",
                r#"{"type":"item.completed","item":{"type":"agent_message","text":"You've hit your usage limit"}}"#,
            ),
            ("codex", r#"{"type":"turn.failed","error":{"message":"the rate limit test fails"}}"#),
            (
                "gemini",
                r#"{"type":"message","role":"assistant","content":"quota RESOURCE_EXHAUSTED","delta":true}"#,
            ),
            (
                "gemini",
                r#"{"type":"tool_result","tool_id":"1","status":"error","error":{"type":"x","message":"quota"}}"#,
            ),
            ("opencode", r#"{"type":"text","sessionID":"s","part":{"text":"rate limit"}}"#),
            ("aider", "I added a rate limit to the client."),
        ] {
            let mut meter = meter_of(name);
            meter.read(format!("{line}\n").as_bytes());
            meter.end_program(Some(1));
            assert_eq!(meter.refusal(), None, "{name}: {line}");
        }
    }

    #[test]
    fn an_agent_that_goes_on_was_not_refused() {
        let mut meter = meter_of("aider");
        meter.read(b"litellm.RateLimitError: slow down\nRetrying in 0.2 seconds...\n");
        assert!(meter.refusal().is_some());
        meter.read(b"Tokens: 2.5k sent, 1k received. Cost: $0.01 message, $0.02 session.\n");
        assert_eq!(meter.refusal(), None);
        assert_eq!(meter.bill(), Bill { usd: "0.02".parse().expect("an amount"), tokens: 3500 });
        meter.read(b"litellm.RateLimitError: slow down\n");
        meter.begin(agent("aider"));
        assert_eq!(meter.refusal(), None, "another step");
    }

    #[test]
    fn an_exit_code_may_say_it_too() {
        let mut meter = meter_of("gemini");
        meter.end_program(Some(1));
        assert_eq!(meter.refusal(), None);
        meter.end_program(Some(41));
        assert!(meter.refusal().is_some_and(|words| words.contains("41")));
    }
}
