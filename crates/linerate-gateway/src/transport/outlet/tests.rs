use std::{sync::Arc, task::Context};

use futures_util::{FutureExt, StreamExt};
use linerate_budget::{Account, Budget, Consumer};
use linerate_hub::{
    Batch, ChannelOptions, Encode, EncodingId, GapCause, Hub, HubOptions, Place, SubscriptionId,
    SubscriptionOptions, Unencodable,
};

use super::*;
use crate::{protocol::native::BLOCKS, transport::body::body};

/// A wire with room for a given number of bytes.
#[derive(Clone, Debug, Default)]
struct Pipe(Arc<Mutex<PipeState>>);

#[derive(Debug, Default)]
struct PipeState {
    room: usize,
    /// Bytes that have not been flushed yet.
    held: Vec<u8>,
    sent: Vec<u8>,
    closed: Option<u16>,
}

impl Pipe {
    fn with_room(room: usize) -> Self {
        let pipe = Self::default();
        pipe.give(room);
        pipe
    }

    fn give(&self, room: usize) {
        self.0.lock().room += room;
    }

    fn sent(&self) -> String {
        String::from_utf8(self.0.lock().sent.clone()).unwrap()
    }
}

impl Wire for Pipe {
    fn send(&self, block: &Block) {
        let bytes = block.bytes();
        let mut state = self.0.lock();
        state.room = state.room.saturating_sub(bytes.len());
        state.held.extend_from_slice(bytes);
    }

    fn flush(&self) {
        let state = &mut *self.0.lock();
        state.sent.append(&mut state.held);
    }

    fn discard(&self) {
        self.0.lock().held.clear();
    }

    fn room(&self) -> usize {
        self.0.lock().room
    }

    fn queued_bytes(&self) -> usize {
        0
    }

    fn poll_room(&self, _cx: &mut Context<'_>) -> Poll<()> {
        match self.room() {
            0 => Poll::Pending,
            _ => Poll::Ready(()),
        }
    }

    fn close(&self, disconnect: &Disconnect) {
        self.0.lock().closed = Some(disconnect.code);
    }
}

#[derive(Debug)]
struct Nothing;

impl Encode for Nothing {
    type Block = ();

    fn encode(&self, _: &Batch<'_>, _: &mut Vec<u8>) -> Result<(), Unencodable> {
        Ok(())
    }

    fn seal(&self, _: Bytes, _: &Batch<'_>, _: Option<Place<'_>>) {}
}

fn channel() -> ChannelName {
    ChannelName::new("a").unwrap()
}

/// Returns a subscription ID, which only a hub can create.
fn subscription() -> SubscriptionId {
    let mut hub = Hub::new(HubOptions {
        encodings: vec![Arc::new(Nothing)],
        ..HubOptions::default()
    });
    let client = hub.connect();
    let options = SubscriptionOptions::new(EncodingId(0));
    let now = std::time::Instant::now();
    hub.subscribe(now, client, channel(), ChannelOptions::default(), options)
        .unwrap()
}

fn block(text: &'static str) -> Transmit {
    Transmit::Block {
        subscription: subscription(),
        block: Arc::new(Block::new(text, 1)),
        messages: 1,
    }
}

fn gap() -> Transmit {
    Transmit::Gap {
        subscription: subscription(),
        channel: channel(),
        channel_id: 7,
        gap: Gap {
            missed: Some(3),
            cause: GapCause::RingEvicted,
        },
    }
}

#[test]
fn replies_that_wait_for_room_go_before_any_further_data() {
    let pipe = Pipe::with_room(3);
    let outlet = ClientOutlet::new(pipe.clone(), &GapNotice::None, 100, &Account::default());
    assert!(outlet.has_room());
    outlet.transmit(block("data"));
    outlet.flush();
    outlet.send("one".into());
    outlet.send("two".into());
    assert!(!outlet.has_room());
    assert_eq!(outlet.pending_bytes(), 6);
    assert_eq!(outlet.room().now_or_never(), None);
    pipe.give(1);
    assert!(
        !outlet.has_room(),
        "the room is reserved for the queued reply"
    );
    assert_eq!(
        outlet.room().now_or_never(),
        None,
        "the first reply used the room"
    );
    pipe.give(10);
    assert_eq!(outlet.room().now_or_never(), Some(true));
    assert!(outlet.has_room() && !outlet.is_full());
    outlet.transmit(block("more"));
    outlet.flush();
    assert_eq!(pipe.sent(), "dataonetwomore");
}

#[test]
fn the_session_is_told_once_that_there_is_no_room() {
    let outlet = ClientOutlet::new(Pipe::default(), &GapNotice::None, 100, &Account::default());
    assert_eq!(outlet.changed().now_or_never(), None);
    assert!(!outlet.has_room());
    assert!(!outlet.has_room());
    assert_eq!(outlet.changed().now_or_never(), Some(()));
    assert_eq!(outlet.changed().now_or_never(), None);
    assert!(outlet.is_full());
}

