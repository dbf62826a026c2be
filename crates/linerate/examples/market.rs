//! Market data: every client gets all prices; one that reads slowly loses the oldest and is told
//! how many. Run `cargo run -p linerate --example market -- 127.0.0.1:9001`, then
//! `linerate connect ws://127.0.0.1:9001/`.

use std::time::{Duration, Instant};

use linerate::room::{Room, RoomOptions, SlowMember};
use linerate::{Message, Result, WebSocket};

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let mut options = RoomOptions::default().with_notice(missed);
    options.slow = SlowMember::DropOldest;
    options.backlog_bytes_max = 16 << 10;
    let prices = Room::with_options(options);
    tokio::spawn(publish(prices.clone()));
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:9001".into());
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("ws://{}/", listener.local_addr()?);
    let stop = async { _ = tokio::signal::ctrl_c().await };
    linerate::serve(listener, move |ws, _| follow(ws, prices.clone()), stop).await
}

/// Makes the message that a client gets in place of prices that it missed.
fn missed(count: u64) -> Message {
    format!(r#"{{"missed":{count}}}"#).into()
}

/// Publishes a thousand prices a second, as if they came from an exchange.
async fn publish(prices: Room) {
    let start = Instant::now();
    let mut interval = tokio::time::interval(Duration::from_millis(1));
    for number in 0_u64.. {
        interval.tick().await;
        let (price, time_ms) = (100 + number % 7, start.elapsed().as_millis());
        prices.send(format!(
            r#"{{"symbol":"SPAM","price":{price},"time_ms":{time_ms}}}"#
        ));
    }
}

async fn follow(mut ws: WebSocket, prices: Room) -> Result<()> {
    let _member = prices.join(&ws)?;
    while ws.recv().await?.is_some() {}
    Ok(())
}
