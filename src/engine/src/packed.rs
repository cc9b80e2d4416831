//! Records as few bytes, for those that nobody looks at any more. A town has many records and few shapes of them: what
//! is alike in the JSON of many (keys, words, small numbers) is kept once, as a shape, and of each record only what is
//! its own. Times and places in the log are distances from those before, and a text that came before is its number.
//!
//! Promises: what is unpacked is the text that was packed, byte for byte. Whatever finds no shape is kept as it is.

use std::sync::Arc;

use crate::lookup::Lookup;
use crate::time::Timestamp;

/// So many shapes are remembered. Records that would need more are kept as they are: their words differ too much.
const MOST_SHAPES: usize = 2000;
/// Longer shapes are not worth remembering.
const LONGEST_SHAPE: usize = 4000;
/// Longer words are a record's own.
const LONGEST_WORD: usize = 16;
/// Numbers below this belong to the shape.
const SMALL: u64 = 10;
/// What stands in a shape where a record has something of its own. JSON has no such bytes.
const TEXT: u8 = 1;
const TIME: u8 = 2;
const NUMBER: u8 = 3;
/// The shape number of a record that is kept as it is.
const AS_IT_IS: u64 = 0;

/// The shapes that records have, by number from 1.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shapes {
    all: Vec<Arc<[u8]>>,
    numbers: Lookup<Arc<[u8]>, u32>,
}

impl Shapes {
    fn number_of(&mut self, shape: &[u8]) -> Option<u64> {
        if let Some(number) = self.numbers.get(shape) {
            return Some(u64::from(*number));
        }
        if self.all.len() >= MOST_SHAPES || shape.len() > LONGEST_SHAPE {
            return None;
        }
        let shape: Arc<[u8]> = shape.into();
        self.all.push(Arc::clone(&shape));
        self.numbers.insert(shape, self.all.len() as u32);
        Some(self.all.len() as u64)
    }
}

/// Packs several texts after each other.
pub(crate) struct Packer<'a> {
    shapes: &'a mut Shapes,
    bytes: Vec<u8>,
    seen: Seen,
    shape: Vec<u8>,
    own: Vec<u8>,
}

/// What came before in the same pack.
#[derive(Default)]
struct Seen {
    texts: Vec<String>,
    time: i64,
    number: u64,
}

impl<'a> Packer<'a> {
    /// Texts are likely to name `known`.
    pub(crate) fn new(shapes: &'a mut Shapes, known: &str) -> Self {
        let seen = Seen { texts: vec![known.to_owned()], ..Seen::default() };
        Self { shapes, bytes: Vec::with_capacity(128), seen, shape: Vec::new(), own: Vec::new() }
    }

    pub(crate) fn number(&mut self, number: u64) {
        put_number(&mut self.bytes, number);
    }

    pub(crate) fn json(&mut self, text: &str) {
        self.shape.clear();
        self.own.clear();
        let before = (self.seen.texts.len(), self.seen.time, self.seen.number);
        self.take_apart(text.as_bytes());
        if let Some(number) = self.shapes.number_of(&self.shape) {
            put_number(&mut self.bytes, number);
            self.bytes.extend_from_slice(&self.own);
        } else {
            self.seen.texts.truncate(before.0);
            (self.seen.time, self.seen.number) = (before.1, before.2);
            put_number(&mut self.bytes, AS_IT_IS);
            put_number(&mut self.bytes, text.len() as u64);
            self.bytes.extend_from_slice(text.as_bytes());
        }
    }

    pub(crate) fn finish(self) -> Box<[u8]> {
        self.bytes.into_boxed_slice()
    }

