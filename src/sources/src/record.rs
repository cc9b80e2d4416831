//! One bead as its tracker writes it, `br` and `bd` alike.
//!
//! Reading is tolerant: keys nobody knows are ignored, words nobody knows are kept, null is as good as absent, and a
//! field that is only decoration never costs the bead. A watched workspace takes what there is
//! ([`Record::into_bead`]); an import is strict and says what is wrong ([`Record::into_new_bead`]).

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use yard_engine::bead::{
    Bead, BeadStatus, DepKind, Dependency, RareFields, bead_kind, default_bead_priority, one_per_pair,
};
use yard_engine::command::NewBead;
use yard_engine::{BadId, BeadId, RigName, Timestamp};

use crate::lenient::{Moment, Urgency};
use crate::quick;

/// Longest text, in characters, that a workspace can put into the journal; more is cut off.
const MAX_TEXT: usize = 500;
/// Most labels taken from a workspace.
const MAX_LABELS: usize = 200;
/// Longest explanation of a bad record.
const MAX_REASON: usize = 200;

/// A record of a beads tracker. It borrows from the text it was read from, so that what is not needed costs nothing.
#[derive(Debug)]
pub struct Record<'a> {
    id: BeadId,
    fields: Fields<'a>,
}

/// The keys that matter, as they are written.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Fields<'a> {
    #[serde(borrow, rename = "_type")]
    pub(crate) record_type: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) title: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) description: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) status: Option<Text<'a>>,
    #[serde(default)]
    pub(crate) priority: Urgency,
    #[serde(borrow)]
    pub(crate) issue_type: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) assignee: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) labels: Option<Vec<Text<'a>>>,
    #[serde(borrow)]
    pub(crate) dependencies: Option<Vec<Edge<'a>>>,
    #[serde(borrow)]
    pub(crate) dependency_count: Option<&'a RawValue>,
    #[serde(default)]
    pub(crate) created_at: Moment,
    #[serde(default)]
    pub(crate) updated_at: Moment,
    #[serde(default)]
    pub(crate) closed_at: Moment,
    #[serde(borrow)]
    pub(crate) close_reason: Option<Text<'a>>,
    #[serde(default)]
    pub(crate) defer_until: Moment,
    pub(crate) pinned: Option<bool>,
    pub(crate) ephemeral: Option<bool>,
    pub(crate) is_template: Option<bool>,
}

/// A text that is borrowed unless it has escapes. Its own type, because serde borrows no `Option<Cow<str>>`.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

/// A dependency; whoever lists it is its holder.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Edge<'a> {
    #[serde(borrow)]
    pub(crate) depends_on_id: Option<Text<'a>>,
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) metadata: Option<&'a RawValue>,
}

/// What a `waits-for` edge says about its gate.
#[derive(Deserialize)]
struct GateNote<'a> {
    #[serde(borrow)]
    gate: Option<Text<'a>>,
}

impl<'a> Record<'a> {
    /// Reads one JSON object. None if it is something else than an issue; an error says why it can be no bead.
    #[inline]
    pub fn parse(json: &'a [u8]) -> Result<Option<Self>, String> {
        let text = std::str::from_utf8(json).map_err(|_| "not valid UTF-8".to_owned())?;
        // Serde would also take an array, key by key.
        if !text.trim_start().starts_with('{') {
            return Err("not a JSON object".to_owned());
        }
        let mut fields = Fields::default();
        if quick::read(text, &mut fields).is_err() {
            fields = serde_json::from_str(text).map_err(|error| reason(&error))?;
        }
        if fields.record_type.as_ref().is_some_and(|kind| kind.0 != "issue") {
            return Ok(None);
        }
        let id = fields.id.as_ref().ok_or("the id is missing")?;
        let id = BeadId::parse(&id.0).map_err(|error| error.to_string())?;
        let counted = fields.dependency_count.and_then(|count| count.get().parse::<u64>().ok()).unwrap_or(0);
        if counted > 0 && fields.dependencies.as_ref().is_none_or(Vec::is_empty) {
            // A bead that waits must not look as if it did not.
            return Err(format!("{id} has dependencies that are counted but not shown"));
        }
        Ok(Some(Self { id, fields }))
    }

    /// The bead it is about.
    pub fn id(&self) -> &BeadId {
        &self.id
    }

    /// When it was last changed, which tells the newest among several records of one bead.
    pub fn updated_at(&self) -> Option<Timestamp> {
        self.fields.updated_at.known()
    }

    /// More about the bead; fit to be handed to a program.
    pub fn description(&self) -> Option<String> {
        filled(self.fields.description.as_ref()).map(without_nul)
    }

