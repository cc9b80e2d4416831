//! Beads as another tracker would list them, in its order.

use yard_engine::like::{BD, BR, Rules, blocked, ready};
use yard_engine::{Refusal, RigName, State, Timestamp};

use super::bead::{BeadView, bead};
use crate::protocol::BeadFilter;

/// What the tool would answer to `ready`, or to `blocked` with what each waits for.
pub(super) fn beads_like(
    state: &State,
    tool: &str,
    filter: &BeadFilter,
    now: Timestamp,
) -> Result<Vec<BeadView>, Refusal> {
    let rules = rules_of(tool)?;
    let rig = filter.rig.as_deref().map(RigName::parse).transpose()?;
    if !filter.blocked {
        let ready = ready(state, rules, now, rig.as_ref());
        return Ok(ready.iter().filter_map(|id| bead(state, id)).collect());
    }
    let blocked = blocked(state, rules, rig.as_ref()).into_iter().filter_map(|blocked| {
        let blocked_by_count = Some(blocked.by.len());
        Some(BeadView { blocked_by: Some(blocked.by), blocked_by_count, ..bead(state, &blocked.id)? })
    });
    Ok(blocked.collect())
}

fn rules_of(tool: &str) -> Result<&'static Rules, Refusal> {
    match tool {
        "br" => Ok(&BR),
        "bd" => Ok(&BD),
        other => Err(Refusal::new("unknown-tool", format!("the rules of {other:?} are not known"))
            .hint("--like takes br or bd")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Town;
    use super::*;

    fn asked(town: &Town, tool: &str, blocked: bool) -> Vec<BeadView> {
        let filter = BeadFilter { blocked, ready: !blocked, ..BeadFilter::default() };
        beads_like(&town.0, tool, &filter, Timestamp::from_millis(2000)).expect("an answer")
    }

    #[test]
    fn each_tool_answers_by_its_own_rules() {
        let mut town = Town::new();
        town.bead("shop-a", "task", &[("shop-nowhere", "blocks")]);
        town.bead("shop-b", "epic", &[]);
        let ids = |tool| asked(&town, tool, false).iter().map(|bead| bead.id.to_string()).collect::<Vec<_>>();
        assert_eq!(ids("br"), ["shop-b"]);
        assert_eq!(ids("bd"), ["shop-a", "shop-b"]);
        let blocked = asked(&town, "br", true);
        assert_eq!(blocked[0].blocked_by, Some(vec!["shop-nowhere".to_owned()]));
        assert_eq!(blocked[0].blocked_by_count, Some(1));
    }

    #[test]
    fn an_unknown_tool_is_refused() {
        let refused = beads_like(&State::default(), "bv", &BeadFilter::default(), Timestamp::from_millis(0));
        assert_eq!(refused.map_err(|refusal| refusal.code), Err("unknown-tool".to_owned()));
    }
}
