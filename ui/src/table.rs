//! The table of beads: which rows there are and in which order. It is kept up to date bead by bead, so that a hundred
//! thousand rows cost no more per event than ten; whoever draws builds only the rows that are seen.

use std::collections::{BTreeSet, HashMap};

use yard_engine::{BeadId, Standing, State};

use crate::filter::Filter;
use crate::town::Waves;

/// Beads looked at again in every frame, besides those an event named: what else may have changed shows within moments.
const SWEEP: usize = 1_500;

/// The first so many letters of a text as a number that sorts like them.
fn letters(text: &str, most: usize) -> Key {
    let bytes = text.bytes().chain(std::iter::repeat(0)).take(most);
    bytes.fold(0, |key, byte| key << 8 | Key::from(byte.to_ascii_lowercase()))
}

/// An id by its prefix, then by its first number: `gt-9` goes before `gt-10`.
fn by_id(id: &str) -> Key {
    let at = id.find(|letter: char| letter.is_ascii_digit()).unwrap_or(id.len());
    let (prefix, rest) = id.split_at(at);
    let digits = rest.bytes().take_while(u8::is_ascii_digit).take(19);
    let number = digits.fold(0_u64, |number, digit| number * 10 + u64::from(digit - b'0'));
    letters(prefix, 8) << 64 | Key::from(number)
}

/// What rows are ordered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// What needs eyes first, then wave by wave.
    State,
    /// By id.
    Id,
    /// By title.
    Title,
    /// Most urgent first.
    Priority,
    /// Wave by wave.
    Wave,
    /// What changed last.
    Recent,
    /// What may wait least, as the forecast has it.
    Slack,
}

/// Every order with its key in the menu and its name.
pub const ORDERS: [(Order, char, &str); 7] = [
    (Order::State, 's', "state"),
    (Order::Wave, 'w', "wave"),
    (Order::Priority, 'p', "priority"),
    (Order::Slack, 'k', "slack"),
    (Order::Recent, 'r', "recent"),
    (Order::Id, 'i', "id"),
    (Order::Title, 't', "title"),
];

impl Order {
    /// Its name.
    pub fn name(self) -> &'static str {
        ORDERS.iter().find(|(order, _, _)| *order == self).map_or("state", |(_, _, name)| name)
    }
}

/// What orders rows besides the state: what the forecast says of a bead, if anything.
pub trait Slack {
    /// How long a bead may wait without delaying the end, in milliseconds.
    fn slack(&self, bead: &BeadId) -> Option<u64>;
}

/// Where everything that a row's place depends on is found.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    /// The town.
    pub state: &'a State,
    /// Its waves.
    pub waves: &'a Waves,
    /// Its forecast.
    pub slack: &'a dyn Slack,
}

type Key = u128;

/// A bead by its place among those that are known.
type Place = u32;

/// The rows, the order, and where the cursor is.
#[derive(Debug)]
pub struct Table {
    order: Order,
    reversed: bool,
    filter: Filter,
    /// What passes the filter, in order.
    rows: Vec<(Key, Place)>,
    /// All beads, those that came later at the end.
    known: Vec<Known>,
    places: HashMap<BeadId, Place>,
    swept: usize,
    selected: Option<BeadId>,
    /// The user has picked a row: the cursor stays on its bead. Until then it stays on the first row.
    picked: bool,
    /// The row at which the cursor stands, even if there is none.
    at: usize,
    offset: usize,
}

/// A bead, as it was when it was last looked at.
#[derive(Debug)]
struct Known {
    id: BeadId,
    standing: Option<Standing>,
    /// Its place in the order; none if it does not pass.
    key: Option<Key>,
}

impl Default for Table {
    fn default() -> Self {
        Self {
            order: Order::State,
            reversed: false,
            filter: Filter::default(),
            rows: Vec::new(),
            known: Vec::new(),
            places: HashMap::new(),
            swept: 0,
            selected: None,
            picked: false,
            at: 0,
            offset: 0,
        }
    }
}

impl Table {
    /// Builds everything anew, after another state.
    pub fn rebuild(&mut self, facts: Facts<'_>) {
        let state = facts.state;
        let known = |entry: &yard_engine::bead::BeadEntry| {
            let id = entry.bead.id.clone();
            Known { standing: state.standing(&id), id, key: None }
        };
        self.known = state.beads().map(known).collect();
        self.places = (0..).zip(&self.known).map(|(place, known)| (known.id.clone(), place)).collect();
        self.swept = 0;
        self.reorder(facts);
    }

    /// Orders and filters what is known anew, after another order or filter.
    pub fn reorder(&mut self, facts: Facts<'_>) {
        let mut known = std::mem::take(&mut self.known);
        for known in &mut known {
            known.key = self.key_of(facts, &known.id, known.standing);
        }
        self.known = known;
        let rows = (0..).zip(&self.known).filter_map(|(place, known)| Some((known.key?, place)));
        self.rows = rows.collect();
        self.rows.sort_unstable();
        self.find_cursor();
    }

