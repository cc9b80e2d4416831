//! The same promises, whether the log lies in a file or in a PostgreSQL server.

use tempfile::TempDir;
use yard_engine::Seq;
use yard_journal::{
    EventQuery, Journal, JournalError, Lease, Loaded, PostgresUrl, Reader, Role, Row, Store, copy,
};

use crate::server::PostgresServer;
use crate::support::{entity, numbers, row, rows};

/// Some place where a log is kept.
pub(crate) struct Place {
    pub(crate) store: Store,
    folder: TempDir,
}

impl Place {
    fn file() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { store: Store::Sqlite(folder.path().join("journal.db")), folder }
    }

    pub(crate) fn schema(server: &PostgresServer, schema: &str) -> Self {
        let url = PostgresUrl::parse(&server.url(schema)).unwrap();
        Self { store: Store::Postgres(url), folder: tempfile::tempdir().unwrap() }
    }

    /// The writer, with the lease that lets it write.
    pub(crate) fn open(&self) -> (Lease, Journal) {
        if let Store::Postgres(url) = &self.store {
            Journal::begin_in_postgres(url).unwrap();
        }
        let lease = Lease::try_acquire(&self.store, Role::Command).unwrap();
        let journal = lease.open_journal(&self.store).unwrap();
        (lease, journal)
    }

    pub(crate) fn reader(&self) -> Reader {
        Reader::open(&self.store).unwrap()
    }

    /// Writes what is given, and closes the log again.
    pub(crate) fn fill(&self, rows: &[Row]) {
        let (_lease, mut journal) = self.open();
        journal.append(rows).unwrap();
    }
}

/// Runs a test in each kind of place.
fn in_each(test: impl Fn(&Place)) {
    test(&Place::file());
    let server = PostgresServer::start();
    test(&Place::schema(&server, "a_town"));
}

#[test]
fn an_append_is_kept_whole_in_order_and_once() {
    in_each(|place| {
        let (lease, mut journal) = place.open();
        assert_eq!((journal.last_seq(), journal.load().unwrap()), (Seq(0), Loaded::default()));
        journal.append(&rows(1..=3)).unwrap();
        journal.append(&[]).unwrap();
        let gap = journal.append(&[row(4), row(6)]);
        assert!(matches!(gap, Err(JournalError::OutOfOrder { expected: Seq(5), found: Seq(6) })));
        journal.append(&rows(4..=4)).unwrap();
        drop((journal, lease));
        let (_lease, mut journal) = place.open();
        assert_eq!(journal.load().unwrap().tail, rows(1..=4));
        journal.append(&rows(5..=5)).unwrap();
        let reader = place.reader();
        assert_eq!(reader.load().unwrap().tail, rows(1..=5));
        assert_eq!(reader.last_seq().unwrap(), Seq(5));
        journal.append(&rows(6..=6)).unwrap();
        assert_eq!(reader.last_seq().unwrap(), Seq(6), "a reader sees what came since");
        assert!(reader.check().unwrap().is_sound());
    });
}

#[test]
fn a_batch_too_large_for_one_message_is_one_append() {
    in_each(|place| {
        let large = |seq| Row { body: format!("\"{}\"", "x".repeat(5 << 20)), ..row(seq) };
        let batch: Vec<Row> = (1..=4).map(large).collect();
        place.fill(&batch);
        let (_lease, mut journal) = place.open();
        assert_eq!(journal.load().unwrap().tail, batch);
    });
}

#[test]
fn a_checkpoint_replaces_the_events_before_it_and_never_goes_back() {
    in_each(|place| {
        let (lease, mut journal) = place.open();
        journal.append(&rows(1..=6)).unwrap();
        let two = [entity("gt-1", Some("{}")), entity("gt-2", Some("{}"))];
        journal.checkpoint(Seq(3), &two).unwrap();
        let gone = [entity("gt-1", Some("[1]")), entity("gt-2", None), entity("gt-9", None)];
        journal.checkpoint(Seq(4), &gone).unwrap();
        for seq in [3, 7] {
            let refused = journal.checkpoint(Seq(seq), &[entity("gt-1", Some("{}"))]);
            assert!(matches!(refused, Err(JournalError::CheckpointOutOfRange { .. })), "{seq}");
        }
        drop((journal, lease));
        let loaded = place.open().1.load().unwrap();
        assert_eq!((loaded.checkpoint_seq, loaded.entities), (Seq(4), vec![entity("gt-1", Some("[1]"))]));
        assert_eq!(loaded.tail, rows(5..=6));
        assert_eq!(place.reader().checkpoint().unwrap(), Seq(4));
        assert!(place.reader().check().unwrap().is_sound());
    });
}

