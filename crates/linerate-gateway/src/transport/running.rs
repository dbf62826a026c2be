//! A running session of a client that sends no commands.

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use linerate_hub::{Gap, GapCause};
use tokio::time::sleep_until;

use super::{
    ClientOutlet,
    portable::{PortableClient, PortableConnection},
};
use crate::{
    clock::now,
    protocol::{codes::Disconnect, dialect::SessionKind},
    session::FixedSession,
};

/// A running fixed session with everything it needs.
pub(super) struct RunningSession {
    pub(super) session: FixedSession,
    pub(super) outlet: Arc<ClientOutlet>,
}

/// A running session on the reactor whose client is sent pings.
pub(super) struct PingedSession {
    pub(super) running: RunningSession,
    pings: Pings,
}

/// The pings of an event stream, which has no answer to them.
struct Pings {
    next: Instant,
    /// True if there was room since the last ping. A client that reads nothing between two pings is
    /// considered gone.
    had_room: bool,
}

impl RunningSession {
    /// Serves the client until it has to be disconnected, or until `gone` completes: with `None` if
    /// the client has disconnected, or with the reason to disconnect it.
    pub(super) async fn run(
        mut self: Box<Self>,
        mut gone: Pin<&mut impl Future<Output = Option<Disconnect>>>,
    ) {
        self.begin();
        let mut pings = Pings::new(&self);
        let mut alarm = pin!(sleep_until(pings.next.into()));
        loop {
            let timeout = self.session.poll_timeout();
            let due = timeout.map_or(pings.next, |at| at.min(pings.next));
            if alarm.deadline().into_std() != due {
                alarm.as_mut().reset(due.into());
            }
            let over = tokio::select! {
                // The order is fixed, so that a simulation can repeat it.
                biased;
                over = &mut gone => match over {
                    None => return,
                    over => over,
                },
                () = self.outlet.changed() => self.handle_events(),
                has_room = self.outlet.room(), if self.outlet.is_full() => {
                    pings.had_room = true;
                    if has_room {
                        self.resume_delivery();
                    }
                    None
                }
                () = alarm.as_mut() => {
                    let over = self.session.handle_timeout(now());
                    over.or_else(|| pings.handle_timeout(now(), &self))
                }
            };
            if let Some(disconnect) = over {
                return self.outlet.close(&disconnect);
            }
        }
    }

    /// Handles the events of the outlet, and resumes delivery if there is room again. Returns the
    /// reason to disconnect the client, if it has to be disconnected.
    pub(super) fn handle_changed(&mut self) -> Option<Disconnect> {
        let over = self.handle_events();
        if over.is_none() {
            self.take_room();
        }
        over
    }

    /// Resumes delivery if it waits for room, and there is room again. Returns whether it did so.
    fn take_room(&self) -> bool {
        let has_room = self.outlet.is_full() && self.outlet.take_room();
        if has_room {
            self.resume_delivery();
        }
        has_room
    }

    /// Returns the reason to disconnect the client if a deadline has passed.
    pub(super) fn handle_timeout(&self, now: Instant) -> Option<Disconnect> {
        self.session.handle_timeout(now)
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout).
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.session.poll_timeout()
    }

    /// Reports what the client missed before it reconnected, and releases data.
    pub(super) fn begin(&self) {
        if !self.ping().is_empty() {
            // Sends the response head at once and shows proxies that the stream is alive.
            self.outlet.send(Bytes::from_static(self.ping()));
        }
        let worker = &self.session.gate().worker;
        for channel in self.session.unrecovered() {
            let gap = Gap {
                missed: None,
                cause: GapCause::EpochChanged,
            };
            let number = worker.shard().hub.channel_id(channel.as_str());
            if let Some(number) = number {
                self.outlet.tell_gap((number, channel), gap);
            }
        }
        self.resume();
    }

    /// Releases data, which is all that a session of another process needs to continue.
    pub(super) fn resume(&self) {
        self.outlet.release();
        self.resume_delivery();
    }

    /// Returns what another process needs to continue the session.
    pub(super) fn export(&self, now: Instant) -> PortableClient {
        PortableClient {
            connection: PortableConnection::of(self.session.connection()),
            wants_gaps: self.outlet.tells_gaps(),
            session: self.session.export(now),
        }
    }

    fn resume_delivery(&self) {
        let worker = &self.session.gate().worker;
        worker.writable(self.session.client());
    }

    /// Returns the bytes that keep the stream alive; empty on a WebSocket.
    fn ping(&self) -> &'static [u8] {
        match &self.session.gate().dialect.session {
            SessionKind::Fixed(fixed) => fixed.ping,
            SessionKind::Commands(_) => &[],
        }
    }

    fn ping_interval(&self) -> Duration {
        let settings = self.session.gate().shared.settings();
        settings.config.client.ping_interval
    }

    fn handle_events(&mut self) -> Option<Disconnect> {
        let mut events = self.outlet.take_events().into_iter();
        events.find_map(|event| self.session.handle_event(event))
    }
}

impl PingedSession {
    /// Prepares the pings of a session that begins now.
    pub(super) fn new(running: RunningSession) -> Self {
        Self {
            pings: Pings::new(&running),
            running,
        }
    }

    /// Like [`RunningSession::handle_changed`].
    pub(super) fn handle_changed(&mut self) -> Option<Disconnect> {
        let over = self.running.handle_events();
        if over.is_none() {
            self.pings.had_room |= self.running.take_room();
        }
        over
    }

    /// Sends a ping if one is due. Returns the reason to disconnect the client if another deadline
    /// has passed, or the client reads nothing.
    pub(super) fn handle_timeout(&mut self, now: Instant) -> Option<Disconnect> {
        let over = self.running.handle_timeout(now);
        over.or_else(|| {
            // The reactor tells only when everything was written.
            self.pings.had_room |= self.running.take_room();
            self.pings.handle_timeout(now, &self.running)
        })
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout).
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let timeout = self.running.poll_timeout();
        Some(timeout.map_or(self.pings.next, |at| at.min(self.pings.next)))
    }
}

impl Pings {
    fn new(session: &RunningSession) -> Self {
        Self {
            next: now() + session.ping_interval(),
            had_room: true,
        }
    }

    /// Sends a ping if one is due. Returns the reason to disconnect the client if it has read
    /// nothing since the last ping.
    fn handle_timeout(&mut self, now: Instant, session: &RunningSession) -> Option<Disconnect> {
        if now < self.next {
            return None;
        }
        self.next = now + session.ping_interval();
        let has_read = std::mem::replace(&mut self.had_room, !session.outlet.is_full());
        session.outlet.send(Bytes::from_static(session.ping()));
        (!has_read).then_some(Disconnect::WRITE_ERROR)
    }
}

/// Returns why a client is disconnected whose message takes longer than `message_timeout`.
pub(super) fn late(message_timeout: Duration) -> Disconnect {
    let seconds = message_timeout.as_secs();
    let reason = format!("stale: a message took longer than {seconds} s");
    Disconnect::STALE.with_reason(reason)
}
