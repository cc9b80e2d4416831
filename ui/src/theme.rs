//! Colours by what they mean. A theme is a TOML file that gives each [`Role`] a style; nothing else in the console
//! names a colour.

use std::collections::BTreeMap;
use std::str::FromStr;

use ratatui::style::{Color, Modifier, Style};

/// What a piece of the screen means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Plain text.
    Text,
    /// Of little interest.
    Dim,
    /// Headings.
    Title,
    /// Values that stand out.
    Accent,
    /// Frames.
    Border,
    /// The frame that has the keyboard.
    Focus,
    /// The selected row.
    Selection,
    /// Marked rows.
    Mark,
    /// A worker is on it.
    Running,
    /// Could start.
    Queued,
    /// Waits for something.
    Blocked,
    /// Planned, not launched.
    Staged,
    /// Nothing asked of it.
    Open,
    /// Over and well.
    Done,
    /// All is well.
    Good,
    /// Should be looked at.
    Warning,
    /// Needs a person.
    Bad,
    /// What ran.
    Past,
    /// What ran, on the critical path.
    PastCritical,
    /// What will run.
    Plan,
    /// What will run, on the critical path.
    PlanCritical,
    /// The line of now.
    Now,
    /// Keys.
    Key,
    /// The word LIVE.
    Live,
    /// The words PAUSED, FROZEN, REPLAY, SIMULATION and DISCONNECTED.
    Mode,
}

/// Every role with its name in theme files, and a letter for pictures of styles in tests.
pub const ROLES: [(Role, &str, char); 25] = [
    (Role::Text, "text", ' '),
    (Role::Dim, "dim", 'd'),
    (Role::Title, "title", 't'),
    (Role::Accent, "accent", 'a'),
    (Role::Border, "border", '-'),
    (Role::Focus, "focus", '='),
    (Role::Selection, "selection", '#'),
    (Role::Mark, "mark", 'm'),
    (Role::Running, "running", 'R'),
    (Role::Queued, "queued", 'Q'),
    (Role::Blocked, "blocked", 'B'),
    (Role::Staged, "staged", 'S'),
    (Role::Open, "open", 'o'),
    (Role::Done, "done", 'x'),
    (Role::Good, "good", 'g'),
    (Role::Warning, "warning", 'w'),
    (Role::Bad, "bad", '!'),
    (Role::Past, "past", 'p'),
    (Role::PastCritical, "past-critical", 'P'),
    (Role::Plan, "plan", 'f'),
    (Role::PlanCritical, "plan-critical", 'F'),
    (Role::Now, "now", 'n'),
    (Role::Key, "key", 'k'),
    (Role::Live, "live", 'L'),
    (Role::Mode, "mode", 'M'),
];

/// The themes that come with the program.
pub const SHIPPED: [(&str, &str); 4] = [
    ("terminal", include_str!("../../assets/themes/terminal.toml")),
    ("okabe-ito", include_str!("../../assets/themes/okabe-ito.toml")),
    ("light", include_str!("../../assets/themes/light.toml")),
    ("mono", include_str!("../../assets/themes/mono.toml")),
];

/// A style for every role.
#[derive(Debug, Clone)]
pub struct Theme {
    name: String,
    styles: BTreeMap<Role, Style>,
}

/// Why a theme cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadTheme {
    /// Neither shipped nor a file.
    #[error("there is no theme {0:?}: use terminal, okabe-ito, light, mono, or the path of a TOML file")]
    Unknown(String),
    /// Not TOML, or not a table of texts.
    #[error("the theme {name} cannot be read: {error}")]
    Unreadable {
        /// Which.
        name: String,
        /// What is wrong.
        error: String,
    },
}

impl Theme {
    /// A theme that comes with the program.
    pub fn shipped(name: &str) -> Result<Self, BadTheme> {
        let found = SHIPPED.iter().find(|(known, _)| *known == name);
        let (name, text) = found.ok_or_else(|| BadTheme::Unknown(name.to_owned()))?;
        Self::parse(name, text)
    }

    /// Reads a theme. Roles it does not name are plain; unknown ones are refused, because they are typing mistakes.
    pub fn parse(name: &str, text: &str) -> Result<Self, BadTheme> {
        let bad = |error: String| BadTheme::Unreadable { name: name.to_owned(), error };
        let words: BTreeMap<String, String> = toml::from_str(text).map_err(|e| bad(e.to_string()))?;
        let mut styles = BTreeMap::new();
        for (key, value) in &words {
            let role = ROLES.iter().find(|(_, known, _)| known == key);
            let (role, _, _) = role.ok_or_else(|| bad(format!("there is no role {key:?}")))?;
            styles.insert(*role, style(value).map_err(|e| bad(format!("{key}: {e}")))?);
        }
        Ok(Self { name: name.to_owned(), styles })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The style of a role.
    pub fn style(&self, role: Role) -> Style {
        self.styles.get(&role).copied().unwrap_or_default()
    }
}

/// Reads `green on black bold`.
fn style(text: &str) -> Result<Style, String> {
    let mut style = Style::default();
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        style = match word {
            "on" => {
                let colour = words.next().ok_or("a colour must follow \"on\"")?;
                style.bg(colour_named(colour)?)
            }
            "bold" => style.add_modifier(Modifier::BOLD),
            "dim" => style.add_modifier(Modifier::DIM),
            "italic" => style.add_modifier(Modifier::ITALIC),
            "underlined" => style.add_modifier(Modifier::UNDERLINED),
            "reversed" => style.add_modifier(Modifier::REVERSED),
            colour => style.fg(colour_named(colour)?),
        };
    }
    Ok(style)
}

fn colour_named(word: &str) -> Result<Color, String> {
    Color::from_str(word).map_err(|_| format!("{word:?} is neither a colour nor a way to write"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_theme_names_every_role() {
        for (name, _) in SHIPPED {
            let theme = Theme::shipped(name).expect("a theme");
            for (role, word, _) in ROLES {
                assert!(theme.styles.contains_key(&role), "{name} says nothing of {word}");
            }
        }
    }

    #[test]
    fn mono_has_no_colour_and_still_shows_what_is_selected() {
        let mono = Theme::shipped("mono").expect("a theme");
        for (role, word, _) in ROLES {
            let style = mono.style(role);
            assert_eq!((style.fg, style.bg), (None, None), "{word}");
        }
        assert!(mono.style(Role::Selection).add_modifier.contains(Modifier::REVERSED));
        assert_ne!(mono.style(Role::Bad), mono.style(Role::Text));
    }

    #[test]
    fn a_mistake_in_a_theme_is_named() {
        let message = |text| Theme::parse("mine", text).expect_err("a mistake").to_string();
        assert!(message("runing = \"green\"").contains("\"runing\""));
        assert!(message("running = \"grene\"").contains("\"grene\""));
        assert!(message("running = \"green on\"").contains("must follow"));
        assert!(Theme::shipped("neon").expect_err("unknown").to_string().contains("okabe-ito"));
    }
}