    /// Brings these beads up to date, and some more.
    pub fn refresh(&mut self, facts: Facts<'_>, changed: &BTreeSet<BeadId>) {
        let mut look: Vec<Place> = Vec::with_capacity(changed.len() + SWEEP);
        for id in changed {
            let place = self.places.get(id).copied().unwrap_or_else(|| self.meet(id));
            look.push(place);
        }
        let slice = self.known.len().min(SWEEP);
        look.extend((0..slice).map(|step| ((self.swept + step) % self.known.len()) as Place));
        self.swept = (self.swept + slice).checked_rem(self.known.len()).unwrap_or(0);
        let (mut gone, mut come) = (BTreeSet::new(), BTreeSet::new());
        for place in look {
            let known = &self.known[place as usize];
            let standing = facts.state.standing(&known.id);
            let (before, after) = (known.key, self.key_of(facts, &known.id, standing));
            if before != after {
                gone.extend(before.map(|key| (key, place)));
                come.extend(after.map(|key| (key, place)));
            }
            let known = &mut self.known[place as usize];
            (known.standing, known.key) = (standing, after);
        }
        if gone.is_empty() && come.is_empty() {
            return;
        }
        self.rows = merged(std::mem::take(&mut self.rows), &gone, come);
        self.find_cursor();
    }

    /// Takes note of a bead nobody has seen yet.
    fn meet(&mut self, id: &BeadId) -> Place {
        let place = self.known.len() as Place;
        self.known.push(Known { id: id.clone(), standing: None, key: None });
        self.places.insert(id.clone(), place);
        place
    }

    fn key_of(&self, facts: Facts<'_>, id: &BeadId, standing: Option<Standing>) -> Option<Key> {
        let standing = standing?;
        if !self.filter.lets_through(facts.state, facts.waves, id, Some(standing)) {
            return None;
        }
        let wave = || Key::from(facts.waves.of(id).unwrap_or(u32::MAX));
        let entry = || facts.state.bead(id);
        let key = match self.order {
            Order::State => Key::from(rank(standing)) << 64 | wave(),
            Order::Wave => wave() << 8 | Key::from(rank(standing)),
            Order::Priority => {
                let entry = entry()?;
                let context = entry.work.context.as_ref().and_then(|id| facts.state.context(id));
                let scheduled = context.map_or(100, |context| 100 - context.priority.min(100));
                Key::from(scheduled) << 16 | Key::from(entry.bead.priority) << 8 | Key::from(rank(standing))
            }
            Order::Recent => Key::from(u64::MAX - entry()?.work.history.last().map_or(0, |seq| seq.0)),
            Order::Slack => {
                Key::from(facts.slack.slack(id).unwrap_or(u64::MAX)) << 8 | Key::from(rank(standing))
            }
            Order::Id => by_id(id.as_str()),
            Order::Title => letters(&entry()?.bead.title, 16),
        };
        Some(if self.reversed { Key::MAX - key } else { key })
    }

    /// Puts the cursor back on its bead, on the same line of the screen; a bead that left hands it to its neighbour.
    fn find_cursor(&mut self) {
        let line = self.at.saturating_sub(self.offset);
        let picked = self.selected.as_ref().filter(|_| self.picked);
        let found = if self.picked { picked.and_then(|id| self.row_of(id)) } else { Some(0) };
        self.at = found.unwrap_or(self.at).min(self.rows.len().saturating_sub(1));
        if found.is_some() {
            self.offset = self.at.saturating_sub(line);
        }
        self.selected = self.id_at(self.at).cloned();
    }

    fn row_of(&self, id: &BeadId) -> Option<usize> {
        let place = *self.places.get(id)?;
        let key = self.known[place as usize].key?;
        self.rows.binary_search(&(key, place)).ok()
    }

    fn id_at(&self, row: usize) -> Option<&BeadId> {
        self.rows.get(row).map(|(_, place)| &self.known[*place as usize].id)
    }

    /// Sets the filter; the rows follow when they are ordered anew.
    pub fn set_filter(&mut self, filter: Filter) {
        self.filter = filter;
    }

    /// The filter in force.
    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    /// Sets the order; the same one again turns it around. The rows follow with the next rebuild.
    pub fn set_order(&mut self, order: Order) {
        self.reversed = self.order == order && !self.reversed;
        self.order = order;
    }

