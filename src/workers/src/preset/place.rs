//! Where something stands in a line of output: a JSON pointer, or words around a number in plain text.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Where a number stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Place {
    /// In a JSON object, by its pointer.
    Pointer(String),
    /// In a line of text, by the words around it.
    Text(TextPlace),
}

/// A number in a line of text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextPlace {
    /// How the line starts.
    pub line: String,
    /// What stands right before the number.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub after: String,
    /// What stands right behind it.
    pub before: String,
}

impl Place {
    /// The number that stands there.
    pub(crate) fn number(&self, line: &Value) -> Option<f64> {
        match self {
            Self::Pointer(pointer) => line.pointer(pointer)?.as_f64(),
            Self::Text(place) => place.number(line.as_str()?),
        }
    }

    /// The count that stands there; whole numbers of JSON are taken as they are.
    pub(crate) fn count(&self, line: &Value) -> Option<u64> {
        match self {
            Self::Pointer(pointer) => line.pointer(pointer)?.as_u64(),
            Self::Text(place) => {
                let number = place.number(line.as_str()?)?;
                // Negative numbers cannot be written there, and `as` stops at the largest.
                Some(number.round() as u64)
            }
        }
    }
}

impl TextPlace {
    fn number(&self, line: &str) -> Option<f64> {
        if !line.starts_with(&self.line) {
            return None;
        }
        let end = line.find(&self.before)?;
        let head = &line[..end];
        let start = head
            .rfind(|c: char| !matches!(c, '0'..='9' | '.' | ',' | 'k' | 'M'))
            .map_or(0, |at| at + head[at..].chars().next().map_or(1, char::len_utf8));
        if !head[..start].ends_with(&self.after) {
            return None;
        }
        let digits = head[start..].replace(',', "");
        let (digits, unit) = match digits.strip_suffix('k') {
            Some(thousands) => (thousands, 1e3),
            None => digits.strip_suffix('M').map_or((digits.as_str(), 1.0), |millions| (millions, 1e6)),
        };
        digits.parse::<f64>().ok().filter(|number| number.is_finite()).map(|number| number * unit)
    }
}

/// The text at a pointer, numbers and truth values as they are written.
pub(super) fn text_at(line: &Value, pointer: &str) -> Option<String> {
    match line.pointer(pointer)? {
        Value::String(text) => Some(text.clone()),
        value @ (Value::Number(_) | Value::Bool(_)) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str, after: &str, before: &str) -> Option<f64> {
        TextPlace { line: "Tokens:".to_owned(), after: after.to_owned(), before: before.to_owned() }
            .number(line)
    }

    #[test]
    fn a_number_is_found_by_the_words_around_it() {
        let line = "Tokens: 12k sent, 1.5k cache hit, 842 received. Cost: $0.03 message, $1.25 session.";
        assert_eq!(found(line, "", " sent"), Some(12_000.0));
        assert_eq!(found(line, "", " received"), Some(842.0));
        assert_eq!(found(line, "$", " session"), Some(1.25));
        assert_eq!(found("Tokens: 1,234 sent", "", " sent"), Some(1234.0));
        for line in ["", "12k sent", "Tokens: x sent", "Tokens: € sent", "Tokens: 1.2.3 sent", "Tokens: sent"]
        {
            assert_eq!(found(line, "", " sent"), None, "{line}");
        }
        assert_eq!(found("Tokens: 1 sent, 2 session", "$", " session"), None);
    }
}
