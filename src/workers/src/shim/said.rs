//! A line of output as a sentence for people: what a terminal would show of it, short.

/// Longest sentence, in characters.
const LONGEST: usize = 200;

/// The last line of a text that has something in it, without escape sequences and control characters.
pub(super) fn said(text: &str) -> Option<String> {
    let mut lines = text.rsplit(['\n', '\r']).map(plain);
    let sentence = lines.find(|line| !line.is_empty())?;
    let Some((cut, _)) = sentence.char_indices().nth(LONGEST) else { return Some(sentence) };
    let end = sentence[..cut].char_indices().last().map_or(0, |(last, _)| last);
    Some(format!("{}…", &sentence[..end]))
}

fn plain(line: &str) -> String {
    let mut out = String::with_capacity(line.len().min(LONGEST * 4));
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => match chars.next() {
                // Colours and the like end with a letter, titles with a bell or a backslash.
                Some('[') => drop(chars.by_ref().find(|c| matches!(c, '@'..='~'))),
                Some(']') => drop(chars.by_ref().find(|c| matches!(c, '\u{7}' | '\\'))),
                _ => {}
            },
            c if c.is_whitespace() => {
                if !out.is_empty() && !out.ends_with(' ') {
                    out.push(' ');
                }
            }
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out.truncate(out.trim_end().len());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_what_a_terminal_would_show() {
        assert_eq!(
            said("a\n\x1b]0;title\x07\x1b[1;31m  red\x1b[0m\tand\x07 done  \n\n").as_deref(),
            Some("red and done")
        );
        for nothing in ["", " \n\t\n", "\x1b[0m", "\x1b", "\x1b["] {
            assert_eq!(said(nothing), None, "{nothing:?}");
        }
    }

    #[test]
    fn a_long_one_is_cut() {
        let long = said(&"ä".repeat(300)).expect("a sentence");
        assert_eq!((long.chars().count(), long.ends_with("ä…")), (LONGEST, true));
        assert_eq!(said(&"x".repeat(LONGEST)).map(|text| text.len()), Some(LONGEST));
    }
}
