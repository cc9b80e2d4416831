//! The town of every picture: a convoy of 48 beads in seven waves over two rigs, in the middle of its third wave, with
//! one of everything that can happen to a bead.

use yard_engine::command::{SlingRequest, WorkerSays};
use yard_engine::dispatch::Category;
use yard_engine::money::Usd;
use yard_engine::settings::AccountSettings;
use yard_engine::{Command, Millis};

use super::Yard;
use super::story::{Fault, Job, Story};

const fn job(
    id: &'static str,
    title: &'static str,
    kind: &'static str,
    seconds: i64,
    needs: &'static [&'static str],
) -> Job {
    Job { id, title, kind, seconds, needs }
}

/// What ran in the morning: the forecast has something to go by.
const GEMINI: &[Job] = &[
    job("gt-301", "router-split", "feature", 560, &[]),
    job("gt-302", "token-store", "feature", 650, &[]),
    job("gt-303", "page-shell", "feature", 470, &["gt-301"]),
    job("gt-304", "unit-matrix", "bug", 380, &["gt-301"]),
    job("gt-305", "smoke-pages", "bug", 520, &["gt-303"]),
    job("db-306", "orders-table", "task", 420, &[]),
    job("db-307", "orders-index", "task", 480, &["db-306"]),
    job("db-308", "orders-backfill", "task", 1_560, &["db-307"]),
    job("gt-309", "readme-pass", "chore", 260, &["gt-303"]),
    job("gt-310", "changelog", "chore", 210, &["gt-309"]),
    job("gt-311", "api-reference", "chore", 330, &["gt-303"]),
    job("gt-312", "deploy-gemini", "chore", 420, &["gt-305", "db-308"]),
];

/// The convoy that is under way.
const APOLLO: &[Job] = &[
    // Wave 1.
    job("gt-401", "proto-build", "feature", 372, &[]),
    job("gt-402", "ci-cache", "feature", 245, &[]),
    job("gt-403", "auth-tokens", "feature", 534, &[]),
    job("db-404", "schema-draft", "task", 430, &[]),
    job("gt-405", "design-tokens", "feature", 305, &[]),
    job("gt-406", "error-catalog", "chore", 468, &[]),
    // Wave 2.
    job("gt-407", "api-routes", "feature", 602, &["gt-401", "gt-403"]),
    job("gt-408", "session-store", "feature", 489, &["gt-403"]),
    job("db-409", "schema-review", "task", 366, &["db-404"]),
    job("gt-410", "button-kit", "feature", 433, &["gt-405"]),
    job("gt-411", "bundle-budget", "bug", 60, &["gt-402"]),
    job("gt-412", "rate-limits", "feature", 377, &["gt-401"]),
    job("gt-413", "i18n-extract", "chore", 344, &["gt-406"]),
    job("gt-414", "mail-templates", "chore", 600, &["gt-406"]),
    job("db-415", "index-plan", "task", 318, &["db-404"]),
    // Wave 3.
    job("db-416", "db-migrate", "task", 2_280, &["db-409"]),
    job("gt-417", "api-schema", "feature", 660, &["gt-407"]),
    job("gt-418", "lint-web", "bug", 1_300, &["gt-410"]),
    job("gt-419", "e2e-smoke", "bug", 500, &["gt-408"]),
    job("gt-420", "cart-service", "feature", 780, &["gt-407", "gt-408"]),
    job("gt-421", "price-rules", "feature", 840, &["gt-412"]),
    job("gt-422", "login-form", "feature", 560, &["gt-410", "gt-413"]),
    job("db-423", "audit-log", "task", 1_100, &["db-415"]),
    job("gt-424", "webhook-retry", "feature", 620, &["gt-407"]),
    job("gt-425", "docs-outline", "chore", 300, &["gt-413"]),
    // Wave 4.
    job("db-426", "load-fixtures", "task", 700, &["db-416"]),
    job("gt-427", "contract-test", "bug", 540, &["gt-417"]),
    job("gt-428", "checkout-page", "feature", 600, &["gt-420", "gt-422"]),
    job("gt-429", "tax-table", "feature", 420, &["gt-421"]),
    job("gt-430", "search-facets", "feature", 510, &["gt-417"]),
    job("gt-431", "audit-view", "feature", 480, &["db-423"]),
    job("gt-432", "email-flow", "feature", 450, &["gt-414", "gt-420"]),
    job("gt-433", "docs-site", "chore", 360, &["gt-425"]),
    // Wave 5.
    job("gt-434", "payment-sandbox", "feature", 720, &["gt-428", "gt-429"]),
    job("db-435", "backfill-orders", "task", 1_300, &["db-426"]),
    job("gt-436", "e2e-checkout", "bug", 600, &["gt-427", "gt-428"]),
    job("gt-437", "admin-report", "feature", 500, &["gt-431"]),
    job("gt-438", "load-test", "bug", 640, &["db-426", "gt-430"]),
    job("gt-439", "a11y-pass", "bug", 410, &["gt-428"]),
    job("gt-440", "refund-flow", "feature", 520, &["gt-432"]),
    // Wave 6.
    job("gt-441", "security-review", "bug", 700, &["gt-434", "gt-436"]),
    job("db-442", "replica-switch", "task", 900, &["db-435"]),
    job("gt-443", "canary-config", "chore", 300, &["gt-438"]),
    job("gt-444", "release-notes", "chore", 280, &["gt-433", "gt-439"]),
    job("gt-445", "on-call-guide", "chore", 320, &["gt-437"]),
    // Wave 7.
    job("gt-446", "deploy-canary", "chore", 480, &["gt-441", "db-442", "gt-443"]),
    job("gt-447", "deploy-docs", "chore", 240, &["gt-444", "gt-445"]),
    job("gt-448", "flag-cleanup", "feature", 300, &["gt-440", "gt-443"]),
];

