//! Looks up the session of each client before it accepts or refuses the WebSocket: `cargo run -p
//! linerate --example async_decision`, then `linerate connect --cookie session=7f3a
//! ws://127.0.0.1:9001/`.

use std::{collections::HashMap, sync::Arc};

use linerate::{Incoming, Result, Server, handshake::Refusal};
use tokio::{net::TcpListener, sync::RwLock};

/// The names of users by session; in your application, a database.
type Sessions = Arc<RwLock<HashMap<String, String>>>;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let sessions = Sessions::default();
    sessions.write().await.insert("7f3a".into(), "ann".into());
    let listener = TcpListener::bind("127.0.0.1:9001").await?;
    let handler = move |incoming| greet(incoming, sessions.clone());
    let stop = async { _ = tokio::signal::ctrl_c().await };
    Server::new().serve_incoming(listener, handler, stop).await
}

async fn greet(incoming: Incoming, sessions: Sessions) -> Result<()> {
    let session = incoming.request().cookie("session").unwrap_or_default();
    let Some(user) = sessions.read().await.get(session).cloned() else {
        return incoming.refuse(Refusal::new(401, "log in first")?).await;
    };
    let mut ws = incoming.accept().await?;
    ws.send(format!("hello {user}")).await?;
    while let Some(message) = ws.recv().await? {
        ws.send(message).await?;
    }
    Ok(())
}
