//! A live view of a channel, at a rate that people can read.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use axum::{
    body::Body,
    extract::State,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::stream;
use http::{StatusCode, header, request::Parts};
use linerate_hub::{
    Batch, ChannelOptions, ClientId, Encode, Place, SubscriptionOptions, Unencodable,
};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, mpsc};

use super::{AdminState, Administrator, bad_request, channel_name, query, view};
use crate::{
    api::Refusal,
    clock::milliseconds,
    node::{
        Connection, Notice, Outlet, Recovery, StartPosition, Subscribe, Trail, Worker, new_client,
    },
    protocol::{Block, Transmit, dialect::TAIL},
};

/// Maximum number of publications shown of a block; the others are skipped.
const SHOWN_MAX: usize = 8;

/// Maximum number of bytes shown of a payload.
const DATA_BYTES_MAX: usize = 4_096;

/// Maximum number of events queued for the page.
const EVENTS_MAX: usize = 256;

/// Maximum number of publications per second that can be requested.
const RATE_MAX: u32 = 100;

/// Interval between reports of skipped publications, which also keep the connection alive.
const TOLD_EVERY: Duration = Duration::from_secs(1);

/// Encodes the first publications of a block as events.
#[derive(Debug)]
pub(crate) struct TailEncoding;

impl Encode for TailEncoding {
    type Block = Arc<Block>;

    fn encode(&self, batch: &Batch<'_>, out: &mut Vec<u8>) -> Result<(), Unencodable> {
        let at_ms = milliseconds(SystemTime::now());
        for publication in batch.publications.iter().take(SHOWN_MAX) {
            let payload = publication.payload();
            let shown = &payload[..payload.len().min(DATA_BYTES_MAX)];
            let channel = publication.source().unwrap_or(batch.channel);
            let event = view::TailPublication {
                at_ms,
                channel: channel.to_string(),
                offset: publication.offset(),
                bytes: payload.len(),
                data: String::from_utf8_lossy(shown).into_owned(),
                is_cut: shown.len() < payload.len(),
            };
            write_event("publication", &event, out);
        }
        Ok(())
    }

