//! What only a journal in PostgreSQL has to promise: terms, sessions that are lost, servers that go away, other hosts.

use std::sync::mpsc;
use std::time::Duration;

use postgres::{Client, NoTls};
use tempfile::TempDir;
use yard_engine::Seq;
use yard_journal::{Journal, JournalError, Lease, LeaseError, PostgresUrl, Reader, Role, Store, copy};

use crate::server::PostgresServer;
use crate::stores::Place;
use crate::support::{entity, row, rows};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_mins(1);

fn client(server: &PostgresServer, label: &str) -> Client {
    let url = server.url("x").replace("&schema=x", "");
    let mut config: postgres::Config = url.parse().unwrap();
    config.application_name(label).connect(NoTls).unwrap()
}

fn tamper(server: &PostgresServer, sql: &str) {
    client(server, "test").batch_execute(&format!("SET search_path TO town; {sql}")).unwrap();
}

/// As if the holder had stood still for long.
fn let_it_expire(server: &PostgresServer) {
    tamper(server, "UPDATE lease SET heartbeat_at = heartbeat_at - interval '1 hour'");
    // The server has to have been up for so long, too.
    let mut client = client(server, "test");
    let is_old = "SELECT pg_postmaster_start_time() < clock_timestamp() - interval '3 seconds'";
    while !client.query_one(is_old, &[]).unwrap().get::<_, bool>(0) {
        std::thread::park_timeout(Duration::from_millis(20));
        client
            .batch_execute("UPDATE town.lease SET heartbeat_at = heartbeat_at - interval '1 hour'")
            .unwrap();
    }
    client.batch_execute("UPDATE town.lease SET heartbeat_at = heartbeat_at - interval '1 hour'").unwrap();
}

fn is_replaced<T: std::fmt::Debug>(outcome: Result<T, JournalError>) {
    assert!(matches!(outcome, Err(JournalError::Replaced)), "{outcome:?}");
}

#[test]
fn whoever_was_replaced_while_it_stood_still_writes_nothing_more() {
    let server = PostgresServer::start();
    let place = Place::schema(&server, "town");
    let (old_lease, mut old) = place.open();
    let (lost, was_lost) = mpsc::channel();
    old_lease.when_lost(move |error| lost.send(error).unwrap());
    old.append(&rows(1..=3)).unwrap();
    old.checkpoint(Seq(2), &[entity("gt-1", Some("{}"))]).unwrap();
    let held = Lease::try_acquire(&place.store, Role::Daemon);
    assert!(matches!(&held, Err(LeaseError::Held(it)) if it.pid == Some(std::process::id())), "{held:?}");

    let new_lease = loop {
        let_it_expire(&server);
        match Lease::try_acquire(&place.store, Role::Daemon) {
            Ok(lease) => break lease,
            // Its heartbeat was faster.
            Err(LeaseError::Held(_)) => {}
            Err(error) => panic!("{error}"),
        }
    };
    let holder = place.reader().holder().unwrap().unwrap();
    assert_eq!((holder.role, holder.is_elsewhere()), (Some(Role::Daemon), false));
    is_replaced(old.append(&rows(4..=4)));
    is_replaced(old.checkpoint(Seq(3), &[entity("gt-2", Some("{}"))]));
    is_replaced(old.cut_off(Seq(2), 10));
    is_replaced(old.confirm());
    assert!(matches!(was_lost.recv_timeout(PATIENCE), Ok(JournalError::Replaced)));

    let mut new = new_lease.open_journal(&place.store).unwrap();
    new.append(&rows(4..=5)).unwrap();
    is_replaced(old.append(&rows(4..=4)));
    drop((old, old_lease));
    assert!(place.reader().holder().unwrap().is_some(), "the old one has nothing to give back");
    new.append(&rows(6..=6)).unwrap();
    assert_eq!(place.reader().load().unwrap().tail, rows(3..=6));
    drop((new, new_lease));
    assert_eq!(place.reader().holder().unwrap(), None);
}

