//! The filter language: `words rig:x state:blocked !label:y wave:3..5 ~regex`. All terms must hold; `!` turns one around.

use std::ops::RangeInclusive;

use regex::{Regex, RegexBuilder};
use yard_engine::bead::BeadEntry;
use yard_engine::{BeadId, Standing, State};

use crate::town::Waves;

/// The fields that can be asked for, with what they mean.
pub const FIELDS: [(&str, &str); 10] = [
    ("id", "part of the id"),
    ("title", "part of the title"),
    ("rig", "the rig, exactly"),
    ("state", "running, queued, blocked, failed, circuit-broken, closed …, or its beginning"),
    ("label", "a label, exactly"),
    ("type", "task, bug, epic …"),
    ("convoy", "part of the convoy's id or title"),
    ("wave", "a wave, or a range: wave:3..5"),
    ("prio", "P0 to P4, or a range: prio:0..1"),
    ("why", "a reason's code or its beginning: why:capacity"),
];

/// Longest pattern, in bytes: looking for it takes as long as it is, for every letter of every title.
const LONGEST_PATTERN: usize = 1000;
/// Largest pattern once it is compiled.
const LARGEST_REGEX: usize = 1 << 20;

/// What rows must satisfy.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    text: String,
    terms: Vec<Term>,
}

#[derive(Debug, Clone)]
struct Term {
    wanted: bool,
    test: Test,
}

#[derive(Debug, Clone)]
enum Test {
    Word(String),
    Id(String),
    Title(String),
    Rig(String),
    State(String),
    Label(String),
    Kind(String),
    Convoy(String),
    Wave(RangeInclusive<u32>),
    Priority(RangeInclusive<u32>),
    Why(String),
    Pattern(Regex),
}

impl Filter {
    /// Reads a filter; the error says which term is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let terms = words(text).iter().map(|word| term(word)).collect::<Result<_, _>>()?;
        // Inside a quote that is not closed yet, the spaces at the end belong to a word.
        let open = text.matches('"').count() % 2 == 1;
        let text = if open { text.trim_start() } else { text.trim() };
        Ok(Self { text: text.to_owned(), terms })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether everything passes.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether a bead passes.
    pub fn lets_through(
        &self,
        state: &State,
        waves: &Waves,
        id: &BeadId,
        standing: Option<Standing>,
    ) -> bool {
        if self.terms.is_empty() {
            return true;
        }
        let Some(entry) = state.bead(id) else { return false };
        self.terms.iter().all(|term| term.test.holds(state, waves, entry, standing) == term.wanted)
    }

    /// Whether a text passes, for lists of other things than beads: fields are looked for as words.
    pub fn lets_text_through(&self, text: &str) -> bool {
        let small = text.to_lowercase();
        self.terms.iter().all(|term| {
            let holds = match &term.test {
                Test::Pattern(pattern) => pattern.is_match(text),
                Test::Word(word)
                | Test::Id(word)
                | Test::Title(word)
                | Test::Rig(word)
                | Test::State(word)
                | Test::Label(word)
                | Test::Kind(word)
                | Test::Convoy(word)
                | Test::Why(word) => small.contains(word),
                Test::Wave(_) | Test::Priority(_) => true,
            };
            holds == term.wanted
        })
    }
}

impl Test {
    fn holds(&self, state: &State, waves: &Waves, entry: &BeadEntry, standing: Option<Standing>) -> bool {
        let bead = &entry.bead;
        match self {
            Self::Word(word) => {
                contains(bead.id.as_str(), word)
                    || contains(&bead.title, word)
                    || bead.labels.iter().any(|label| contains(label, word))
            }
            Self::Id(word) => contains(bead.id.as_str(), word),
            Self::Title(word) => contains(&bead.title, word),
            Self::Rig(name) => {
                state.rig_of(&bead.id).is_some_and(|rig| rig.name.as_str().eq_ignore_ascii_case(name))
            }
            Self::State(word) => {
                standing.is_some_and(|standing| standing.as_str().starts_with(word.as_str()))
            }
            Self::Label(word) => bead.labels.iter().any(|label| label.eq_ignore_ascii_case(word)),
            Self::Kind(word) => {
                let kind = if bead.kind.is_empty() { "task" } else { &bead.kind };
                kind.eq_ignore_ascii_case(word)
            }
            Self::Convoy(word) => state
                .convoys()
                .filter(|convoy| contains(convoy.id.as_str(), word) || contains(&convoy.title, word))
                .any(|convoy| waves.is_in(&bead.id, &convoy.id)),
            Self::Wave(range) => waves.of(&bead.id).is_some_and(|wave| range.contains(&wave)),
            Self::Priority(range) => range.contains(&u32::from(bead.priority)),
            Self::Why(word) => state.reasons(&bead.id).iter().any(|reason| {
                serde_json::to_value(reason.code)
                    .is_ok_and(|code| code.as_str().is_some_and(|code| code.starts_with(word.as_str())))
            }),
            Self::Pattern(pattern) => {
                pattern.is_match(bead.id.as_str())
                    || pattern.is_match(&bead.title)
                    || bead.labels.iter().any(|label| pattern.is_match(label))
            }
        }
    }
}

