//! The work of the demo: night trains go on sale. Sixty beads of an epic in seven waves, and some errands beside them.
//! The table is what the town is made of, what the simulated agents play, and what the director counts.

use yard_engine::bead::{DepKind, Dependency};
use yard_engine::command::NewBead;
use yard_engine::{BeadId, RigName};

/// The projects, with how many workers each may have; each name is also the bead prefix and the directory.
pub(super) const RIGS: [(&str, u64); 2] = [("api", 7), ("web", 5)];

/// The epic.
pub(super) const EPIC: &str = "api-night";
/// What a person decides; one bead of the epic waits for it.
pub(super) const DECISION: &str = "api-legal";
/// The bead whose program is not there, and that program in its rig's directory.
pub(super) const BROKEN: &str = "web-icons";
pub(super) const TOOL: &str = "tools/fontcut";
/// Long and not urgent; it has to give way to the bead that comes up in the middle.
pub(super) const LONG: &str = "api-replay";
pub(super) const URGENT: &str = "api-hotfix";
/// Held back by a person for a while.
pub(super) const HELD: &str = "web-poster";

/// What goes wrong with a simulated agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Nothing.
    None,
    /// Its first so many attempts fail, with this message.
    Fails(u32, &'static str),
    /// At its first attempt its service is not there.
    Unavailable,
    /// It says nothing for a long time.
    Silent,
}

/// One bead.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    pub(super) seconds: u32,
    pub(super) needs: &'static [&'static str],
    pub(super) trouble: Trouble,
}

const fn piece(
    id: &'static str,
    title: &'static str,
    seconds: u32,
    needs: &'static [&'static str],
    trouble: Trouble,
) -> Piece {
    Piece { id, title, seconds, needs, trouble }
}

const FINE: Trouble = Trouble::None;
const BAD_ROW: Trouble = Trouble::Fails(1, "row 4117: the train arrives before it departs");
const SNAPSHOT: Trouble = Trouble::Fails(1, "snapshot car-12.png differs in 214 pixels");
const SANDBOX: Trouble = Trouble::Fails(1, "the provider's sandbox answered 502 Bad Gateway");
const FLAKY: Trouble = Trouble::Fails(2, "timed out: no element matches [data-test=pay]");

