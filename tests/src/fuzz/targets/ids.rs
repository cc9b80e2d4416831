//! Ids and names: what is taken is a safe file name, and stands for itself alone.

use yard_engine::session::Session;
use yard_engine::{
    AccountName, AgentName, AlertId, BeadId, ContextId, ConvoyId, DispatchId, FormulaName, RigName,
};

pub(super) const WORDS: &[&str] = &[
    "gt-abc",
    "a@1",
    "a@01",
    "a@+1",
    "a@4294967295",
    "a@@1",
    "а-1",
    "Ａ",
    "ｇt",
    "claude/s-1",
    "a..b",
    "...",
    "CON",
    "nul.txt",
    "a\u{0}b",
];

pub(super) fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let fits = |text: &str| {
        (1..=128).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
            && text.as_bytes()[0].is_ascii_alphanumeric()
    };
    let taken = [
        BeadId::parse(&text).ok().map(|id| id.to_string()),
        ContextId::parse(&text).ok().map(|id| id.to_string()),
        ConvoyId::parse(&text).ok().map(|id| id.to_string()),
        AlertId::parse(&text).ok().map(|id| id.to_string()),
        AgentName::parse(&text).ok().map(|id| id.to_string()),
        RigName::parse(&text).ok().map(|id| id.to_string()),
        FormulaName::parse(&text).ok().map(|id| id.to_string()),
        AccountName::parse(&text).ok().map(|id| id.to_string()),
    ];
    for id in taken {
        assert_eq!(id.is_some(), fits(&text), "{text:?}");
        assert!(id.is_none_or(|id| id == text));
    }
    let as_json: Result<BeadId, _> = serde_json::from_value(text.as_ref().into());
    assert_eq!(as_json.is_ok(), fits(&text), "{text:?}");
    if let Ok(dispatch) = DispatchId::parse(&text) {
        assert!(fits(dispatch.bead().as_str()));
        assert_eq!(dispatch.to_string(), text, "another spelling of the same attempt");
    }
    if let Ok(session) = text.parse::<Session>() {
        assert_eq!(session.to_string(), text);
        assert!(!session.id().starts_with('-') && session.id().is_ascii());
    }
}
