//! Market data: the prices of some instruments, each to the clients that subscribe to it. A client
//! that does not keep up misses old prices, not new ones.
//!
//! ```sh
//! cargo run --release --example reactor_market -- 127.0.0.1:9005 50000    # prices per second
//! linerate connect ws://127.0.0.1:9005/    # then type: +AAPL +MSFT, and later: -AAPL
//! ```

use std::{
    sync::{Arc, RwLock},
    thread,
    time::{Duration, Instant},
};

use linerate_reactor::{Context, Handler, Message, Opened, Overflow, Remote, Server, TopicOptions};

const INSTRUMENTS: [&str; 4] = ["AAPL", "AMZN", "GOOG", "MSFT"];

/// Publishing is cheaper for many prices at a time.
const TICK: Duration = Duration::from_millis(1);

/// The latest price of each instrument, which new subscribers get at once.
type Latest = Arc<[RwLock<String>; INSTRUMENTS.len()]>;

#[derive(Clone)]
struct Market {
    latest: Latest,
}

impl Handler for Market {
    type Data = ();

    fn open(&mut self, _cx: &mut Context<'_>, _opened: Opened<'_>) {}

    /// Subscribes to `+NAME` and unsubscribes from `-NAME`; a message may have several.
    fn message(&mut self, (): &mut (), cx: &mut Context<'_>, message: Message<'_>) {
        let Message::Text(text) = message else {
            return;
        };
        for command in text.split_whitespace() {
            if let Some(name) = command.strip_prefix('+') {
                self.subscribe(cx, name);
            } else if let Some(name) = command.strip_prefix('-') {
                cx.unsubscribe(name);
            }
        }
    }
}

impl Market {
    fn subscribe(&self, cx: &mut Context<'_>, name: &str) {
        let Some(index) = INSTRUMENTS.iter().position(|known| *known == name) else {
            _ = cx.send_text(&format!("no instrument is called {name}"));
            return;
        };
        // This fails only if the connection has too many subscriptions.
        if let Ok(true) = cx.subscribe(name) {
            let latest = self.latest[index].read().expect("no writer panics");
            _ = cx.send_text(&latest);
        }
    }
}

/// Publishes prices that walk at random, as a feed would, this many per second.
fn run_feed(remote: &Remote, latest: &Latest, per_second: u64) {
    let (started, mut published) = (Instant::now(), 0);
    let (mut cents, mut random) = ([20_000_i64; INSTRUMENTS.len()], 1_u64);
    loop {
        thread::sleep(TICK);
        let due = (started.elapsed().as_secs_f64() * per_second as f64) as u64;
        for _ in published..due {
            // The constants of Knuth's MMIX.
            random = random.wrapping_mul(6_364_136_223_846_793_005);
            random = random.wrapping_add(1_442_695_040_888_963_407);
            let index = (random >> 33) as usize % INSTRUMENTS.len();
            cents[index] = (cents[index] + (random >> 60) as i64 - 7).max(1);
            let (name, price) = (INSTRUMENTS[index], cents[index]);
            let text = format!("{name} {}.{:02}", price / 100, price % 100);
            // In this order, no subscriber misses a price: the newest may arrive twice instead.
            latest[index]
                .write()
                .expect("no reader panics")
                .clone_from(&text);
            remote.publish(name, Message::Text(&text));
        }
        published = due;
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next();
    let address = address.as_deref().unwrap_or("127.0.0.1:9005").parse()?;
    let per_second = arguments.next().map_or(Ok(1_000), |rate| rate.parse())?;
    let latest = INSTRUMENTS.map(|name| RwLock::new(format!("{name} 200.00")));
    let latest = Latest::new(latest);
    let market = Market {
        latest: latest.clone(),
    };
    let newest = TopicOptions::default().with_overflow(Overflow::DropOldest);
    let server = Server::new()
        .with_topic("*", newest)
        .with_fallback(market)
        .listen(address)?;
    println!("ws://{}", server.local_addr());
    let remote = server.remote();
    thread::spawn(move || run_feed(&remote, &latest, per_second));
    Ok(server.run()?)
}