#[test]
fn a_transaction_that_its_owner_left_open_does_not_keep_the_lease_from_anybody() {
    let server = PostgresServer::start();
    let place = Place::schema(&server, "town");
    place.fill(&rows(1..=1));
    // As a holder of the next term that stopped in the middle of a checkpoint.
    tamper(
        &server,
        "UPDATE lease SET term = term + 1, held = true, role = 'daemon', heartbeat_at = clock_timestamp()",
    );
    let term: i64 = client(&server, "test").query_one("SELECT term FROM town.lease", &[]).unwrap().get(0);
    let mut stopped = client(&server, &format!("ym town {term}"));
    stopped.batch_execute("BEGIN; SELECT term FROM town.lease FOR KEY SHARE").unwrap();
    let held = Lease::try_acquire(&place.store, Role::Command);
    assert!(matches!(held, Err(LeaseError::Held(_))), "{held:?}");
    let_it_expire(&server);
    let (_lease, mut journal) = place.open();
    journal.append(&rows(2..=2)).unwrap();
    assert!(stopped.batch_execute("COMMIT").is_err(), "its session was ended");
}

#[test]
fn a_lost_session_or_a_crash_of_the_server_loses_and_doubles_no_append() {
    let mut server = PostgresServer::start();
    let place = Place::schema(&server, "town");
    let (_lease, mut journal) = place.open();
    let mut last = 0;
    for round in 0..12 {
        if round % 4 == 3 {
            server.crash_and_restart();
        } else {
            let mut other = client(&server, "test");
            let end_all = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                           WHERE application_name LIKE 'ym town%'";
            // Sometimes in the middle of an append, sometimes between two.
            std::thread::scope(|scope| {
                let killer = scope.spawn(move || (0..20).for_each(|_| drop(other.query(end_all, &[]))));
                while !killer.is_finished() {
                    journal.append(&rows(last + 1..=last + 3)).unwrap();
                    last += 3;
                }
            });
        }
        journal.append(&rows(last + 1..=last + 2)).unwrap();
        last += 2;
    }
    assert_eq!(journal.load().unwrap().tail, rows(1..=last));
    assert_eq!(place.reader().load().unwrap().tail, rows(1..=last));
}

#[test]
fn a_reader_hears_of_what_others_append_and_of_the_lease() {
    let server = PostgresServer::start();
    let place = Place::schema(&server, "town");
    let (lease, mut journal) = place.open();
    let reader = place.reader();
    reader.wait_for_news(PATIENCE).unwrap();
    journal.append(&rows(1..=1)).unwrap();
    reader.wait_for_news(PATIENCE).unwrap();
    assert_eq!(reader.last_seq().unwrap(), Seq(1));
    drop((journal, lease));
    while reader.holder().unwrap().is_some() {
        reader.wait_for_news(PATIENCE).unwrap();
    }
}

#[test]
fn damage_is_named_with_its_place() {
    let server = PostgresServer::start();
    let place = Place::schema(&server, "town");
    let (lease, mut journal) = place.open();
    journal.append(&rows(1..=9)).unwrap();
    journal.checkpoint(Seq(4), &[entity("gt-1", Some("{}")), entity("gt-2", Some("{}"))]).unwrap();
    drop((journal, lease));
    let cases = [
        ("UPDATE events SET body = '{}' WHERE seq = 7", "event 7"),
        ("DELETE FROM events WHERE seq = 6", "event 6: the event is missing"),
        ("UPDATE entities SET body = '[]' WHERE id = 'gt-2'", "bead gt-2"),
        ("DELETE FROM entities WHERE id = 'gt-1'", "entities are missing"),
        ("UPDATE meta SET checkpoint_seq = 3", "own notes"),
    ];
    for (harm, said) in cases {
        let mut backup = client(&server, "test");
        let tables = ["events", "entities", "meta"];
        let keep = tables.map(|it| format!("CREATE TABLE kept_{it} AS TABLE town.{it};")).concat();
        backup.batch_execute(&keep).unwrap();
        tamper(&server, harm);
        let report = place.reader().check().unwrap();
        assert!(report.problems.iter().any(|it| it.contains(said)), "{harm}: {:?}", report.problems);
        assert!(place.reader().load().is_err(), "{harm}");
        let elsewhere = Store::Postgres(PostgresUrl::parse(&server.url("copy")).unwrap());
        assert!(copy(&place.store, &elsewhere).is_err(), "{harm}");
        let again = tables.map(|it| {
            format!("TRUNCATE town.{it}; INSERT INTO town.{it} TABLE kept_{it}; DROP TABLE kept_{it};")
        });
        backup.batch_execute(&again.concat()).unwrap();
    }
    assert!(place.reader().check().unwrap().is_sound());
}

