//! Inputs made of others: changed, cut, repeated, spliced, nested, with words of the language, absurd numbers and bytes that
//! are no text. Where an input is JSON, line by line or as a whole, its values are also exchanged for others.

use serde_json::Value;

use crate::dice::Dice;

/// Longest input that is made.
const LONGEST: usize = 32 * 1024;
/// Deepest nesting that is made.
const DEEPEST: u64 = 20_000;

/// What parsers stumble over whatever their language.
const WORDS: &[&str] = &[
    "",
    " ",
    "\n",
    "\r\n",
    "\0",
    "\t",
    "\"",
    "\\",
    "'",
    "`",
    "{",
    "}",
    "[",
    "]",
    "{}",
    "[]",
    "null",
    "true",
    "..",
    ".",
    "/",
    "../",
    "../../etc/passwd",
    "-",
    "--",
    "-x",
    "=",
    ":",
    ",",
    ";",
    "@",
    "#",
    "%",
    "%00",
    "%2e%2e",
    "&",
    "|",
    "$(id)",
    "${HOME}",
    "{{",
    "}}",
    "{{title}}",
    "\u{1b}[31m",
    "\u{1b}]0;x\u{7}",
    "\u{9b}",
    "\u{202e}",
    "\u{200b}",
    "\u{feff}",
    "\u{0130}",
    "\u{fdfa}",
    "e\u{301}",
    "\u{10ffff}",
    "日本",
    "\\u0000",
    "\\ud800",
    "\\u",
    "\"\"",
    "a-1",
    "y-1@1",
    "hq-cv-ab12z",
];

/// Numbers at the ends of what can be counted.
const NUMBERS: &[&str] = &[
    "0",
    "-0",
    "1",
    "-1",
    "00",
    "+1",
    "127",
    "128",
    "255",
    "256",
    "65536",
    "2147483647",
    "2147483648",
    "-2147483649",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "1e400",
    "-1e400",
    "1e-400",
    "0.1",
    ".5",
    "5.",
    "NaN",
    "inf",
    "99999999999999999999999999999999999999999999",
    "0x10",
    "1_000",
    "9999-12-31T23:59:59.999Z",
    "0000-01-01T00:00:00Z",
    "2026-02-30T00:00:00Z",
    "2026-11-16T09:30:00+14:00",
    "584554051y",
    "1e18s",
    "-1s",
];

/// Bytes that are no UTF-8, or not the shortest way to write it.
const NO_TEXT: &[&[u8]] =
    &[b"\xff", b"\x80", b"\xc0\xaf", b"\xe2\x28\xa1", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xf0\x9f"];

/// An input made of one of these, or of several.
pub(super) fn make(dice: &mut Dice, corpus: &[Vec<u8>], words: &[&str]) -> Vec<u8> {
    let mut input = pick(dice, corpus).cloned().unwrap_or_default();
    for _ in 0..=dice.below(4) {
        change(dice, &mut input, corpus, words);
        input.truncate(LONGEST);
    }
    input
}

fn pick<'a, T>(dice: &mut Dice, from: &'a [T]) -> Option<&'a T> {
    if from.is_empty() { None } else { from.get(dice.below(from.len() as u64) as usize) }
}

fn place(dice: &mut Dice, len: usize) -> usize {
    dice.below(len as u64 + 1) as usize
}

/// A stretch of the input; often short.
fn stretch(dice: &mut Dice, len: usize) -> std::ops::Range<usize> {
    let start = place(dice, len);
    let most = if dice.below(2) == 0 { 8.min(len - start) } else { len - start };
    start..start + place(dice, most)
}

fn change(dice: &mut Dice, input: &mut Vec<u8>, corpus: &[Vec<u8>], words: &[&str]) {
    let len = input.len();
    match dice.below(16) {
        0 | 1 if len > 0 => {
            let at = dice.below(len as u64) as usize;
            input[at] ^= 1 << dice.below(8);
        }
        2 if len > 0 => {
            let at = dice.below(len as u64) as usize;
            input[at] = dice.below(256) as u8;
        }
        3 => drop(input.drain(stretch(dice, len))),
        4 => {
            let copy = input[stretch(dice, len)].to_vec();
            insert(dice, input, &copy);
        }
        5 => input.truncate(place(dice, len)),
        6 => {
            let piece = input[stretch(dice, len)].to_vec();
            let times = 1 + dice.below(64) as usize;
            insert(dice, input, &piece.repeat(times.min(LONGEST / piece.len().max(1))));
        }
        7 => {
            let other = pick(dice, corpus).cloned().unwrap_or_default();
            let (mine, theirs) = (place(dice, len), place(dice, other.len()));
            input.splice(mine.., other[theirs..].iter().copied());
        }
        8 => nest(dice, input),
        9 => {
            let number = pick(dice, NUMBERS).copied().unwrap_or_default();
            match digits(dice, input) {
                Some(digits) => drop(input.splice(digits, number.bytes())),
                None => insert(dice, input, number.as_bytes()),
            }
        }
        10 => {
            let bytes = pick(dice, NO_TEXT).copied().unwrap_or_default();
            insert(dice, input, bytes);
        }
        11 | 12 => {
            let own = !words.is_empty() && dice.below(3) > 0;
            let word = pick(dice, if own { words } else { WORDS }).copied().unwrap_or_default();
            if dice.below(2) == 0 {
                insert(dice, input, word.as_bytes());
            } else {
                let place = stretch(dice, len);
                input.splice(place, word.bytes());
            }
        }
        13 => lines(dice, input),
        _ => json(dice, input, corpus, words),
    }
}

