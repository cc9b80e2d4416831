//! What a person should know.

use std::io;

use yard_client::views::AlertView;

use super::Table;
use super::wrap::marked;
use crate::output::{Out, Tone};
use crate::words::{now, short};

/// Alerts, oldest first.
pub(crate) fn alerts(out: &mut Out, alerts: &[AlertView]) -> io::Result<()> {
    if out.quiet() {
        return alerts.iter().try_for_each(|alert| out.line(yard_client::Safe(&alert.id)));
    }
    if alerts.is_empty() {
        return out.line("No alerts");
    }
    let mut table = Table::wrapping();
    for alert in alerts {
        let seen = alert.acked_by.as_ref().map(|who| format!(" (seen by {who})")).unwrap_or_default();
        let ago = format!("{} ago", short(now().since(alert.at)));
        table.row(vec![alert.id.clone(), ago, alert.kind.clone(), format!("{}{seen}", alert.message)]);
    }
    table.print(out)?;
    if alerts.iter().any(|alert| alert.acked_by.is_none()) {
        out.line("ym alerts --ack ID: you have seen it")?;
    }
    Ok(())
}

/// An alert among other things.
pub(super) fn alert(out: &mut Out, alert: &AlertView) -> io::Result<()> {
    let mark = out.paint(Tone::Bad, "!");
    marked(out, 0, &mark, &format!("{} ({})", alert.message, alert.id))
}