#[test]
fn what_is_not_ours_or_newer_is_left_alone() {
    let server = PostgresServer::start();
    let place = Place::schema(&server, "town");
    let missing = Reader::open(&place.store).err().unwrap();
    assert!(matches!(missing, JournalError::Missing(_)), "{missing}");
    client(&server, "test")
        .batch_execute("CREATE SCHEMA town; CREATE TABLE town.somebody_elses (x int)")
        .unwrap();
    for refused in [
        Reader::open(&place.store).err().unwrap().to_string(),
        Lease::try_acquire(&place.store, Role::Command).unwrap_err().to_string(),
    ] {
        assert!(refused.contains("not a yardmaster journal"), "{refused}");
    }
    tamper(&server, "DROP TABLE somebody_elses");
    place.fill(&[row(1)]);
    tamper(&server, "UPDATE meta SET format = 9");
    let newer = Reader::open(&place.store).err().unwrap();
    assert!(matches!(newer, JournalError::NewerSchema { found: 9, .. }), "{newer}");
}

#[test]
fn a_server_that_is_not_there_is_named_without_its_password() {
    let url = PostgresUrl::parse("postgres://ann:s3cret@127.0.0.1:1/yards?schema=a").unwrap();
    let refused = Reader::open(Store::Postgres(url)).err().unwrap();
    assert!(matches!(refused, JournalError::Unreachable(_)), "{refused}");
    assert!(!refused.to_string().contains("s3cret"));
}

#[test]
fn the_loopback_network_serves_as_well_as_the_socket() {
    let mut server = PostgresServer::start();
    let place = Place::schema(&server, "town");
    place.fill(&rows(1..=3));
    let by_network = Store::Postgres(PostgresUrl::parse(&server.loopback_url("town")).unwrap());
    assert_eq!(Reader::open(&by_network).unwrap().last_seq().unwrap(), Seq(3));
    server.stop();
    assert!(
        matches!(Reader::open(&by_network).err(), Some(JournalError::Unreachable(_))),
        "{}",
        server.log()
    );
}

/// A town's directory on some host, with this log.
fn directory(server: &PostgresServer, schema: &str) -> (TempDir, Store) {
    let town = tempfile::tempdir().unwrap();
    std::fs::create_dir(town.path().join(".yardmaster")).unwrap();
    let url = PostgresUrl::parse(&server.url(schema)).unwrap().of_town(town.path());
    (town, Store::Postgres(url))
}

fn begin(store: &Store) {
    let Store::Postgres(url) = store else { panic!("a database") };
    Journal::begin_in_postgres(url).unwrap();
}

#[test]
fn a_log_that_is_not_there_is_never_begun_by_the_way() {
    let server = PostgresServer::start();
    let (_town, store) = directory(&server, "typo");
    for _ in 0..2 {
        let refused = Lease::try_acquire(&store, Role::Daemon).unwrap_err();
        assert!(matches!(refused, LeaseError::Journal(JournalError::Missing(_))), "{refused}");
        assert!(matches!(Reader::open(&store), Err(JournalError::Missing(_))));
    }
    begin(&store);
    drop(Lease::try_acquire(&store, Role::Daemon).unwrap());
}