/// The beads of the epic, wave by wave.
#[rustfmt::skip]
pub(super) const EPIC_WORK: [Piece; 60] = [
    piece("api-schema", "Tables for trains, cars and berths", 7, &[], FINE),
    piece("api-auth", "Sign-in with a one-time code", 10, &[], FINE),
    piece("api-fares", "Fare rules as data", 8, &[], FINE),
    piece("api-clock", "One clock for all time zones", 6, &[], FINE),
    piece("web-tokens", "Colours, type and spacing", 6, &[], FINE),
    piece("web-shell", "Page frame with navigation", 8, &[], FINE),
    piece("web-i18n", "Texts in four languages", 10, &[], FINE),

    piece("api-stations", "Stations and their neighbours", 8, &["api-schema"], FINE),
    piece("api-berths", "Berth map of every car", 10, &["api-schema"], FINE),
    piece("api-timetable", "Timetable import", 9, &["api-schema", "api-clock"], BAD_ROW),
    piece("api-prices", "Price of one trip", 8, &["api-fares", "api-schema"], FINE),
    piece("api-sessions", "Sessions that survive a restart", 7, &["api-auth"], FINE),
    piece("api-audit", "Who did what, and when", 6, &["api-auth", "api-schema"], FINE),
    piece("api-limits", "Limits per traveller", 7, &["api-auth"], FINE),
    piece("web-forms", "Form fields that explain themselves", 8, &["web-tokens"], FINE),
    piece("web-dates", "Date picker for overnight trips", 10, &["web-tokens", "web-i18n"], FINE),
    piece("web-login", "Sign-in page", 7, &["web-shell", "api-auth"], FINE),
    piece("web-keys", "Everything by keyboard", 9, &["web-shell"], FINE),
    piece(BROKEN, "Icons cut from the font", 6, &["web-tokens"], FINE),

    piece("api-search", "Find a connection", 11, &["api-stations", "api-timetable"], FINE),
    piece("api-holds", "Hold a berth for ten minutes", 9, &["api-berths", "api-sessions"], FINE),
    piece("api-vouchers", "Discounts and vouchers", 7, &["api-prices"], FINE),
    piece("api-days", "Days on which a train runs", 7, &["api-timetable"], FINE),
    piece("api-ledger", "Ledger of every booking", 9, &["api-audit", "api-prices"], FINE),
    piece("api-pets", "Pets and bicycles", 6, &["api-prices", "api-berths", DECISION], FINE),
    piece("api-cache", "Cache of popular connections", 8, &["api-timetable", "api-limits"], FINE),
    piece("web-station", "Station box with suggestions", 8, &["web-forms", "api-stations"], FINE),
    piece("web-berths", "A berth map to tap on", 10, &["web-forms", "api-berths"], SNAPSHOT),
    piece("web-profile", "Traveller profile", 7, &["web-login", "api-sessions"], FINE),
    piece("web-month", "Month view with prices", 8, &["web-dates", "api-prices"], FINE),
    piece("web-print", "Tickets on paper", 7, &["web-shell", "web-i18n"], FINE),

    piece("api-booking", "Book, change, cancel", 12, &["api-holds", "api-ledger"], FINE),
    piece("api-changes", "Connections with a change", 9, &["api-search", "api-days"], FINE),
    piece("api-refunds", "Refunds by the rules", 8, &["api-ledger", "api-vouchers"], FINE),
    piece("api-waiting", "Waiting list for full trains", 7, &["api-holds"], FINE),
    piece("api-notify", "Messages by mail and text", 7, &["api-audit", "api-days"], FINE),
    piece("api-load", "Load test of the search", 14, &["api-search", "api-cache"], Trouble::Silent),
    piece("web-results", "List of connections", 9, &["web-station", "api-search"], FINE),
    piece("web-filters", "Filters that remember", 7, &["web-station"], FINE),
    piece("web-choose", "Choose a berth", 9, &["web-berths", "api-holds"], FINE),
    piece("web-fares", "Fares side by side", 7, &["web-month", "api-vouchers"], FINE),
    piece("web-trips", "My trips", 8, &["web-profile", "api-ledger"], FINE),

    piece("api-payment", "Payment with two providers", 11, &["api-booking", "api-refunds"], SANDBOX),
    piece("api-groups", "Groups of up to twelve", 8, &["api-booking"], FINE),
    piece("api-delays", "Delays and missed connections", 9, &["api-changes", "api-notify"], FINE),
    piece("api-export", "Export for the accountants", 6, &["api-refunds"], FINE),
    piece("web-checkout", "Checkout in three steps", 10, &["web-choose", "web-fares", "api-booking"], FINE),
    piece("web-change", "Change a booking", 8, &["web-trips", "api-booking"], FINE),
    piece("web-map", "The route on a map", 7, &["web-results", "api-changes"], FINE),
    piece("web-waiting", "Join the waiting list", 6, &["web-choose", "api-waiting"], FINE),
    piece("web-invoice", "Invoices as PDF", 7, &["web-trips", "api-refunds"], FINE),

    piece("api-partners", "Events for partners", 7, &["api-payment", "api-delays"], FINE),
    piece("api-reports", "Reports for the night desk", 7, &["api-export", "api-payment", "api-groups"], FINE),
    piece("api-archive", "Archive of past trips", 6, &["api-export"], FINE),
    piece("api-canary", "A canary with real travellers", 8, &["api-payment", "api-pets"], FINE),
    piece("web-pay", "Payment page", 9, &["web-checkout", "api-payment"], FLAKY),
    piece("web-status", "Live status of a trip", 8, &["web-map", "web-trips", "api-delays"], FINE),
    piece("web-help", "Help that answers", 7, &["web-change", "web-checkout"], FINE),
    piece("web-offline", "Tickets without a network", 7, &["web-print", "web-invoice", "web-checkout"], FINE),

    piece("web-journey", "The whole journey, end to end", 9,
        &["web-pay", "web-status", "web-help", "web-waiting", "web-keys", "web-filters", "api-canary"], FINE),
];

/// What is done beside the epic: bead, the account that pays for it, and its priority.
#[rustfmt::skip]
pub(super) const ERRANDS: [(Piece, Option<&str>, u8); 4] = [
    (piece(LONG, "Replay last winter against the new planner", 50, &[], FINE), Some("lab"), 35),
    (piece("web-rivals", "What the other night trains charge", 7, &[], Trouble::Unavailable), Some("search"), 50),
    (piece("web-press", "Collect what the papers write", 6, &[], FINE), Some("search"), 50),
    (piece(HELD, "Poster for the opening night", 7, &[], FINE), None, 50),
];

/// What comes up in the middle, much more urgent than the rest.
pub(super) const HOTFIX: (Piece, &str, u8) =
    (piece(URGENT, "Refunds are paid twice: stop it", 7, &[], FINE), "lab", 95);

