//! Records in the shape that trackers write them, read several times as fast as serde reads them: a large workspace is
//! millions of these.
//!
//! Promises: what it reads is what serde would have read. Whatever it is not sure about (an odd value, a key that comes
//! twice, anything that is no JSON) it leaves to serde, which also has the words for what is wrong.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use yard_engine::Timestamp;

use crate::lenient::{Moment, Urgency};
use crate::record::{Edge, Fields, Text};

/// Something that serde has to look at.
pub(crate) struct Odd;

/// What was read, if nothing about it is odd.
type Sure<T> = Result<T, Odd>;

/// Whether it is as it should be.
#[inline]
fn sure(is_so: bool) -> Sure<()> {
    if is_so { Ok(()) } else { Err(Odd) }
}

/// Fills in the fields of an object. If it is odd, they mean nothing. They are not handed around,
/// because there are many of them.
#[inline]
pub(crate) fn read<'a>(json: &'a str, fields: &mut Fields<'a>) -> Sure<()> {
    let (mut has_control, mut has_escapes) = (false, false);
    for byte in json.bytes() {
        has_control |= byte < b' ';
        has_escapes |= byte == b'\\';
    }
    sure(!has_control)?;
    let mut cursor = Cursor { json, at: 0, has_escapes };
    cursor.blank();
    cursor.object(fields)?;
    cursor.blank();
    sure(cursor.at == json.len())
}

// The bits of the usual keys, to notice when one comes twice.
const ID: u32 = 0;
const TITLE: u32 = 1;
const DESCRIPTION: u32 = 2;
const STATUS: u32 = 3;
const PRIORITY: u32 = 4;
const ISSUE_TYPE: u32 = 5;
const CREATED_AT: u32 = 6;
const UPDATED_AT: u32 = 7;
const DEPENDENCIES: u32 = 8;

/// A text that stands in the JSON as it is.
fn plain<'a>(text: Option<&Text<'a>>) -> Option<&'a str> {
    match text {
        Some(Text(Cow::Borrowed(text))) => Some(text),
        Some(Text(Cow::Owned(_))) | None => None,
    }
}

/// A place in the text. After something odd the place means nothing.
struct Cursor<'a> {
    /// Without control characters.
    json: &'a str,
    at: usize,
    /// Whether there is any backslash.
    has_escapes: bool,
}

impl<'a> Cursor<'a> {
    #[inline]
    fn object(&mut self, fields: &mut Fields<'a>) -> Sure<()> {
        let mut seen = self.usual_keys(fields)?;
        self.other_keys(seen != 0, |cursor, key| {
            match key {
                "id" => fields.id = cursor.once(&mut seen, ID)?.text()?,
                "title" => fields.title = cursor.once(&mut seen, TITLE)?.text()?,
                "description" => fields.description = cursor.once(&mut seen, DESCRIPTION)?.text()?,
                "status" => fields.status = cursor.once(&mut seen, STATUS)?.text()?,
                "priority" => fields.priority = cursor.once(&mut seen, PRIORITY)?.urgency()?,
                "issue_type" => fields.issue_type = cursor.once(&mut seen, ISSUE_TYPE)?.text()?,
                "created_at" => fields.created_at = cursor.once(&mut seen, CREATED_AT)?.moment()?,
                "updated_at" => fields.updated_at = cursor.once(&mut seen, UPDATED_AT)?.moment()?,
                "dependencies" => {
                    fields.dependencies = cursor.once(&mut seen, DEPENDENCIES)?.edges(fields.id.as_ref())?;
                }
                "labels" => fields.labels = cursor.once(&mut seen, 9)?.list(Self::string)?,
                "assignee" => fields.assignee = cursor.once(&mut seen, 10)?.text()?,
                "dependency_count" => fields.dependency_count = cursor.once(&mut seen, 11)?.raw()?,
                "closed_at" => fields.closed_at = cursor.once(&mut seen, 12)?.moment()?,
                "close_reason" => fields.close_reason = cursor.once(&mut seen, 13)?.text()?,
                "defer_until" => fields.defer_until = cursor.once(&mut seen, 14)?.moment()?,
                "pinned" => fields.pinned = cursor.once(&mut seen, 15)?.flag()?,
                "ephemeral" => fields.ephemeral = cursor.once(&mut seen, 16)?.flag()?,
                "is_template" => fields.is_template = cursor.once(&mut seen, 17)?.flag()?,
                "_type" => fields.record_type = cursor.once(&mut seen, 18)?.text()?,
                _ => cursor.skip()?,
            }
            Ok(())
        })
    }

