//! Echoes each message, on any path: `cargo run --release --example reactor_echo -- 127.0.0.1:9001`

use linerate_reactor::{Context, Handler, Message, Opened, Server};

#[derive(Clone)]
struct Echo;

impl Handler for Echo {
    type Data = ();

    fn open(&mut self, _cx: &mut Context<'_>, _opened: Opened<'_>) {}

    fn message(&mut self, (): &mut (), cx: &mut Context<'_>, message: Message<'_>) {
        // The connection may be closing; the client then does not expect a reply.
        _ = cx.send(message);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1);
    let address = address.as_deref().unwrap_or("127.0.0.1:9001").parse()?;
    let server = Server::new().with_fallback(Echo).listen(address)?;
    println!("ws://{}", server.local_addr());
    Ok(server.run()?)
}