/// One telling of the story, of several; with a single one nothing is numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Telling {
    pub(super) number: u32,
    pub(super) of: u32,
}

impl Telling {
    /// A bead's id in this story.
    pub(super) fn id(self, name: &str) -> String {
        if self.of == 1 { name.to_owned() } else { format!("{name}-{}", self.number) }
    }

    /// A bead as the town gets it.
    pub(super) fn bead(self, piece: &Piece, parent: Option<&str>) -> NewBead {
        let edge =
            |name: &str, kind: DepKind| Some(Dependency::new(BeadId::parse(&self.id(name)).ok()?, kind));
        let needs = piece.needs.iter().filter_map(|name| edge(name, DepKind::Blocks));
        let parent = parent.and_then(|name| edge(name, DepKind::ParentChild));
        NewBead {
            id: Some(self.id(piece.id)),
            title: piece.title.to_owned(),
            dependencies: needs.chain(parent).collect(),
            argv: (piece.id == BROKEN).then(|| vec![format!("./{TOOL}")]),
            ..NewBead::default()
        }
    }

    /// Everything there is at the beginning.
    pub(super) fn beads(self) -> Vec<NewBead> {
        let titled = |id: &str, title: &str, kind: &str| NewBead {
            id: Some(self.id(id)),
            title: title.to_owned(),
            kind: kind.to_owned(),
            ..NewBead::default()
        };
        let mut beads = vec![titled(EPIC, "Night trains go on sale", "epic")];
        let mut decision = titled(DECISION, "Legal: may pets travel in a couchette?", "decision");
        decision.dependencies = BeadId::parse(&self.id(EPIC))
            .map(|on| Dependency::new(on, DepKind::ParentChild))
            .into_iter()
            .collect();
        beads.push(decision);
        beads.extend(EPIC_WORK.iter().map(|piece| self.bead(piece, Some(EPIC))));
        beads.extend(ERRANDS.iter().map(|(piece, ..)| self.bead(piece, None)));
        beads
    }
}

/// The name of a bead whatever its number, and the number.
pub(super) fn name_of(id: &str) -> Option<(&'static str, u32)> {
    let (name, number) = match id.rsplit_once('-') {
        Some((name, number)) if number.bytes().all(|b| b.is_ascii_digit()) => (name, number.parse().ok()?),
        _ => (id, 1),
    };
    let known = all().map(|piece| piece.id).chain([EPIC, DECISION]);
    known.into_iter().find(|known| *known == name).map(|name| (name, number))
}

/// Every piece of work.
pub(super) fn all() -> impl Iterator<Item = &'static Piece> {
    static PIECES: [Piece; 60] = EPIC_WORK;
    static BESIDE: [(Piece, Option<&str>, u8); 4] = ERRANDS;
    static LATER: (Piece, &str, u8) = HOTFIX;
    PIECES.iter().chain(BESIDE.iter().map(|(piece, ..)| piece)).chain([&LATER.0])
}

/// How many beads of one story are worked on.
pub(super) fn count() -> usize {
    all().count()
}

/// The rig of a bead, by its prefix.
pub(super) fn rig_of(id: &str) -> Option<RigName> {
    RigName::parse(id.split_once('-')?.0).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_epic_comes_in_seven_waves_and_nothing_waits_for_the_broken_bead() {
        let mut done: BTreeSet<&str> = BTreeSet::from([DECISION]);
        let mut waves = Vec::new();
        while done.len() <= EPIC_WORK.len() {
            let ready = |piece: &&Piece| {
                !done.contains(piece.id) && piece.needs.iter().all(|need| done.contains(need))
            };
            let wave: Vec<&str> = EPIC_WORK.iter().filter(ready).map(|piece| piece.id).collect();
            assert!(!wave.is_empty(), "the rest waits for itself, or for nobody");
            waves.push(wave.len());
            done.extend(wave);
        }
        assert_eq!(waves.len(), 7, "{waves:?}");
        assert!(all().all(|piece| !piece.needs.contains(&BROKEN)));
    }

    #[test]
    fn ids_are_unique_and_lead_back_to_their_names() {
        let names: BTreeSet<&str> = all().map(|piece| piece.id).collect();
        assert_eq!(names.len(), count());
        for telling in [Telling { number: 1, of: 1 }, Telling { number: 3, of: 4 }] {
            for bead in telling.beads() {
                let id = bead.id.expect("an id");
                let (name, number) = name_of(&id).expect("a name");
                assert_eq!((telling.id(name), number), (id, telling.number));
            }
        }
        assert_eq!(name_of("api-nothing"), None);
    }
}
