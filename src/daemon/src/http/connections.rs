//! Who is connected. There is room for so many; when it is full, whoever has been idle longest makes room for who comes,
//! so that a crowd that says nothing keeps nobody out.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::AbortHandle;

/// Connections at most.
const MOST: u64 = 2048;
/// However few descriptors there are, so many are served.
const LEAST: u64 = 32;
/// Clients that are counted before those that have gone are forgotten.
const MOST_CLIENTS: usize = 1000;
/// The span in which requests of one client are counted.
const WINDOW: Duration = Duration::from_secs(10);

/// Everybody who is connected.
#[derive(Debug)]
pub(super) struct Connections {
    most: usize,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    next: u64,
    by_age: BTreeMap<u64, (Arc<Connection>, Option<AbortHandle>)>,
}

/// One connection.
#[derive(Debug, Default)]
pub(super) struct Connection {
    /// Requests that are being answered.
    busy: AtomicUsize,
}

/// While it lives, its connection is not idle.
#[derive(Debug)]
pub(super) struct Busy(Arc<Connection>);

impl Connection {
    pub(super) fn busy(self: &Arc<Self>) -> Busy {
        self.busy.fetch_add(1, Ordering::SeqCst);
        Busy(Arc::clone(self))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Connections {
    /// Room for as many as the process has descriptors to spare: workers, journal and sources need theirs.
    pub(super) fn new() -> Self {
        let limit = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE);
        let spare = limit.map_or(LEAST, |(soft, _)| soft / 2);
        Self { most: spare.clamp(LEAST, MOST) as usize, known: Mutex::default() }
    }

    /// Lets somebody in. False if there is no room and everybody else is being served.
    pub(super) fn enter(&self) -> Option<(u64, Arc<Connection>)> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.by_age.len() >= self.most {
            let idle = known
                .by_age
                .iter()
                .find(|(_, (one, handle))| handle.is_some() && one.busy.load(Ordering::SeqCst) == 0);
            let oldest = idle.map(|(id, _)| *id)?;
            if let Some((_, Some(handle))) = known.by_age.remove(&oldest) {
                handle.abort();
            }
        }
        let id = known.next;
        known.next += 1;
        let connection = Arc::<Connection>::default();
        known.by_age.insert(id, (Arc::clone(&connection), None));
        Some((id, connection))
    }

    /// Notes how a connection can be ended.
    pub(super) fn can_be_ended(&self, id: u64, handle: AbortHandle) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = known.by_age.get_mut(&id) {
            *known = Some(handle);
        }
    }

    /// Somebody has left.
    pub(super) fn leave(&self, id: u64) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).by_age.remove(&id);
    }

    /// Ends everybody.
    pub(super) fn end_all(&self) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, handle) in std::mem::take(&mut known.by_age).into_values() {
            if let Some(handle) = handle {
                handle.abort();
            }
        }
    }
}

/// How many requests each client has made in the current ten seconds.
#[derive(Debug, Default)]
pub(super) struct Rates(Mutex<BTreeMap<IpAddr, (Option<Instant>, u64)>>);

impl Rates {
    /// Counts a request; false if it is one too many.
    pub(super) fn allow(&self, client: IpAddr, most: u64) -> bool {
        let now = Instant::now();
        let mut rates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if rates.len() > MOST_CLIENTS {
            rates.retain(|_, (since, _)| since.is_some_and(|since| now.duration_since(since) < WINDOW));
        }
        let (since, count) = rates.entry(client).or_default();
        if since.is_none_or(|since| now.duration_since(since) >= WINDOW) {
            (*since, *count) = (Some(now), 0);
        }
        *count += 1;
        *count <= most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_is_idle_longest_makes_room() {
        let connections = Connections { most: 2, known: Mutex::default() };
        let task = || tokio::spawn(std::future::pending::<()>());
        let (first, busy_one) = connections.enter().expect("room");
        let working = task();
        connections.can_be_ended(first, working.abort_handle());
        let busy = busy_one.busy();
        let (second, _) = connections.enter().expect("room");
        let idle = task();
        connections.can_be_ended(second, idle.abort_handle());
        assert!(connections.enter().is_some(), "the idle one goes");
        assert!(idle.await.is_err_and(|end| end.is_cancelled()));
        assert!(connections.enter().is_none(), "one is being served, the other has only just come");
        drop(busy);
        assert!(connections.enter().is_some());
        assert!(working.await.is_err_and(|end| end.is_cancelled()));
    }

    #[test]
    fn requests_are_counted_by_client() {
        let rates = Rates::default();
        let (one, two) = (IpAddr::from([127, 0, 0, 1]), IpAddr::from([127, 0, 0, 2]));
        assert!(rates.allow(one, 2) && rates.allow(one, 2) && !rates.allow(one, 2));
        assert!(rates.allow(two, 2));
    }
}
