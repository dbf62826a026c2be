//! The state of sessions whose clients are gone and may return, at any node.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use bytes::Bytes;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use linerate_broker::Broker;
use linerate_budget::{Account, Budget, Consumer, Share, State};
use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    sync::Semaphore,
    time::{sleep, timeout},
};
use tracing::debug;

use super::{Notice, Outlet};
use crate::protocol::{codes::Disconnect, private_id::PrivateId};

/// The maximum number of sessions whose state is on the way to the broker. Further ones are not
/// stored, so that their clients begin new sessions.
const PENDING_MAX: u32 = 65_536;

/// The maximum size of the state of a session in bytes.
const STATE_BYTES_MAX: usize = 64 << 10;

/// How long a client that returns waits for the end of its old connection at most, in waits of
/// which each is twice as long as the one before it.
const FIRST_WAIT: Duration = Duration::from_millis(5);
const WAITS_MAX: u32 = 8;

/// The approximate memory of the entry of a session, in bytes.
pub(crate) const ENTRY_BYTES: usize = 96;

/// The sessions of this node to which clients can return.
type Attached = Mutex<HashMap<PrivateId, (String, Weak<dyn Outlet>), RandomState>>;

/// Stores the state of sessions in the broker.
#[derive(Debug)]
pub(crate) struct DetachedSessions {
    /// The sessions of this node whose connections are open, with their users.
    attached: Attached,
    broker: Arc<dyn Broker>,
    budget: Budget,
    account: Account,
    pending: Arc<Semaphore>,
    runtime: Handle,
}

/// State with its part of the memory budget. An embedded broker keeps it until it is dropped.
struct Charged {
    state: Vec<u8>,
    _share: Share,
}

impl AsRef<[u8]> for Charged {
    fn as_ref(&self) -> &[u8] {
        &self.state
    }
}

impl DetachedSessions {
    pub(super) fn new(broker: Arc<dyn Broker>, budget: Budget, runtime: Handle) -> Self {
        Self {
            attached: Mutex::default(),
            broker,
            account: budget.account(Consumer::Histories),
            budget,
            pending: Arc::new(Semaphore::new(PENDING_MAX as usize)),
            runtime,
        }
    }

    /// Stores state for `ttl`, without waiting for the broker. State that is too large, or for
    /// which there is no room, is not stored.
    pub(crate) fn store(&self, key: String, state: Vec<u8>, ttl: Duration) {
        let is_critical = self.budget.state() == State::Critical;
        if state.len() > STATE_BYTES_MAX || is_critical {
            return;
        }
        let Ok(permit) = self.pending.clone().try_acquire_owned() else {
            return;
        };
        let _share = self.account.share(state.len() as u64);
        let state = Bytes::from_owner(Charged { state, _share });
        let broker = self.broker.clone();
        self.runtime.spawn(async move {
            if let Err(error) = broker.put(&key, state, ttl).await {
                debug!(%error, "state of a session was not stored");
            }
            drop(permit);
        });
    }

    /// Adds a session whose connection is open.
    pub(crate) fn attach(&self, id: PrivateId, user: &str, outlet: &Arc<impl Outlet>) {
        let outlet: Arc<dyn Outlet> = outlet.clone();
        let entry = (user.to_owned(), Arc::downgrade(&outlet));
        self.attached.lock().insert(id, entry);
    }

    /// Removes a session whose connection is no longer open, or to which no client returns.
    pub(crate) fn detach(&self, id: &PrivateId) {
        self.attached.lock().remove(id);
    }

    /// Removes the stored state of a session of a user and returns it. If its connection is still
    /// open at this node, which has not noticed its loss, it is closed first. Returns `None` if
    /// the broker is unavailable.
    pub(crate) async fn take(&self, id: PrivateId, user: &str) -> Option<Bytes> {
        let key = id.key();
        let found = take(&*self.broker, &key).await;
        if found.is_some() || !self.close(&id, user) {
            return found;
        }
        let broker = self.broker.clone();
        let waiting = self.runtime.spawn(async move {
            for wait in 0..WAITS_MAX {
                sleep(FIRST_WAIT * 2_u32.pow(wait)).await;
                let found = take(&*broker, &key).await;
                if found.is_some() {
                    return found;
                }
            }
            None
        });
        waiting.await.ok().flatten()
    }

    /// Closes the connection of a session of a user. Returns `false` if it is not at this node.
    fn close(&self, id: &PrivateId, user: &str) -> bool {
        let attached = self.attached.lock();
        let own = attached.get(id).filter(|(owner, _)| owner == user);
        let outlet = own.and_then(|(_, outlet)| outlet.upgrade());
        drop(attached);
        if let Some(outlet) = &outlet {
            outlet.notify(Notice::Disconnect(Disconnect::NO_PONG));
        }
        outlet.is_some()
    }

    /// Waits until the broker has stored everything, for at most `longest`.
    pub(super) async fn flush(&self, longest: Duration) {
        if timeout(longest, self.pending.acquire_many(PENDING_MAX))
            .await
            .is_err()
        {
            debug!("state of some sessions is still on the way to the broker");
        }
    }
}

/// Removes stored state and returns it. Returns `None` if the broker is unavailable.
async fn take(broker: &dyn Broker, key: &str) -> Option<Bytes> {
    broker.take(key).await.unwrap_or_else(|error| {
        debug!(%error, "state of a session was not found");
        None
    })
}
