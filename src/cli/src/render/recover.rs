//! What the safety scan found.

use std::io;

use yard_client::views::RecoverView;

use super::word;
use super::wrap::marked;
use crate::output::{Out, Tone};
use crate::words::count;

/// Each finding, and what was done about it.
pub(crate) fn recovered(out: &mut Out, view: &RecoverView) -> io::Result<()> {
    if out.quiet() {
        return view.findings.iter().try_for_each(|finding| out.line(yard_client::Safe(&finding.id)));
    }
    if view.findings.is_empty() {
        return out.line("Nothing to recover");
    }
    for finding in &view.findings {
        let kind = word(&finding.kind);
        let mark = out.paint(Tone::Warn, "•");
        marked(out, 0, &mark, &format!("{} [{kind}] {}", finding.id, finding.message))?;
        marked(out, 2, "→", &finding.action)?;
    }
    let found = count(view.findings.len(), "finding");
    out.line(if view.dry_run { format!("{found}; nothing was changed (dry run)") } else { found })
}