    /// The keys that `br` writes first, in its order. A key that is expected is found in a few steps, where looking up
    /// which it is would take many. Says which were there.
    fn usual_keys(&mut self, fields: &mut Fields<'a>) -> Sure<u32> {
        let mut seen = 0;
        if !self.word(r#"{"id":"#) {
            return Ok(seen);
        }
        fields.id = self.once(&mut seen, ID)?.text()?;
        if self.word(r#","title":"#) {
            fields.title = self.once(&mut seen, TITLE)?.text()?;
        }
        if self.word(r#","description":"#) {
            fields.description = self.once(&mut seen, DESCRIPTION)?.text()?;
        }
        if self.word(r#","status":"#) {
            fields.status = self.once(&mut seen, STATUS)?.text()?;
        }
        if self.word(r#","priority":"#) {
            fields.priority = self.once(&mut seen, PRIORITY)?.urgency()?;
        }
        if self.word(r#","issue_type":"#) {
            fields.issue_type = self.once(&mut seen, ISSUE_TYPE)?.text()?;
        }
        if self.word(r#","created_at":"#) {
            fields.created_at = self.once(&mut seen, CREATED_AT)?.moment()?;
        }
        if self.word(r#","created_by":"#) {
            self.skip()?;
        }
        if self.word(r#","updated_at":"#) {
            fields.updated_at = self.once(&mut seen, UPDATED_AT)?.moment()?;
        }
        if self.word(r#","dependencies":"#) {
            fields.dependencies = self.once(&mut seen, DEPENDENCIES)?.edges(fields.id.as_ref())?;
        }
        Ok(seen)
    }

    fn edges(&mut self, holder: Option<&Text<'a>>) -> Sure<Option<Vec<Edge<'a>>>> {
        let holder = plain(holder);
        self.list(|cursor| cursor.edge(holder))
    }

    /// A dependency of the bead `holder`, which trackers name in each.
    fn edge(&mut self, holder: Option<&str>) -> Sure<Edge<'a>> {
        let mut edge = Edge::default();
        let mut seen = 0;
        if holder.is_some_and(|holder| self.names_holder(holder)) {
            edge.depends_on_id = self.once(&mut seen, 0)?.text()?;
            if self.word(r#","type":"blocks""#) {
                self.once(&mut seen, 1)?;
                edge.kind = Some(Text(Cow::Borrowed("blocks")));
            }
        }
        self.other_keys(seen != 0, |cursor, key| {
            match key {
                "depends_on_id" => edge.depends_on_id = cursor.once(&mut seen, 0)?.text()?,
                "type" => edge.kind = cursor.once(&mut seen, 1)?.text()?,
                "metadata" => edge.metadata = cursor.once(&mut seen, 2)?.raw()?,
                _ => cursor.skip()?,
            }
            Ok(())
        })?;
        Ok(edge)
    }

    /// Whether an edge begins as `br` writes it; if so, the other end is next.
    fn names_holder(&mut self, holder: &str) -> bool {
        let start = self.at;
        let is_usual =
            self.word(r#"{"issue_id":""#) && self.word(holder) && self.word(r#"","depends_on_id":"#);
        if !is_usual {
            self.at = start;
        }
        is_usual
    }

    /// Goes on if this key comes for the first time: serde refuses those it knows when they come twice.
    #[inline]
    fn once(&mut self, seen: &mut u32, key: u32) -> Sure<&mut Self> {
        let bit = 1 << key;
        let is_first = *seen & bit == 0;
        *seen |= bit;
        sure(is_first).map(|()| self)
    }

    /// An object, or the rest of one that has `begun`: `value` reads what belongs to each key.
    fn other_keys(&mut self, begun: bool, mut value: impl FnMut(&mut Self, &'a str) -> Sure<()>) -> Sure<()> {
        if !begun {
            self.expect(b'{')?;
        }
        self.blank();
        if self.take(b'}') {
            return Ok(());
        }
        if begun {
            self.expect(b',')?;
            self.blank();
        }
        loop {
            let key = self.plain_string()?;
            self.blank();
            self.expect(b':')?;
            self.blank();
            value(self, key)?;
            self.blank();
            if !self.take(b',') {
                return self.expect(b'}');
            }
            self.blank();
        }
    }

    fn list<T>(&mut self, item: impl Fn(&mut Self) -> Sure<T>) -> Sure<Option<Vec<T>>> {
        if self.word("null") {
            return Ok(None);
        }
        self.expect(b'[')?;
        let mut items = Vec::new();
        self.blank();
        if self.take(b']') {
            return Ok(Some(items));
        }
        loop {
            items.push(item(self)?);
            self.blank();
            if !self.take(b',') {
                self.expect(b']')?;
                return Ok(Some(items));
            }
            self.blank();
        }
    }

    #[inline]
    fn text(&mut self) -> Sure<Option<Text<'a>>> {
        if self.peek() == Some(b'"') {
            self.string().map(Some)
        } else {
            sure(self.word("null")).map(|()| None)
        }
    }

    fn moment(&mut self) -> Sure<Moment> {
        if self.peek() != Some(b'"') {
            return sure(self.word("null")).map(|()| Moment::Absent);
        }
        Ok(match self.plain_string()? {
            "" => Moment::Absent,
            text => Timestamp::parse_rfc3339(text).map_or(Moment::Wrong, Moment::Known),
        })
    }

    /// A single digit, which all priorities are.
    fn urgency(&mut self) -> Sure<Urgency> {
        let digit = self.peek().filter(u8::is_ascii_digit).ok_or(Odd)?;
        self.at += 1;
        sure(self.ends_here()).map(|()| Urgency::Number(f64::from(digit - b'0')))
    }

    fn flag(&mut self) -> Sure<Option<bool>> {
        if self.word("true") {
            Ok(Some(true))
        } else if self.word("false") {
            Ok(Some(false))
        } else {
            sure(self.word("null")).map(|()| None)
        }
    }

    fn raw(&mut self) -> Sure<Option<&'a RawValue>> {
        if self.word("null") {
            return Ok(None);
        }
        let start = self.at;
        self.skip()?;
        serde_json::from_str(self.since(start)?).map(Some).map_err(|_| Odd)
    }

