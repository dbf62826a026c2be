//! Looks up the session of each client before it accepts or refuses the WebSocket: `cargo run -p
//! linerate --example async_decision -- 127.0.0.1:9001`, then `linerate connect --cookie
//! session=7f3a ws://127.0.0.1:9001/`.

use std::{collections::HashMap, sync::Arc};

use linerate::{Incoming, Result, Server, handshake::Refusal};
use tokio::{net::TcpListener, sync::RwLock};

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:9001".into());
    let listener = TcpListener::bind(address).await?;
    println!("ws://{}/", listener.local_addr()?);
    let database = Database::default();
    database.0.write().await.insert("7f3a".into(), "ann".into());
    let handler = move |incoming| greet(incoming, database.clone());
    let stop = async { _ = tokio::signal::ctrl_c().await };
    Server::new().serve_incoming(listener, handler, stop).await
}

async fn greet(incoming: Incoming, database: Database) -> Result<()> {
    let session = incoming.request().cookie("session").unwrap_or_default();
    let Some(user) = database.user_of(session).await else {
        return incoming.refuse(Refusal::new(401, "log in first")?).await;
    };
    let mut ws = incoming.accept().await?;
    ws.send(format!("hello {user}")).await?;
    while let Some(message) = ws.recv().await? {
        ws.send(message).await?;
    }
    Ok(())
}

/// The names of users by session. In your application, this is the connection pool of a database.
#[derive(Clone, Default)]
struct Database(Arc<RwLock<HashMap<String, String>>>);

impl Database {
    /// Stands for a query, with sqlx for example:
    ///
    /// ```text
    /// sqlx::query_scalar("SELECT name FROM sessions JOIN users USING (user_id) WHERE session = $1")
    ///     .bind(session).fetch_optional(&self.pool).await
    /// ```
    async fn user_of(&self, session: &str) -> Option<String> {
        self.0.read().await.get(session).cloned()
    }
}
