//! The work of the demo: a small shop, built in waves.

use yard_daemon::TownDir;
use yard_engine::bead::{DepKind, Dependency};
use yard_engine::command::NewBead;
use yard_engine::rig::Rig;
use yard_engine::{BeadId, RigName};

/// The projects; each name is also the bead prefix and the directory.
pub(super) const RIGS: &[&str] = &["api", "docs", "web"];

/// Rig, name, title, seconds of simulated work, what it needs. No seconds: it has a command of its own.
type Row = (&'static str, &'static str, &'static str, Option<u32>, &'static [&'static str]);

const WORK: &[Row] = &[
    ("api", "schema", "Database schema", Some(1), &[]),
    ("api", "auth", "Sign-in", Some(2), &["api-schema"]),
    ("api", "cart", "Cart", Some(2), &["api-schema"]),
    ("api", "search", "Search", Some(1), &["api-schema"]),
    ("api", "pay", "Payments", Some(2), &["api-auth", "api-cart"]),
    ("api", "mail", "Order mails", Some(1), &["api-pay"]),
    ("api", "flaky", "Import of old orders (crashes once)", None, &["api-schema"]),
    ("web", "design", "Page layout", Some(1), &[]),
    ("web", "header", "Header", Some(1), &["web-design"]),
    ("web", "list", "Product list", Some(2), &["web-design", "api-search"]),
    ("web", "login", "Login page", Some(1), &["web-design", "api-auth"]),
    ("web", "basket", "Basket page", Some(1), &["web-design", "api-cart"]),
    ("web", "checkout", "Checkout", Some(2), &["web-basket", "api-pay"]),
    (
        "web",
        "smoke",
        "Smoke test of the shop",
        Some(1),
        &["web-checkout", "web-list", "web-login", "web-header"],
    ),
    ("docs", "outline", "Outline of the manual", Some(1), &[]),
    ("docs", "setup", "How to set it up", Some(1), &["docs-outline"]),
    ("docs", "api", "API reference", Some(1), &["docs-outline", "api-pay"]),
    ("docs", "faq", "Questions and answers", Some(1), &["docs-outline"]),
    ("docs", "broken", "Translation (its agent is not installed)", None, &["docs-outline"]),
    ("docs", "release", "Release notes", Some(1), &["web-smoke", "docs-api", "api-mail"]),
];

/// One bead of the demo.
pub(super) struct Piece {
    pub(super) id: String,
    /// How long the simulated agent takes; none for a bead with a command of its own.
    pub(super) seconds: Option<u32>,
    title: String,
    needs: Vec<String>,
    argv: Option<Vec<String>>,
}

impl Piece {
    pub(super) fn bead(&self) -> NewBead {
        let edge = |id: &String| Some(Dependency::new(BeadId::parse(id).ok()?, DepKind::Blocks));
        NewBead {
            id: Some(self.id.clone()),
            title: self.title.clone(),
            dependencies: self.needs.iter().filter_map(edge).collect(),
            argv: self.argv.clone(),
            ..NewBead::default()
        }
    }
}

/// All beads, the whole shop as many times as asked.
pub(super) fn pieces(scale: u32) -> Vec<Piece> {
    let numbered = |name: &str, n: u32| if scale == 1 { name.to_owned() } else { format!("{name}-{n}") };
    let piece = |n: u32, (rig, name, title, seconds, needs): &Row| {
        let id = numbered(&format!("{rig}-{name}"), n);
        let needs = needs.iter().map(|need| numbered(need, n)).collect();
        Piece { argv: own_command(name, &id), id, seconds: *seconds, title: (*title).to_owned(), needs }
    };
    (1..=scale).flat_map(|n| WORK.iter().map(move |row| piece(n, row))).collect()
}

/// The two that go wrong: one crashes at its first attempt, one cannot be started at all.
fn own_command(name: &str, id: &str) -> Option<Vec<String>> {
    let words: &[&str] = match name {
        "flaky" => &[
            "sh",
            "-c",
            "mkdir \"tried-$1\" 2>/dev/null && echo boom && exit 1; sleep 1; echo fine",
            "sh",
            id,
        ],
        "broken" => &["/nonexistent/translation-agent"],
        _ => return None,
    };
    Some(words.iter().map(ToString::to_string).collect())
}

/// Every length of work there is.
pub(super) fn spans(pieces: &[Piece]) -> std::collections::BTreeSet<Option<u32>> {
    pieces.iter().map(|piece| piece.seconds).collect()
}

/// The projects, each in its directory.
pub(super) fn rigs(town: &TownDir) -> Vec<Rig> {
    let rig = |name: &&str| {
        Some(Rig {
            name: RigName::parse(name).ok()?,
            prefix: (*name).to_owned(),
            path: town.root().join(name).to_string_lossy().into_owned(),
            parked: false,
            docked: false,
            max_polecats: None,
            executor: None,
            formula: None,
            source: None,
        })
    };
    RIGS.iter().filter_map(rig).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_needed_exists_and_comes_earlier_or_later_without_a_circle() {
        for scale in [1, 3] {
            let pieces = pieces(scale);
            assert_eq!(pieces.len(), WORK.len() * scale as usize);
            let mut done: Vec<&str> = Vec::new();
            while done.len() < pieces.len() {
                let ready = |piece: &&Piece| {
                    !done.contains(&piece.id.as_str())
                        && piece.needs.iter().all(|need| done.contains(&need.as_str()))
                };
                let wave: Vec<&str> = pieces.iter().filter(ready).map(|piece| piece.id.as_str()).collect();
                assert!(!wave.is_empty(), "the rest waits for itself");
                done.extend(wave);
            }
        }
    }
}