#[test]
fn data_is_held_until_it_is_released() {
    let outlet = ClientOutlet::new(
        Pipe::with_room(10),
        &GapNotice::None,
        100,
        &Account::default(),
    );
    outlet.hold();
    assert!(!outlet.has_room() && !outlet.is_full());
    outlet.send("reply".into());
    outlet.release();
    assert!(outlet.has_room());
}

#[test]
fn replies_beyond_the_bound_make_a_client_slow() {
    let outlet = ClientOutlet::new(Pipe::default(), &GapNotice::None, 10, &Account::default());
    outlet.send("12345".into());
    outlet.send("a long one is taken".into());
    assert!(outlet.take_events().is_empty());
    outlet.send("1".into());
    let events = outlet.take_events();
    assert!(matches!(events.front(), Some(Event::Slow)), "{events:?}");
    assert_eq!(outlet.pending_bytes(), 24);
}

#[test]
fn events_beyond_the_bound_make_a_client_slow() {
    let outlet = ClientOutlet::new(
        Pipe::with_room(1),
        &GapNotice::None,
        10,
        &Account::default(),
    );
    for _ in 0..=EVENTS_MAX {
        outlet.notify(Notice::Disconnect(Disconnect::SHUTDOWN));
    }
    let events = outlet.take_events();
    assert_eq!(events.len(), EVENTS_MAX + 1);
    assert!(matches!(events.front(), Some(Event::Slow)));
    assert!(outlet.take_events().is_empty());
}

#[test]
fn a_gap_is_told_in_its_place_if_the_protocol_can() {
    for (notice, expected) in [
        (&GapNotice::None, "onetwo"),
        (&BLOCKS.gaps, "one\u{2}\u{5}\u{7}\u{4}\u{4}\u{5}\0two"),
    ] {
        let pipe = Pipe::with_room(1_000);
        let outlet = ClientOutlet::new(pipe.clone(), notice, 100, &Account::default());
        outlet.transmit(block("one"));
        outlet.transmit(gap());
        outlet.transmit(block("two"));
        outlet.flush();
        // The first byte of a binary frame is not text.
        let sent = pipe.0.lock().sent.clone();
        let sent: String = sent
            .into_iter()
            .map(|byte| char::from(byte & 0x7F))
            .collect();
        assert_eq!(sent, expected);
        assert!(matches!(outlet.take_events().front(), Some(Event::Gap(_))));
    }
}

#[test]
fn what_waits_is_sent_at_the_end_if_there_is_room() {
    let pipe = Pipe::default();
    let outlet = ClientOutlet::new(pipe.clone(), &GapNotice::None, 100, &Account::default());
    outlet.send("reply".into());
    pipe.give(10);
    outlet.close(&Disconnect::SHUTDOWN);
    outlet.send("late".into());
    assert_eq!(pipe.sent(), "reply");
    assert_eq!(pipe.0.lock().closed, Some(3001));
}

#[test]
fn nobody_waits_for_a_client_that_is_gone() {
    /// Reports that it is ready, but has no room.
    #[derive(Debug)]
    struct Gone;
    impl Wire for Gone {
        fn send(&self, _: &Block) {}
        fn flush(&self) {}
        fn discard(&self) {}
        fn room(&self) -> usize {
            0
        }
        fn queued_bytes(&self) -> usize {
            0
        }
        fn poll_room(&self, _: &mut Context<'_>) -> Poll<()> {
            Poll::Ready(())
        }
        fn close(&self, _: &Disconnect) {}
    }
    let outlet = ClientOutlet::new(Gone, &GapNotice::None, 100, &Account::default());
    outlet.send("reply".into());
    assert!(outlet.is_full());
    assert_eq!(outlet.room().now_or_never(), Some(false));
    assert!(!outlet.is_full());
}

#[tokio::test]
async fn a_reply_counts_until_the_wire_has_let_it_go() {
    let account = Budget::new(1 << 20).account(Consumer::Backlogs);
    let (wire, mut stream) = body(10_000, |_| None, ());
    let outlet = ClientOutlet::new(wire, &GapNotice::None, 100_000, &account);
    // The second reply is queued outside the wire, which is then full.
    for _ in 0..2 {
        outlet.send(vec![b'x'; 10_000].into());
    }
    assert_eq!((outlet.has_waiting(), account.bytes()), (true, 20_000));
    let first = stream.next().await;
    assert!(outlet.room().await);
    assert_eq!((outlet.has_waiting(), account.bytes()), (false, 20_000));
    drop(first);
    assert_eq!(account.bytes(), 10_000);
    drop(stream.next().await);
    assert_eq!(account.bytes(), 0);
}

#[test]
fn commands_that_the_session_keeps_count_as_received() {
    let pipe = Pipe::with_room(0);
    let outlet = ClientOutlet::new(pipe, &GapNotice::None, 100, &Account::default());
    outlet.keep_commands(30_000);
    assert_eq!(outlet.received_bytes(), 30_000);
    outlet.send("reply".into());
    assert!(outlet.take_events().is_empty());
    assert_eq!(outlet.received_bytes(), 30_000);
    outlet.send_all_waiting();
    outlet.keep_commands(0);
    assert_eq!(outlet.received_bytes(), 0);
    assert!(outlet.state.lock().waiting.is_none());
}