    /// Splits a text into its shape and what is its own.
    fn take_apart(&mut self, json: &[u8]) {
        let mut at = 0;
        while at < json.len() {
            match json[at] {
                b'"' => {
                    let end = end_of_string(json, at);
                    let (inner, after) = (&json[at + 1..end], json.get(end + 1));
                    self.string(inner, after == Some(&b':'));
                    at = end + 1;
                }
                byte @ b'0'..=b'9' => {
                    let end = at + json[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                    self.digits(&json[at..end], byte, json[..at].last(), json.get(end));
                    at = end;
                }
                byte => {
                    self.shape.push(byte);
                    at += 1;
                }
            }
        }
    }

    fn string(&mut self, inner: &[u8], is_key: bool) {
        self.shape.push(b'"');
        // Ids have a hyphen and are a record's own, whatever letters they are made of.
        let is_letter = |byte: &u8| byte.is_ascii_lowercase() || *byte == b'_';
        let is_word = inner.len() <= LONGEST_WORD && inner.iter().all(is_letter);
        match std::str::from_utf8(inner) {
            Ok(text) if !is_key && !is_word => {
                if let Some(millis) = time_of(text) {
                    self.shape.push(TIME);
                    put_number(&mut self.own, zigzag(millis.wrapping_sub(self.seen.time)));
                    self.seen.time = millis;
                } else {
                    self.shape.push(TEXT);
                    self.text(text);
                }
            }
            _ => self.shape.extend_from_slice(inner),
        }
        self.shape.push(b'"');
    }

    /// A text of the record's own: how much of it is the beginning of an earlier one, and the rest.
    fn text(&mut self, text: &str) {
        let earlier =
            self.seen.texts.iter().enumerate().filter(|(_, known)| text.starts_with(known.as_str()));
        let earlier = earlier.filter(|(_, known)| known.len() > 2).max_by_key(|(_, known)| known.len());
        let (number, rest) = earlier.map_or((0, text), |(at, known)| (at as u64 + 1, &text[known.len()..]));
        put_number(&mut self.own, number);
        put_number(&mut self.own, rest.len() as u64);
        self.own.extend_from_slice(rest.as_bytes());
        if !rest.is_empty() {
            self.seen.texts.push(text.to_owned());
        }
    }

    fn digits(&mut self, digits: &[u8], first: u8, before: Option<&u8>, after: Option<&u8>) {
        let number = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<u64>().ok());
        // Neither part of a fraction nor negative, and written as we would.
        let whole = !matches!(before, Some(b'-' | b'.' | b'+' | b'e' | b'E'))
            && !matches!(after, Some(b'.' | b'e' | b'E'));
        match number.filter(|number| whole && *number >= SMALL && first != b'0') {
            Some(number) => {
                self.shape.push(NUMBER);
                put_number(&mut self.own, zigzag(number.wrapping_sub(self.seen.number) as i64));
                self.seen.number = number;
            }
            None => self.shape.extend_from_slice(digits),
        }
    }
}

/// Where the string that begins at `at` ends: at its closing quote.
fn end_of_string(json: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while end < json.len() && json[end] != b'"' {
        end += if json[end] == b'\\' { 2 } else { 1 };
    }
    end.min(json.len())
}

/// The time that a text is, if it is written as we write it.
fn time_of(text: &str) -> Option<i64> {
    let shaped = text.len() == 24 && text.ends_with('Z') && text.as_bytes()[10] == b'T';
    let time = Timestamp::parse_rfc3339(text).ok().filter(|_| shaped)?;
    (time.to_string() == text).then(|| time.as_millis())
}

/// Unpacks what a [`Packer`] has packed.
pub(crate) struct Unpacker<'a> {
    shapes: &'a Shapes,
    bytes: &'a [u8],
    seen: Seen,
}

impl<'a> Unpacker<'a> {
    pub(crate) fn new(shapes: &'a Shapes, known: &str, bytes: &'a [u8]) -> Self {
        Self { shapes, bytes, seen: Seen { texts: vec![known.to_owned()], ..Seen::default() } }
    }

