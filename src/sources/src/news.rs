//! What a source has told so far, so that each thing is told once: a reading is made only when it says something new.

use std::sync::Arc;
use std::time::{Duration, Instant};

use yard_engine::bead::Bead;
use yard_engine::{BeadId, RigName, SourceReading};

/// Ends the stamp of a reading that whoever comes next should not rely on.
pub(crate) const UNCERTAIN: &str = "?";

/// What one look at the source found.
#[derive(Default)]
pub(crate) struct Finding {
    /// The version that was read; none if nothing could be.
    pub(crate) stamp: Option<String>,
    /// Whether the version is final and read without trouble: what it lacks is not there.
    pub(crate) certain: bool,
    /// All beads, or those that changed.
    pub(crate) beads: Vec<Arc<Bead>>,
    /// Whether these are all.
    pub(crate) whole: bool,
    /// Beads that disappeared for certain.
    pub(crate) gone: Vec<BeadId>,
    /// What is wrong.
    pub(crate) trouble: Option<String>,
    /// Whether earlier trouble is not over, although nothing is wrong: too little is there.
    pub(crate) doubtful: bool,
}

/// What the receiver knows.
pub(crate) struct News {
    rig: RigName,
    /// How long trouble must last before it is told.
    pub(crate) patience: Duration,
    stamp: Option<String>,
    /// Whether all beads were told.
    shown: bool,
    /// Whether it was told for certain that there are no others.
    complete: bool,
    trouble: Option<String>,
    untold: Option<Untold>,
}

/// Trouble that may pass by itself.
struct Untold {
    text: String,
    since: Instant,
}

impl News {
    pub(crate) fn new(rig: RigName) -> Self {
        Self {
            rig,
            patience: Duration::ZERO,
            stamp: None,
            shown: false,
            complete: false,
            trouble: None,
            untold: None,
        }
    }

    /// Whether a reading must hold all beads: the first, and the first that is certain.
    pub(crate) fn wants_all(&self, certain: bool) -> bool {
        !self.shown || (certain && !self.complete)
    }

    /// When trouble that was held back is to be told, unless it has passed.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.untold.as_ref().map(|untold| untold.since + self.patience)
    }

    /// Makes a reading of what is new; none if nothing is.
    pub(crate) fn tell(&mut self, finding: Finding) -> Option<SourceReading> {
        let stamp = match finding.stamp {
            Some(stamp) if finding.certain => stamp,
            Some(stamp) => stamp + UNCERTAIN,
            None => UNCERTAIN.to_owned(),
        };
        let trouble = self.weigh(finding.trouble, finding.doubtful);
        let vanished = finding.whole && finding.certain;
        let new = (finding.whole && (!self.shown || vanished))
            || !finding.beads.is_empty()
            || !finding.gone.is_empty()
            || trouble != self.trouble
            || (finding.certain && self.stamp.as_ref() != Some(&stamp));
        if !new {
            return None;
        }
        self.shown |= finding.whole;
        self.complete |= vanished;
        self.stamp = Some(stamp.clone());
        self.trouble.clone_from(&trouble);
        Some(SourceReading {
            rig: self.rig.clone(),
            stamp,
            whole: finding.whole,
            beads: finding.beads,
            gone: finding.gone,
            vanished,
            trouble,
        })
    }

    /// The trouble to tell: what is wrong now, once it has lasted, and until then what was told before.
    fn weigh(&mut self, found: Option<String>, doubtful: bool) -> Option<String> {
        let Some(text) = found else {
            self.untold = None;
            return self.trouble.clone().filter(|_| doubtful);
        };
        if self.trouble.as_ref() == Some(&text) {
            self.untold = None;
            return Some(text);
        }
        // Other words for trouble that nobody has heard of yet do not make it younger.
        let same = self.untold.take().filter(|untold| untold.text == text || self.trouble.is_none());
        let since = same.map_or_else(Instant::now, |untold| untold.since);
        if since.elapsed() >= self.patience {
            return Some(text);
        }
        self.untold = Some(Untold { text, since });
        self.trouble.clone()
    }
}
