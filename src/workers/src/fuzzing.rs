//! Doors for the fuzz targets of `tests/`: what hostile bytes can reach, without processes and sockets. Nobody else should
//! use them.
//!
//! Those that can tell return what is wrong, in words, if a promise of this crate does not hold.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::preset::{AgentPreset, Presets};
use crate::record::{Line, Story};
use crate::shim::Meter;
use crate::wire::{self, FromShim, Inbox, ToShim};

/// Bytes as they come from a shim or from the pool. However they are cut, the same frames arrive, and a frame that is
/// sent on says the same.
pub fn frames(bytes: &[u8], cut: usize) -> Result<(), String> {
    arrive::<ToShim>(bytes, cut)?;
    arrive::<FromShim>(bytes, cut)
}

fn arrive<T: DeserializeOwned + Serialize + Debug>(bytes: &[u8], cut: usize) -> Result<(), String> {
    let (whole, pieces) = (received::<T>(bytes, bytes.len()), received::<T>(bytes, cut));
    if whole != pieces {
        return Err(format!("as a whole {whole:?}, in pieces {pieces:?}"));
    }
    Ok(())
}

/// What arrives, in words, and why nothing more does. Each frame is sent once more.
fn received<T: DeserializeOwned + Serialize + Debug>(bytes: &[u8], cut: usize) -> (Vec<String>, bool) {
    let (mut inbox, mut got) = (Inbox::default(), Vec::new());
    for piece in bytes.chunks(cut.max(1)) {
        inbox.push(piece);
        loop {
            match inbox.next::<T>() {
                Ok(Some(frame)) => got.push(sent_on(&frame)),
                Ok(None) => break,
                Err(_) => return (got, false),
            }
        }
    }
    (got, true)
}

fn sent_on<T: DeserializeOwned + Serialize + Debug>(frame: &T) -> String {
    let (mut inbox, mut bytes) = (Inbox::default(), Vec::new());
    let words = format!("{frame:?}");
    if wire::encode(frame, &mut bytes).is_err() {
        return words;
    }
    inbox.push(&bytes);
    let again = inbox.next::<T>().ok().flatten().map(|frame| format!("{frame:?}"));
    assert_eq!(again.as_ref(), Some(&words), "a frame that was sent on says something else");
    words
}

/// A claim file with anything in it.
pub fn claim_file(text: &[u8]) {
    let story = Story::read(text);
    // What is torn off its end can take something away, but add nothing that the rest does not say.
    let rest = &text[..text.len() - text.len().min(7)];
    assert!(story.shim.is_some() || Story::read(rest).shim.is_none(), "a torn line is believed");
}

/// A line that says `json`, if it is one, with the byte at `place` changed by `change`: it is not believed.
pub fn claim_line(json: &[u8], place: usize, change: u8) -> Result<(), String> {
    let Ok(line) = serde_json::from_slice::<Line>(json) else { return Ok(()) };
    let mut text = Vec::new();
    line.encode(&mut text);
    let end = text.len() - 1;
    if Line::decode(&text[..end]).as_ref() != Some(&line) {
        return Err(format!("{line:?} is not what was written: {}", String::from_utf8_lossy(&text)));
    }
    let place = place % end;
    text[place] ^= change.max(1);
    match Line::decode(&text[..end]) {
        None => Ok(()),
        Some(believed) => Err(format!(
            "{believed:?} is believed, although byte {place} was changed: {}",
            String::from_utf8_lossy(&text)
        )),
    }
}

/// A town's own table of agents, if it makes sense.
pub fn presets(table: &str) -> Option<Vec<AgentPreset>> {
    Presets::with(table).ok().map(|presets| presets.iter().cloned().collect())
}

/// Output of an agent, or of any program: what is made of it is the same however it is cut, as far as its figures go.
pub fn meter(preset: Option<AgentPreset>, output: &[u8], cut: usize) -> Result<(), String> {
    let read = |cut: usize| {
        let mut meter = Meter::default();
        meter.begin(preset.clone());
        for piece in output.chunks(cut.max(1)) {
            meter.read(piece);
        }
        meter.end_program(Some(1));
        let line = meter.last_line().map(str::to_owned);
        if line.as_ref().is_some_and(|line| line.chars().count() > 200 || line.chars().any(char::is_control))
        {
            return Err(format!("{line:?} is shown to people"));
        }
        Ok((meter.bill(), meter.session().cloned(), meter.refusal().map(str::to_owned)))
    };
    let (whole, pieces) = (read(output.len())?, read(cut)?);
    if whole == pieces { Ok(()) } else { Err(format!("as a whole {whole:?}, in pieces {pieces:?}")) }
}