fn insert(dice: &mut Dice, input: &mut Vec<u8>, piece: &[u8]) {
    let at = place(dice, input.len());
    input.splice(at..at, piece.iter().copied());
}

fn nest(dice: &mut Dice, input: &mut Vec<u8>) {
    let depth = if dice.below(8) == 0 { dice.below(DEEPEST) } else { dice.below(200) } as usize;
    let (open, close) =
        *pick(dice, &[("[", "]"), ("{\"a\":", "}"), ("(", ")"), ("[[", "]]"), ("a.", ""), ("{", "}")])
            .unwrap_or(&("[", "]"));
    let inside = stretch(dice, input.len());
    let text =
        [open.repeat(depth).as_bytes(), &input[inside.clone()], close.repeat(depth).as_bytes()].concat();
    input.splice(inside, text);
}

/// A run of digits somewhere.
fn digits(dice: &mut Dice, input: &[u8]) -> Option<std::ops::Range<usize>> {
    let from = place(dice, input.len());
    let start = from + input[from..].iter().position(u8::is_ascii_digit)?;
    let len = input[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    Some(start..start + len)
}

/// Exchanges, doubles or drops a line.
fn lines(dice: &mut Dice, input: &mut Vec<u8>) {
    let mut lines: Vec<Vec<u8>> = input.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let (one, other) = (dice.below(lines.len() as u64) as usize, dice.below(lines.len() as u64) as usize);
    match dice.below(3) {
        0 => lines.swap(one, other),
        1 => {
            let line = lines[one].clone();
            lines.insert(other, line);
        }
        _ => drop(lines.remove(one)),
    }
    *input = lines.join(&b'\n');
}

/// Exchanges a value in a line that is JSON, perhaps for one of another input.
fn json(dice: &mut Dice, input: &mut Vec<u8>, corpus: &[Vec<u8>], words: &[&str]) {
    let mut lines: Vec<Vec<u8>> = input.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let one = dice.below(lines.len() as u64) as usize;
    let Ok(mut document) = serde_json::from_slice::<Value>(&lines[one]) else { return };
    let other = pick(dice, corpus).cloned().unwrap_or_default();
    let other =
        other.split(|byte| *byte == b'\n').find_map(|line| serde_json::from_slice::<Value>(line).ok());
    let value = match dice.below(4) {
        0 => other.as_ref().map(|other| node(dice, other).clone()).unwrap_or_default(),
        1 => pick(dice, NUMBERS).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default(),
        2 => Value::String(
            pick(dice, if words.is_empty() { WORDS } else { words }).copied().unwrap_or_default().into(),
        ),
        _ => Value::String(pick(dice, WORDS).copied().unwrap_or_default().into()),
    };
    exchange(dice, &mut document, value);
    lines[one] = document.to_string().into_bytes();
    *input = lines.join(&b'\n');
}

/// A value somewhere in a document.
fn node<'a>(dice: &mut Dice, document: &'a Value) -> &'a Value {
    let mut here = document;
    while dice.below(3) > 0 {
        let next = match here {
            Value::Array(items) => pick(dice, items),
            Value::Object(fields) => {
                let nth = place(dice, fields.len());
                fields.values().nth(nth)
            }
            _ => None,
        };
        match next {
            Some(next) => here = next,
            None => break,
        }
    }
    here
}

/// Puts a value in the place of one somewhere in a document.
fn exchange(dice: &mut Dice, document: &mut Value, value: Value) {
    let (nth, deeper) = (dice.below(1 << 16) as usize, dice.below(4) > 0);
    let inner = match document {
        Value::Array(items) if deeper && !items.is_empty() => {
            let nth = nth % items.len();
            items.get_mut(nth)
        }
        Value::Object(fields) if deeper && !fields.is_empty() => {
            let nth = nth % fields.len();
            fields.values_mut().nth(nth)
        }
        _ => None,
    };
    match inner {
        Some(inner) => exchange(dice, inner, value),
        None => *document = value,
    }
}
