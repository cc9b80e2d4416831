//! `ym attach`: goes to a worker's own window, where it has one.

use std::io::IsTerminal as _;
use std::os::unix::process::CommandExt as _;

use yard_client::Ask;
use yard_client::views::LogView;
use yard_engine::dispatch::TMUX_EXECUTOR;

use super::Done;
use crate::errors::Report;
use crate::session::Session;

pub(super) fn attach(session: &mut Session, id: &str, read_only: bool) -> Done {
    let LogView { dispatch_id, live, executor, .. } = session.ask_for(Ask::LogOf { id: id.to_owned() })?;
    if !live {
        let over = Report::new("not-running", format!("{dispatch_id} is over"));
        return Err(over.hint(format!("ym logs {dispatch_id} shows what it wrote")));
    }
    let follow = format!("ym logs -f {dispatch_id} follows what it writes");
    if executor != TMUX_EXECUTOR {
        let message = format!("{dispatch_id} has no window: its executor is {executor}");
        return Err(Report::new("no-window", message)
            .hint(format!("{follow}; ym sling --executor tmux gives the next one a window")));
    }
    let run_dir = session.town()?.run();
    let shown = yard_workers::has_window(&run_dir, &dispatch_id)
        .map_err(|error| Report::new("no-tmux", format!("tmux cannot be run: {error}")).hint(&follow))?;
    if !shown {
        let message = format!("the window of {dispatch_id} is gone or not open yet; its worker needs none");
        return Err(Report::new("no-window", message).hint(follow));
    }
    if !(std::io::stdin().is_terminal() && std::io::stdout().is_terminal()) {
        return Err(Report::new("no-terminal", "ym attach needs a terminal").hint(follow));
    }
    session.out.notice(if std::env::var_os("TMUX").is_some() {
        "a tmux within yours: C-b d detaches, or C-b C-b d if C-b is your prefix too"
    } else {
        "C-b d detaches; the worker goes on"
    });
    session.out.flush()?;
    let error = yard_workers::attach_to_window(&run_dir, &dispatch_id, read_only).exec();
    Err(Report::new("no-tmux", format!("tmux cannot be run: {error}")))
}
