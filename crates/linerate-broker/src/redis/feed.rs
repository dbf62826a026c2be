//! Feeds: what other programs publish in Redis, for nodes that have another broker or publications
//! of another form.
//!
//! | module | responsibility |
//! | --- | --- |
//! | `streams` | reads a stream from its end on |
//!
//! A feed of channels subscribes to patterns on its own connection, which is dialled again until it
//! succeeds. What was published in the meantime is lost, as Redis does not keep it, and the sink is
//! told. Subscriptions to patterns do not count in `PUBSUB NUMSUB`.

mod streams;

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    runtime::Handle,
    time::{Instant, MissedTickBehavior, interval, sleep},
};

use super::{
    RedisError,
    address::Address,
    commands::Commands,
    dial::{Dialer, shortened, write_command},
    input::{Input, Item},
    resp::{Reply, RespError},
    stream::Stream,
    tls::Trust,
};
use crate::{backoff::Backoff, broker::BoxFuture, options::BrokerOptions};

use streams::StreamFeed;

/// What a feed reports, in order.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum FeedEvent {
    /// An entry was added to a stream.
    Entry {
        /// Its fields with their values.
        fields: Vec<(String, Bytes)>,
    },
    /// Entries of a stream were removed before they could be read.
    Gap,
    /// The connection was lost, or could not be made.
    Down {
        /// Why, without the URL.
        reason: String,
    },
    /// Something was published in a channel that matches a pattern.
    Message {
        /// The channel.
        channel: Bytes,
        /// What was published.
        payload: Bytes,
    },
    /// Something larger than `payload_bytes_max` was published, and skipped.
    Oversized {
        /// Its size.
        bytes: usize,
    },
    /// Everything that is published from now on arrives.
    Up {
        /// True if everything that was published since the feed began arrives, too.
        is_complete: bool,
    },
}

/// Receives what a feed reports.
pub trait FeedSink: fmt::Debug + Send + Sync {
    /// Takes everything that arrived together. The feed reads on when it is done.
    fn take(&self, events: Vec<FeedEvent>) -> BoxFuture<'_, ()>;
}

/// A Redis service that feeds read from. Clones share nothing: each feed has its own connection.
#[derive(Clone, Debug)]
pub struct FeedServer {
    address: Address,
    trust: Option<Arc<Trust>>,
    options: BrokerOptions,
}

/// The channels of other programs that match patterns.
#[derive(Debug)]
struct ChannelFeed {
    service: Service,
    patterns: Vec<Vec<u8>>,
    sink: Arc<dyn FeedSink>,
    backoff: Backoff,
}

