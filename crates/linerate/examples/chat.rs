//! A chat with rooms and authentication: the path of the URL names the room, and a token in the
//! request tells who is connecting. A browser cannot set this header; for pages, read a cookie.
//!
//! ```text
//! cargo run -p linerate --example chat -- 127.0.0.1:9001
//! linerate connect -H 'Authorization: Bearer ann-secret' ws://127.0.0.1:9001/lobby
//! linerate connect -H 'Authorization: Bearer bob-secret' ws://127.0.0.1:9001/lobby
//! ```

use linerate::{Incoming, Message, Result, Server, handshake::Refusal, room::Rooms};

const USERS: [(&str, &str); 2] = [("ann-secret", "ann"), ("bob-secret", "bob")];

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:9001".into());
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("ws://{}/lobby", listener.local_addr()?);
    let rooms = Rooms::new();
    let handler = move |incoming| chat(incoming, rooms.clone());
    let stop = async { _ = tokio::signal::ctrl_c().await };
    Server::new().serve_incoming(listener, handler, stop).await
}

async fn chat(incoming: Incoming, rooms: Rooms) -> Result<()> {
    let request = incoming.request().clone();
    let token = request.bearer_token().unwrap_or_default();
    let Some((_, name)) = USERS.iter().find(|(secret, _)| token == *secret) else {
        return incoming.refuse(Refusal::new(401, "unknown token")?).await;
    };
    let mut ws = incoming.accept().await?;
    let member = rooms.join(request.path(), &ws)?;
    while let Some(Message::Text(text)) = ws.recv().await? {
        member.room().send(format!("{name}: {text}"));
    }
    Ok(())
}
