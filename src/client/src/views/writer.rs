//! Writes JSON by hand, for documents so long that what serde does for each field and each character shows.

use serde::Serialize;
use yard_engine::BeadId;

/// A document as it grows.
#[derive(Debug, Default)]
pub(super) struct Writer(Vec<u8>);

impl Writer {
    /// Punctuation and keys.
    pub(super) fn raw(&mut self, json: &str) {
        self.0.extend_from_slice(json.as_bytes());
    }

    /// What another writer wrote.
    pub(super) fn written(&mut self, json: &[u8]) {
        self.0.extend_from_slice(json);
    }

    /// An id, which has nothing to escape.
    pub(super) fn id(&mut self, id: &BeadId) {
        self.plain(id.as_bytes());
    }

    /// Any text.
    pub(super) fn text(&mut self, text: &str) -> serde_json::Result<()> {
        let is_special = |byte: u8| byte < 0x20 || byte == b'"' || byte == b'\\';
        // Looks at all bytes at once: stopping at the first special one would take longer.
        if text.bytes().fold(false, |special, byte| special | is_special(byte)) {
            return self.value(text);
        }
        self.plain(text.as_bytes());
        Ok(())
    }

    /// Anything else.
    pub(super) fn value(&mut self, value: &(impl Serialize + ?Sized)) -> serde_json::Result<()> {
        serde_json::to_writer(&mut self.0, value)
    }

    /// What comes between the parts of a list.
    pub(super) fn list<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut each: impl FnMut(&mut Self, T) -> serde_json::Result<()>,
    ) -> serde_json::Result<()> {
        self.raw("[");
        for (place, item) in items.into_iter().enumerate() {
            if place > 0 {
                self.raw(",");
            }
            each(self, item)?;
        }
        self.raw("]");
        Ok(())
    }

    /// How much is written.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// What is written.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn into_text(self) -> serde_json::Result<String> {
        String::from_utf8(self.0).map_err(serde::ser::Error::custom)
    }

    fn plain(&mut self, text: &[u8]) {
        self.0.reserve(text.len() + 2);
        self.0.push(b'"');
        self.0.extend_from_slice(text);
        self.0.push(b'"');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_written_as_serde_writes_them() {
        for text in ["", "plain", "a \"word\"", "back\\slash", "line\nbreak", "\u{7f} \u{1} ü 🚂"] {
            let mut writer = Writer::default();
            writer.text(text).expect("it can be written");
            let written = writer.into_text().expect("a text");
            assert_eq!(written, serde_json::to_string(text).expect("a text"));
        }
    }
}
