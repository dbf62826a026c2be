//! Opens many connections to one server. Each sends a text again whenever it comes back, and the
//! number of round trips is printed every second. Connections that end or fail are opened again
//! later.
//!
//! ```sh
//! cargo run --release --example reactor_echo -- 127.0.0.1:9001
//! cargo run --release --example reactor_connector -- ws://127.0.0.1:9001/ 1000
//! ```

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use linerate_reactor::{
    Closed, ConnectError, Connector, Context, Destination, Handler, Message, Opened, WorkerContext,
};

#[derive(Clone)]
struct Load {
    round_trips: Arc<AtomicU64>,
}

impl Handler for Load {
    /// The destination of the connection, used to reconnect.
    type Data = Option<Destination>;

    fn open(&mut self, cx: &mut Context<'_>, opened: Opened<'_>) -> Option<Destination> {
        _ = cx.send_text("ping");
        opened.destination().cloned()
    }

    fn message(&mut self, _data: &mut Self::Data, cx: &mut Context<'_>, message: Message<'_>) {
        self.round_trips.fetch_add(1, Ordering::Relaxed);
        _ = cx.send(message);
    }

    fn failed(
        &mut self,
        worker: &mut WorkerContext<'_>,
        destination: &Destination,
        error: ConnectError,
    ) {
        eprintln!("{}: {error}", destination.tag());
        _ = worker.connect(&later(destination));
    }

    fn close(&mut self, data: Self::Data, cx: &mut Context<'_>, closed: Closed) {
        // No connection can be opened if this one ended because the connector is shutting down.
        if let Some(destination) = data
            && cx.connect(&later(&destination)).is_ok()
        {
            eprintln!("{}: closed with {}", destination.tag(), closed.code);
        }
    }
}

/// Returns the destination with a delay of 1 to 2 s, so that not all clients reconnect at once to a
/// server that was unavailable. A real client should also increase the delay with each failure.
fn later(destination: &Destination) -> Destination {
    let spread = Duration::from_millis(destination.tag() * 37 % 1_000);
    let delay = Duration::from_secs(1) + spread;
    destination.clone().with_delay(delay)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments
        .next()
        .unwrap_or("ws://127.0.0.1:9001/".to_owned());
    let connections: u64 = arguments.next().map_or(Ok(100), |it| it.parse())?;
    let load = Load {
        round_trips: Arc::default(),
    };
    let round_trips = load.round_trips.clone();
    let connector = Connector::new().prepare(load)?;
    // One lookup for all connections.
    let destination = Destination::parse(&url)?.resolve()?;
    for tag in 0..connections {
        connector.connect(destination.clone().with_tag(tag))?;
    }
    let remote = connector.remote();
    thread::spawn(move || {
        loop {
            thread::sleep(Duration::from_secs(1));
            let (open, done) = (
                remote.counters().connections(),
                round_trips.swap(0, Ordering::Relaxed),
            );
            println!("{open} connections, {done} round trips");
        }
    });
    Ok(connector.run()?)
}