/// A Redis service that a feed reads from.
struct Service {
    commands: Commands,
    dialer: Dialer,
    options: BrokerOptions,
}

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
enum FeedError {
    #[error("server closed the connection")]
    Eof,
    #[error("connection failed: {0}")]
    Io(#[from] std::io::Error),
    #[error("server refused: {0}")]
    Refused(String),
    #[error("server sent an invalid reply: {0}")]
    Resp(#[from] RespError),
    #[error("server sent nothing for {0:?}")]
    Silent(Duration),
}

impl FeedServer {
    /// Prepares to read from the service at `url`, of the same form as for [`Redis`](super::Redis).
    /// Of the options, the limits of time and size, and the certificates, apply to feeds.
    ///
    /// # Errors
    /// The URL is malformed, or the system has no usable CA certificates.
    pub fn new(url: &str, options: BrokerOptions) -> Result<Self, RedisError> {
        let address = Address::parse(url)?;
        let trust = match address.is_tls {
            true => Some(Arc::new(Trust::new(options.tls_authorities.as_deref())?)),
            false => None,
        };
        Ok(Self {
            address,
            trust,
            options,
        })
    }

    /// Passes on what is published in channels that match one of these patterns. Never returns.
    ///
    /// # Panics
    /// It is called outside of a tokio runtime.
    pub async fn read_channels(self, patterns: Vec<String>, sink: Arc<dyn FeedSink>) {
        let feed = ChannelFeed {
            backoff: Backoff::new(&self.options),
            service: self.service(),
            patterns: patterns.into_iter().map(String::into_bytes).collect(),
            sink,
        };
        feed.run().await;
    }

    /// Passes on what is added to a stream from now on. Never returns.
    ///
    /// # Panics
    /// It is called outside of a tokio runtime.
    pub async fn read_stream(self, stream: String, sink: Arc<dyn FeedSink>) {
        let backoff = Backoff::new(&self.options);
        let feed = StreamFeed::new(self.service(), backoff, stream, sink);
        feed.run().await;
    }

    fn service(self) -> Service {
        let Self {
            address,
            trust,
            options,
        } = self;
        Service {
            dialer: Dialer {
                login: address.login.clone(),
                trust: trust.clone(),
                timeout: options.dial_timeout,
                payload_bytes_max: options.payload_bytes_max,
            },
            commands: Commands::new(address, trust, options.command_timeout, Handle::current()),
            options,
        }
    }
}

impl ChannelFeed {
    /// Reads until it is dropped.
    async fn run(mut self) {
        loop {
            let reason = match self.service.dial().await {
                Ok(connection) => match self.serve(connection).await {
                    Ok(never) => match never {},
                    Err(error) => error.to_string(),
                },
                Err(reason) => reason,
            };
            self.sink.take(vec![FeedEvent::Down { reason }]).await;
            sleep(self.backoff.next()).await;
        }
    }

    /// Subscribes, and passes everything on until the connection ends.
    async fn serve(
        &mut self,
        (mut stream, mut input): (Stream, Input),
    ) -> Result<std::convert::Infallible, FeedError> {
        let mut out = Vec::new();
        let mut command = vec![&b"PSUBSCRIBE"[..]];
        command.extend(self.patterns.iter().map(Vec::as_slice));
        write_command(&command, &mut out);
        stream.write_all(&out).await?;
        stream.flush().await?;
        let options = &self.service.options;
        let dead_after = options.dead_after;
        let mut pings = interval(options.probe_interval);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut ping = Vec::new();
        write_command(&[b"PING"], &mut ping);
        let (mut heard, mut awaited) = (Instant::now(), self.patterns.len());
        loop {
            tokio::select! {
                read = stream.read(input.space()) => {
                    match read? {
                        0 => return Err(FeedError::Eof),
                        count => input.filled(count),
                    }
                    let events = take(&mut input, &mut awaited)?;
                    if events.contains(&FeedEvent::Up { is_complete: false }) {
                        self.backoff.reset();
                    }
                    if !events.is_empty() {
                        self.sink.take(events).await;
                    }
                    // Nothing was read while the sink was busy, so that time proves nothing.
                    heard = Instant::now();
                }
                _ = pings.tick() => {
                    if heard.elapsed() > dead_after {
                        return Err(FeedError::Silent(dead_after));
                    }
                    stream.write_all(&ping).await?;
                    stream.flush().await?;
                }
            }
        }
    }
}

/// Returns what has arrived. `awaited` is how many subscriptions have not been confirmed.
fn take(input: &mut Input, awaited: &mut usize) -> Result<Vec<FeedEvent>, FeedError> {
    let mut events = Vec::new();
    while let Some(item) = input.next()? {
        match item {
            Item::Oversized { bytes, .. } => events.push(FeedEvent::Oversized { bytes }),
            Item::Reply(Reply::Message(message)) => events.push(FeedEvent::Message {
                channel: Bytes::copy_from_slice(message.channel),
                payload: Bytes::copy_from_slice(message.payload),
            }),
            Item::Reply(Reply::Subscribed(_)) => {
                *awaited = awaited.saturating_sub(1);
                if *awaited == 0 {
                    events.push(FeedEvent::Up { is_complete: false });
                }
            }
            Item::Reply(Reply::Error(reason)) => {
                return Err(FeedError::Refused(shortened(reason).to_string()));
            }
            Item::Reply(Reply::Pong | Reply::Simple(_) | Reply::Unsubscribed(_)) => {}
        }
    }
    Ok(events)
}

impl Service {
    /// Connects to the server that the URL currently leads to.
    async fn dial(&self) -> Result<(Stream, Input), String> {
        let host = self.commands.server().await?;
        let dialled = self.dialer.dial(&host).await;
        dialled.map_err(|error| error.to_string())
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").finish_non_exhaustive()
    }
}
