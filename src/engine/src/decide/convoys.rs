//! Convoys being made, added to, closed and watched.

use std::collections::BTreeSet;

use super::Asker;
use super::alerts::Condition;
use super::bounds::{check_base_branch, check_title, check_watcher};
use crate::alert::AlertKind;
use crate::command::{Answer, Command, NewConvoy};
use crate::convoy::{Convoy, ConvoyEvent};
use crate::readiness::list;
use crate::refusal::Refusal;
use crate::state::State;
use crate::tx::Tx;
use crate::{BeadId, ConvoyId};

impl Tx<'_> {
    pub(super) fn convoy_create(&mut self, asker: &Asker<'_>, new: &NewConvoy) -> Result<Answer, Refusal> {
        let mut texts = new.beads.clone();
        let mut title = new.title.clone();
        // As in Gas Town, a convoy may be made of beads alone; it is then named after the first.
        if let Some(first) = title.take_if(|title| self.state().exact_bead(title).is_ok()) {
            texts.insert(0, first);
        }
        let mut tracked = self.state().beads_named(&texts)?;
        if let Some(epic) = &new.from_epic {
            let epic = self.state().exact_bead(epic)?;
            let work = self.state().open_descendants(&epic);
            let work =
                work.into_iter().filter(|id| self.state().bead(id).is_some_and(|e| e.bead.is_slingable()));
            let below: Vec<BeadId> = work.filter(|id| !tracked.contains(id)).collect();
            if below.is_empty() {
                return Err(Refusal::new("empty-epic", format!("there is no open work below {epic}")));
            }
            tracked.extend(below);
            title = title.or_else(|| Some(format!("Convoy: {}", self.state().title_of(&epic))));
        }
        let named_after = || tracked.first().map(|id| self.state().title_of(id).to_owned());
        let Some(title) = title.or_else(named_after) else {
            return Err(Refusal::new("no-title", "say what the convoy is about")
                .hint("ym convoy create NAME [BEAD…]"));
        };
        check_title(&title)?;
        if let Some(branch) = &new.base_branch {
            check_base_branch(branch)?;
        }
        let id = self.state().new_convoy_id();
        let convoy = Convoy {
            owned: new.owned,
            merge: new.merge,
            base_branch: new.base_branch.clone(),
            // Who looks after a convoy himself also decides when its beads run.
            fed_since: (!new.owned).then(|| self.now()),
            ..Convoy::new(id.clone(), title, tracked, self.now())
        };
        self.emit(ConvoyEvent::Created { convoy: Box::new(convoy), actor: asker.actor.to_owned() });
        self.close_if_complete(&id, asker.actor);
        Ok(Answer::Created { ids: vec![id.to_string()] })
    }

    pub(super) fn convoy_add(
        &mut self,
        asker: &Asker<'_>,
        text: &str,
        beads: &[String],
    ) -> Result<Answer, Refusal> {
        let id = self.state().find_convoy(text)?;
        let convoy = &self.state().convoys[&id];
        let was_closed = convoy.closed.is_some();
        let known: BTreeSet<&BeadId> = convoy.tracked.iter().collect();
        let named = self.state().beads_named(beads)?;
        // A closed convoy whose own beads are still to be done is opened again by naming one of them.
        let reopens = was_closed && named.iter().any(|bead| !self.state().is_closed(bead));
        let new: Vec<BeadId> = named.into_iter().filter(|bead| !known.contains(bead)).collect();
        if new.is_empty() && !reopens {
            return Ok(done(false, format!("{id} tracks all of these already"), &id));
        }
        let actor = asker.actor.to_owned();
        if was_closed {
            self.emit(ConvoyEvent::Reopened { id: id.clone(), actor: actor.clone() });
        }
        let message =
            format!("{id} tracks {} more{}", new.len(), if was_closed { ", and is open again" } else { "" });
        if !new.is_empty() {
            self.emit(ConvoyEvent::Added { id: id.clone(), beads: new, actor });
        }
        self.close_if_complete(&id, asker.actor);
        Ok(done(true, message, &id))
    }

    /// Closes an open convoy of which every bead is closed, unless its owner looks after it. Empty ones stay.
    pub(super) fn close_if_complete(&mut self, id: &ConvoyId, actor: &str) {
        if self.state().is_complete(id) && !self.state().convoys[id].owned {
            self.end_convoy(id, "all tracked beads are closed", actor);
        }
    }

    /// The one way a convoy closes; whoever wanted to know is told once.
    pub(super) fn end_convoy(&mut self, id: &ConvoyId, reason: &str, actor: &str) {
        self.emit(ConvoyEvent::Closed { id: id.clone(), reason: reason.to_owned(), actor: actor.to_owned() });
        let Some(convoy) = self.state().convoy(id) else { return };
        // The convoys that slings make by themselves are nobody's news.
        if convoy.fed_since.is_none() && convoy.watchers.is_empty() {
            return;
        }
        let condition = Condition {
            key: format!("convoy:{id}:{}", self.state().seq()),
            kind: AlertKind::ConvoyClosed,
            message: format!("convoy {id} ({}) is closed: {reason}", convoy.title),
            ids: vec![id.to_string()],
            watchers: convoy.watchers.clone(),
        };
        self.raise(condition);
    }

    pub(super) fn convoy_check(
        &mut self,
        asker: &Asker<'_>,
        text: Option<&str>,
        dry_run: bool,
    ) -> Result<Answer, Refusal> {
        let asked: Vec<ConvoyId> = match text {
            Some(text) => vec![self.state().find_convoy(text)?],
            None => self.state().convoys.keys().cloned().collect(),
        };
        let complete = |id: &ConvoyId| self.state().is_complete(id) && !self.state().convoys[id].owned;
        let complete: Vec<ConvoyId> = asked.into_iter().filter(complete).collect();
        let ids: Vec<String> = complete.iter().map(ToString::to_string).collect();
        let message = match (ids.as_slice(), dry_run) {
            ([], _) => "no convoy is complete but open".to_owned(),
            (_, true) => format!("would close {}", ids.join(", ")),
            (_, false) => format!("closed {}", ids.join(", ")),
        };
        for id in complete.iter().filter(|_| !dry_run) {
            self.close_if_complete(id, asker.actor);
        }
        Ok(Answer::Done { changed: !ids.is_empty() && !dry_run, message, ids })
    }

    pub(super) fn convoy_close(
        &mut self,
        asker: &Asker<'_>,
        text: &str,
        reason: Option<&str>,
        force: bool,
    ) -> Result<Answer, Refusal> {
        let id = self.state().find_convoy(text)?;
        if self.state().convoys[&id].closed.is_some() {
            return Ok(done(false, format!("{id} is closed already"), &id));
        }
        if let Some(reason) = reason {
            check_title(reason)?;
        }
        self.state().no_open_beads(&id, force)?;
        self.end_convoy(&id, reason.unwrap_or("closed"), asker.actor);
        let inverse = Command::ConvoyReopen { id: id.to_string() };
        self.can_be_undone(asker, format!("convoy close {id}"), vec![inverse]);
        Ok(done(true, format!("{id} is closed"), &id))
    }

    pub(super) fn convoy_land(
        &mut self,
        asker: &Asker<'_>,
        text: &str,
        force: bool,
        dry_run: bool,
    ) -> Result<Answer, Refusal> {
        let id = self.state().find_convoy(text)?;
        let convoy = &self.state().convoys[&id];
        let unmerged = self.state().unmerged_of(&id).len();
        if !convoy.owned && unmerged > 0 {
            return Ok(done(
                false,
                format!("{id} closes by itself; {unmerged} of its branches are not merged"),
                &id,
            ));
        }
        if !convoy.owned {
            return Err(Refusal::new(
                "not-owned",
                format!("{id} is not an owned convoy: it closes by itself"),
            )
            .hint(format!("ym convoy close {id} closes it by hand")));
        }
        if convoy.closed.is_some() {
            return Ok(done(false, format!("{id} is closed already"), &id));
        }
        if convoy.staged.is_some() {
            return Err(Refusal::new("staged", format!("{id} is staged: there is nothing to land"))
                .hint(format!("ym convoy launch {id} lets it go")));
        }
        self.state().no_open_beads(&id, force)?;
        if dry_run {
            return Ok(done(false, format!("would land {id}"), &id));
        }
        self.end_convoy(&id, "landed by its owner", asker.actor);
        let inverse = Command::ConvoyReopen { id: id.to_string() };
        self.can_be_undone(asker, format!("convoy land {id}"), vec![inverse]);
        Ok(done(true, format!("{id} has landed"), &id))
    }

    pub(super) fn convoy_watch(
        &mut self,
        asker: &Asker<'_>,
        text: &str,
        watcher: &str,
        wants: bool,
    ) -> Result<Answer, Refusal> {
        let id = self.state().find_convoy(text)?;
        check_watcher(watcher)?;
        let convoy = &self.state().convoys[&id];
        if convoy.closed.is_some() && wants {
            return Err(Refusal::new("closed", format!("{id} is closed: there is nothing more to be told")));
        }
        let verb = if wants { "watches" } else { "does not watch" };
        if convoy.watchers.iter().any(|known| known == watcher) == wants {
            return Ok(done(false, format!("{watcher} {verb} {id} already"), &id));
        }
        let (watcher, actor) = (watcher.to_owned(), asker.actor.to_owned());
        let message = format!("{watcher} {verb} {id}");
        let word = if wants { "watch" } else { "unwatch" };
        let inverse = Command::ConvoyWatch { id: id.to_string(), watcher: watcher.clone(), wants: !wants };
        self.emit(ConvoyEvent::Watched { id: id.clone(), watcher, wants, actor });
        self.can_be_undone(asker, format!("convoy {word} {id}"), vec![inverse]);
        Ok(done(true, message, &id))
    }
}