    /// The bead as a rig's workspace shows it: without description, long texts cut, and whatever is unusable left out.
    #[inline]
    pub fn into_bead(self, source: RigName) -> Bead {
        let Self { id, fields } = self;
        let status = BeadStatus::from(&*cut(fields.status.as_ref()).unwrap_or_default());
        let closed = status.is_closed();
        let written = fields.dependencies.unwrap_or_default();
        // Nearly all of them can be read, so there is neither too little room nor too much.
        let mut edges = Vec::with_capacity(written.len());
        edges.extend(written.iter().filter_map(|edge| edge.read().ok().or_else(|| edge.unnamed())));
        // A bead that waits for itself is for the graph to report; one that contains itself means nothing.
        edges.retain(|edge: &Dependency| edge.on != id || edge.kind.blocks());
        let labels = fields.labels.unwrap_or_default().into_iter();
        let rare = RareFields {
            description: None,
            assignee: cut(fields.assignee.as_ref()).map(Cow::into_owned),
            labels: labels
                .filter_map(|label| Some(cut(Some(&label))?.into_owned()))
                .take(MAX_LABELS)
                .collect(),
            closed_at: fields.closed_at.known().filter(|_| closed),
            close_reason: cut(fields.close_reason.as_ref()).filter(|_| closed).map(Cow::into_owned),
            defer_until: fields.defer_until.known(),
        };
        Bead {
            title: cut(fields.title.as_ref()).unwrap_or_default().into_owned(),
            kind: bead_kind(&cut(fields.issue_type.as_ref()).unwrap_or_default()),
            status,
            priority: fields.priority.in_range().unwrap_or(default_bead_priority()),
            dependencies: one_per_pair(edges),
            created_at: fields.created_at.known().unwrap_or_default(),
            source: Some(source),
            pinned: fields.pinned.unwrap_or_default(),
            ephemeral: fields.ephemeral.unwrap_or_default(),
            is_template: fields.is_template.unwrap_or_default(),
            argv: None,
            rare: rare.into(),
            id,
        }
    }

    /// The bead for an import, with all its texts as they are; an error says what an import cannot take.
    pub fn into_new_bead(self) -> Result<NewBead, String> {
        let Self { id, fields } = self;
        let owned = |text: Option<Text<'_>>| text.map(|text| text.0.into_owned());
        let edges = fields.dependencies.unwrap_or_default();
        let dependencies: Result<_, BadId> = edges.iter().map(Edge::read).collect();
        Ok(NewBead {
            id: Some(id.as_str().to_owned()),
            rig: None,
            title: owned(fields.title).ok_or("the title is missing")?,
            description: owned(fields.description),
            kind: owned(fields.issue_type).unwrap_or_default(),
            status: BeadStatus::from(owned(fields.status).unwrap_or_default()),
            priority: fields.priority.strict()?,
            assignee: owned(fields.assignee),
            labels: fields.labels.unwrap_or_default().into_iter().map(|label| label.0.into_owned()).collect(),
            dependencies: dependencies.map_err(|error| error.to_string())?,
            argv: None,
            created_at: fields.created_at.strict("created_at")?,
            close_reason: owned(fields.close_reason),
            defer_until: fields.defer_until.strict("defer_until")?,
            pinned: fields.pinned.unwrap_or_default(),
            ephemeral: fields.ephemeral.unwrap_or_default(),
            is_template: fields.is_template.unwrap_or_default(),
        })
    }
}

impl Edge<'_> {
    fn read(&self) -> Result<Dependency, BadId> {
        let kind = DepKind::from(&*cut(self.kind.as_ref()).unwrap_or_default());
        let target = cut(self.depends_on_id.as_ref()).unwrap_or_default();
        let any_children = kind == DepKind::WaitsFor && self.opens_with_the_first_child();
        Ok(Dependency { any_children, ..Dependency::from_tracker(&target, kind)? })
    }

    /// A bead that waits for something without a usable name waits all the same, and says for what. An edge without any
    /// other end says nothing.
    fn unnamed(&self) -> Option<Dependency> {
        let written = filled(self.depends_on_id.as_ref())?.into();
        let kind = DepKind::from(&*cut(self.kind.as_ref()).unwrap_or_default());
        let on = BeadId::parse("unnamed").ok()?;
        Some(Dependency { written: Some(written), ..Dependency::new(on, kind) })
    }

    /// The note is a JSON object, or a text that holds one.
    fn opens_with_the_first_child(&self) -> bool {
        fn says_so(json: &str) -> bool {
            let note: Result<GateNote<'_>, _> = serde_json::from_str(json);
            note.is_ok_and(|note| note.gate.is_some_and(|gate| gate.0 == "any-children"))
        }
        let Some(json) = self.metadata.map(RawValue::get) else { return false };
        match serde_json::from_str::<Text<'_>>(json) {
            Ok(inner) => says_so(&inner.0),
            Err(_) => says_so(json),
        }
    }
}

/// A text that says something.
fn filled<'t>(text: Option<&'t Text<'_>>) -> Option<&'t str> {
    text.map(|text| &*text.0).filter(|text| !text.is_empty())
}

/// A text that says something, cut to a length the journal can bear.
fn cut<'t>(text: Option<&'t Text<'_>>) -> Option<Cow<'t, str>> {
    let may_have_nul = matches!(text, Some(Text(Cow::Owned(_))));
    filled(text).map(|text| {
        // No text has more characters than bytes, so most need not be counted.
        let end = if text.len() > MAX_TEXT { text.char_indices().nth(MAX_TEXT) } else { None };
        let text = end.map_or(text, |(end, _)| &text[..end]);
        // JSON writes a NUL as an escape, and what has escapes is not borrowed.
        if may_have_nul && text.contains('\0') { Cow::Owned(without_nul(text)) } else { Cow::Borrowed(text) }
    })
}

/// Texts reach programs as arguments and environment, which cannot hold a NUL.
fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// What serde says, without its position (a record is one line) and without quoting a whole novel.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
    text.chars().take(MAX_REASON).collect()
}

#[cfg(test)]
mod tests;