#[test]
fn a_directory_meets_no_other_log_than_its_own() {
    let server = PostgresServer::start();
    let (town, store) = directory(&server, "ours");
    let other = Store::Postgres(PostgresUrl::parse(&server.url("theirs")).unwrap().of_town(town.path()));
    begin(&store);
    begin(&other);
    drop(Lease::try_acquire(&store, Role::Command).unwrap());
    let refused = Lease::try_acquire(&other, Role::Command).unwrap_err();
    assert!(matches!(refused, LeaseError::Journal(JournalError::OtherTown(_))), "{refused}");
    assert!(matches!(Reader::open(&other), Err(JournalError::OtherTown(_))));
    // Unless it has moved there.
    yard_journal::leave_log(&town.path().join(".yardmaster")).unwrap();
    drop(Lease::try_acquire(&other, Role::Command).unwrap());
    assert!(matches!(Reader::open(&store), Err(JournalError::OtherTown(_))));
    // What has a journal of its own is no copy of anybody's config.
    let (filed, store) = directory(&server, "ours");
    std::fs::write(filed.path().join(".yardmaster/journal.db"), "something").unwrap();
    assert!(matches!(Reader::open(&store), Err(JournalError::OtherTown(_))));
}

#[test]
fn a_log_knows_from_which_directory_it_was_led() {
    let server = PostgresServer::start();
    let (_here, at_home) = directory(&server, "town");
    let (there, away) = directory(&server, "town");
    begin(&at_home);
    let lease = Lease::try_acquire(&at_home, Role::Daemon).unwrap();
    assert!(lease.led_from_elsewhere().is_none(), "nobody has led it yet");
    lease.make_home().unwrap();
    drop(lease);
    assert!(Lease::try_acquire(&at_home, Role::Daemon).unwrap().led_from_elsewhere().is_none());
    assert!(Reader::open(&away).unwrap().led_from_elsewhere().unwrap().is_some());
    let lease = Lease::try_acquire(&away, Role::Daemon).unwrap();
    assert!(lease.led_from_elsewhere().unwrap().town.is_some());
    lease.make_home().unwrap();
    drop(lease);
    let seen = Reader::open(&at_home).unwrap().led_from_elsewhere().unwrap().unwrap();
    assert_eq!(seen.town.as_deref(), there.path().to_str());
}

#[test]
fn whatever_disturbs_a_heartbeat_is_no_reason_to_give_up() {
    let server = PostgresServer::start();
    let place = Place::schema(&server, "town");
    tamper(
        &server,
        "ALTER ROLE yard SET statement_timeout = '200ms'; ALTER ROLE yard SET idle_session_timeout = '300ms'",
    );
    let (lease, mut journal) = place.open();
    let (lost, was_lost) = mpsc::channel();
    lease.when_lost(move |error| drop(lost.send(error.to_string())));
    let mut other = client(&server, "other");
    other.batch_execute("SET statement_timeout = 0; SET idle_session_timeout = 0").unwrap();
    for n in 1..=3 {
        let mut tx = other.transaction().unwrap();
        tx.batch_execute("SELECT * FROM town.lease FOR NO KEY UPDATE").unwrap();
        // Longer than any of these timeouts; the heart is held up and interrupted.
        tx.batch_execute(
            "SELECT pg_sleep(0.7), pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name LIKE '% lease'",
        )
        .unwrap();
        tx.commit().unwrap();
        journal.append(&rows(n..=n)).unwrap();
    }
    assert_eq!(was_lost.try_recv(), Err(mpsc::TryRecvError::Empty));
}

#[test]
fn a_checkpoint_outlives_the_session_that_wrote_it() {
    let server = PostgresServer::start();
    let place = Place::schema(&server, "town");
    let (_lease, mut journal) = place.open();
    journal.append(&rows(1..=3)).unwrap();
    let cut_off =
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name ~ '^ym town [0-9]+$'";
    client(&server, "test").batch_execute(cut_off).unwrap();
    journal.checkpoint(Seq(2), &[entity("gt-1", Some("{}"))]).unwrap();
    client(&server, "test").batch_execute(cut_off).unwrap();
    assert_eq!(journal.cut_off(Seq(1), 10).unwrap(), 1);
    client(&server, "test").batch_execute(cut_off).unwrap();
    assert_eq!(journal.beginning().unwrap(), Seq(1));
    assert!(place.reader().check().unwrap().is_sound());
}
