//! The words on the screen, for whoever meets them for the first time. Help finds them beside the keys.

/// Words and what they mean.
pub(crate) const WORDS: [(&str, &str); 21] = [
    ("bead", "A piece of work. It closes when it is done; others may wait for that."),
    (
        "town",
        "A directory with a .yardmaster folder: all that is scheduled together. ym help concepts says more.",
    ),
    ("rig", "One project of the town, with its own directory, prefix and cap."),
    ("convoy", "A set of beads, staged (planned) and then launched; it closes when all of them are closed."),
    ("wave", "Column W: beads that could start together; their blockers all lie in earlier waves."),
    (
        "sling",
        "To ask for a bead to be run: it goes on the schedule and starts as soon as it may. ym sling BEAD.",
    ),
    ("held, hold, unhold", "To keep a scheduled bead back, and to let it go. x, then h or u."),
    ("clear", "To take waiting beads off the schedule; running work is left alone."),
    ("cancel, kill", "To end a worker: with time to stop (SIGTERM, then SIGKILL), or at once."),
    ("preempt", "To have a running bead give way to another: it comes to a checkpoint and is queued again."),
    (
        "breaker",
        "Closed is well. It opens for a bead that could not be started three times; r closes it again.",
    ),
    (
        "slack",
        "Column SLK: how long a bead may wait without the end coming later; 0s is on the critical path.",
    ),
    ("critical path", "The chain of beads that decides when everything is done."),
    (
        "p50, p90",
        "When it is done in half, and in nine of ten, of the simulated futures. Guessed: never measured.",
    ),
    ("slip", "How much later than was forecast at the launch."),
    ("park, dock", "To have a rig start nothing, for a while or for good. ym rig park RIG."),
    ("polecats", "Workers, in the settings: scheduler.max_polecats is how many may run at once."),
    (
        "agent",
        "A registered, long-lived worker that is sent work instead of being started. ym agent register.",
    ),
    (
        "order, claim, lease",
        "A bead that an agent is sent; its taking it; how long it keeps it without a sign of life (LEFT).",
    ),
    (
        "track",
        "Beads that are joined by what they wait for; with agents.tracks a whole one goes to one agent.",
    ),
    ("seq", "The position in the log of events; T goes back to any of them."),
];
