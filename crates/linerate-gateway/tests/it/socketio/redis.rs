//! Events and requests that arrive in Redis, in the form of Socket.IO's emitter and adapters. That
//! these write this form is tested with the published packages, in `sdk-tests`.

use std::time::Duration;

use linerate::Client;
use linerate_testkit::server::RedisServer;
use redis::aio::MultiplexedConnection;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    ON,
    client::{Arrived, SocketIo},
};
use crate::{
    http::request,
    support::{Gateway, config, in_time, message},
};

/// A gateway that reads from a server, and a connection of an application to it.
struct Fed {
    server: RedisServer,
    gateway: Gateway,
    application: MultiplexedConnection,
}

impl Fed {
    async fn start() -> Option<Self> {
        Self::start_with("").await
    }

    async fn start_with(toml: &str) -> Option<Self> {
        let server = RedisServer::start()?;
        let gateway = Gateway::open(&fed(&server, toml)).await;
        let application = application(&server).await;
        let fed = Self {
            server,
            gateway,
            application,
        };
        fed.wait_for("up", "channels", "1.0").await;
        Some(fed)
    }

    /// Publishes as `@socket.io/redis-emitter` does.
    async fn emit(&self, namespace: &str, data: Value, options: Value) {
        let packet = json!({"type": 2, "data": data, "nsp": namespace});
        let message = rmp_serde::to_vec(&json!(["emitter", packet, options])).unwrap();
        let mut channel = format!("socket.io#{namespace}#");
        if let Some([room]) = options["rooms"].as_array().map(Vec::as_slice) {
            channel += &format!("{}#", room.as_str().unwrap());
        }
        self.publish(&channel, &message).await;
    }

    /// Sends a request as `@socket.io/redis-emitter` does.
    async fn request(&self, namespace: &str, request: Value) {
        let channel = format!("socket.io-request#{namespace}#");
        self.publish(&channel, request.to_string().as_bytes()).await;
    }

    async fn publish(&self, channel: &str, message: &[u8]) {
        self.query::<()>(redis::cmd("PUBLISH").arg(channel).arg(message))
            .await;
    }

    async fn query<T: redis::FromRedisValue>(&self, command: &redis::Cmd) -> T {
        let mut application = self.application.clone();
        in_time(command.query_async(&mut application))
            .await
            .unwrap()
    }

