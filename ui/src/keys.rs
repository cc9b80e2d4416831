//! Keys by name: `j`, `Ctrl-p`, `PgDn`. The registry, help and tests write them like this.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// The name of a key; none if no action could have it.
pub fn name(key: KeyEvent) -> Option<String> {
    let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
    let alt = key.modifiers.contains(KeyModifiers::ALT);
    let base = match key.code {
        KeyCode::Char(' ') => "Space".to_owned(),
        KeyCode::Char(c) if ctrl => c.to_ascii_lowercase().to_string(),
        KeyCode::Char(c) => c.to_string(),
        KeyCode::Enter => "Enter".to_owned(),
        KeyCode::Esc => "Esc".to_owned(),
        KeyCode::Tab => "Tab".to_owned(),
        KeyCode::BackTab => "BackTab".to_owned(),
        KeyCode::Backspace => "Backspace".to_owned(),
        KeyCode::Delete => "Del".to_owned(),
        KeyCode::Up => "Up".to_owned(),
        KeyCode::Down => "Down".to_owned(),
        KeyCode::Left => "Left".to_owned(),
        KeyCode::Right => "Right".to_owned(),
        KeyCode::Home => "Home".to_owned(),
        KeyCode::End => "End".to_owned(),
        KeyCode::PageUp => "PgUp".to_owned(),
        KeyCode::PageDown => "PgDn".to_owned(),
        KeyCode::F(number) => format!("F{number}"),
        _ => return None,
    };
    Some(match (ctrl, alt) {
        (true, _) => format!("Ctrl-{base}"),
        (false, true) => format!("Alt-{base}"),
        (false, false) => base,
    })
}

/// The key of a name, for tests and demonstrations.
pub fn key(name: &str) -> Option<KeyEvent> {
    let (modifiers, base) = match name.split_once('-') {
        Some(("Ctrl", base)) if !base.is_empty() => (KeyModifiers::CONTROL, base),
        Some(("Alt", base)) if !base.is_empty() => (KeyModifiers::ALT, base),
        _ => (KeyModifiers::NONE, name),
    };
    let code = match base {
        "Space" => KeyCode::Char(' '),
        "Enter" => KeyCode::Enter,
        "Esc" => KeyCode::Esc,
        "Tab" => KeyCode::Tab,
        "BackTab" => KeyCode::BackTab,
        "Backspace" => KeyCode::Backspace,
        "Del" => KeyCode::Delete,
        "Up" => KeyCode::Up,
        "Down" => KeyCode::Down,
        "Left" => KeyCode::Left,
        "Right" => KeyCode::Right,
        "Home" => KeyCode::Home,
        "End" => KeyCode::End,
        "PgUp" => KeyCode::PageUp,
        "PgDn" => KeyCode::PageDown,
        "F1" => KeyCode::F(1),
        one if one.chars().count() == 1 => KeyCode::Char(one.chars().next()?),
        _ => return None,
    };
    Some(KeyEvent::new(code, modifiers))
}
