//! Convoys that are stuck, and why.

use serde::{Deserialize, Serialize};
use yard_engine::{BeadId, ConvoyId, State};

use super::status::StuckView;

/// Convoys in which nothing can go on by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrandedList {
    /// By id.
    pub convoys: Vec<StrandedView>,
}

/// A convoy in which nothing can go on by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrandedView {
    /// Its id.
    pub id: ConvoyId,
    /// What it is about.
    pub title: String,
    /// How many beads it tracks.
    pub tracked_count: usize,
    /// How many of them only wait for somebody who starts them.
    pub ready_count: usize,
    /// Those.
    pub ready_issues: Vec<BeadId>,
    /// Every open bead, with the reasons why it does not run.
    pub stuck: Vec<StuckView>,
}

/// Renders the stuck convoys. `dispatches_by_itself` says whether somebody is there to start what is ready.
pub fn stranded(state: &State, dispatches_by_itself: bool) -> StrandedList {
    let view = |stranded: yard_engine::Stranded| {
        let convoy = state.convoy(&stranded.convoy)?;
        let stuck = stranded.stuck.into_iter();
        Some(StrandedView {
            id: stranded.convoy.clone(),
            title: convoy.title.clone(),
            tracked_count: convoy.tracked.len(),
            ready_count: stranded.ready.len(),
            ready_issues: stranded.ready,
            stuck: stuck.map(|(id, reasons)| StuckView { state: state.standing(&id), id, reasons }).collect(),
        })
    };
    StrandedList { convoys: state.stranded(dispatches_by_itself).into_iter().filter_map(view).collect() }
}

#[cfg(test)]
mod tests {
    use yard_engine::Timestamp;
    use yard_engine::convoy::{Convoy, ConvoyEvent};

    use super::super::testing::{Town, bead_id};
    use super::*;

    #[test]
    fn a_stuck_convoy_names_every_open_bead_and_why() {
        let mut town = Town::new();
        town.bead("shop-a", "task", &[]);
        town.bead("shop-b", "task", &[("nobody-x", "blocks")]);
        town.close("shop-a");
        let id = ConvoyId::parse("hq-cv-abc12").expect("an id");
        let tracked = ["shop-a", "shop-b"].map(bead_id).to_vec();
        let convoy = Convoy::new(id, "Login".to_owned(), tracked, Timestamp::from_millis(0));
        town.emit(ConvoyEvent::Created { convoy: Box::new(convoy), actor: "ann".to_owned() });
        let list = stranded(&town.0, true);
        let [only] = list.convoys.as_slice() else { panic!("{list:?}") };
        assert_eq!((only.tracked_count, only.ready_count, only.stuck.len()), (2, 0, 1));
        assert_eq!(only.stuck[0].id, bead_id("shop-b"));
        assert!(only.stuck[0].reasons[0].message.contains("nobody-x"), "{:?}", only.stuck);
    }
}
