//! What a worker says from inside its dispatch.

use clap::{Args, Subcommand};
use yard_engine::money::Usd;
use yard_engine::session::Session;

// `ym worker`.
#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    /// The dispatch this is about [default: YM_DISPATCH, which every worker has]
    #[arg(long, global = true, value_name = "ID")]
    pub(crate) dispatch: Option<String>,

    #[command(subcommand)]
    pub(crate) command: WorkerCmd,
}

// What a worker can say.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum WorkerCmd {
    /// Note where you are; prints "yield" if you should end now, else "continue"
    ///
    /// Who yields ends with exit code 75. The next attempt finds the note in YM_CHECKPOINT.
    #[command(
        after_long_help = "Example:\n  [ \"$(ym worker checkpoint 'tests written')\" = yield ] && exit 75"
    )]
    Checkpoint {
        /// For whoever goes on after you
        #[arg(value_name = "NOTE", default_value = "", allow_hyphen_values = true)]
        note: String,
        /// The agent's session, for the next attempt to go on with
        #[arg(long, value_name = "ID")]
        session: Option<Session>,
    },
    /// Say what the work has cost
    #[command(
        after_long_help = "Examples:\n  ym worker cost 0.42\n  ym worker cost 1.30 --total --tokens 52000"
    )]
    Cost {
        /// US dollars
        #[arg(value_name = "USD", allow_negative_numbers = true)]
        usd: Usd,
        /// That is all of this dispatch so far, not more
        #[arg(long)]
        total: bool,
        /// Tokens used for it
        #[arg(long, value_name = "N")]
        tokens: Option<u64>,
    },
    /// Say what you are doing
    #[command(after_long_help = "Example:\n  ym worker progress \"3 of 7: running the tests\"")]
    Progress {
        /// In your own words
        #[arg(value_name = "TEXT", allow_hyphen_values = true)]
        text: String,
    },
    /// Say that the work is done, whatever your exit code will be
    #[command(after_long_help = "Example:\n  ym worker done \"merged as 4f2a\"")]
    Done {
        /// Why the bead closes
        #[arg(value_name = "REASON", allow_hyphen_values = true)]
        reason: Option<String>,
    },
    /// Say that the work failed, whatever your exit code will be
    #[command(
        after_long_help = "Examples:\n  ym worker fail \"the tests fail\"\n  ym worker fail --unavailable \"rate limited\""
    )]
    Fail {
        /// What went wrong
        #[arg(value_name = "MESSAGE", allow_hyphen_values = true)]
        message: String,
        /// A service was not there: not the work's fault
        #[arg(long)]
        unavailable: bool,
    },
}