#[test]
fn a_log_that_was_cut_off_goes_on_and_its_beginning_is_kept_as_a_copy() {
    in_each(|place| {
        let (_lease, mut journal) = place.open();
        journal.append(&rows(1..=9)).unwrap();
        assert_eq!(journal.cut_off(Seq(8), 100).unwrap(), 0, "there is no checkpoint");
        let then = [entity("gt-1", Some("[1]")), entity("gt-2", Some("[2]"))];
        journal.checkpoint(Seq(6), &then).unwrap();
        let past = place.folder.path().join("past.db");
        let (at, sum) = place.reader().copy_checkpoint_to(&past).unwrap();
        assert_eq!(at, Seq(6));
        assert_eq!(journal.cut_off(Seq(3), 2).unwrap(), 2, "a piece at a time");
        assert_eq!(journal.cut_off(Seq(100), 100).unwrap(), 4);
        assert!(journal.has_sum(at, sum).unwrap() && !journal.has_sum(Seq(7), sum).unwrap());
        assert!(!journal.has_sum(Seq(2), sum).unwrap());
        assert_eq!(journal.beginning().unwrap(), Seq(6));
        assert_eq!(journal.time_of(Seq(6)).unwrap(), None);
        assert_eq!(journal.time_of(Seq(7)).unwrap(), Some(row(7).at));
        journal.append(&rows(10..=10)).unwrap();
        let report = place.reader().check().unwrap();
        assert!(report.is_sound(), "{:?}", report.problems);
        assert_eq!((report.first_seq, report.last_seq, report.events), (Seq(7), Seq(10), 4));
        let mut copied = Reader::open(&past).unwrap().load().unwrap();
        copied.entities.sort_by(|a, b| a.id.cmp(&b.id));
        assert_eq!((copied.checkpoint_seq, copied.entities, copied.tail), (Seq(6), then.to_vec(), vec![]));
    });
}

#[test]
fn a_query_selects_by_place_time_kind_and_number() {
    in_each(|place| {
        let last = 5_000;
        place.fill(&rows(1..=last));
        let reader = place.reader();
        let ask = |query: EventQuery| numbers(&reader.events(&query).unwrap());
        let all = EventQuery::default;
        assert_eq!(ask(all()), (1..=last).collect::<Vec<_>>());
        assert_eq!(ask(EventQuery { since: Some(Seq(last - 2)), ..all() }), [last - 1, last]);
        assert_eq!(ask(EventQuery { since_time: Some(row(last).at), ..all() }), [last]);
        assert_eq!(ask(EventQuery { tail: Some(3), limit: Some(1), ..all() }), [last - 2]);
        let closed = EventQuery { kind: Some("bead.closed".to_owned()), limit: Some(2), ..all() };
        assert_eq!(ask(closed), [3, 6]);
        let convoys = EventQuery { kind: Some("convoy".to_owned()), tail: Some(1_000), ..all() };
        assert_eq!(ask(convoys).len(), 1_000);
        let found = reader.events_at(&[Seq(4), Seq(last + 1), Seq(2), Seq(4), Seq(3)]).unwrap();
        assert_eq!(numbers(&found), [2, 3, 4]);
    });
}

#[test]
fn a_log_moves_to_a_database_and_back_with_every_sum() {
    let server = PostgresServer::start();
    let (from, there, back) = (Place::file(), Place::schema(&server, "moved"), Place::file());
    let (lease, mut journal) = from.open();
    journal.append(&rows(1..=3_000)).unwrap();
    let entities: Vec<_> = (0..3_000).map(|n| entity(&format!("gt-{n}"), Some("{\"ä\":1}"))).collect();
    journal.checkpoint(Seq(2_000), &entities).unwrap();
    journal.cut_off(Seq(500), 1_000).unwrap();
    drop((journal, lease));
    let copied = copy(&from.store, &there.store).unwrap();
    assert_eq!((copied.events, copied.last, copied.entities), (2_500, Seq(3_000), 3_000));
    copy(&there.store, &back.store).unwrap();
    for place in [&there, &back] {
        assert_eq!(place.reader().tip().unwrap(), from.reader().tip().unwrap());
        let again = copy(&from.store, &place.store);
        assert!(matches!(again, Err(JournalError::NotEmpty(_))), "{again:?}");
        let (_lease, mut journal) = place.open();
        assert_eq!(journal.load().unwrap().entities.len(), 3_000);
        journal.append(&rows(3_001..=3_001)).unwrap();
        assert!(place.reader().check().unwrap().is_sound());
    }
}
