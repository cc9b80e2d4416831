//! How everything looks: theme, characters, and how times are written. Chosen once, from flags and the environment.

use ratatui::style::Style;
use yard_engine::Standing;

use crate::glyphs::{ASCII, Glyphs, UNICODE};
use crate::text::Zone;
use crate::theme::{BadTheme, Role, Theme};

/// What was asked for; the environment decides the rest.
#[derive(Debug, Clone, Default)]
pub struct Wishes {
    /// A theme by name, or the path of one.
    pub theme: Option<String>,
    /// Only ASCII characters.
    pub ascii: bool,
    /// Colours were switched off.
    pub no_color: bool,
}

/// How everything looks.
#[derive(Debug, Clone)]
pub struct Look {
    /// The colours.
    pub theme: Theme,
    /// The characters.
    pub glyphs: Glyphs,
    /// How times are written.
    pub zone: Zone,
}

impl Look {
    /// Decides by flags first, then by `YM_THEME`, `NO_COLOR` and the locale.
    pub fn choose(wishes: &Wishes, environment: impl Fn(&str) -> Option<String>) -> Result<Self, BadTheme> {
        let set = |name: &str| environment(name).filter(|value| !value.is_empty());
        let named = wishes.theme.clone().or_else(|| set("YM_THEME"));
        let theme = match named {
            Some(name) => theme_named(&name)?,
            None if wishes.no_color || set("NO_COLOR").is_some() => Theme::shipped("mono")?,
            None => Theme::shipped("terminal")?,
        };
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set).unwrap_or_default();
        let utf8 = locale.to_lowercase().replace('-', "").contains("utf8");
        let glyphs = if wishes.ascii || !utf8 { ASCII } else { UNICODE };
        Ok(Self { theme, glyphs, zone: Zone::Local })
    }

    /// A look for pictures and tests, the same everywhere.
    pub fn fixed(theme: &str, ascii: bool) -> Result<Self, BadTheme> {
        let glyphs = if ascii { ASCII } else { UNICODE };
        Ok(Self { theme: Theme::shipped(theme)?, glyphs, zone: Zone::Utc })
    }

    /// The style of a role.
    pub fn style(&self, role: Role) -> Style {
        self.theme.style(role)
    }

    /// The role of a standing.
    pub fn role_of(standing: Option<Standing>) -> Role {
        match standing {
            Some(Standing::Running) => Role::Running,
            Some(Standing::Queued | Standing::Assigned) => Role::Queued,
            Some(Standing::Blocked) => Role::Blocked,
            Some(Standing::Staged) => Role::Staged,
            Some(Standing::Open) => Role::Open,
            Some(Standing::Done | Standing::Closed) => Role::Done,
            Some(Standing::Failed | Standing::CircuitBroken) => Role::Bad,
            Some(Standing::Cancelled) | None => Role::Warning,
        }
    }
}

fn theme_named(name: &str) -> Result<Theme, BadTheme> {
    if !name.contains(['/', '.']) {
        return Theme::shipped(name);
    }
    let unreadable =
        |error: std::io::Error| BadTheme::Unreadable { name: name.to_owned(), error: error.to_string() };
    let text = std::fs::read_to_string(name).map_err(unreadable)?;
    Theme::parse(name, &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(wishes: &Wishes, environment: &[(&str, &str)]) -> (String, bool) {
        let look = Look::choose(wishes, |name| {
            environment.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        });
        let look = look.expect("a look");
        (look.theme.name().to_owned(), look.glyphs.ascii)
    }

    #[test]
    fn flags_go_before_the_environment_and_the_environment_before_the_default() {
        let utf8 = ("LANG", "en_US.UTF-8");
        let none = Wishes::default();
        assert_eq!(chosen(&none, &[utf8]), ("terminal".to_owned(), false));
        assert_eq!(chosen(&none, &[utf8, ("NO_COLOR", "1")]), ("mono".to_owned(), false));
        assert_eq!(chosen(&none, &[utf8, ("YM_THEME", "light")]), ("light".to_owned(), false));
        assert_eq!(chosen(&none, &[("LANG", "C")]), ("terminal".to_owned(), true));
        assert_eq!(chosen(&none, &[utf8, ("LC_ALL", "C")]), ("terminal".to_owned(), true));
        let wishes = Wishes { theme: Some("okabe-ito".to_owned()), ascii: true, no_color: true };
        assert_eq!(chosen(&wishes, &[utf8, ("YM_THEME", "light")]), ("okabe-ito".to_owned(), true));
    }
}
