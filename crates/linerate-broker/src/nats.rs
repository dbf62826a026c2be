//! NATS: core subjects for plain channels, JetStream for durable ones.
//!
//! A plain channel is the subject of the same name, so a NATS client and a linerate client reach
//! each other's subscribers. `*` and `>` in a subscription are NATS's wildcards. Durable channels
//! share a fixed number of streams (see `streams`), which republish each message after they have
//! stored it. After the link was lost, the publications that were stored in the meantime are read
//! and delivered before any newer ones.
//!
//! An acknowledgement means that the server has the message, not that it is on disk: unless
//! `sync_interval` is configured, servers sync every two minutes, and may lose newer messages if
//! the machine loses power.

use std::{fmt, sync::Arc, thread, time::Duration};

use bytes::Bytes;
use linerate_hub::{ChannelName, ClientInfo, presence::Counts};
use tokio::{
    sync::{Mutex, watch},
    time::{Instant, timeout},
};

use crate::{
    broker::{Answer, BoxFuture, Broker, BrokerError, check_history, check_payload},
    event::LinkState,
    idempotency::IdempotencyKeys,
    ingest::Ingest,
    kind::BrokerKind,
    occupancy::OccupancyChange,
    options::BrokerOptions,
    presence::PresenceChange,
    registry::Beat,
    request::{History, HistoryRequest, Publish, Published, StreamOptions},
};
use dial::Connector;
use home::DurableChannel;
use lease::NodeLease;
use link::Command;
use loopback::LinkEnded;
use state::{CurrentLink, NatsState};

mod catch_up;
mod deposits;
mod dial;
mod errors;
#[cfg(fuzzing)]
pub mod fuzzing;
mod history;
mod home;
mod kept;
mod lease;
mod link;
mod loopback;
mod occupancy;
mod place;
mod presence;
mod probe;
mod publisher;
mod pump;
mod queue;
mod registry;
mod servers;
mod session;
mod state;
mod streams;
mod subject;
mod wire;
mod writer;

pub use dial::NatsConfigError;
pub use subject::SubjectError;
pub use writer::{Message, SubjectWriter};

/// NATS, which `nats://…` and `tls://…` name (see [`Nats::new`]).
pub const KIND: BrokerKind = BrokerKind {
    name: "nats",
    schemes: &["nats://", "tls://"],
    is_embedded: false,
    start: |url, options, ingest| Ok(Arc::new(Nats::new(url, options, ingest)?)),
};

/// A node's connection to a NATS service.
///
/// Idempotency keys of plain channels are remembered by this node alone. Those of durable channels
/// are remembered by the stream, but not for longer than it stores messages. The newest position of
/// a channel is remembered for `meta_ttl`, unless `stream_bytes_max` is not enough for the
/// positions of all channels.
pub struct Nats {
    shared: Arc<NatsState>,
    keys: Mutex<IdempotencyKeys>,
    lease: Mutex<NodeLease>,
    /// Closed when the thread has ended.
    thread: watch::Receiver<()>,
}

impl Nats {
    /// Starts a broker that hands everything that arrives to `ingest`, on its own thread. It
    /// connects in the background, and reconnects for as long as it lives; no server needs to be
    /// running yet.
    ///
    /// `url` is `nats://[user[:password]@]host[:port][,host[:port]…]`, or `tls://…` to require TLS.
    /// A user without a password is a token. Parameters may follow after `?`: `creds` and `nkey`
    /// name a file with credentials or with the seed of a key, `tls_ca` names a file with CA
    /// certificates to trust, `tls_certificate` and `tls_key` name the client certificate and its
    /// key, and `tls=true` is the same as `tls://`.
    ///
    /// # Errors
    /// Returns an error if the URL, a file that it names or the prefix is invalid, or if the system
    /// cannot start a thread.
    pub fn new(
        url: &str,
        options: BrokerOptions,
        ingest: Arc<dyn Ingest>,
    ) -> Result<Self, NatsConfigError> {
        let dial = Connector::new(url, &options)?;
        let keys = Mutex::new(IdempotencyKeys::new(options.idempotency_ttl));
        let shared = Arc::new(NatsState::new(options, ingest)?);
        let (alive, thread) = watch::channel(());
        let linked = Arc::clone(&shared);
        thread::Builder::new()
            .name("broker-nats".to_owned())
            .spawn(move || {
                let _alive = alive;
                session::run_links(&linked, &dial);
            })
            .map_err(NatsConfigError::Thread)?;
        Ok(Self {
            shared,
            keys,
            lease: Mutex::default(),
            thread,
        })
    }

