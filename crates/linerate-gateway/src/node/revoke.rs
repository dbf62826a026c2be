//! Revoked tokens: told to all nodes at once, kept by the broker, and learned from there by nodes that start or were
//! cut off.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use linerate_broker::{BrokerError, LinkState};
use tokio::time::{Instant, sleep};

use super::{Node, Notice, cluster::message::Body};
use crate::auth::{Revocation, RevocationError, Revocations, Target};

/// How often the broker is asked what it keeps, though the link was there all the time.
const LEARN_EVERY: Duration = Duration::from_secs(30);

/// How often is looked whether the link has come back.
const LOOK_EVERY: Duration = Duration::from_millis(500);

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
        self.take_revocation(revocation.clone()).await;
        let (id, value) = (id_of(&revocation.target), encode(&revocation));
        self.broker.keep(&id, value, revocation.expires_at).await?;
        self.say(Body::Revoked(revocation)).await;
        Ok(())
    }

    /// Returns the revocations that are in force here.
    pub fn revocations(&self) -> &Revocations {
        &self.revocations
    }

    /// Takes a revocation over, and tells those whom it concerns.
    pub(super) async fn take_revocation(&self, revocation: Revocation) {
        match self.revocations.insert(revocation, now()) {
            Ok(None) => {}
            Ok(Some(revocation)) => {
                let revocation = Arc::new(revocation);
                let told = self.on_workers(move |worker| {
                    let state = worker.state();
                    for client in state.clients.values() {
                        let user = &client.connection.user;
                        let is_meant = match &revocation.target {
                            Target::User(name) => name == user,
                            _ => true,
                        };
                        if is_meant {
                            client.outlet.notify(Notice::Revoked(revocation.clone()));
                        }
                    }
                });
                told.await;
            }
            Err(error) => tracing::warn!(%error, "revocation of another node is not taken"),
        }
    }

    /// Learns what the broker keeps, for ever: at the start, whenever the link has come back, and now and then.
    pub(super) async fn run_revocations(self: Arc<Self>) {
        let (mut learned, mut was_up) = (None::<Instant>, false);
        loop {
            let is_up = matches!(self.broker.link(), LinkState::Up { .. });
            let is_old = learned.is_none_or(|at| at.elapsed() >= LEARN_EVERY);
            if is_up && (is_old || !was_up) {
                match self.broker.kept().await {
                    Ok(kept) => {
                        for value in kept {
                            if let Ok(revocation) = serde_json::from_slice(&value) {
                                self.take_revocation(revocation).await;
                            }
                        }
                        learned = Some(Instant::now());
                        was_up = true;
                    }
                    Err(error) => {
                        tracing::warn!(%error, "revoked tokens can't be read from the broker");
                        was_up = false;
                    }
                }
            }
            was_up &= is_up;
            sleep(LOOK_EVERY).await;
        }
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
