//! Commands as they come over the socket: whatever they say, they are refused without a trace or leave a town whose
//! invariants hold, whose events survive being written down, and whose replay is the same.

use std::sync::LazyLock;

use yard_engine::command::{AddItem, NewBead};
use yard_engine::plan::Scope;
use yard_engine::rig::Rig;
use yard_engine::{Asker, Command, Event, Kitchen, Recorded, State, Timestamp, Tx};

pub(super) const WORDS: &[&str] = &[
    "y-1",
    "y-2",
    "y-3",
    "y-9",
    "ctx-1",
    "hq-cv-00000",
    "y-1@1",
    "y-2@1",
    "yard",
    "fern",
    "al-1",
    "P0",
    "closed",
    "open",
    "blocks",
    "parent-child",
    "waits-for",
    "2026-11-16T09:30:00Z",
    "9999-12-31T23:59:59Z",
    "undo",
    "redo",
    "resume",
    r#"{"do":"undo"}"#,
    r#"{"do":"redo"}"#,
    r#"{"do":"run","batch":null,"dry_run":false}"#,
    r#"{"do":"recover","dry_run":false}"#,
    r#"{"do":"resume"}"#,
    r#"{"do":"clear","bead":null}"#,
    "mol-polecat-work",
    "claude/s-1",
];

/// Commands tried on one town at most.
const MOST: usize = 12;

/// A town that is checked after each decision.
#[derive(Clone)]
pub(super) struct Town {
    state: State,
    replayed: State,
    now: i64,
}

impl Town {
    /// With a rig, two beads that run, one that waits for the first, and an epic.
    pub(super) fn with_work() -> Self {
        static TOWN: LazyLock<Town> = LazyLock::new(Town::make);
        TOWN.clone()
    }

    fn make() -> Self {
        let mut town = Self { state: State::default(), replayed: State::default(), now: 1_700_000_000_000 };
        let rig = r#"{"name":"yard","prefix":"y","path":"."}"#;
        let rig: Rig = serde_json::from_str(rig).expect("a rig");
        town.decide(&Command::RigAdd { rig });
        let item = |id: &str, after: &[&str]| AddItem {
            argv: vec!["true".to_owned()],
            id: Some(id.to_owned()),
            after: after.iter().map(|id| (*id).to_owned()).collect(),
            ..AddItem::default()
        };
        town.decide(&Command::Add { items: vec![item("y-1", &[]), item("y-2", &[]), item("y-3", &["y-1"])] });
        let epic = NewBead {
            id: Some("y-4".to_owned()),
            title: "E".to_owned(),
            kind: "epic".to_owned(),
            ..NewBead::default()
        };
        town.decide(&Command::BeadAdd { bead: Box::new(epic) });
        assert!(town.state.bead(&"y-4".parse().expect("an id")).is_some(), "the town has its beads");
        town
    }

    /// Decides a command as the daemon does, with a pass after it.
    pub(super) fn decide(&mut self, command: &Command) {
        self.now += 1_000;
        let kitchen = Kitchen::default();
        let mut tx = Tx::new(&mut self.state, Timestamp::from_millis(self.now));
        // A refusal is an answer.
        let _ = tx.decide(&Asker { actor: "fuzz", kitchen: &kitchen }, command);
        tx.pass(Scope::Everything, None);
        let events = tx.finish();
        self.check(events);
    }

    fn check(&mut self, events: Vec<Recorded>) {
        self.state.check_invariants().expect("the invariants hold");
        for recorded in events {
            let (kind, body) = (recorded.event.kind(), recorded.event.body());
            let event = Event::from_stored(kind, &body).unwrap_or_else(|error| panic!("{error}: {body}"));
            assert_eq!(event, recorded.event, "{kind} changed by being written down");
            self.replayed.apply(&Recorded { event, ..recorded });
        }
    }
}

impl Drop for Town {
    /// What it came to is what its log says.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.state.check_same_as(&self.replayed).expect("a replay gives the same town");
        }
    }
}

pub(super) fn run(input: &[u8]) {
    let commands = super::lines(input).filter_map(|line| serde_json::from_str::<Command>(line).ok());
    let mut town = None;
    for command in commands.take(MOST) {
        let json = serde_json::to_string(&command).expect("a command");
        assert_eq!(serde_json::from_str::<Command>(&json).ok().as_ref(), Some(&command), "{json}");
        town.get_or_insert_with(Town::with_work).decide(&command);
    }
}