    /// The order in force, and whether it is turned around.
    pub fn order(&self) -> (Order, bool) {
        (self.order, self.reversed)
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The bead under the cursor.
    pub fn selected(&self) -> Option<&BeadId> {
        self.selected.as_ref()
    }

    /// The place of the cursor.
    pub fn cursor(&self) -> usize {
        self.at
    }

    /// Moves the cursor.
    pub fn move_to(&mut self, at: usize) {
        self.at = at.min(self.rows.len().saturating_sub(1));
        self.picked = self.at > 0;
        self.selected = self.id_at(self.at).cloned();
    }

    /// Puts the cursor on a bead, if it has a row.
    pub fn select(&mut self, id: &BeadId) -> bool {
        let Some(at) = self.row_of(id) else { return false };
        self.move_to(at);
        self.picked = true;
        true
    }

    /// The beads between two rows, both included.
    pub fn between(&self, one: usize, other: usize) -> impl Iterator<Item = &BeadId> {
        let (from, to) = (one.min(other), one.max(other));
        self.rows.iter().skip(from).take(to - from + 1).map(|(_, place)| &self.known[*place as usize].id)
    }

    /// All beads that pass, in order.
    pub fn ids(&self) -> impl Iterator<Item = &BeadId> {
        self.rows.iter().map(|(_, place)| &self.known[*place as usize].id)
    }

    /// Scrolls so that the cursor is among `height` visible rows.
    pub fn scroll(&mut self, height: usize) {
        self.offset = scrolled(self.offset, self.at, self.rows.len(), height);
    }

    /// The first visible row.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The visible rows.
    pub fn visible(&self, height: usize) -> impl Iterator<Item = &BeadId> {
        self.rows.iter().skip(self.offset).take(height).map(|(_, place)| &self.known[*place as usize].id)
    }
}

/// The smallest move of a window of `height` rows that shows row `at`, without emptiness at the end.
pub fn scrolled(offset: usize, at: usize, rows: usize, height: usize) -> usize {
    let height = height.max(1);
    let last = rows.saturating_sub(height);
    let lowest = (at + 1).saturating_sub(height);
    offset.clamp(lowest, at.max(lowest)).min(last)
}

/// What a person wants to see first.
fn rank(standing: Standing) -> u8 {
    match standing {
        Standing::Running => 0,
        Standing::CircuitBroken => 1,
        Standing::Failed => 2,
        Standing::Done => 3,
        Standing::Queued | Standing::Assigned => 4,
        Standing::Blocked => 5,
        Standing::Staged => 6,
        Standing::Cancelled => 7,
        Standing::Open => 8,
        Standing::Closed => 9,
    }
}

/// One pass over all rows, however many of them change.
fn merged(
    rows: Vec<(Key, Place)>,
    gone: &BTreeSet<(Key, Place)>,
    come: BTreeSet<(Key, Place)>,
) -> Vec<(Key, Place)> {
    let mut out = Vec::with_capacity(rows.len() + come.len());
    let (mut gone, mut come) = (gone.iter().peekable(), come.into_iter().peekable());
    for row in rows {
        if gone.next_if(|left| **left == row).is_some() {
            continue;
        }
        while let Some(new) = come.next_if(|new| *new < row) {
            out.push(new);
        }
        out.push(row);
    }
    out.extend(come);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{NoSlack, Yard};

    fn shown(table: &Table) -> String {
        table.ids().map(|id| id.as_str().trim_start_matches("gt-")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn rows_follow_events_one_by_one_to_the_same_end_as_a_rebuild() {
        let mut yard = Yard::with_cap(1);
        for number in 1..=6 {
            yard.bead(&format!("gt-{number}"), "work", |_| {});
        }
        yard.needs("gt-6", "gt-5");
        let mut table = Table::default();
        table.rebuild(yard.facts(&NoSlack));
        for happening in ["gt-3", "gt-5", "gt-6"] {
            yard.sling(happening);
            let changed = yard.town().take_changed();
            table.refresh(yard.facts(&NoSlack), &changed);
            let mut fresh = Table::default();
            fresh.rebuild(yard.facts(&NoSlack));
            assert_eq!(shown(&table), shown(&fresh));
        }
        assert_eq!(shown(&table), "3 5 6 1 2 4");
    }

    #[test]
    fn the_cursor_stays_on_its_bead_and_on_its_line() {
        let mut yard = Yard::with_cap(1);
        for number in 1..=9 {
            yard.bead(&format!("gt-{number}"), "work", |_| {});
        }
        let mut table = Table::default();
        table.rebuild(yard.facts(&NoSlack));
        table.move_to(5);
        table.scroll(4);
        let (id, line) = (table.selected().cloned(), table.cursor() - table.offset());
        yard.sling("gt-8");
        let changed = yard.town().take_changed();
        table.refresh(yard.facts(&NoSlack), &changed);
        assert_eq!(table.selected().cloned(), id);
        assert_eq!(table.cursor(), 6);
        assert_eq!(table.cursor() - table.offset(), line);
    }

    #[test]
    fn a_window_moves_as_little_as_it_can_and_never_past_the_end() {
        assert_eq!(scrolled(0, 5, 10, 4), 2);
        assert_eq!(scrolled(5, 6, 10, 4), 5);
        assert_eq!(scrolled(5, 2, 10, 4), 2);
        assert_eq!(scrolled(9, 9, 10, 4), 6);
        assert_eq!(scrolled(3, 0, 0, 4), 0);
        assert_eq!(scrolled(3, 1, 2, 0), 1);
    }
}
