//! A relay: each client gets its own connection to an upstream server. Everything that one end
//! sends is passed to the other, including the close code. A slow reader at one end slows down the
//! other.
//!
//! ```sh
//! cargo run --release --example reactor_echo -- 127.0.0.1:9001
//! cargo run --release --example reactor_relay -- 127.0.0.1:9002 ws://127.0.0.1:9001/
//! linerate connect ws://127.0.0.1:9002/
//! ```
//!
//! The relay is independent of the application: paths, headers and subprotocols are not passed on.

mod relay;

use linerate_reactor::{Destination, Server};

use self::relay::Relay;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or("127.0.0.1:9002".to_owned());
    let upstream = arguments
        .next()
        .unwrap_or("ws://127.0.0.1:9001/".to_owned());
    let relay = Relay::new(Destination::parse(&upstream)?);
    let server = Server::new()
        .with_fallback(relay)
        .listen(address.parse()?)?;
    println!("ws://{} to {upstream}", server.local_addr());
    Ok(server.run()?)
}
