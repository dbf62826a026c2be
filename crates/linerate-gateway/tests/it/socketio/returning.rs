//! A Socket.IO client that loses its connection and returns to its session.

use serde_json::{Value, json};

use super::client::{Arrived, SocketIo};
use crate::support::{Gateway, in_time};

/// A server whose clients can return to their sessions in both namespaces.
pub(super) const RECOVERY: &str = "
[protocols]
socketio = true
[socketio]
namespaces = [\"/\", \"/chat\"]
rooms = [\"all\", \"/chat:all\"]
recovery_s = 60
[channel]
durable = true
history_size = 10
recover = true
";

/// What a client knows of its session in a namespace.
#[derive(Clone, Debug)]
pub(super) struct Session {
    /// The start of the packets that connect, such as `40` or `40/chat,`.
    start: &'static str,
    pub(super) sid: String,
    pub(super) pid: String,
    /// The offset of the last event.
    pub(super) offset: Option<String>,
}

impl Session {
    /// Connects a client to a namespace.
    pub(super) async fn begin(client: &mut SocketIo, start: &'static str, auth: Value) -> Self {
        client.send(&format!("{start}{auth}")).await;
        Self::read(client, start).await
    }

    /// Reads the packet that connects.
    async fn read(client: &mut SocketIo, start: &'static str) -> Self {
        let packet = client.text().await;
        let json = packet.strip_prefix(start);
        let json = json.unwrap_or_else(|| panic!("{packet}"));
        let connected: Value = serde_json::from_str(json).unwrap();
        let text = |name: &str| connected[name].as_str().unwrap().to_owned();
        Self {
            start,
            sid: text("sid"),
            pid: text("pid"),
            offset: None,
        }
    }

    /// Returns what the client presents to return.
    pub(super) fn auth(&self) -> Value {
        match &self.offset {
            Some(offset) => json!({"pid": self.pid, "offset": offset}),
            None => json!({"pid": self.pid}),
        }
    }

    /// Reads the next event, and returns its arguments without the offset.
    pub(super) async fn event(&mut self, client: &mut SocketIo) -> Value {
        let packet = client.text().await;
        let start = self.start.replacen("40", "42", 1);
        let json = packet.strip_prefix(&start);
        let json = json.unwrap_or_else(|| panic!("{packet}"));
        let mut event: Vec<Value> = serde_json::from_str(json).unwrap();
        let offset = event.pop().unwrap();
        self.offset = Some(offset.as_str().unwrap().to_owned());
        match event.len() {
            2 => event.pop().unwrap(),
            _ => Value::Array(event),
        }
    }

    /// Asserts that events of the name `message` with these arguments arrive next.
    pub(super) async fn expect(&mut self, client: &mut SocketIo, args: &[i32]) {
        for arg in args {
            assert_eq!(self.event(client).await, json!(arg));
        }
    }

    /// Returns to the session on a new connection. Repeated until the loss of the old one has been
    /// noticed.
    pub(super) async fn resume(&mut self, gateway: &Gateway) -> SocketIo {
        in_time(async {
            loop {
                let mut client = SocketIo::open(gateway).await;
                if self.is_resumed_on(&mut client, self.auth()).await {
                    return client;
                }
            }
        })
        .await
    }

    /// Returns whether a client gets the session back that presents this.
    pub(super) async fn is_resumed_on(&self, client: &mut SocketIo, auth: Value) -> bool {
        let found = Self::begin(client, self.start, auth).await;
        let is_resumed = found.pid == self.pid;
        assert_eq!(is_resumed, found.sid == self.sid);
        is_resumed
    }

    /// Asserts that a client gets a new session that presents what the client of this one would.
    pub(super) async fn is_lost(&self, gateway: &Gateway) {
        losses_are_noticed(gateway).await;
        let mut client = SocketIo::open(gateway).await;
        assert!(!self.is_resumed_on(&mut client, self.auth()).await);
        client.expect_nothing().await;
    }
}

/// Has the application make a client join a channel, and waits until the client is in it.
pub(super) async fn join(gateway: &Gateway, client: &mut SocketIo, sid: &str, channel: &str) {
    let change = json!({"client": sid, "user": "", "channel": channel});
    gateway.api("subscribe", &change).await;
    // A command after the notice shows that it has been handled. What takes time is completed in
    // the order in which it has begun.
    client.expect_nothing().await;
    client.send("40/chat,").await;
    client.connected("40/chat,").await;
    client.send("41/chat,").await;
}

/// Connects a client to the main namespace.
pub(super) async fn connect(gateway: &Gateway) -> (SocketIo, Session) {
    let mut client = SocketIo::open(gateway).await;
    let session = Session::begin(&mut client, "40", json!({})).await;
    (client, session)
}

/// Waits until the state of all connections that were lost so far is stored: that of a later one
/// is.
pub(super) async fn losses_are_noticed(gateway: &Gateway) {
    let (client, mut session) = connect(gateway).await;
    drop(client);
    session.resume(gateway).await;
}

/// Closes the connection of a client without leaving its namespaces.
pub(super) async fn close(mut client: SocketIo) {
    client.send("1").await;
    assert_eq!(client.next().await, Arrived::Closed(1000));
}