    /// Waits until a metric of a feed has this value.
    async fn wait_for(&self, name: &str, feed: &str, value: &str) {
        let line = format!("linerate_socketio_feed_{name}{{feed=\"{feed}\"}} {value}");
        in_time(async {
            while !metrics(&self.gateway).await.lines().any(|it| it == line) {
                sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
    }
}

fn fed(server: &RedisServer, toml: &str) -> String {
    format!("{ON}[socketio.redis]\nurl = \"{}\"\n{toml}", server.url())
}

async fn application(server: &RedisServer) -> MultiplexedConnection {
    let client = redis::Client::open(server.url()).unwrap();
    client.get_multiplexed_async_connection().await.unwrap()
}

async fn metrics(gateway: &Gateway) -> String {
    let answer = request(gateway.address, "GET /metrics", "", b"").await;
    answer.text().await
}

fn to(rooms: &[&str]) -> Value {
    json!({"rooms": rooms, "flags": {}, "except": []})
}

/// Connects to the main namespace and to `/chat`.
async fn in_both(gateway: &Gateway) -> (SocketIo, String) {
    let (mut client, sid) = SocketIo::connect(gateway).await;
    client.send("40/chat,").await;
    client.connected("40/chat,").await;
    (client, sid)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_reaches_the_clients_in_its_rooms_once() {
    let Some(fed) = Fed::start().await else {
        return;
    };
    let (mut one, sid_of_one) = SocketIo::connect(&fed.gateway).await;
    let (mut other, sid_of_other) = in_both(&fed.gateway).await;
    fed.emit("/", json!(["a", 1]), to(&["all"])).await;
    fed.emit("/", json!(["b"]), to(&[])).await;
    fed.emit("/", json!(["c"]), to(&[&sid_of_other])).await;
    fed.emit("/", json!(["d"]), to(&["all", &sid_of_one, "elsewhere"]))
        .await;
    let except = |rooms: &[&str], except: &str| json!({"rooms": rooms, "except": [except]});
    fed.emit("/", json!(["e"]), except(&[], &sid_of_one)).await;
    fed.emit("/", json!(["f"]), except(&["all"], &sid_of_other))
        .await;
    fed.emit("/chat", json!(["g"]), to(&["all"])).await;
    fed.emit("/chat", json!(["h", {"k": [1.5]}]), to(&[])).await;
    fed.emit("/", json!(["i"]), to(&["elsewhere"])).await;
    fed.emit("/", json!(["j"]), to(&["/chat:all"])).await;
    fed.emit("/", json!(["end"]), to(&[])).await;
    one.expect(&[
        r#"42["a",1]"#,
        r#"42["b"]"#,
        r#"42["d"]"#,
        r#"42["f"]"#,
        r#"42["end"]"#,
    ])
    .await;
    other
        .expect(&[
            r#"42["a",1]"#,
            r#"42["b"]"#,
            r#"42["c"]"#,
            r#"42["d"]"#,
            r#"42["e"]"#,
            r#"42/chat,["g"]"#,
            r#"42/chat,["h",{"k":[1.5]}]"#,
            r#"42["end"]"#,
        ])
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_for_different_rooms_stay_in_order() {
    let Some(fed) = Fed::start().await else {
        return;
    };
    let (mut client, sid) = SocketIo::connect(&fed.gateway).await;
    let mut pipeline = redis::pipe();
    let rooms: [&[&str]; 4] = [&[], &["all"], &[&sid], &["all", &sid]];
    for number in 0..400 {
        let rooms = rooms[number % 4];
        let packet = json!({"type": 2, "data": ["n", number], "nsp": "/"});
        let message = rmp_serde::to_vec(&json!(["emitter", packet, to(rooms)])).unwrap();
        let channel = match rooms {
            [room] => format!("socket.io#/#{room}#"),
            _ => "socket.io#/#".to_owned(),
        };
        pipeline.cmd("PUBLISH").arg(channel).arg(message).ignore();
    }
    let mut application = fed.application.clone();
    let published = pipeline.query_async::<()>(&mut application);
    in_time(published).await.unwrap();
    for number in 0..400 {
        assert_eq!(client.text().await, format!(r#"42["n",{number}]"#));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_are_attachments_of_each_event_that_a_client_receives() {
    let Some(fed) = Fed::start().await else {
        return;
    };
    let (mut one, sid) = SocketIo::connect(&fed.gateway).await;
    let (mut other, _) = SocketIo::connect(&fed.gateway).await;
    // ["emitter", {type: 2, data: ["bytes", Buffer [1, 2]], nsp: "/"}, {except: [sid]}]
    let mut packet = b"\x93\xa7emitter\x83\xa4type\x02\xa4data\x92\xa5bytes\xc4\x02\x01\x02\
        \xa3nsp\xa1/\x81\xa6except\x91\xd9"
        .to_vec();
    packet.push(u8::try_from(sid.len()).unwrap());
    packet.extend_from_slice(sid.as_bytes());
    fed.publish("socket.io#/#", &packet).await;
    fed.emit("/", json!(["end"]), to(&[])).await;
    let text = r#"451-["bytes",{"_placeholder":true,"num":0}]"#;
    other.expect(&[text]).await;
    assert_eq!(other.next().await, Arrived::Binary(vec![1, 2]));
    other.expect(&[r#"42["end"]"#]).await;
    one.expect(&[r#"42["end"]"#]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn subscribers_of_other_protocols_receive_the_events_of_a_room() {
    let Some(fed) = Fed::start().await else {
        return;
    };
    let mut raw = fed.gateway.raw(&Client::new(), "channel=news").await;
    fed.emit("/", json!(["created", 7]), to(&["news"])).await;
    let text = message(&mut raw).await;
    let expected = "7";
    assert_eq!(text.as_text(), Some(expected));
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_join_and_leave_rooms_in_the_order_of_events() {
    let Some(fed) = Fed::start().await else {
        return;
    };
    let (mut one, sid) = SocketIo::connect(&fed.gateway).await;
    let (mut other, _) = SocketIo::connect(&fed.gateway).await;
    let whom = |rooms: &[&str], except: &[&str]| json!({"rooms": rooms, "except": except});
    let own = whom(&[&sid], &[]);
    fed.request("/", json!({"type": 2, "opts": own, "rooms": ["a", "b"]}))
        .await;
    fed.emit("/", json!(["1"]), to(&["a"])).await;
    let others = whom(&[], &[&sid]);
    fed.request("/", json!({"type": 2, "opts": others, "rooms": ["c"]}))
        .await;
    fed.emit("/", json!(["2"]), to(&["b", "c"])).await;
    fed.request(
        "/",
        json!({"type": 3, "opts": whom(&["a"], &[]), "rooms": ["b"]}),
    )
    .await;
    fed.emit("/", json!(["3"]), to(&["b", "c"])).await;
    fed.request(
        "/",
        json!({"type": 3, "opts": whom(&[], &[]), "rooms": ["c"]}),
    )
    .await;
    fed.emit("/", json!(["4"]), to(&["b", "c"])).await;
    fed.emit("/", json!(["end"]), to(&[])).await;
    one.expect(&[r#"42["1"]"#, r#"42["2"]"#, r#"42["end"]"#])
        .await;
    other
        .expect(&[r#"42["2"]"#, r#"42["3"]"#, r#"42["end"]"#])
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_are_disconnected_from_a_namespace_or_completely() {
    let Some(fed) = Fed::start().await else {
        return;
    };
    let (mut one, sid) = in_both(&fed.gateway).await;
    let (mut other, _) = in_both(&fed.gateway).await;
    let mut raw = fed.gateway.raw(&Client::new(), "channel=all").await;
    let own = json!({"rooms": [&sid], "except": []});
    fed.request("/chat", json!({"type": 4, "opts": own, "close": false}))
        .await;
    one.expect(&["41/chat,"]).await;
    fed.emit("/chat", json!(["a"]), to(&["all"])).await;
    fed.emit("/", json!(["b"]), to(&["all"])).await;
    one.expect(&[r#"42["b"]"#]).await;
    other.expect(&[r#"42/chat,["a"]"#, r#"42["b"]"#]).await;
    let all = json!({"rooms": ["all"], "except": []});
    fed.request("/", json!({"type": 4, "opts": all, "close": true}))
        .await;
    one.expect(&["41"]).await;
    assert_eq!(one.next().await, Arrived::Closed(3503));
    other.expect(&["41", "41/chat,"]).await;
    assert_eq!(other.next().await, Arrived::Closed(3503));
    fed.gateway.publish("all", "c").await;
    message(&mut raw).await;
    assert_eq!(message(&mut raw).await.as_text(), Some("c"));
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_that_cannot_be_used_are_counted_and_left_out() {
    let Some(fed) = Fed::start_with("packet_bytes_max = 1024\nrooms_max = 2\n").await else {
        return;
    };
    let (mut client, _) = SocketIo::connect(&fed.gateway).await;
    fed.publish("socket.io#/#", b"hello").await;
    fed.publish("socket.io#/#", &[0xdd; 100]).await;
    fed.publish("socket.io#/#", &[0; 2_000]).await;
    fed.publish("socket.io-request#/#", b"{").await;
    fed.publish("socket.io#/#unused#", b"not looked at").await;
    fed.publish("socket.io#/unknown#", b"not looked at").await;
    fed.emit("/", json!(["a"]), to(&["x", "y", "z"])).await;
    fed.request("/", json!({"type": 6, "data": ["hello"]}))
        .await;
    fed.emit("/", json!(["end"]), to(&[])).await;
    client.expect(&[r#"42["end"]"#]).await;
    fed.wait_for("refused_total", "channels", "5.0").await;
    fed.wait_for("ignored_total", "channels", "1.0").await;
    fed.wait_for("events_total", "channels", "1.0").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_of_socket_io_do_not_wait_for_answers_of_nodes() {
    let Some(fed) = Fed::start().await else {
        return;
    };
    for channel in ["socket.io-request#/#", "socket.io#/#"] {
        let count = redis::cmd("PUBSUB").arg("NUMSUB").arg(channel).clone();
        let counts: (String, u64) = fed.query(&count).await;
        assert_eq!(counts, (channel.to_owned(), 0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_are_told_that_they_may_have_missed_events() {
    let Some(fed) = Fed::start().await else {
        return;
    };
    let (mut client, _) = in_both(&fed.gateway).await;
    fed.query::<i64>(redis::cmd("CLIENT").arg("KILL").arg("TYPE").arg("pubsub"))
        .await;
    let gap = |prefix: &str, channel: &str| {
        format!(
            r#"{prefix}["linerate:gap",{{"channel":"{channel}","missed":null,"cause":"link_lost"}}]"#
        )
    };
    let mut gaps = [client.text().await, client.text().await];
    gaps.sort();
    assert_eq!(gaps, [gap("42/chat,", "/chat:"), gap("42", "/:")]);
    fed.emit("/", json!(["a"]), to(&["all"])).await;
    client.expect(&[r#"42["a"]"#]).await;
    fed.wait_for("gaps_total", "channels", "1.0").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_of_a_stream_are_read_from_its_end_and_after_an_interruption() {
    let toml = "streams = [\"socket.io\"]\n";
    let Some(server) = RedisServer::start() else {
        return;
    };
    let mut direct = application(&server).await;
    let mut add = async |kind: &str, data: Value| {
        let mut command = redis::cmd("XADD");
        command.arg("socket.io").arg("MAXLEN").arg("~").arg(10_000);
        command.arg("*").arg("uid").arg("u").arg("nsp").arg("/");
        command.arg("type").arg(kind);
        command.arg("data").arg(data.to_string());
        let id: String = in_time(command.query_async(&mut direct)).await.unwrap();
        id
    };
    let event = |name: &str| {
        let packet = json!({"type": 2, "data": [name], "nsp": "/"});
        json!({"packet": packet, "opts": to(&["all"])})
    };
    add("3", event("before")).await;
    let gateway = Gateway::open(&fed(&server, toml)).await;
    let (mut client, sid) = SocketIo::connect(&gateway).await;
    let fed = Fed {
        application: application(&server).await,
        server,
        gateway,
    };
    fed.wait_for("up", "stream socket.io", "1.0").await;
    add("3", event("a")).await;
    let own = json!({"rooms": [sid], "except": []});
    add("4", json!({"opts": own, "rooms": ["b"]})).await;
    let packet = json!({"type": 2, "data": ["b"], "nsp": "/"});
    add("3", json!({"packet": packet, "opts": to(&["b"])})).await;
    client.expect(&[r#"42["a"]"#, r#"42["b"]"#]).await;
    // What was added while the connection was lost is read afterwards.
    let kill = |id: &str| redis::cmd("CLIENT").arg("KILL").arg("ID").arg(id).clone();
    let clients: String = fed.query(redis::cmd("CLIENT").arg("LIST")).await;
    let reader = clients.lines().find(|line| line.contains("cmd=xread"));
    let id = reader.unwrap().split(' ').next().unwrap();
    fed.query::<i64>(&kill(id.strip_prefix("id=").unwrap()))
        .await;
    for name in ["c", "d"] {
        add("3", event(name)).await;
    }
    client.expect(&[r#"42["c"]"#, r#"42["d"]"#]).await;
    // A new stream of the same name may have lost entries.
    let clients: String = fed.query(redis::cmd("CLIENT").arg("LIST")).await;
    let reader = clients.lines().find(|line| line.contains("cmd=xread"));
    let id = reader.unwrap().split(' ').next().unwrap();
    fed.query::<i64>(redis::cmd("DEL").arg("socket.io")).await;
    add("3", event("e")).await;
    client.expect(&[r#"42["e"]"#]).await;
    fed.query::<i64>(redis::cmd("DEL").arg("socket.io")).await;
    fed.query::<i64>(&kill(id.strip_prefix("id=").unwrap()))
        .await;
    let gap = client.text().await;
    assert!(
        gap.starts_with(r#"42["linerate:gap",{"channel":"/:""#),
        "{gap}"
    );
    add("3", event("f")).await;
    client.expect(&[r#"42["f"]"#]).await;
    drop(fed.server);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_begins_and_ends_reading() {
    let Some(server) = RedisServer::start() else {
        return;
    };
    let gateway = Gateway::open(ON).await;
    assert!(!metrics(&gateway).await.contains("socketio_feed"));
    gateway.reload(config(&fed(&server, "")));
    let fed = Fed {
        application: application(&server).await,
        server,
        gateway,
    };
    fed.wait_for("up", "channels", "1.0").await;
    let (mut client, _) = SocketIo::connect(&fed.gateway).await;
    fed.emit("/", json!(["a"]), to(&[])).await;
    client.expect(&[r#"42["a"]"#]).await;
    fed.gateway.reload(config(ON));
    let patterns = redis::cmd("PUBSUB").arg("NUMPAT").clone();
    in_time(async {
        while fed.query::<u64>(&patterns).await > 0 {
            sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    assert!(!metrics(&fed.gateway).await.contains("socketio_feed"));
}
