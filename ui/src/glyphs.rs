//! The characters the console draws with: one set for UTF-8, one in plain ASCII. Each is one cell wide and in DejaVu
//! Sans Mono; no emoji, no private fonts.

use ratatui::symbols::border;
use yard_engine::Standing;

/// A set of characters.
#[derive(Debug, Clone, Copy)]
pub struct Glyphs {
    /// Plain ASCII.
    pub ascii: bool,
    /// Before a running bead.
    pub running: &'static str,
    /// Before a queued one.
    pub queued: &'static str,
    /// Before one that an agent has been sent.
    pub assigned: &'static str,
    /// Before a blocked one.
    pub blocked: &'static str,
    /// Before a staged one.
    pub staged: &'static str,
    /// Before one nobody asked for.
    pub open: &'static str,
    /// Before one whose worker finished.
    pub done: &'static str,
    /// Before a closed one.
    pub closed: &'static str,
    /// Before a failed one.
    pub failed: &'static str,
    /// Before a circuit-broken one.
    pub broken: &'static str,
    /// Before a cancelled one.
    pub cancelled: &'static str,
    /// Where work was made to give way.
    pub preempted: &'static str,
    /// Held back by a person.
    pub held: &'static str,
    /// Will be tried again.
    pub retry: &'static str,
    /// Needs attention.
    pub warning: &'static str,
    /// The selected row.
    pub cursor: &'static str,
    /// A marked row.
    pub mark: &'static str,
    /// A bar of what ran.
    pub past: &'static str,
    /// The same on the critical path.
    pub past_critical: &'static str,
    /// A bar of what will run.
    pub plan: &'static str,
    /// The same on the critical path.
    pub plan_critical: &'static str,
    /// The line of now.
    pub now: &'static str,
    /// The head of that line.
    pub now_head: &'static str,
    /// Something lies before the left edge.
    pub before: &'static str,
    /// Something lies beyond the right edge.
    pub beyond: &'static str,
    /// Leads from one thing to the next.
    pub arrow: &'static str,
    /// Cut off.
    pub ellipsis: &'static str,
    /// Between parts of a line.
    pub dot: &'static str,
    /// Rising order.
    pub up: &'static str,
    /// Falling order.
    pub down: &'static str,
    /// The full part of a gauge.
    pub full: &'static str,
    /// Its empty part.
    pub empty: &'static str,
    /// Eight heights of a sparkline.
    pub spark: [&'static str; 8],
    /// A branch of a tree.
    pub branch: &'static str,
    /// The last branch.
    pub last_branch: &'static str,
    /// A trunk that goes on.
    pub trunk: &'static str,
    /// A thin line across.
    pub rule: &'static str,
}

/// For terminals that speak UTF-8.
pub const UNICODE: Glyphs = Glyphs {
    ascii: false,
    running: "▶",
    queued: "○",
    assigned: "◎",
    blocked: "◌",
    staged: "◇",
    open: "·",
    done: "◐",
    closed: "✓",
    failed: "✗",
    broken: "⊘",
    cancelled: "−",
    preempted: "‖",
    held: "=",
    retry: "↻",
    warning: "⚠",
    cursor: ">",
    mark: "*",
    past: "▓",
    past_critical: "█",
    plan: "░",
    plan_critical: "▒",
    now: "┊",
    now_head: "▼",
    before: "◀",
    beyond: "▷",
    arrow: "→",
    ellipsis: "…",
    dot: "·",
    up: "↑",
    down: "↓",
    full: "█",
    empty: "░",
    spark: ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"],
    branch: "├─",
    last_branch: "└─",
    trunk: "│ ",
    rule: "─",
};

/// For all others.
pub const ASCII: Glyphs = Glyphs {
    ascii: true,
    running: ">",
    queued: "o",
    assigned: "@",
    blocked: ".",
    staged: "^",
    open: " ",
    done: "%",
    closed: "+",
    failed: "x",
    broken: "#",
    cancelled: "-",
    preempted: "|",
    held: "=",
    retry: "~",
    warning: "!",
    cursor: ">",
    mark: "*",
    past: "=",
    past_critical: "#",
    plan: ".",
    plan_critical: ":",
    now: "|",
    now_head: "v",
    before: "<",
    beyond: ">",
    arrow: "->",
    ellipsis: "~",
    dot: "-",
    up: "^",
    down: "v",
    full: "#",
    empty: ".",
    spark: ["_", "_", ".", ".", "-", "-", "=", "#"],
    branch: "|-",
    last_branch: "`-",
    trunk: "| ",
    rule: "-",
};

const ASCII_BORDER: border::Set<'static> = border::Set {
    top_left: "+",
    top_right: "+",
    bottom_left: "+",
    bottom_right: "+",
    vertical_left: "|",
    vertical_right: "|",
    horizontal_top: "-",
    horizontal_bottom: "-",
};