    pub(crate) fn number(&mut self) -> u64 {
        let (mut number, mut shift) = (0, 0);
        while let Some((byte, rest)) = self.bytes.split_first() {
            self.bytes = rest;
            number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
        number
    }

    /// The next text.
    pub(crate) fn json(&mut self) -> String {
        let number = self.number();
        if number == AS_IT_IS {
            let len = self.number() as usize;
            return self.own(len);
        }
        let shape = Arc::clone(&self.shapes.all[number as usize - 1]);
        let mut text = Vec::with_capacity(shape.len() * 2);
        for byte in &*shape {
            match *byte {
                TEXT => self.text(&mut text),
                TIME => {
                    self.seen.time = self.seen.time.wrapping_add(unzigzag(self.number()));
                    text.extend_from_slice(Timestamp::from_millis(self.seen.time).to_string().as_bytes());
                }
                NUMBER => {
                    self.seen.number = self.seen.number.wrapping_add(unzigzag(self.number()) as u64);
                    text.extend_from_slice(self.seen.number.to_string().as_bytes());
                }
                byte => text.push(byte),
            }
        }
        String::from_utf8(text).expect("it is put together from what a text was taken apart into")
    }

    fn text(&mut self, out: &mut Vec<u8>) {
        let (number, len) = (self.number() as usize, self.number() as usize);
        let earlier = number.checked_sub(1).map_or("", |at| &self.seen.texts[at]);
        let mut text = earlier.to_owned();
        let is_new = len > 0;
        text.push_str(&self.own(len));
        out.extend_from_slice(text.as_bytes());
        if is_new {
            self.seen.texts.push(text);
        }
    }

    fn own(&mut self, len: usize) -> String {
        let (own, rest) = self.bytes.split_at(len);
        self.bytes = rest;
        String::from_utf8(own.to_vec()).expect("texts are cut between characters")
    }
}

fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

#[cfg(test)]
mod tests {
    use proptest::collection::{hash_map, vec};
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn round_trip(shapes: &mut Shapes, texts: &[String]) -> (usize, Vec<String>) {
        let mut packer = Packer::new(shapes, "y-abc12");
        for text in texts {
            packer.json(text);
        }
        let packed = packer.finish();
        let mut unpacker = Unpacker::new(shapes, "y-abc12", &packed);
        (packed.len(), texts.iter().map(|_| unpacker.json()).collect())
    }

    /// Any JSON, with texts, times and numbers that are nearly what is expected.
    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            (0..2000_u64).prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,20}".prop_map(Value::from),
            "[a-z-]{0,18}".prop_map(Value::from),
            "y-abc12(@[0-9]{1,3})?".prop_map(Value::from),
            "20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:00:00(\\.[0-9]{3})?Z".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                vec(inner.clone(), 0..6).prop_map(Value::from),
                hash_map(".{0,6}", inner, 0..6).prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_unpacked_is_what_was_packed(values in vec(any_json(), 1..5)) {
            let mut shapes = Shapes::default();
            let texts: Vec<String> = values.iter().map(Value::to_string).collect();
            prop_assert_eq!(round_trip(&mut shapes, &texts).1, texts.clone());
            // Also when the shapes are known, and when there is room for no more.
            prop_assert_eq!(round_trip(&mut shapes, &texts).1, texts.clone());
            let mut full = Shapes { all: vec![Arc::from(&b"{}"[..]); MOST_SHAPES], ..Shapes::default() };
            prop_assert_eq!(round_trip(&mut full, &texts).1, texts);
        }
    }

    #[test]
    fn a_record_of_a_known_shape_takes_few_bytes() {
        let record = json!({
            "id": "y-abc12@1", "context": "ctx-3f2a", "rig": "yard", "lane": "town", "executor": "local",
            "order": 734_221, "started_at": "2026-11-18T00:40:12.345Z", "running_at": "2026-11-18T00:40:12.347Z",
            "ended": {"at": "2026-11-18T00:40:12.349Z", "outcome": {"how": "succeeded"}, "next": "finished"},
        });
        let mut shapes = Shapes::default();
        assert!(round_trip(&mut shapes, &[record.to_string()]).0 < 32);
    }
}
