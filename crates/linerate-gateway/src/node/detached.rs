//! The state of sessions whose clients are gone and may return, at any node.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use linerate_broker::Broker;
use linerate_budget::{Account, Budget, Consumer, Share, State};
use linerate_hub::ClientId;
use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    sync::{Semaphore, oneshot},
    time::{sleep, timeout},
};
use tracing::debug;

use super::{Notice, Shard, inboxes::Inboxes};
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

/// The sessions of a node to which clients can return, with their workers and clients.
type Attached = HashMap<PrivateId, (u16, ClientId), RandomState>;

/// Stores the state of sessions in the broker.
#[derive(Debug)]
pub(crate) struct DetachedSessions {
    /// The sessions of this node whose connections are open.
    attached: Mutex<Attached>,
    broker: Arc<dyn Broker>,
    budget: Budget,
    account: Account,
    inboxes: Inboxes,
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
    pub(super) fn new(
        broker: Arc<dyn Broker>,
        budget: Budget,
        inboxes: Inboxes,
        runtime: Handle,
    ) -> Self {
        Self {
            attached: Mutex::default(),
            broker,
            account: budget.account(Consumer::Histories),
            budget,
            inboxes,
            pending: Arc::new(Semaphore::new(PENDING_MAX as usize)),
            runtime,
        }
    }

    /// Stores state for `ttl`, without waiting for the broker. State that is too large
    /// or does not fit is not stored.
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
    pub(crate) fn attach(&self, id: PrivateId, worker: u16, client: ClientId) {
        self.attached.lock().insert(id, (worker, client));
    }

    /// Removes a session whose connection has ended, or to which no client returns.
    pub(crate) fn detach(&self, id: &PrivateId) {
        self.attached.lock().remove(id);
    }

    /// Removes the stored state of a session of a user and returns it. If its connection is still
    /// open at this node, which has not noticed its loss, it is closed first. Returns `None` if
    /// the broker is unavailable.
    pub(crate) async fn take(&self, id: PrivateId, user: &str) -> Option<Bytes> {
        let key = id.key();
        let found = take(&*self.broker, &key).await;
        if found.is_some() || !self.close(&id, user).await {
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
    async fn close(&self, id: &PrivateId, user: &str) -> bool {
        let found = self.attached.lock().get(id).copied();
        let Some((worker, client)) = found else {
            return false;
        };
        let user = user.to_owned();
        let (done, is_closed) = oneshot::channel();
        // An error means that the caller no longer waits; a busy worker drops `done`.
        let job = move |shard: &Shard| _ = done.send(shard.close_lost(client, &user));
        let inbox = self.inboxes.of(worker);
        inbox.submit(Box::new(job)).is_ok() && is_closed.await.unwrap_or(false)
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

impl Shard {
    /// Closes the connection of a client whose loss was not noticed, if it is of this user.
    fn close_lost(&self, client: ClientId, user: &str) -> bool {
        let known = self.clients.get(&client);
        let own = known.filter(|known| known.connection.user() == user);
        if let Some(own) = own {
            let closed = Notice::Disconnect(Disconnect::NO_PONG);
            own.outlet.notify(closed);
        }
        own.is_some()
    }
}

/// Removes stored state and returns it. Returns `None` if the broker is unavailable.
async fn take(broker: &dyn Broker, key: &str) -> Option<Bytes> {
    broker.take(key).await.unwrap_or_else(|error| {
        debug!(%error, "state of a session was not found");
        None
    })
}
