//! The director: looks at what happens in the town, and makes happen what the story needs next. It waits for
//! conditions, never for the clock, so that a slow machine, or a person who steps in, only changes when things happen.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::work::{self, BROKEN, DECISION, HELD, LONG, Telling};

/// After so many closed beads the urgent one comes up.
const HOTFIX_AFTER: usize = 16;
/// After so many, legal has decided.
const DECIDED_AFTER: usize = 26;
/// After so many, the poster may go on.
const RELEASED_AFTER: usize = 34;
/// So many after the circuit broke, the missing tool is there.
const INSTALLED_AFTER: usize = 6;

/// Something the director makes happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// An urgent bead comes up, and takes the slot of the long one.
    Hotfix,
    /// The person decides.
    Decide,
    /// The held bead may go on.
    Release,
    /// The missing tool is installed.
    Install,
}

/// One story as far as it has got.
#[derive(Debug, Default)]
struct Story {
    closed: BTreeSet<&'static str>,
    /// The long bead has a worker.
    long_runs: bool,
    /// How many were closed when the circuit broke.
    broke_at: Option<usize>,
    broken: bool,
    acted: Vec<Act>,
}

/// Every story under way.
#[derive(Debug)]
pub(super) struct Director {
    copies: u32,
    stories: BTreeMap<u32, Story>,
    complete_convoys: usize,
}

impl Director {
    pub(super) fn new(copies: u32) -> Self {
        let stories = (1..=copies).map(|number| (number, Story::default())).collect();
        Self { copies, stories, complete_convoys: 0 }
    }

    /// Takes an event in, and says what is to happen now, each thing once.
    pub(super) fn heed(&mut self, event: &Value) -> Vec<(Telling, Act)> {
        let text = |key: &str| event[key].as_str().unwrap_or_default();
        self.complete_convoys += usize::from(text("type") == "convoy.closed");
        let id = match text("type") {
            "context.closed" => text("bead"),
            _ => text("id").split_once('@').map_or(text("id"), |(bead, _)| bead),
        };
        let Some((name, number)) = work::name_of(id) else { return Vec::new() };
        let Some(story) = self.stories.get_mut(&number) else { return Vec::new() };
        match text("type") {
            "bead.closed" => {
                story.closed.insert(name);
                story.broken &= name != BROKEN;
            }
            "context.closed" if name == BROKEN && text("reason") == "circuit-broken" => {
                story.broken = true;
                story.broke_at = story.broke_at.or(Some(story.closed.len()));
            }
            "dispatch.running" if name == LONG => story.long_runs = true,
            "dispatch.ended" if name == LONG => story.long_runs = false,
            _ => return Vec::new(),
        }
        let telling = Telling { number, of: self.copies };
        story.due().into_iter().map(|act| (telling, act)).collect()
    }

    /// Whether every story has come to its end: all is closed but perhaps the bead that a person has to retry.
    pub(super) fn is_finished(&self) -> bool {
        let finished = |story: &Story| {
            let worked_on = story.closed.iter().filter(|name| **name != DECISION).count();
            worked_on + usize::from(story.broken) >= work::count()
        };
        let told = self.complete_convoys + self.broken() >= self.stories.len();
        told && self.stories.values().all(finished)
    }

    /// How many beads wait for a person to retry them.
    pub(super) fn broken(&self) -> usize {
        self.stories.values().filter(|story| story.broken).count()
    }
}

impl Story {
    fn due(&mut self) -> Vec<Act> {
        let closed = self.closed.len();
        let conditions = [
            (Act::Hotfix, closed >= HOTFIX_AFTER && (self.long_runs || self.closed.contains(LONG))),
            (Act::Decide, closed >= DECIDED_AFTER && !self.closed.contains(DECISION)),
            (Act::Release, closed >= RELEASED_AFTER && !self.closed.contains(HELD)),
            (Act::Install, self.broke_at.is_some_and(|then| closed >= then + INSTALLED_AFTER)),
        ];
        let due = conditions.into_iter().filter(|(_, holds)| *holds).map(|(act, _)| act);
        let due: Vec<Act> = due.filter(|act| !self.acted.contains(act)).collect();
        self.acted.extend(&due);
        due
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn closed(id: &str) -> Value {
        json!({"type": "bead.closed", "id": id})
    }

    /// Plays a whole story, and says what happened after how many closes.
    fn played(copies: u32, number: u32) -> (Director, Vec<(usize, Act)>) {
        let mut director = Director::new(copies);
        let telling = Telling { number, of: copies };
        let mut acts = Vec::new();
        director.heed(&json!({"type": "dispatch.running", "id": format!("{}@1", telling.id(LONG))}));
        let broke = json!({"type": "context.closed", "bead": telling.id(BROKEN), "reason": "circuit-broken"});
        for (n, piece) in work::all().filter(|piece| piece.id != BROKEN).enumerate() {
            if n == 9 {
                director.heed(&broke);
            }
            for (whose, act) in director.heed(&closed(&telling.id(piece.id))) {
                assert_eq!(whose, telling);
                acts.push((n + 1, act));
            }
        }
        (director, acts)
    }

    #[test]
    fn each_thing_happens_once_when_its_time_has_come() {
        let (mut director, acts) = played(1, 1);
        let wanted = [
            (9 + INSTALLED_AFTER, Act::Install),
            (HOTFIX_AFTER, Act::Hotfix),
            (DECIDED_AFTER, Act::Decide),
            (RELEASED_AFTER, Act::Release),
        ];
        assert_eq!(acts, wanted);
        assert!(director.is_finished() && director.broken() == 1);
        director.heed(&closed(BROKEN));
        assert!(!director.is_finished(), "its convoy is about to close");
        director.heed(&json!({"type": "convoy.closed", "id": "hq-cv-12345"}));
        assert!(director.is_finished() && director.broken() == 0);
    }

    #[test]
    fn several_stories_end_when_all_of_them_have() {
        let (director, acts) = played(2, 2);
        assert_eq!(acts.len(), 4);
        assert!(!director.is_finished(), "the first has not begun");
    }

    #[test]
    fn nobody_pushes_in_while_there_is_nobody_to_push_out() {
        let mut director = Director::new(1);
        let acts = work::EPIC_WORK.iter().take(20).flat_map(|piece| director.heed(&closed(piece.id)));
        assert!(acts.collect::<Vec<_>>().is_empty());
        let runs = json!({"type": "dispatch.running", "id": "api-replay@2"});
        assert_eq!(director.heed(&runs), [(Telling { number: 1, of: 1 }, Act::Hotfix)]);
    }
}