    /// Any value, which nobody needs.
    fn skip(&mut self) -> Sure<()> {
        if self.peek() == Some(b'"') {
            return self.string().map(drop);
        }
        let rest = self.json.get(self.at..).ok_or(Odd)?;
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<IgnoredAny>();
        sure(matches!(values.next(), Some(Ok(_))))?;
        self.at += values.byte_offset();
        Ok(())
    }

    /// A string, perhaps with escapes, which are serde's business.
    fn string(&mut self) -> Sure<Text<'a>> {
        let start = self.at;
        self.expect(b'"')?;
        let mut is_plain = true;
        loop {
            self.go_to_special();
            match self.peek().ok_or(Odd)? {
                b'"' => break,
                b'\\' => {
                    is_plain = false;
                    self.at += 2;
                }
                _ => return Err(Odd),
            }
        }
        self.at += 1;
        if is_plain {
            let text = self.json.get(start + 1..self.at - 1).ok_or(Odd)?;
            return Ok(Text(Cow::Borrowed(text)));
        }
        serde_json::from_str(self.since(start)?).map_err(|_| Odd)
    }

    /// A string without escapes.
    fn plain_string(&mut self) -> Sure<&'a str> {
        self.expect(b'"')?;
        let start = self.at;
        self.go_to_special();
        let text = self.since(start)?;
        self.expect(b'"').map(|()| text)
    }

    /// The text between a place and this one.
    #[inline]
    fn since(&self, start: usize) -> Sure<&'a str> {
        self.json.get(start..self.at).ok_or(Odd)
    }

    /// Goes on to the next quote or backslash, eight bytes at a time.
    #[inline]
    fn go_to_special(&mut self) {
        let rest = self.json.as_bytes().get(self.at..).unwrap_or_default();
        let (words, tail) = rest.as_chunks::<8>();
        for word in words {
            let word = u64::from_le_bytes(*word);
            let found =
                if self.has_escapes { find(word, b'"') | find(word, b'\\') } else { find(word, b'"') };
            if found != 0 {
                self.at += found.trailing_zeros() as usize / 8;
                return;
            }
            self.at += 8;
        }
        let is_special = |byte: &u8| matches!(byte, b'"' | b'\\');
        self.at += tail.iter().position(is_special).unwrap_or(tail.len());
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.json.as_bytes().get(self.at).copied()
    }

    #[inline]
    fn take(&mut self, byte: u8) -> bool {
        let is_there = self.peek() == Some(byte);
        self.at += usize::from(is_there);
        is_there
    }

    #[inline]
    fn expect(&mut self, byte: u8) -> Sure<()> {
        sure(self.take(byte))
    }

    /// A word of JSON, if it stands here.
    #[inline]
    fn word(&mut self, word: &str) -> bool {
        let rest = self.json.as_bytes().get(self.at..).unwrap_or_default();
        let is_there = rest.starts_with(word.as_bytes());
        self.at += if is_there { word.len() } else { 0 };
        is_there
    }

    /// Whether no further character belongs to the number before.
    fn ends_here(&self) -> bool {
        matches!(self.peek(), Some(b',' | b'}' | b']' | b' '))
    }

    #[inline]
    fn blank(&mut self) {
        while self.peek() == Some(b' ') {
            self.at += 1;
        }
    }
}

/// A bit in each byte that is the wanted one; bits above the lowest may be wrong.
#[inline]
fn find(word: u64, wanted: u8) -> u64 {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    let zero_if_wanted = word ^ (ONES * u64::from(wanted));
    zero_if_wanted.wrapping_sub(ONES) & !zero_if_wanted & (ONES << 7)
}

#[cfg(test)]
mod tests;
