//! Known-bad daemons and shims. Each breaks one rule of the design; the checks must notice every one of them, or they
//! prove nothing.

use std::sync::Arc;

use yard_engine::context::{Context, ContextEvent};
use yard_engine::{ContextId, Tx};

/// A rule that is broken on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    /// A shim starts although its claim is revoked or used.
    NoFence,
    /// Workers are started before their start is durable.
    StartBeforeCommit,
    /// Commands are acknowledged before they are durable.
    AcknowledgeBeforeCommit,
    /// Recovery believes that a free, empty claim never ran, without revoking it.
    RevokeSkipped,
    /// A claim is looked at in one moment and revoked in a later one, without its lock.
    RevokeWithoutLock,
    /// Recovery takes a worker that is alive for lost.
    AdoptNothing,
    /// Recovery takes a worker that left an exit record for lost.
    ExitOverlooked,
    /// A restart forgets that dispatch is paused.
    PauseForgotten,
    /// Reports are taken for the bead's current dispatch, whatever id they carry.
    FencingTokenIgnored,
    /// The town's cap is not respected.
    CapIgnored,
    /// Half of a decision is written when the disk fills up.
    HalfWritten,
    /// A checkpoint misses one record that changed.
    CheckpointIncomplete,
    /// Nobody looks at the claims of dispatches that are not heard of any more.
    DeathsOverlooked,
    /// Feeding does not look whether a bead is scheduled already.
    FeedsTwice,
    /// `scheduler recover` takes a worker that lives for dead, so that its bead is started again.
    RecoversTheLiving,
    /// After a restart every closed bead of a workspace closes once more.
    ClosesSeenAgain,
    /// What a reading with trouble does not show is taken for gone.
    DoubtBelieved,
    /// Used-up budgets keep nothing from starting.
    BudgetIgnored,
    /// Workers are pushed out before they have run for their minimum time.
    YoungPushedOut,
}

impl Mutant {
    /// All of them.
    pub const ALL: [Self; 19] = [
        Self::NoFence,
        Self::StartBeforeCommit,
        Self::AcknowledgeBeforeCommit,
        Self::RevokeSkipped,
        Self::RevokeWithoutLock,
        Self::AdoptNothing,
        Self::ExitOverlooked,
        Self::PauseForgotten,
        Self::FencingTokenIgnored,
        Self::CapIgnored,
        Self::HalfWritten,
        Self::CheckpointIncomplete,
        Self::DeathsOverlooked,
        Self::FeedsTwice,
        Self::RecoversTheLiving,
        Self::ClosesSeenAgain,
        Self::DoubtBelieved,
        Self::BudgetIgnored,
        Self::YoungPushedOut,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoFence => "no-fence",
            Self::StartBeforeCommit => "start-before-commit",
            Self::AcknowledgeBeforeCommit => "acknowledge-before-commit",
            Self::RevokeSkipped => "revoke-skipped",
            Self::RevokeWithoutLock => "revoke-without-lock",
            Self::AdoptNothing => "adopt-nothing",
            Self::ExitOverlooked => "exit-overlooked",
            Self::PauseForgotten => "pause-forgotten",
            Self::FencingTokenIgnored => "fencing-token-ignored",
            Self::CapIgnored => "cap-ignored",
            Self::HalfWritten => "half-written",
            Self::CheckpointIncomplete => "checkpoint-incomplete",
            Self::DeathsOverlooked => "deaths-overlooked",
            Self::FeedsTwice => "feeds-twice",
            Self::RecoversTheLiving => "recovers-the-living",
            Self::ClosesSeenAgain => "closes-seen-again",
            Self::DoubtBelieved => "doubt-believed",
            Self::BudgetIgnored => "budget-ignored",
            Self::YoungPushedOut => "young-pushed-out",
        }
    }
}

impl std::str::FromStr for Mutant {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let known = || Self::ALL.map(Self::name).join(", ");
        let found = Self::ALL.into_iter().find(|mutant| mutant.name() == text);
        found.ok_or_else(|| format!("no mutant {text:?}: use one of {}", known()))
    }
}

/// What a second feeder would do that does not ask whether a bead is scheduled already.
pub(super) fn feed_again(tx: &mut Tx<'_>) {
    let open = tx.state().open_contexts().find(|context| context.fields.convoy.is_some()).cloned();
    if let Some(context) = open {
        let id = ContextId::parse(&format!("ctx-x{}", tx.state().seq())).expect("a valid id");
        let context = Arc::new(Context { id, ..context });
        tx.emit(ContextEvent::Opened { context, actor: "mutant".to_owned() });
    }
}

/// What a recovery would do that believes a worker dead without looking at its claim.
pub(super) fn give_up_the_living(tx: &mut Tx<'_>) {
    let running = tx.state().live_dispatches().find(|dispatch| dispatch.running_at.is_some());
    if let Some(id) = running.map(|dispatch| dispatch.id.clone()) {
        tx.worker_lost(&id, "it was not heard of");
    }
}