    fn seal(&self, bytes: Bytes, batch: &Batch<'_>, _: Option<Place<'_>>) -> Arc<Block> {
        Arc::new(Block::new(bytes, batch.publications.len() as u64))
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TailQuery {
    channel: String,
    #[serde(default = "usual_rate")]
    rate: u32,
}

const fn usual_rate() -> u32 {
    20
}

pub(super) async fn open(
    _: Administrator,
    State(state): State<AdminState>,
    parts: Parts,
) -> Result<Response, Refusal> {
    let asked: TailQuery = query(&parts)?;
    if !(1..=RATE_MAX).contains(&asked.rate) {
        let rate = asked.rate;
        let message = format!("rate is {rate}; 1 to {RATE_MAX} are allowed");
        return Err(bad_request(message));
    }
    let channel = channel_name(&asked.channel)?;
    let worker = state.worker;
    let (tail, outlet) = Tail::new(&worker, asked.rate);
    let node = worker.node();
    let options = node.namespaces.current();
    let options = options.options(&channel);
    let subscribe = Subscribe {
        channel,
        stream: options.stream(),
        ring: ChannelOptions {
            ring_messages_max: options.ring_messages_max,
            ring_bytes_max: options.ring_bytes_max,
        },
        options: SubscriptionOptions::new(node.tail_encoding),
        from: StartPosition::Live,
        trail: Trail::default(),
        recovery: Recovery::Reply {
            publications_max: 0,
        },
        presence: None,
        is_announced: false,
        follows: false,
    };
    let subscribed = worker.subscribe(tail.client, subscribe).await;
    if let Err(error) = subscribed {
        return Err(Refusal::new(StatusCode::BAD_GATEWAY, 100, error));
    }
    outlet.offer(Bytes::from_static(b": open\n\n"));
    Ok(tail.into_response())
}

/// The stream of events for a page. Dropping it ends the subscription.
struct Tail {
    worker: Arc<Worker>,
    client: ClientId,
    outlet: Arc<TailOutlet>,
    events: mpsc::Receiver<Bytes>,
    tell_at: tokio::time::Instant,
}

/// Limits the events per second.
#[derive(Debug)]
struct TailOutlet {
    events: mpsc::Sender<Bytes>,
    rate: u32,
    second: Mutex<(Instant, u32)>,
    skipped: AtomicU64,
    /// Notified when the page must be disconnected.
    over: Notify,
}

impl Tail {
    fn new(worker: &Arc<Worker>, rate: u32) -> (Self, Arc<TailOutlet>) {
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        let outlet = Arc::new(TailOutlet {
            events: sender,
            rate,
            second: Mutex::new((Instant::now(), 0)),
            skipped: AtomicU64::new(0),
            over: Notify::new(),
        });
        let connection = Connection {
            who: new_client(),
            dialect: &TAIL,
            peer: None,
            agent: worker.agent("linerate admin"),
            since_ms: milliseconds(SystemTime::now()),
        };
        let tail = Self {
            worker: worker.clone(),
            client: worker.connect(connection, outlet.clone()),
            outlet: outlet.clone(),
            events,
            tell_at: tokio::time::Instant::now() + TOLD_EVERY,
        };
        (tail, outlet)
    }

    /// Waits for the next events, or until it is time to report skipped publications; returns
    /// `None` if the page must be disconnected.
    async fn next(&mut self) -> Option<Bytes> {
        let events = tokio::select! {
            biased;
            () = self.outlet.over.notified() => return None,
            events = tokio::time::timeout_at(self.tell_at, self.events.recv()) => events,
        };
        match events {
            Ok(events) => events,
            Err(_) => {
                self.tell_at = tokio::time::Instant::now() + TOLD_EVERY;
                let skipped = self.outlet.skipped.swap(0, Ordering::Relaxed);
                let mut event = Vec::new();
                match skipped {
                    0 => event.extend_from_slice(b":\n\n"),
                    skipped => write_event("skipped", &view::TailSkipped { skipped }, &mut event),
                }
                Some(event.into())
            }
        }
    }
}

impl IntoResponse for Tail {
    fn into_response(self) -> Response {
        let events = stream::unfold(self, |mut tail| async move {
            let event = tail.next().await?;
            Some((Ok::<_, std::convert::Infallible>(event), tail))
        });
        let headers = [
            (header::CONTENT_TYPE, "text/event-stream"),
            (header::CACHE_CONTROL, "no-store"),
        ];
        (headers, Body::from_stream(events)).into_response()
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        self.worker.disconnect(self.client);
    }
}

impl TailOutlet {
    fn offer(&self, events: Bytes) -> bool {
        self.events.try_send(events).is_ok()
    }

    /// Returns how many of the available events may be sent now.
    fn allow(&self, events: u32) -> u32 {
        let mut second = self.second.lock();
        if second.0.elapsed() >= Duration::from_secs(1) {
            *second = (Instant::now(), 0);
        }
        let allowed = events.min(self.rate - second.1);
        second.1 += allowed;
        allowed
    }

    fn show(&self, block: &Bytes, messages: u32) {
        let shown = messages.min(SHOWN_MAX as u32);
        let allowed = self.allow(shown) as usize;
        // Events end with an empty line, which JSON never contains.
        let ends = block
            .windows(2)
            .enumerate()
            .filter(|(_, pair)| *pair == b"\n\n");
        let end = ends.map(|(at, _)| at + 2).take(allowed).last().unwrap_or(0);
        let is_sent = end > 0 && self.offer(block.slice(..end));
        let sent = if is_sent { allowed } else { 0 };
        let skipped = u64::from(messages) - sent as u64;
        self.skipped.fetch_add(skipped, Ordering::Relaxed);
    }
}

impl Outlet for TailOutlet {
    fn has_room(&self) -> bool {
        // Publications that do not fit into the queue are skipped.
        true
    }

    fn transmit(&self, transmit: Transmit) {
        match transmit {
            Transmit::Block {
                block, messages, ..
            } => self.show(block.bytes(), messages),
            Transmit::Gap { gap, .. } => {
                let mut event = Vec::new();
                let missed = gap.missed;
                write_event("gap", &view::TailGap { missed }, &mut event);
                self.offer(event.into());
            }
            _ => {}
        }
    }

    /// Does nothing: events have already been queued for the page.
    fn flush(&self) {}

    fn notify(&self, notice: Notice) {
        if matches!(notice, Notice::Disconnect(_)) {
            self.over.notify_one();
        }
    }

    fn pending_bytes(&self) -> usize {
        0
    }
}

fn write_event(name: &str, data: &impl Serialize, out: &mut Vec<u8>) {
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\ndata: ");
    // Writing to memory fails only for values that JSON cannot represent; these types can be
    // represented.
    _ = serde_json::to_writer(&mut *out, data);
    out.extend_from_slice(b"\n\n");
}
