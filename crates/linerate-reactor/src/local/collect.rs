//! The handlers of a local reactor, which only record what happened.

use linerate_proto::engine::{Chunk, Closed, Message};

use crate::{
    context::Context,
    core::events::LocalEvent,
    handler::{Handler, Opened},
};

/// Collects messages.
#[derive(Clone)]
pub(super) struct Collector;

/// Discards messages.
#[derive(Clone)]
pub(super) struct Discarder;

impl Handler for Collector {
    type Data = ();

    fn open(&mut self, _cx: &mut Context<'_>, _opened: Opened<'_>) {}

    fn message(&mut self, (): &mut (), cx: &mut Context<'_>, message: Message<'_>) {
        let connection = cx.id();
        let core = cx.core();
        core.io.traffic.messages_received += 1;
        core.events.push(LocalEvent::Message {
            connection,
            kind: message.kind(),
            payload: message.as_bytes().to_vec(),
        });
        if core.events.is_full() {
            core.events.stop(connection.slot);
            cx.pause();
        }
    }

    fn message_late(&mut self, (): &mut (), cx: &mut Context<'_>) {
        record_late(cx);
    }

    fn drain(&mut self, (): &mut (), cx: &mut Context<'_>) {
        record_drained(cx);
    }

    fn close(&mut self, (): (), cx: &mut Context<'_>, closed: Closed) {
        record_closed(cx, closed);
    }
}

impl Handler for Discarder {
    type Data = ();

    /// A message is not kept as a whole.
    const STREAMED_BYTES_MIN: u64 = 0;

    fn open(&mut self, _cx: &mut Context<'_>, _opened: Opened<'_>) {}

    fn message(&mut self, (): &mut (), cx: &mut Context<'_>, _message: Message<'_>) {
        cx.core().io.traffic.messages_received += 1;
    }

    fn chunk(&mut self, (): &mut (), cx: &mut Context<'_>, chunk: Chunk<'_>) {
        cx.core().io.traffic.messages_received += u64::from(chunk.ends);
    }

    fn message_late(&mut self, (): &mut (), cx: &mut Context<'_>) {
        record_late(cx);
    }

    fn drain(&mut self, (): &mut (), cx: &mut Context<'_>) {
        record_drained(cx);
    }

    fn close(&mut self, (): (), cx: &mut Context<'_>, closed: Closed) {
        record_closed(cx, closed);
    }
}

fn record_late(cx: &mut Context<'_>) {
    let connection = cx.id();
    cx.core()
        .events
        .push(LocalEvent::MessageLate { connection });
}

fn record_drained(cx: &mut Context<'_>) {
    let connection = cx.id();
    cx.core().events.push(LocalEvent::Drained { connection });
}

fn record_closed(cx: &mut Context<'_>, closed: Closed) {
    let connection = cx.id();
    let core = cx.core();
    core.events.forget_stopped(connection.slot);
    core.events.push(LocalEvent::Closed { connection, closed });
}