    async fn publish(
        &self,
        channel: &ChannelName,
        publish: Publish,
    ) -> Result<Published, BrokerError> {
        let bytes_max = self.shared.options.payload_bytes_max;
        check_payload(publish.payload.len(), bytes_max)?;
        if let Some(durable) = self.durable(channel, publish.options)? {
            let link = self.shared.current()?;
            let published = link.streams.publish(&durable, publish);
            return link.answer(published).await;
        }
        let subject = self.shared.subjects.of_channel(channel);
        let subject = subject.map_err(BrokerError::refused)?;
        let Some(key) = &publish.idempotency_key else {
            let link = self.shared.current()?;
            link.publish(&subject, &publish).await?;
            return Ok(Published::default());
        };
        // Held until the answer is known, so that the second of two concurrent publications waits
        // for the first.
        let mut keys = self.keys.lock().await;
        if let Some(answer) = keys.find(Instant::now(), channel, key) {
            return Ok(answer);
        }
        let link = self.shared.current()?;
        link.publish(&subject, &publish).await?;
        let answer = Published::default();
        keys.insert(Instant::now(), channel, key, answer.clone());
        Ok(answer)
    }

    /// Subscribes on the current link, or on the next one if it ends in the meantime.
    async fn subscribe_on_any_link(&self, channel: &ChannelName) -> Result<(), BrokerError> {
        let mut ended = None;
        loop {
            let link = self.shared.next_link(ended.as_ref()).await?;
            match link.subscribe(channel).await {
                Ok(result) => return result,
                Err(LinkEnded) => ended = Some(link),
            }
        }
    }

    async fn unsubscribe(&self, channel: &ChannelName) {
        self.shared.remove_interest(channel);
        if let Ok(link) = self.shared.current() {
            link.command(Command::Unsubscribe(channel.clone())).await;
        }
    }

    async fn in_time<T>(
        &self,
        operation: impl Future<Output = Result<T, BrokerError>>,
    ) -> Result<T, BrokerError> {
        let deadline = self.shared.options.command_timeout;
        match timeout(deadline, operation).await {
            Ok(result) => result,
            Err(_) => Err(BrokerError::Timeout { deadline }),
        }
    }

    fn durable(
        &self,
        channel: &ChannelName,
        options: StreamOptions,
    ) -> Result<Option<DurableChannel>, BrokerError> {
        let subject = self.shared.subjects.of_channel(channel);
        let subject = subject.map_err(BrokerError::refused)?;
        let durable = DurableChannel {
            channel: channel.clone(),
            subject,
            options,
        };
        Ok((options.has_stream()).then_some(durable))
    }
}

impl Broker for Nats {
    fn publish<'a>(&'a self, channel: &'a ChannelName, publish: Publish) -> Answer<'a, Published> {
        Box::pin(self.in_time(self.publish(channel, publish)))
    }

    fn subscribe<'a>(&'a self, channel: &'a ChannelName, options: StreamOptions) -> Answer<'a, ()> {
        Box::pin(async move {
            let kind = self.shared.kind(channel, options);
            self.shared
                .add_interest(channel, kind.map_err(BrokerError::refused)?);
            let deadline = self.shared.options.command_timeout;
            let result = match timeout(deadline, self.subscribe_on_any_link(channel)).await {
                Ok(result) => result,
                Err(_) => Err(match self.shared.current() {
                    Ok(_) => BrokerError::Timeout { deadline },
                    Err(away) => away,
                }),
            };
            if result.is_err() {
                self.unsubscribe(channel).await;
            }
            result
        })
    }