/// What is staged for the evening.
const HERMES: &[Job] = &[
    job("gt-501", "push-tokens", "feature", 400, &[]),
    job("gt-502", "push-service", "feature", 500, &["gt-501"]),
    job("gt-503", "push-settings", "feature", 400, &["gt-501"]),
    job("gt-504", "push-e2e", "bug", 500, &["gt-502", "gt-503"]),
];

/// The time of the picture: 14:07:31.
pub(crate) const NOW: i64 = 7 * 60 + 31;

/// The town at 14:07:31.
pub(crate) fn apollo() -> Yard {
    told().yard
}

/// The same, with the story, so that it can go on.
pub(crate) fn told() -> Story {
    let mut story = morning();
    launched(&mut story);
    afternoon(&mut story);
    at_work(&mut story);
    story
}

/// Two rigs, caps, budgets, and a convoy that ran to its end.
fn morning() -> Story {
    let mut yard = Yard::made_at(super::BEGINNING - 3 * 3_600_000);
    yard.rig("db", "db", None);
    yard.configure(|settings| {
        settings.max_polecats = 6;
        settings.cost.daily = Usd::from_dollars(40.0).ok();
        settings.rigs.entry("db".parse().expect("a rig")).or_default().max_polecats = Some(2);
        let account = AccountSettings { max_polecats: Some(3), cooldown: Some(Millis::minutes(8)) };
        settings.accounts.insert("claude".parse().expect("an account"), account);
    });
    let mut story = Story::in_yard(yard);
    story
        .yard
        .bead("gt-300", "Gemini: orders move to their own tables", |bead| bead.kind = "epic".to_owned());
    story.jobs(GEMINI, "gt-300");
    launch(&mut story, "gt-300", "gemini");
    story.until(-2 * 3_600);
    story.yard.must(&Command::BeadClose { ids: vec!["gt-300".to_owned()], reason: None });
    // The daemon tells of a closed convoy once, and then it is no alert any more.
    let alerts: Vec<_> = story.yard.state.alerts().map(|alert| alert.id.clone()).collect();
    for id in alerts {
        story.yard.act(|tx| tx.alert_told(&id, None));
    }
    story
}

