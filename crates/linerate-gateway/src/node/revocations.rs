//! Revoked tokens. A revocation is sent to all nodes at once and kept by the broker, from which
//! nodes learn it when they start or after they were cut off.
//!
//! Workers are not sent a revocation; they notice that there are new ones. A worker can therefore
//! never be too busy to receive it.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use linerate_broker::{Broker, BrokerError, LinkState};
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};

use super::{
    cluster::{Cluster, message::Body},
    inboxes::Inboxes,
};
use crate::auth::{Revocation, RevocationError, Revocations, Target};

/// How often the stored revocations are read again, even if the link was never down.
const LEARN_EVERY: Duration = Duration::from_secs(30);

/// How often to check whether the link is up again.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// How often to check the link until the revocations have been read for the first time.
const LOOK_FIRST_EVERY: Duration = Duration::from_millis(20);

/// How long a client with a token waits for the first read.
const FIRST_READ_WAIT_MAX: Duration = Duration::from_secs(2);

/// How long a broker may refuse the first read before it is treated as one that cannot store
/// revocations, such as NATS without JetStream.
const REFUSED_MAX: Duration = Duration::from_secs(3);

/// Why a token cannot be revoked.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum RevokeError {
    /// The broker is unavailable or refuses. Other nodes may or may not have received the
    /// revocation.
    #[error(transparent)]
    Broker(#[from] BrokerError),
    /// The revocation is not accepted.
    #[error(transparent)]
    Revocation(#[from] RevocationError),
}

/// The revocations that all nodes share.
#[derive(Debug)]
pub(crate) struct ClusterRevocations {
    in_force: Revocations,
    /// True once the revocations stored by the broker have been read.
    are_known: watch::Sender<bool>,
    broker: Arc<dyn Broker>,
    inboxes: Inboxes,
    cluster: Arc<Cluster>,
}

impl ClusterRevocations {
    pub(super) fn new(
        revocations_max: usize,
        broker: Arc<dyn Broker>,
        inboxes: Inboxes,
        cluster: Arc<Cluster>,
    ) -> Self {
        Self {
            in_force: Revocations::new(revocations_max),
            are_known: watch::Sender::new(false),
            broker,
            inboxes,
            cluster,
        }
    }

    /// Revokes tokens on all nodes. The broker stores the revocation; the embedded broker does so
    /// only for the lifetime of its process.
    ///
    /// # Errors
    /// There are too many revocations, or the broker is unavailable.
    pub(crate) async fn revoke(&self, revocation: Revocation) -> Result<(), RevokeError> {
        let revocation = self.in_force.merged(revocation, now())?;
        // On this node, the revocation takes effect in any case.
        self.take(revocation.clone());
        let (id, value) = (id_of(&revocation.target), encode(&revocation));
        self.broker.keep(&id, value, revocation.expires_at).await?;
        self.cluster.say(Body::Revoked(revocation)).await;
        Ok(())
    }

    /// Returns the revocations in force on this node.
    pub(crate) const fn in_force(&self) -> &Revocations {
        &self.in_force
    }

    /// Waits, for a limited time, until the node knows which tokens are revoked. Returns whether it
    /// does.
    pub(crate) async fn wait_until_known(&self) -> bool {
        let mut known = self.are_known.subscribe();
        let known = known.wait_for(|is_known| *is_known);
        matches!(timeout(FIRST_READ_WAIT_MAX, known).await, Ok(Ok(_)))
    }

    /// Returns whether the node knows which tokens are revoked.
    pub(crate) fn are_known(&self) -> bool {
        *self.are_known.borrow()
    }

    /// Stores a revocation and wakes the workers, which tell the affected clients.
    pub(super) fn take(&self, revocation: Revocation) {
        match self.in_force.insert(revocation, now()) {
            Ok(None) => {}
            Ok(Some(_)) => self.inboxes.wake(),
            Err(error) => tracing::warn!(%error, "cannot store a revocation from another node"),
        }
    }

    /// Reads the stored revocations from the broker: at the start, whenever the link comes back,
    /// and periodically. Never returns.
    pub(super) async fn run(self: Arc<Self>) {
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
                            tracing::warn!(%error, "cannot read revoked tokens from the broker");
                            Instant::now()
                        });
                        let is_refused = matches!(error, BrokerError::Refused { .. });
                        if is_refused && since.elapsed() >= REFUSED_MAX {
                            self.are_known.send_replace(true);
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
                self.take(revocation);
            }
        }
        self.are_known.send_replace(true);
        Ok(())
    }
}

/// Returns the time in seconds since the Unix epoch.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

/// Returns the key under which the broker stores a revocation. A later revocation of the same
/// target replaces it.
fn id_of(target: &Target) -> String {
    match target {
        Target::All => "all".to_owned(),
        Target::Token(id) => format!("token.{id}"),
        Target::User(name) => format!("user.{name}"),
    }
}

fn encode(revocation: &Revocation) -> bytes::Bytes {
    // Serializing to memory fails only for maps with keys that are not strings; there are none.
    serde_json::to_vec(revocation).unwrap_or_default().into()
}
