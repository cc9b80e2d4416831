//! What `worker checkpoint|cost|progress|done|fail` answer.

use serde::{Deserialize, Serialize};
use yard_engine::DispatchId;
use yard_engine::dispatch::StopReason;

/// What a worker said was heard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeardView {
    /// The dispatch.
    pub dispatch_id: DispatchId,
    /// Whether the worker should come to an end, best by exit code 75.
    #[serde(rename = "yield")]
    pub should_yield: bool,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<StopReason>,
}