/// Whether a text contains a word of small letters. Most texts are ASCII, and need no copy.
fn contains(text: &str, word: &str) -> bool {
    if word.is_empty() {
        return true;
    }
    if text.is_ascii() {
        let (text, word) = (text.as_bytes(), word.as_bytes());
        return text.len() >= word.len()
            && text.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word));
    }
    text.to_lowercase().contains(word)
}

/// Splits at spaces, except between quotes.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quoted = false;
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted,
            c if c.is_whitespace() && !quoted => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            c => word.push(c),
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

fn term(word: &str) -> Result<Term, String> {
    let (wanted, rest) = match word.strip_prefix('!') {
        Some(rest) if !rest.is_empty() => (false, rest),
        _ => (true, word),
    };
    if let Some(pattern) = rest.strip_prefix('~') {
        if pattern.len() > LONGEST_PATTERN {
            return Err(format!(
                "a regular expression may have {LONGEST_PATTERN} bytes here, not {}",
                pattern.len()
            ));
        }
        let mut builder = RegexBuilder::new(pattern);
        let built = builder.case_insensitive(true).size_limit(LARGEST_REGEX).build();
        let pattern = built.map_err(|_| format!("~{pattern} is not a regular expression"))?;
        return Ok(Term { wanted, test: Test::Pattern(pattern) });
    }
    let Some((field, value)) = rest.split_once(':') else {
        return Ok(Term { wanted, test: Test::Word(rest.to_lowercase()) });
    };
    let small = value.to_lowercase();
    let test = match field {
        "id" => Test::Id(small),
        "title" => Test::Title(small),
        "rig" => Test::Rig(small),
        "state" => Test::State(small),
        "label" => Test::Label(small),
        "type" => Test::Kind(small),
        "convoy" => Test::Convoy(small),
        "why" => Test::Why(small),
        "wave" => Test::Wave(range(value).ok_or_else(|| format!("wave:{value} is neither 3 nor 3..5"))?),
        "prio" => Test::Priority(
            range(&small.replace('p', "")).ok_or_else(|| format!("prio:{value} is neither P1 nor 0..2"))?,
        ),
        _ => {
            let known: Vec<&str> = FIELDS.iter().map(|(name, _)| *name).collect();
            return Err(format!("{field}: is not a field; there are {}", known.join(", ")));
        }
    };
    Ok(Term { wanted, test })
}

/// `3`, `3..5`, `3..` or `..5`; nothing typed yet lets all pass.
fn range(text: &str) -> Option<RangeInclusive<u32>> {
    let end = |text: &str, open: u32| if text.is_empty() { Some(open) } else { text.parse().ok() };
    match text.split_once("..") {
        Some((from, to)) => Some(end(from, 0)?..=end(to, u32::MAX)?),
        None if text.is_empty() => Some(0..=u32::MAX),
        None => text.parse().ok().map(|one| one..=one),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Yard;

    fn found(filter: &str) -> String {
        let mut yard = Yard::new();
        yard.bead("gt-1", "db migrate", |b| b.labels = vec!["slow".to_owned()]);
        yard.bead("gt-2", "Über lint", |b| b.priority = Some(0));
        yard.bead("gt-3", "lint web", |b| b.kind = "bug".to_owned());
        yard.needs("gt-3", "gt-1");
        let filter = Filter::parse(filter).expect("a filter");
        let waves = Waves::of_town(&yard.state);
        let ids = ["gt-1", "gt-2", "gt-3"].map(|id| id.parse::<BeadId>().expect("an id"));
        let passing =
            ids.iter().filter(|id| filter.lets_through(&yard.state, &waves, id, yard.state.standing(id)));
        passing.map(|id| id.as_str().trim_start_matches("gt-").to_owned()).collect()
    }

    #[test]
    fn words_fields_and_patterns_all_must_hold() {
        assert_eq!(found(""), "123");
        assert_eq!(found("lint"), "23");
        assert_eq!(found("LINT !web"), "2");
        assert_eq!(found("über"), "2");
        assert_eq!(found("label:slow"), "1");
        assert_eq!(found("!label:slow type:bug"), "3");
        assert_eq!(found("prio:p0"), "2");
        assert_eq!(found("prio:1.."), "13");
        assert_eq!(found("~^gt-[12]$"), "12");
        assert_eq!(found("\"lint web\""), "3");
        assert_eq!(found("why:blocked"), "3");
        assert_eq!(found("rig:gt"), "123");
        assert_eq!(found("wave:2"), "");
    }

    #[test]
    fn a_mistake_is_named_and_half_a_term_hides_nothing() {
        assert!(Filter::parse("stat:x").expect_err("no such field").contains("stat:"));
        assert!(Filter::parse("~(").expect_err("no pattern").contains("~("));
        assert!(Filter::parse("wave:x").is_err());
        let long = Filter::parse(&format!("~{}", "]".repeat(2000)));
        assert!(long.expect_err("too long to look for").contains("1000 bytes"));
        assert_eq!(found("state:"), "123");
        let half_quoted = Filter::parse(" \"lint  ").expect("a filter");
        assert_eq!(found("\"lint  "), found(half_quoted.text()), "what is shown is what is looked for");
        assert_eq!(half_quoted.text(), "\"lint  ");
        assert_eq!(found("wave:"), "");
        assert_eq!(found("!"), "");
    }
}
