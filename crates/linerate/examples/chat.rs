//! A chat with rooms and authentication: the path of the URL names the room, and a token in the
//! request tells who is connecting. A browser cannot set this header; for pages, read a cookie.
//!
//! ```text
//! cargo run -p linerate --example chat
//! linerate connect -H 'Authorization: Bearer ann-secret' ws://127.0.0.1:9001/lobby
//! linerate connect -H 'Authorization: Bearer bob-secret' ws://127.0.0.1:9001/lobby
//! ```

use linerate::{Request, Result, Server, WebSocket, handshake::Refusal, room::Rooms};
use tokio::{net::TcpListener, signal::ctrl_c};

const USERS: [(&[u8], &str); 2] = [(b"Bearer ann-secret", "ann"), (b"Bearer bob-secret", "bob")];

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let rooms = Rooms::new();
    let handler = move |ws, request| chat(ws, request, rooms.clone());
    let server = Server::new().with_decision(|upgrade| match user(upgrade.request()) {
        Some(_) => Ok(upgrade.accept()),
        None => Err(Refusal::new(401, "unknown token\n").expect("401 is a refusal")),
    });
    let listener = TcpListener::bind("127.0.0.1:9001").await?;
    let stop = async { _ = ctrl_c().await };
    server.serve(listener, handler, stop).await
}

fn user(request: &Request) -> Option<&'static str> {
    let sent = request.header("Authorization")?;
    Some(USERS.iter().find(|(token, _)| *token == sent)?.1)
}

async fn chat(mut ws: WebSocket, request: Request, rooms: Rooms) -> Result<()> {
    let name = user(&request).unwrap_or("anonymous");
    let member = rooms.join(request.path(), &ws)?;
    while let Some(message) = ws.recv().await? {
        let text = message.as_text().unwrap_or("(not text)");
        member.room().send(format!("{name}: {text}"));
    }
    Ok(())
}
