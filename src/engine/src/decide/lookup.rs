//! Finding what a person named: full ids, or prefixes that fit exactly one thing.

use crate::refusal::Refusal;
use crate::rig::Rig;
use crate::state::State;
use crate::{BeadId, ContextId, ConvoyId, DispatchId, RigName};

impl State {
    /// As `find_bead`, for whoever wants to end what runs: the id of a dispatch that is over is no name for another.
    pub(super) fn find_bead_to_end(&self, text: &str) -> Result<BeadId, Refusal> {
        let bead = self.find_bead(text)?;
        let over = DispatchId::parse(text).ok().and_then(|id| self.dispatch(&id)).filter(|d| !d.is_live());
        match over {
            None => Ok(bead),
            Some(dispatch) => Err(Refusal::new("stale-dispatch", format!("{} is over", dispatch.id))
                .hint(format!("ym status shows what runs; {bead} names the bead itself"))),
        }
    }

    /// A bead by id or unique prefix, by context id, or by dispatch id.
    pub fn find_bead(&self, text: &str) -> Result<BeadId, Refusal> {
        if let Ok(dispatch) = DispatchId::parse(text)
            && self.dispatch(&dispatch).is_some()
        {
            return Ok(dispatch.bead().clone());
        }
        if let Some(context) = ContextId::parse(text).ok().and_then(|id| self.context(&id)) {
            return Ok(context.bead().clone());
        }
        let unknown = || {
            Refusal::new("unknown-bead", format!("there is no bead {text:?}"))
                .hint("ym bead list shows what there is")
        };
        let wanted = BeadId::parse(text).map_err(|_| unknown())?;
        if self.beads.contains_key(&wanted) {
            return Ok(wanted);
        }
        if self.gone.contains_key(&wanted) {
            let message = format!("{wanted} vanished from the workspace it came from");
            return Err(Refusal::new("unknown-bead", message).hint("ym events shows what became of it"));
        }
        let fits = |id: &BeadId| id.as_str().starts_with(text);
        let mut candidates = self.beads.ids_in(wanted..).take_while(|id| fits(id));
        match (candidates.next(), candidates.next()) {
            (Some(only), None) => Ok(only.clone()),
            (Some(first), Some(second)) => {
                let message = format!("{text:?} fits several beads: {first}, {second}, …");
                Err(Refusal::new("ambiguous", message).hint("write more of the id"))
            }
            (None, _) => Err(unknown()),
        }
    }

    /// A bead by its whole id, for commands that change work.
    pub(crate) fn exact_bead(&self, text: &str) -> Result<BeadId, Refusal> {
        let wanted = BeadId::parse(text)?;
        if self.beads.contains_key(&wanted) {
            return Ok(wanted);
        }
        let found = self.find_bead(text).ok();
        let refusal = Refusal::new("unknown-bead", format!("there is no bead {text:?}"));
        Err(match found {
            _ if self.gone.contains_key(&wanted) => {
                refusal.hint("it vanished from the workspace it came from")
            }
            Some(near) => refusal.hint(format!("did you mean {near}?")),
            None => refusal.hint("ym bead add makes one; ym bead list shows what there is"),
        })
    }

    /// A native bead by its whole id: what a workspace shows is changed in the workspace.
    pub(crate) fn native_bead(&self, text: &str) -> Result<BeadId, Refusal> {
        let id = self.exact_bead(text)?;
        if self.shows(&id).is_some() { Err(self.read_only(&id)) } else { Ok(id) }
    }

    /// The rig whose workspace shows a bead.
    pub(crate) fn shows(&self, id: &BeadId) -> Option<&RigName> {
        self.beads.get(id).and_then(|entry| entry.bead.source.as_ref())
    }

    pub(crate) fn read_only(&self, id: &BeadId) -> Refusal {
        let rig = self.shows(id).map(RigName::as_str).unwrap_or_default();
        Refusal::new(
            "read-only-bead",
            format!("{id} belongs to the beads workspace of rig {rig}, which ym only reads"),
        )
        .hint("change it there, with br or bd; ym sees it at once")
    }

    /// A convoy by id or unique prefix.
    pub fn find_convoy(&self, text: &str) -> Result<ConvoyId, Refusal> {
        let from = (std::ops::Bound::Included(text), std::ops::Bound::Unbounded);
        let after = self.convoys.range::<str, _>(from).map(|(id, _)| id);
        let mut fits = after.take_while(|id| id.as_str().starts_with(text));
        match (self.convoys.get(text), fits.next(), fits.next()) {
            (Some(exact), _, _) => Ok(exact.id.clone()),
            (None, Some(only), None) => Ok(only.clone()),
            (None, Some(_), Some(_)) => {
                Err(Refusal::new("ambiguous", format!("{text:?} fits several convoys")))
            }
            (None, None, _) => Err(Refusal::new("unknown-convoy", format!("there is no convoy {text:?}"))),
        }
    }

    /// A rig by name.
    pub fn find_rig(&self, text: &str) -> Result<&Rig, Refusal> {
        self.known_rig(&RigName::parse(text)?)
    }

    pub(crate) fn known_rig(&self, name: &RigName) -> Result<&Rig, Refusal> {
        self.rigs.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.rigs.keys().map(RigName::as_str).collect();
            Refusal::new("unknown-rig", format!("there is no rig {name:?}"))
                .hint(format!("known rigs: {}; ym rig add makes one", known.join(", ")))
        })
    }
}
