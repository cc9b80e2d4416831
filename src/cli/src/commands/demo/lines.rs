//! What simulated agents write: short lines, some of them coloured, that follow from bead and second.

const DIM: &str = "\u{1b}[2m";
const RED: &str = "\u{1b}[31m";
const GREEN: &str = "\u{1b}[32m";
const YELLOW: &str = "\u{1b}[33m";
const CYAN: &str = "\u{1b}[36m";
const OFF: &str = "\u{1b}[0m";

/// What tests are called that agents write.
const CASES: [&str; 8] = [
    "an_empty_train_is_fine",
    "refuses_the_past",
    "keeps_what_was_there",
    "two_at_once_get_one_each",
    "midnight_is_a_time",
    "says_what_is_wrong",
    "a_second_try_changes_nothing",
    "the_longest_name_fits",
];

/// Writes for one bead.
pub(super) struct Scribe {
    title: &'static str,
    /// What its files are called.
    stem: &'static str,
    /// `rs` or `ts`.
    kind: &'static str,
    seed: u64,
}

impl Scribe {
    pub(super) fn new(id: &'static str, title: &'static str) -> Self {
        let (rig, stem) = id.split_once('-').unwrap_or(("api", id));
        // FNV-1a: the same bead always writes the same.
        let seed = id.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self { title, stem, kind: if rig == "web" { "ts" } else { "rs" }, seed }
    }

    /// A number below `below` that looks arbitrary and is not.
    fn number(&self, second: u32, salt: u64, below: u64) -> u64 {
        let mixed = (self.seed ^ (u64::from(second) << 8) ^ salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 33) % below
    }

    pub(super) fn greets(&self) -> String {
        format!("{DIM}●{OFF} {}", self.title)
    }

    pub(super) fn goes_on(&self) -> String {
        format!("{DIM}●{OFF} {} {DIM}(going on from the last checkpoint){OFF}", self.title)
    }

    /// What it is at, in a few words.
    pub(super) fn progress(&self, second: u32, seconds: u32) -> String {
        let percent = second * 100 / seconds.max(1);
        let what = match percent {
            0..15 => "reading the task".to_owned(),
            15..35 => format!("looking through {}", self.stem),
            35..70 => format!("writing {}.{}", self.stem, self.kind),
            70..90 => format!("testing {}", self.stem),
            _ => "reading the diff once more".to_owned(),
        };
        format!("{percent} % {what}")
    }

    /// The lines of one second.
    pub(super) fn works(&self, second: u32, seconds: u32) -> Vec<String> {
        let (stem, kind) = (self.stem, self.kind);
        let n = |salt: u64, below: u64| self.number(second, salt, below);
        match second * 100 / seconds.max(1) {
            0..15 => {
                vec![format!("{CYAN}Read{OFF} src/{stem}/mod.{kind} {DIM}({} lines){OFF}", 80 + n(1, 400))]
            }
            15..35 => vec![
                format!(
                    "{CYAN}Grep{OFF} \"{stem}\" {DIM}{} matches in {} files{OFF}",
                    3 + n(1, 40),
                    2 + n(2, 8)
                ),
                format!("{} callers rely on the order; keeping it", 1 + n(3, 6)),
            ],
            35..70 => {
                let edited = format!(
                    "{CYAN}Edit{OFF} src/{stem}/{}.{kind} {GREEN}+{}{OFF} {RED}-{}{OFF}",
                    ["rules", "store", "view", "model"][n(1, 4) as usize],
                    5 + n(2, 60),
                    n(3, 20)
                );
                let warns = n(4, 4) == 0;
                let warning =
                    warns.then(|| format!("{YELLOW}warning{OFF}: unused import in {stem}.{kind}, removed"));
                std::iter::once(edited).chain(warning).collect()
            }
            70..90 => {
                let case = CASES[n(1, CASES.len() as u64) as usize];
                let run = format!("{CYAN}Run{OFF} tests of {stem}");
                vec![run, format!("test {stem}::{case} ... {GREEN}ok{OFF} {DIM}{} ms{OFF}", 2 + n(2, 90))]
            }
            _ => vec![format!("{CYAN}Diff{OFF} {} files, {} lines", 1 + n(1, 6), 20 + n(2, 300))],
        }
    }

    pub(super) fn fails(&self, why: &str) -> String {
        format!("test {}::the_whole_of_it ... {RED}FAILED{OFF}\n{RED}error{OFF}: {why}", self.stem)
    }

    pub(super) fn finds_nobody(&self) -> String {
        format!("{YELLOW}429 Too Many Requests{OFF}: the search service wants a break ({})", self.stem)
    }

    pub(super) fn gives_way(&self) -> String {
        format!("{YELLOW}asked to give way{OFF}: checkpoint noted, {} goes on later", self.stem)
    }

    pub(super) fn ends(&self) -> String {
        format!("{GREEN}done{OFF}: {}", self.title)
    }
}

#[cfg(test)]
mod tests {
    use super::super::work;
    use super::*;

    #[test]
    fn every_agent_has_something_to_say_and_says_it_again() {
        for piece in work::all() {
            let told = |_: u32| {
                let scribe = Scribe::new(piece.id, piece.title);
                (0..piece.seconds).flat_map(|second| scribe.works(second, piece.seconds)).collect::<Vec<_>>()
            };
            assert!(told(1).len() >= piece.seconds as usize);
            assert_eq!(told(1), told(2));
            assert!(
                told(1).iter().all(|line| !line.contains('\n') && line.matches('\u{1b}').count() % 2 == 0)
            );
        }
    }
}
