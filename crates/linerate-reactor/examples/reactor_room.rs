//! A chat room: each message is sent to all clients. There is one thread for each core.
//!
//! ```sh
//! cargo run --release --example reactor_room -- 127.0.0.1:9003
//! linerate connect ws://127.0.0.1:9003/    # in two terminals
//! ```

use linerate_reactor::{Closed, Context, Handler, Message, Opened, Overflow, Server, TopicOptions};

/// The topic that all clients subscribe to.
const ROOM: &str = "room";

#[derive(Clone)]
struct Room;

impl Handler for Room {
    /// The name of the client: the query of the URL or, without one, the connection's identifier.
    type Data = String;

    fn open(&mut self, cx: &mut Context<'_>, opened: Opened<'_>) -> String {
        let name = match opened.request().and_then(|request| request.query()) {
            Some(name) => name.to_owned(),
            None => format!("{:?}", cx.id()),
        };
        // This fails only if the connection has too many subscriptions.
        _ = cx.subscribe(ROOM);
        say(cx, &name, "is here");
        name
    }

    fn message(&mut self, name: &mut String, cx: &mut Context<'_>, message: Message<'_>) {
        match message {
            Message::Text(text) => say(cx, name, text),
            Message::Binary(bytes) => say(cx, name, &format!("sends {} bytes", bytes.len())),
        }
    }

    fn close(&mut self, name: String, cx: &mut Context<'_>, _closed: Closed) {
        say(cx, &name, "is gone");
    }
}

fn say(cx: &mut Context<'_>, name: &str, text: &str) {
    cx.publish(ROOM, Message::Text(&format!("{name}: {text}")));
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1);
    let address = address.as_deref().unwrap_or("127.0.0.1:9003").parse()?;
    // A client that does not keep up misses old messages, not new ones.
    let forgetful = TopicOptions::default().with_overflow(Overflow::DropOldest);
    let server = Server::new()
        .with_topic(ROOM, forgetful)
        .with_fallback(Room)
        .listen(address)?;
    println!("ws://{}", server.local_addr());
    Ok(server.run()?)
}