impl State {
    /// The beads of a list, each once.
    pub(super) fn beads_named(&self, texts: &[String]) -> Result<Vec<BeadId>, Refusal> {
        let mut seen = BTreeSet::new();
        let mut found = Vec::with_capacity(texts.len());
        for text in texts {
            let id = self.exact_bead(text)?;
            if seen.insert(id.clone()) {
                found.push(id);
            }
        }
        Ok(found)
    }

    pub(super) fn title_of(&self, bead: &BeadId) -> &str {
        self.beads.get(bead).map(|entry| entry.bead.title.as_str()).unwrap_or_default()
    }

    /// Whether everything an open convoy tracks is closed. An empty one is not complete.
    fn is_complete(&self, id: &ConvoyId) -> bool {
        let under_way = self.convoy(id).is_some_and(|convoy| convoy.is_open() && !convoy.tracked.is_empty());
        under_way && self.open_beads_of(id) == 0
    }

    fn no_open_beads(&self, id: &ConvoyId, force: bool) -> Result<(), Refusal> {
        if force || self.open_beads_of(id) == 0 {
            return Ok(());
        }
        let open = self.convoys[id].tracked.iter().filter(|bead| !self.is_closed(bead));
        let open: Vec<BeadId> = open.cloned().collect();
        let message = format!("{id} still has {} open: {}", open.len(), list(&open));
        Err(Refusal::new("open-beads", message)
            .hint("--force closes it all the same; its beads stay as they are"))
    }
}

fn done(changed: bool, message: String, id: &ConvoyId) -> Answer {
    Answer::Done { changed, message, ids: vec![id.to_string()] }
}
