//! Revoked tokens: told to all nodes at once, kept by the broker, and learned from there by nodes that start or were
//! cut off.
//!
//! Workers are not told of a revocation but see that there are new ones: so none is too busy to be told.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use linerate_broker::{BrokerError, LinkState};
use tokio::time::{Instant, sleep, timeout};

use super::{Node, Notice, Worker, cluster::message::Body};
use crate::auth::{Revocation, RevocationError, Revocations, Target};

/// How often the broker is asked what it keeps, though the link was there all the time.
const LEARN_EVERY: Duration = Duration::from_secs(30);

/// How often is looked whether the link has come back.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// How often is looked whether the link is there, until the broker was read for the first time.
const LOOK_FIRST_EVERY: Duration = Duration::from_millis(20);

/// How long a client with a token waits until the broker was read for the first time.
const FIRST_READ_WAIT_MAX: Duration = Duration::from_secs(2);

/// How long a broker may refuse the first read until it counts as one that keeps nothing, as NATS without JetStream.
const REFUSED_MAX: Duration = Duration::from_secs(3);

/// Why a token is not revoked.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RevokeError {
    /// The broker is away or refuses. Whether other nodes know of the revocation is not known.
    #[error(transparent)]
    Broker(#[from] BrokerError),
    /// It is not taken.
    #[error(transparent)]
    Revocation(#[from] RevocationError),
}

impl Node {
    /// Revokes tokens on all nodes. The broker keeps that, except for the embedded one, with whose process it ends.
    ///
    /// # Errors
    /// There are too many revocations, or the broker is away.
    pub async fn revoke(self: &Arc<Self>, revocation: Revocation) -> Result<(), RevokeError> {
        let revocation = self.revocations.merged(revocation, now())?;
        // Here it holds in any case.
        self.take_revocation(revocation.clone());
        let (id, value) = (id_of(&revocation.target), encode(&revocation));
        self.broker.keep(&id, value, revocation.expires_at).await?;
        self.say(Body::Revoked(revocation)).await;
        Ok(())
    }

    /// Returns the revocations that are in force here.
    pub fn revocations(&self) -> &Revocations {
        &self.revocations
    }

    /// Waits until the node knows which tokens are revoked, but not for long; returns whether it does.
    pub(crate) async fn knows_revocations(&self) -> bool {
        let mut known = self.knows_revocations.subscribe();
        let known = known.wait_for(|is_known| *is_known);
        matches!(timeout(FIRST_READ_WAIT_MAX, known).await, Ok(Ok(_)))
    }

    /// Returns whether the node knows which tokens are revoked.
    pub(crate) fn knows_revocations_now(&self) -> bool {
        *self.knows_revocations.borrow()
    }

    /// Takes a revocation over, and lets the workers tell those whom it concerns.
    pub(super) fn take_revocation(&self, revocation: Revocation) {
        match self.revocations.insert(revocation, now()) {
            Ok(None) => {}
            Ok(Some(_)) => {
                for inbox in &self.dispatcher.inboxes {
                    inbox.wake();
                }
            }
            Err(error) => tracing::warn!(%error, "revocation of another node is not taken"),
        }
    }

    /// Learns what the broker keeps, for ever: at the start, whenever the link has come back, and now and then.
    pub(super) async fn run_revocations(self: Arc<Self>) {
        let (mut learned, mut was_up) = (None::<Instant>, false);
        let mut failing = None::<Instant>;
        loop {
            let is_up = matches!(self.broker.link(), LinkState::Up { .. });
            let is_old = learned.is_none_or(|at| at.elapsed() >= LEARN_EVERY);
            if is_up && (is_old || !was_up) {
                match self.learn().await {
                    Ok(()) => {
                        (learned, failing) = (Some(Instant::now()), None);
                        was_up = true;
                    }
                    Err(error) => {
                        let since = *failing.get_or_insert_with(|| {
                            tracing::warn!(%error, "revoked tokens can't be read from the broker");
                            Instant::now()
                        });
                        let is_refused = matches!(error, BrokerError::Refused { .. });
                        if is_refused && since.elapsed() >= REFUSED_MAX {
                            self.knows_revocations.send_replace(true);
                        }
                        was_up = false;
                    }
                }
            }
            was_up &= is_up;
            sleep(match learned.is_none() && failing.is_none() {
                true => LOOK_FIRST_EVERY,
                false => LOOK_EVERY,
            })
            .await;
        }
    }

    async fn learn(&self) -> Result<(), BrokerError> {
        for value in self.broker.kept().await? {
            if let Ok(revocation) = serde_json::from_slice(&value) {
                self.take_revocation(revocation);
            }
        }
        self.knows_revocations.send_replace(true);
        Ok(())
    }
}

impl Worker {
    /// Tells the clients whom the revocations since `seen` may concern, and notes that it has.
    pub(super) fn tell_of_revocations(&self, seen: &mut u64) {
        let revocations = self.node.revocations();
        if revocations.changes() == *seen {
            return;
        }
        let (concerned, changes) = revocations.concerned_since(*seen);
        let clients = &self.state().clients;
        let meant = clients.values();
        for client in meant.filter(|client| concerned.has(&client.connection.user)) {
            client.outlet.notify(Notice::Revoked);
        }
        *seen = changes;
    }
}

/// Returns the time in seconds since 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

/// Returns under what the broker keeps a revocation: a later one of the same target takes its place.
fn id_of(target: &Target) -> String {
    match target {
        Target::All => "all".to_owned(),
        Target::Token(id) => format!("token.{id}"),
        Target::User(name) => format!("user.{name}"),
    }
}

fn encode(revocation: &Revocation) -> bytes::Bytes {
    // Serialising to memory fails only for maps whose keys are no text; there are none.
    serde_json::to_vec(revocation).unwrap_or_default().into()
}
