//! A chat with rooms and authentication: the path of the URL names the room, and a token in the
//! request tells who is connecting.
//!
//! ```text
//! cargo run -p linerate --example chat
//! linerate connect -H 'Authorization: Bearer ann-secret' ws://127.0.0.1:9001/lobby
//! linerate connect -H 'Authorization: Bearer bob-secret' ws://127.0.0.1:9001/lobby
//! ```

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use linerate::{CloseCode, Incoming, Message, Request, Result, Server, handshake::Refusal};
use tokio::{
    net::TcpListener,
    select,
    sync::broadcast::{self, error::RecvError},
};

/// How many lines a client may be behind before it misses some.
const LINES_MAX: usize = 256;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:9001").await?;
    let stop = async { _ = tokio::signal::ctrl_c().await };
    let rooms = Rooms::default();
    Server::new()
        .serve_incoming(
            listener,
            move |incoming| chat(incoming, rooms.clone()),
            stop,
        )
        .await
}

/// Returns the user whose token the request carries. A browser cannot set this header; for pages,
/// read a cookie instead.
fn user(request: &Request) -> Option<&'static str> {
    match request.bearer_token()? {
        "ann-secret" => Some("ann"),
        "bob-secret" => Some("bob"),
        _ => None,
    }
}

async fn chat(incoming: Incoming, rooms: Rooms) -> Result<()> {
    let Some(name) = user(incoming.request()) else {
        return incoming.refuse(Refusal::new(401, "unknown token")?).await;
    };
    let (room, mut lines) = rooms.enter(incoming.request().path());
    let mut ws = incoming.accept().await?;
    loop {
        // Both futures may be dropped at any point without losing a message.
        select! {
            message = ws.recv() => match message? {
                Some(Message::Text(text)) => _ = room.send(format!("{name}: {text}").into()),
                Some(Message::Binary(_)) => {
                    ws.close(CloseCode::UNSUPPORTED_DATA, "send text").await?;
                }
                None => return Ok(()),
            },
            line = lines.recv() => match line {
                Ok(line) => ws.send(&*line).await?,
                Err(RecvError::Lagged(missed)) => ws.send(format!("({missed} missed)")).await?,
                Err(RecvError::Closed) => return Ok(()),
            },
        }
    }
}

type Room = broadcast::Sender<Arc<str>>;
type Lines = broadcast::Receiver<Arc<str>>;

#[derive(Clone, Default)]
struct Rooms(Arc<Mutex<HashMap<String, Room>>>);

impl Rooms {
    /// Returns a room, which is created for its first client, and the lines that arrive in it.
    fn enter(&self, name: &str) -> (Room, Lines) {
        let mut rooms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rooms.retain(|_, room| room.receiver_count() > 0);
        let room = rooms.entry(name.to_owned());
        let room = room.or_insert_with(|| broadcast::channel(LINES_MAX).0);
        (room.clone(), room.subscribe())
    }
}
