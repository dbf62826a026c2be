//! When publications are delivered, and what happens if they do not fit into a worker's mailbox.

use std::{
    sync::{
        Arc, Mutex,
        mpsc::{self, Receiver, Sender},
    },
    thread,
    time::Duration,
};

use linerate_reactor::{Context, Handler, Message, Opened, Options};

use crate::support::{PATIENCE, Raw, Running, masked};

/// Subscribes each connection, publishes the messages received, and blocks its worker on request.
#[derive(Clone)]
struct Busy {
    /// Reports that the worker has begun to wait.
    waits: Sender<()>,
    /// Lets the worker continue.
    goes_on: Arc<Mutex<Receiver<()>>>,
}

impl Busy {
    fn new() -> (Self, Receiver<()>, Sender<()>) {
        let (waits, waiting) = mpsc::channel();
        let (go_on, goes_on) = mpsc::channel();
        let goes_on = Arc::new(Mutex::new(goes_on));
        (Self { waits, goes_on }, waiting, go_on)
    }
}

impl Handler for Busy {
    type Data = ();

    fn open(&mut self, cx: &mut Context<'_>, _opened: Opened<'_>) {
        cx.subscribe("room").unwrap();
        cx.send_text("hello").unwrap();
    }

    fn message(&mut self, (): &mut (), cx: &mut Context<'_>, message: Message<'_>) {
        match message {
            Message::Text("wait") => {
                self.waits.send(()).unwrap();
                let goes_on = self.goes_on.lock().unwrap();
                goes_on.recv_timeout(PATIENCE).unwrap();
            }
            Message::Text("nap") => thread::sleep(Duration::from_millis(2)),
            message => cx.publish("room", message),
        }
    }
}

fn join(server: &Running) -> Raw {
    let mut raw = Raw::open(server.address);
    assert_eq!(raw.frame(), (0x81, b"hello".to_vec()));
    raw
}

#[test]
fn a_publication_does_not_wait_for_the_end_of_a_long_turn() {
    let (handler, waiting, go_on) = Busy::new();
    let server = Running::start(handler, 1, Options::default());
    let mut clients: Vec<_> = (0..5).map(|_| join(&server)).collect();
    clients[0].send(&masked(0x1, b"wait"));
    waiting.recv_timeout(PATIENCE).unwrap();
    // All of this has arrived when the worker waits for events again.
    clients[1].send(&masked(0x1, b"news"));
    clients[2].send(&masked(0x1, b"nap"));
    clients[3].send(&masked(0x1, b"wait"));
    go_on.send(()).unwrap();
    waiting.recv_timeout(PATIENCE).unwrap();
    // The turn lasts as long as the worker waits.
    assert_eq!(clients[4].frame(), (0x81, b"news".to_vec()));
    go_on.send(()).unwrap();
}

#[test]
fn publications_that_a_mailbox_has_no_room_for_are_counted() {
    let (handler, waiting, go_on) = Busy::new();
    let mut options = Options::default();
    options.mailbox_bytes_max = 1_000;
    let server = Running::start(handler, 1, options);
    let mut client = join(&server);
    client.send(&masked(0x1, b"wait"));
    waiting.recv_timeout(PATIENCE).unwrap();
    let publish = |text| server.remote.publish("room", Message::Text(text));
    // The first publication is accepted regardless of its size; the others do not fit.
    let long = "x".repeat(2_000);
    publish(&long);
    publish("missed");
    publish("missed");
    go_on.send(()).unwrap();
    assert_eq!(client.frame(), (0x81, long.as_bytes().to_vec()));
    publish("here");
    assert_eq!(client.frame(), (0x81, b"here".to_vec()));
    let counters = server.remote.counters();
    assert_eq!(counters.publications_dropped_between_workers(), 2);
    assert_eq!(counters.publications_dropped(), 2);
}
