//! A chat with rooms and authentication: the path of the URL names the room, and a token in the
//! request tells who is connecting. A browser cannot set this header; for pages, read a cookie.
//!
//! ```text
//! cargo run -p linerate --example chat
//! linerate connect -H 'Authorization: Bearer ann-secret' ws://127.0.0.1:9001/lobby
//! linerate connect -H 'Authorization: Bearer bob-secret' ws://127.0.0.1:9001/lobby
//! ```

use linerate::{Incoming, Result, Server, handshake::Refusal, room::Rooms};

const USERS: [(&str, &str); 2] = [("ann-secret", "ann"), ("bob-secret", "bob")];

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let rooms = Rooms::new();
    let handler = move |incoming| chat(incoming, rooms.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:9001").await?;
    let stop = async { _ = tokio::signal::ctrl_c().await };
    Server::new().serve_incoming(listener, handler, stop).await
}

async fn chat(incoming: Incoming, rooms: Rooms) -> Result<()> {
    let (request, token) = (
        incoming.request().clone(),
        incoming.request().bearer_token(),
    );
    let Some((_, name)) = USERS.iter().find(|(secret, _)| token == Some(*secret)) else {
        return incoming.refuse(Refusal::new(401, "unknown token")?).await;
    };
    let mut ws = incoming.accept().await?;
    let member = rooms.join(request.path(), &ws)?;
    while let Some(message) = ws.recv().await? {
        let text = message.as_text().unwrap_or("(not text)");
        member.room().send(format!("{name}: {text}"));
    }
    Ok(())
}