impl Glyphs {
    /// The sign of a standing; none stands for a bead that is gone.
    pub fn standing(&self, standing: Option<Standing>) -> &'static str {
        match standing {
            None => "?",
            Some(Standing::Open) => self.open,
            Some(Standing::Staged) => self.staged,
            Some(Standing::Queued) => self.queued,
            Some(Standing::Assigned) => self.assigned,
            Some(Standing::Blocked) => self.blocked,
            Some(Standing::Running) => self.running,
            Some(Standing::Done) => self.done,
            Some(Standing::Failed) => self.failed,
            Some(Standing::Cancelled) => self.cancelled,
            Some(Standing::CircuitBroken) => self.broken,
            Some(Standing::Closed) => self.closed,
        }
    }

    /// How frames are drawn.
    pub fn border(&self) -> border::Set<'static> {
        if self.ascii { ASCII_BORDER } else { border::PLAIN }
    }

    /// A sparkline of these values, against the largest of them or `most`.
    pub fn sparkline(&self, values: &[u32], most: u32) -> String {
        let top = values.iter().copied().max().unwrap_or(0).max(most).max(1);
        let height = |value: u32| if value == 0 { 0 } else { 1 + (value - 1) as usize * 7 / top as usize };
        values.iter().map(|value| self.spark[height(*value).min(7)]).collect()
    }
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr;

    use super::*;

    #[test]
    fn every_sign_is_one_cell_wide_and_the_plain_set_is_plain() {
        let all = |g: &Glyphs| {
            let mut signs = vec![
                g.running,
                g.queued,
                g.assigned,
                g.blocked,
                g.staged,
                g.open,
                g.done,
                g.closed,
                g.failed,
                g.broken,
                g.cancelled,
                g.preempted,
                g.held,
                g.retry,
                g.warning,
                g.cursor,
                g.mark,
                g.past,
                g.past_critical,
                g.plan,
                g.plan_critical,
                g.now,
                g.now_head,
                g.before,
                g.beyond,
                g.ellipsis,
                g.dot,
                g.up,
                g.down,
                g.full,
                g.empty,
                g.rule,
            ];
            signs.extend(g.spark);
            signs
        };
        for sign in all(&UNICODE).into_iter().chain(all(&ASCII)) {
            assert_eq!(sign.width(), 1, "{sign}");
        }
        assert!(all(&ASCII).iter().all(|sign| sign.is_ascii()));
        assert!(ASCII.branch.is_ascii() && ASCII.arrow.is_ascii() && ASCII_BORDER.top_left.is_ascii());
    }

    #[test]
    fn the_eleven_states_have_eleven_signs() {
        use Standing as S;
        let states = [
            S::Open,
            S::Staged,
            S::Queued,
            S::Assigned,
            S::Blocked,
            S::Running,
            S::Done,
            S::Failed,
            S::Cancelled,
            S::CircuitBroken,
            S::Closed,
        ];
        for glyphs in [UNICODE, ASCII] {
            let signs: std::collections::BTreeSet<_> =
                states.iter().map(|state| glyphs.standing(Some(*state))).collect();
            assert_eq!(signs.len(), states.len());
        }
    }

    #[test]
    fn a_sparkline_tells_nothing_from_little_and_little_from_much() {
        assert_eq!(UNICODE.sparkline(&[0, 1, 8, 4], 0), "▁▂█▄");
        assert_eq!(UNICODE.sparkline(&[], 5), "");
    }
}
