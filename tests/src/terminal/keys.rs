//! Keys by the names the console gives them.

/// What a program gets when a key of this name is pressed.
pub(super) fn bytes_of(name: &str) -> Vec<u8> {
    let text = match name {
        "Enter" => "\r",
        "Esc" => "\x1b",
        "Tab" => "\t",
        "BackTab" => "\x1b[Z",
        "Space" => " ",
        "Backspace" => "\x7f",
        "Del" => "\x1b[3~",
        "Up" => "\x1b[A",
        "Down" => "\x1b[B",
        "Right" => "\x1b[C",
        "Left" => "\x1b[D",
        "Home" => "\x1b[H",
        "End" => "\x1b[F",
        "PgUp" => "\x1b[5~",
        "PgDn" => "\x1b[6~",
        "F1" => "\x1bOP",
        other => match other.strip_prefix("Ctrl-").map(str::as_bytes) {
            Some([letter]) => return vec![letter.to_ascii_lowercase() & 0x1f],
            _ => other,
        },
    };
    assert!(text.starts_with('\x1b') || text.chars().count() == 1, "{name:?} is not the name of a key");
    text.as_bytes().to_vec()
}