/// Apollo is launched at 13:31, and a few of its beads are asked for by name beforehand.
fn launched(story: &mut Story) {
    story.until(-29 * 60);
    story.yard.bead("gt-400", "Apollo: a checkout people finish", |bead| bead.kind = "epic".to_owned());
    story.jobs(APOLLO, "gt-400");
    story.yard.bead("gt-600", "Someday: dark mode", |_| {});
    faults(story);
    let asked = [
        ("gt-422", Some("claude"), 50),
        ("gt-424", Some("claude"), 50),
        ("gt-428", Some("claude"), 70),
        ("gt-425", None, 50),
        ("gt-419", None, 60),
        ("db-416", None, 60),
    ];
    for (id, account, priority) in asked {
        sling(story, id, account, priority);
    }
    story.yard.must(&Command::Hold { id: "gt-425".to_owned(), held: true });
    launch(story, "gt-400", "apollo");
}

fn sling(story: &mut Story, id: &str, account: Option<&str>, priority: u8) {
    story.yard.must(&Command::Sling(Box::new(SlingRequest {
        ids: vec![id.to_owned()],
        account: account.map(|name| name.parse().expect("an account")),
        priority: Some(priority),
        no_convoy: true,
        ..SlingRequest::default()
    })));
}

fn launch(story: &mut Story, epic: &str, title: &str) {
    story.yard.must(&Command::ConvoyStage {
        targets: vec![epic.to_owned()],
        title: Some(title.to_owned()),
        launch: false,
    });
    story.yard.must(&Command::ConvoyLaunch { targets: vec![epic.to_owned()], force: true });
}

fn faults(story: &mut Story) {
    let missing = "cannot run bundlewatch: No such file or directory";
    story.fault("gt-411", 0, Fault::NoStart(missing));
    let ends = |after, code, category, message| Fault::Ends { after, code, category, message };
    let late = "the active-time budget of 10m is used up";
    story.fault("gt-414", 0, ends(600, 1, Category::HardCap, late));
    let smoke = "exit 1: 3 of 41 pages did not load";
    story.fault("gt-419", 1, ends(260, 1, Category::Crash, smoke));
    story.fault("gt-419", 2, ends(190, 1, Category::Crash, smoke));
    let away = "the model's service answered 529 (overloaded)";
    story.fault("gt-424", 1, ends(500, 69, Category::Unavailable, away));
}

/// Wave by wave until 14:00; then a hotfix comes, lint-web gives way to it, and hermes is staged.
fn afternoon(story: &mut Story) {
    story.until(0);
    story.jobs(&[job("gt-449", "hotfix-vat-rounding", "bug", 540, &[])], "");
    sling(story, "gt-449", None, 60);
    let candidate = Some("gt-449".to_owned());
    story.yard.must(&Command::Preempt { id: "gt-418".to_owned(), candidate });
    story.until(20);
    let note = "rules 1 to 212 of 340 are clean".to_owned();
    story.yard.says("gt-418", WorkerSays::Checkpoint { note, session: None });
    story.yard.ends("gt-418", 75, Category::Yielded, "gave way");
    story.yard.must(&Command::Priority { id: "gt-418".to_owned(), priority: 30 });
    story.until(5 * 60);
    story.yard.bead("gt-500", "Hermes: push notifications", |bead| bead.kind = "epic".to_owned());
    story.jobs(HERMES, "gt-500");
    story.yard.must(&Command::ConvoyStage {
        targets: vec!["gt-500".to_owned()],
        title: Some("hermes".to_owned()),
        launch: false,
    });
    story.until(NOW);
}

/// What the workers say and have cost by now.
fn at_work(story: &mut Story) {
    let words = [
        ("db-416", "rewriting orders: 1 801 447 rows (61%)", 1.42),
        ("db-423", "triggers on 14 of 22 tables", 0.88),
        ("gt-427", "recording the calls of /cart", 0.06),
        ("gt-420", "3 of 5: reservations expire", 0.57),
        ("gt-421", "rounding in JPY and KWD", 1.05),
        ("gt-422", "the form remembers the user name", 0.33),
        ("gt-449", "a test that fails first", 0.21),
    ];
    for (id, text, dollars) in words {
        let live = story.yard.state.bead(&super::bead(id)).is_some_and(|entry| entry.work.live.is_some());
        if live {
            story.progress(id, text);
            story.cost(id, dollars);
        }
    }
}