    fn unsubscribe<'a>(&'a self, channel: &'a ChannelName) -> BoxFuture<'a, ()> {
        Box::pin(self.unsubscribe(channel))
    }

    fn history<'a>(
        &'a self,
        channel: &'a ChannelName,
        options: StreamOptions,
        request: HistoryRequest,
    ) -> Answer<'a, History> {
        Box::pin(async move {
            check_history(self, channel, options)?;
            let Some(durable) = self.durable(channel, options)? else {
                return Ok(self.shared.plain_history(channel, &request));
            };
            let link = self.shared.current()?;
            let history = link.streams.history(&durable, request);
            self.in_time(link.answer(history)).await
        })
    }

    fn remove_history<'a>(
        &'a self,
        channel: &'a ChannelName,
        options: StreamOptions,
    ) -> Answer<'a, ()> {
        Box::pin(async move {
            check_history(self, channel, options)?;
            let Some(durable) = self.durable(channel, options)? else {
                self.shared.remove_plain_history(channel);
                return Ok(());
            };
            let link = self.shared.current()?;
            let removed = link.streams.remove_history(&durable);
            self.in_time(link.answer(removed)).await
        })
    }

    fn send_control<'a>(&'a self, to: Option<&'a str>, message: Bytes) -> Answer<'a, ()> {
        Box::pin(self.in_time(async move {
            let link = self.shared.current()?;
            let subject = match to {
                Some(node) => self.shared.subjects.node_control(node),
                None => self.shared.subjects.control(),
            };
            link.send(&subject, message).await
        }))
    }

    fn node(&self) -> &str {
        &self.shared.node
    }

    fn beat(&self, details: Bytes) -> Answer<'_, Beat> {
        Box::pin(self.in_time(async move {
            let link = self.shared.current()?;
            self.lease
                .lock()
                .await
                .beat(&self.shared, &link, details)
                .await
        }))
    }

    fn deregister(&self) -> Answer<'_, ()> {
        Box::pin(self.in_time(async move {
            let link = self.shared.current()?;
            let (subjects, node) = (&self.shared.subjects, &self.shared.node);
            link.answer(link.streams.deregister(subjects, node)).await?;
            let mut lease = self.lease.lock().await;
            lease.reset_occupancy();
            lease.reset_presence(&self.shared, Ok(link)).await
        }))
    }

    fn stores_presence(&self) -> bool {
        true
    }

    fn set_presence<'a>(&'a self, changes: &'a [PresenceChange]) -> Answer<'a, ()> {
        Box::pin(async move {
            let link = self.shared.current()?;
            let mut lease = self.lease.lock().await;
            let generation = lease.begin_presence(&self.shared, &link).await?;
            drop(lease);
            let lease = self.shared.presence_lease(generation);
            let set = link
                .streams
                .set_presence(&self.shared.subjects, lease, changes);
            link.answer(set).await
        })
    }

    fn reset_presence(&self) -> Answer<'_, ()> {
        Box::pin(self.in_time(async move {
            let mut lease = self.lease.lock().await;
            lease
                .reset_presence(&self.shared, self.shared.current())
                .await
        }))
    }

    fn set_occupancy<'a>(&'a self, changes: &'a [OccupancyChange]) -> Answer<'a, Vec<bool>> {
        Box::pin(async move {
            let link = self.shared.current()?;
            let mut lease = self.lease.lock().await;
            let lease_name = lease.begin_occupancy(&self.shared, &link).await?;
            drop(lease);
            let set = link
                .streams
                .set_occupancy(&self.shared.subjects, &lease_name, changes);
            link.answer(set).await
        })
    }

    fn reset_occupancy(&self) -> Answer<'_, ()> {
        Box::pin(async move {
            self.lease.lock().await.reset_occupancy();
            Ok(())
        })
    }

    fn presence<'a>(
        &'a self,
        channel: &'a ChannelName,
        bytes_max: usize,
    ) -> Answer<'a, Vec<ClientInfo>> {
        Box::pin(self.in_time(async move {
            let link = self.shared.current()?;
            let present = link
                .streams
                .present(&self.shared.subjects, channel, bytes_max);
            link.answer(present).await
        }))
    }

    fn presence_counts<'a>(&'a self, channel: &'a ChannelName) -> Answer<'a, Counts> {
        Box::pin(self.in_time(async move {
            let link = self.shared.current()?;
            let counts = link.streams.present_counts(&self.shared.subjects, channel);
            link.answer(counts).await
        }))
    }

    fn nodes(&self) -> Answer<'_, Vec<String>> {
        Box::pin(self.in_time(async move {
            let link = self.shared.current()?;
            link.answer(link.streams.nodes(&self.shared.subjects)).await
        }))
    }

    fn node_details(&self) -> Answer<'_, Vec<Bytes>> {
        Box::pin(self.in_time(async move {
            let link = self.shared.current()?;
            let details = link.streams.node_details(&self.shared.subjects);
            link.answer(details).await
        }))
    }

    fn keep<'a>(&'a self, id: &'a str, value: Bytes, expires_at: Option<u64>) -> Answer<'a, ()> {
        Box::pin(self.in_time(async move {
            let link = self.shared.current()?;
            let subjects = &self.shared.subjects;
            let (all, subject) = (subjects.stored_value(None), subjects.stored_value(Some(id)));
            let kept = link.streams.keep(&all, subject, value, expires_at);
            link.answer(kept).await
        }))
    }

    fn kept(&self) -> Answer<'_, Vec<Bytes>> {
        Box::pin(async move {
            let link = self.shared.current()?;
            let all = self.shared.subjects.stored_value(None);
            link.answer(link.streams.kept(&all)).await
        })
    }

    fn put<'a>(&'a self, key: &'a str, value: Bytes, ttl: Duration) -> Answer<'a, ()> {
        Box::pin(self.in_time(async move {
            let link = self.shared.current()?;
            let put = link.streams.put(&self.shared.subjects, key, value, ttl);
            link.answer(put).await
        }))
    }

    fn take<'a>(&'a self, key: &'a str) -> Answer<'a, Option<Bytes>> {
        Box::pin(self.in_time(async move {
            let link = self.shared.current()?;
            let taken = link.streams.take(&self.shared.subjects, key);
            link.answer(taken).await
        }))
    }

    fn is_pattern(&self, channel: &ChannelName) -> bool {
        subject::is_pattern(channel.as_str())
    }

    fn name(&self) -> &'static str {
        KIND.name
    }

    fn probe_write(&self) -> Answer<'_, ()> {
        Box::pin(self.in_time(async move {
            let link = self.shared.current()?;
            let subject = format!("{}.writes", self.shared.subjects.control());
            link.answer(link.streams.probe_write(subject)).await
        }))
    }

    fn link(&self) -> LinkState {
        self.shared.link_state()
    }

    fn shut_down(&self) -> BoxFuture<'_, ()> {
        self.shared.set_state(LinkState::Deaf);
        self.shared.set_current(CurrentLink::ShutDown);
        let mut thread = self.thread.clone();
        Box::pin(async move {
            // An error means that the sender is gone, which is what we wait for.
            while thread.changed().await.is_ok() {}
        })
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        self.shared.set_current(CurrentLink::ShutDown);
    }
}

impl fmt::Debug for Nats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nats")
            .field("link", &self.shared.link_state())
            .finish_non_exhaustive()
    }
}
