//! Two servers on one broker act as one service: publications to either arrive at both.

use std::{
    process::Output,
    sync::{Arc, Mutex},
    time::Duration,
};

use linerate::WebSocket;
use linerate_testkit::server::{RedisServer, ServerProcess, free_port};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::{sleep, timeout},
};

use crate::support::{PATIENCE, Server, linerate, run_with_input, until};

/// Two servers on one broker, each with a subscriber of `demo:news`.
struct Pair {
    servers: [Server; 2],
    readers: [WebSocket; 2],
}

impl Pair {
    async fn start(broker: &str) -> Self {
        let servers = [0, 1].map(|_| Server::start_with(&["--broker", broker]));
        let path = "/raw?channel=demo:news";
        let readers = [
            servers[0].connect(path).await,
            servers[1].connect(path).await,
        ];
        Self { servers, readers }
    }

    /// Waits until both readers have received the publication.
    async fn arrives(&mut self, payload: &str) {
        for reader in &mut self.readers {
            let message = timeout(PATIENCE, reader.recv())
                .await
                .unwrap()
                .unwrap()
                .unwrap();
            assert_eq!(message.as_text(), Some(payload));
        }
    }

    /// Waits until each server knows the other.
    async fn meet(&self) {
        let meeting = async {
            for server in &self.servers {
                while server.api("info", json!({})).await["nodes"]
                    .as_array()
                    .unwrap()
                    .len()
                    < 2
                {
                    sleep(Duration::from_millis(20)).await;
                }
            }
        };
        timeout(PATIENCE, meeting).await.unwrap();
    }

    /// Publishes through each server and directly to the broker.
    async fn publish_everywhere(&mut self, broker: &str) {
        for (index, payload) in ["{\"n\" : 1}", "hello"].into_iter().enumerate() {
            let server = format!("http://{}", self.servers[index].address);
            let output = publish(&["demo:news", payload, "--server", &server]).await;
            assert!(output.status.success(), "{output:?}");
            self.arrives(payload).await;
        }
        let output = publish(&["demo:news", "straight", "--broker", broker, "--json"]).await;
        assert!(output.status.success(), "{output:?}");
        let said: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(said["published"], 1);
        self.arrives("straight").await;
    }

    /// Checks that each server knows the clients of both servers.
    async fn know_each_others_clients(&self) {
        self.meet().await;
        let channels = self.servers[0]
            .api("channels", json!({"pattern": "demo:*"}))
            .await;
        assert_eq!(channels["channels"]["demo:news"]["num_clients"], 2);
        // The nodes store at the broker who is present as soon as they are registered there.
        let stored = async {
            let ask = json!({"channel": "demo:news"});
            while self.servers[1].api("presence_stats", ask.clone()).await["num_clients"] != 2 {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, stored).await.unwrap();
        let presence = self.servers[1]
            .api("presence", json!({"channel": "demo:news"}))
            .await;
        assert_eq!(presence["presence"].as_object().unwrap().len(), 2);
    }
}

/// Starts NATS with JetStream; `None` if it is not installed.
pub(crate) fn start_nats() -> Option<ServerProcess> {
    let port = free_port();
    ServerProcess::start("nats-server", port, |folder| {
        let store = format!("--store_dir={}", folder.display());
        let port = format!("-p={port}");
        vec!["-a=127.0.0.1".to_owned(), port, "-js".to_owned(), store]
    })
}

async fn publish(arguments: &[&str]) -> Output {
    publish_input(arguments, "").await
}

async fn publish_input(arguments: &[&str], input: &str) -> Output {
    let mut command = linerate(&["publish"]);
    command.args(arguments).env_remove("LINERATE_AUTH_API_KEY");
    let input = input.as_bytes().to_vec();
    let ended = tokio::task::spawn_blocking(move || run_with_input(&mut command, &input));
    timeout(PATIENCE, ended).await.unwrap().unwrap()
}

#[tokio::test]
async fn two_servers_on_one_redis_are_one_service() {
    let Some(redis) = RedisServer::start() else {
        return;
    };
    let mut pair = Pair::start(&redis.url()).await;
    pair.publish_everywhere(&redis.url()).await;
    // This publisher knows nothing of linerate; its payload arrives unchanged.
    assert_eq!(redis.cli(&["PUBLISH", "demo:news", "as it is"]).trim(), "2");
    pair.arrives("as it is").await;
    pair.know_each_others_clients().await;
}

#[tokio::test]
async fn two_servers_on_one_nats_are_one_service() {
    let Some(nats) = start_nats() else {
        return;
    };
    let url = format!("nats://{}", nats.address());
    let mut pair = Pair::start(&url).await;
    pair.publish_everywhere(&url).await;
    pair.know_each_others_clients().await;
}

#[tokio::test]
async fn a_broker_that_was_away_is_told_to_clients_and_shown() {
    let Some(mut redis) = RedisServer::start() else {
        return;
    };
    let server = Server::start_with(&["--broker", &redis.url()]);
    let mut reader = server.connect("/raw?channel=demo:news&gaps=true").await;
    redis.cli(&["PUBLISH", "demo:news", "before"]);
    assert_eq!(next(&mut reader).await, "before");
    redis.kill();
    redis.restart();
    let gap: Value = serde_json::from_str(&next(&mut reader).await).unwrap();
    assert_eq!(gap["gap"]["channel"], "demo:news");
    assert_eq!(gap["gap"]["cause"], "link_lost");
    // The gap is reported once the subscription is restored.
    redis.cli(&["PUBLISH", "demo:news", "after"]);
    assert_eq!(next(&mut reader).await, "after", "once");
    let response = server.get("/admin/api/broker").await;
    let link: Value = serde_json::from_slice(&response.body).unwrap();
    assert_eq!(link["broker"], "redis");
    assert_eq!(link["gaps"], 1);
    let changes = link["timeline"].as_array().unwrap().iter();
    assert!(
        changes
            .map(|entry| &entry["change"])
            .any(|change| change == "gap"),
        "{link}"
    );
}

async fn next(reader: &mut WebSocket) -> String {
    let message = timeout(PATIENCE, reader.recv())
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    message.as_text().unwrap().to_owned()
}

#[tokio::test]
async fn a_server_that_was_killed_is_forgotten() {
    let Some(redis) = RedisServer::start() else {
        return;
    };
    let pair = Pair::start(&redis.url()).await;
    pair.meet().await;
    let [mut first, second] = pair.servers;
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    let forgotten = async {
        while second.api("info", json!({})).await["nodes"]
            .as_array()
            .unwrap()
            .len()
            > 1
        {
            sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(PATIENCE, forgotten).await.unwrap();
}

#[tokio::test]
async fn lines_are_published_one_by_one_and_in_order() {
    let server = Server::start();
    let mut reader = server.connect("/raw?channel=demo:log").await;
    let url = format!("http://{}", server.address);
    let lines: Vec<String> = (0..500).map(|number| format!("line {number}")).collect();
    let arguments = ["demo:log", "--lines", "--server", &url];
    let output = publish_input(&arguments, &(lines.join("\n") + "\n\n")).await;
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.starts_with("500 publications to demo:log"), "{said}");
    for line in lines {
        let message = timeout(PATIENCE, reader.recv())
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        assert_eq!(message.as_text(), Some(&*line));
    }
    let output = publish_input(&["demo:log", "-", "--server", &url], "two\nlines").await;
    assert!(output.status.success(), "{output:?}");
    let message = timeout(PATIENCE, reader.recv())
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    assert_eq!(message.as_text(), Some("two\nlines"));
}

#[tokio::test]
async fn what_can_not_be_published_says_why() {
    let server = Server::start_with(&["--set", "auth.api_key=0123456789abcdef"]);
    let url = format!("http://{}", server.address);
    let dead = format!("http://127.0.0.1:{}", free_port());
    for (arguments, why) in [
        (&["a b", "x"][..], "contains a space"),
        (&["news", "x", "--server", &url], "x-api-key"),
        (&["news", "x", "--server", &dead], "cannot reach"),
        (&["news", "x", "--server", "ftp://example.com"], "http://"),
        (&["news", "-", "--server", &url], "input is empty"),
        (&["news", "x", "--broker", "memory:"], "--server"),
        (&["news", "x", "--broker", "amqp://a"], "redis://"),
    ] {
        let output = publish(arguments).await;
        assert!(!output.status.success(), "{arguments:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(why), "{arguments:?}: {said}");
    }
    let with_key = [
        "news",
        "x",
        "--server",
        &url,
        "--api-key",
        "0123456789abcdef",
    ];
    let output = publish(&with_key).await;
    assert!(output.status.success(), "{output:?}");
}

/// Forwards connections to a local port. Returns the port to connect to, and the bytes that clients
/// have sent.
async fn tap(port: u16) -> (u16, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let tapped = listener.local_addr().unwrap().port();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let all_seen = Arc::clone(&seen);
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            let (mut from_client, mut to_client) = client.into_split();
            let (mut from_server, mut to_server) = server.into_split();
            let seen = Arc::clone(&all_seen);
            tokio::spawn(async move {
                let mut bytes = Vec::with_capacity(4096);
                while from_client
                    .read_buf(&mut bytes)
                    .await
                    .is_ok_and(|count| count > 0)
                {
                    seen.lock().unwrap().extend_from_slice(&bytes);
                    if to_server.write_all(&bytes).await.is_err() {
                        break;
                    }
                    bytes.clear();
                }
            });
            tokio::spawn(async move { tokio::io::copy(&mut from_server, &mut to_client).await });
        }
    });
    (tapped, seen)
}

#[tokio::test]
async fn the_channels_of_a_client_are_subscribed_together_and_answered_in_order() {
    let Some(redis) = RedisServer::start() else {
        return;
    };
    let (port, seen) = tap(redis.port()).await;
    let server = Server::start_with(&["--broker", &format!("redis://127.0.0.1:{port}")]);
    let mut ws = server.connect("/connection/websocket").await;
    ws.send(r#"{"id":1,"connect":{}}"#).await.unwrap();
    next(&mut ws).await;
    // One channel occurs twice, and its second subscription is refused.
    let channel = |id: usize| format!("demo:{}", id.min(127));
    let commands: Vec<String> = (2..=128)
        .map(|id| json!({"id": id, "subscribe": {"channel": channel(id)}}).to_string())
        .collect();
    redis.pause();
    ws.send(commands.join("\n")).await.unwrap();
    // This is the number of subscriptions that are requested before the first one is answered.
    let asked_for = |id| {
        let name = format!("{}\r\n", channel(id));
        let seen = seen.lock().unwrap();
        seen.windows(name.len())
            .any(|bytes| bytes == name.as_bytes())
    };
    let asking = async {
        while !(2..66).all(asked_for) {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, asking).await.unwrap();
    redis.resume();
    let mut replies: Vec<Value> = Vec::new();
    while replies.len() < commands.len() {
        let frame = next(&mut ws).await;
        replies.extend(
            frame
                .lines()
                .map(|line| serde_json::from_str(line).unwrap()),
        );
    }
    for (reply, id) in replies.iter().zip(2..) {
        assert_eq!(reply["id"], id);
        assert_eq!(reply["subscribe"].is_object(), id != 128, "{reply}");
    }
    for id in [2, 64, 127] {
        let body = json!({"channel": channel(id), "data": id});
        server.api("publish", body).await;
        let push: Value = serde_json::from_str(&next(&mut ws).await).unwrap();
        assert_eq!(push["push"]["pub"]["data"], id);
    }
}

/// Recovery replies must fit into one message, however much the broker keeps: a client that cannot
/// receive the message would reconnect forever.
#[tokio::test]
async fn what_a_client_recovers_from_redis_fits_into_its_messages() {
    let Some(redis) = RedisServer::start() else {
        return;
    };
    let set = ["channel.durable=true", "channel.history_size=1000"];
    let flags = ["--broker", &redis.url(), "--set", set[0], "--set", set[1]];
    let server = Server::start_with(&flags);
    let payload = "x".repeat(10_000);
    let mut since = json!({});
    for n in 0..=300 {
        let body = json!({"channel": "news", "data": [n, payload]});
        let published = server.api("publish", body).await;
        if n == 0 {
            since = published;
        }
    }
    // The client accepts messages of at most 1 MiB.
    let mut ws = server.connect("/connection/websocket").await;
    ws.send(r#"{"id":1,"connect":{}}"#).await.unwrap();
    next(&mut ws).await;
    let command = json!({"id": 2, "subscribe": {
        "channel": "news", "recover": true, "epoch": since["epoch"], "offset": since["offset"],
    }});
    ws.send(command.to_string()).await.unwrap();
    let reply: Value = serde_json::from_str(&next(&mut ws).await).unwrap();
    let reply = &reply["subscribe"];
    assert_eq!(reply["recovered"], true);
    let told = reply["publications"].as_array().unwrap().iter();
    let mut seen: Vec<_> = told.map(|one| one["data"][0].clone()).collect();
    assert!(
        (10..300).contains(&seen.len()),
        "{} in the reply",
        seen.len()
    );
    server
        .api("publish", json!({"channel": "news", "data": [301]}))
        .await;
    while seen.len() < 301 {
        for line in next(&mut ws).await.lines() {
            let push: Value = serde_json::from_str(line).unwrap();
            seen.push(push["push"]["pub"]["data"][0].clone());
        }
    }
    let all: Vec<Value> = (1..=301).map(Value::from).collect();
    assert_eq!(seen, all);
}

/// A client must not be able to name another channel's Redis keys. `{x}` and `x` once shared
/// theirs.
#[tokio::test]
async fn a_channel_name_reaches_no_other_channels_history() {
    let Some(redis) = RedisServer::start() else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("linerate.toml");
    let text = "[channel]\ndurable = true\nhistory_size = 10\nallow_subscribe = true\nallow_publish = true\n\
        allow_history = true\nallow_anonymous = true\n\
        [[namespace]]\nname = \"private\"\nallow_subscribe = false\nallow_publish = false\nallow_anonymous = false\n";
    std::fs::write(&config, text).unwrap();
    let url = redis.url();
    let flags = ["--config", config.to_str().unwrap(), "--broker", &url];
    let server = Server::start_with(&flags);
    let secret = json!({"channel": "private:room", "data": "secret"});
    server.api("publish", secret).await;
    let mut ws = server.connect("/connection/websocket").await;
    ws.send(r#"{"id":1,"connect":{}}"#).await.unwrap();
    next(&mut ws).await;
    let mut ask = async |command: Value| {
        ws.send(command.to_string()).await.unwrap();
        loop {
            let reply: Value = serde_json::from_str(&next(&mut ws).await).unwrap();
            if reply["id"] == command["id"] {
                return reply;
            }
        }
    };
    let denied = ask(json!({"id": 2, "subscribe": {"channel": "private:room"}})).await;
    assert_eq!(denied["error"]["code"], 103);
    let asked = json!({"id": 3, "subscribe": {"channel": "{private:room}", "recover": true}});
    assert_eq!(ask(asked).await["error"], Value::Null);
    let page = ask(json!({"id": 4, "history": {"channel": "{private:room}", "limit": 10}})).await;
    assert_eq!(page["history"]["publications"], Value::Null, "{page}");
    let forged = json!({"id": 5, "publish": {"channel": "{private:room}", "data": "forged"}});
    assert_eq!(ask(forged).await["error"], Value::Null);
    let asked = json!({"channel": "private:room", "limit": 10});
    let kept = server.api("history", asked).await;
    let kept = kept["publications"].as_array().unwrap();
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!(kept[0]["data"], "secret");
}

/// Revokes tokens at one server, and checks that a server that starts later refuses them.
async fn revoked_everywhere(broker: &str) {
    let secret = "auth.token.hmac_secret_key=0123456789abcdef";
    let key = "auth.api_key=0123456789abcdef";
    let flags = ["--broker", broker, "--set", secret, "--set", key];
    let first = Server::start_with(&flags);
    let mut make = linerate(&["token", "--user", "ann"]);
    make.env("LINERATE_AUTH_TOKEN_HMAC_SECRET_KEY", "0123456789abcdef");
    let made = make.output();
    let token = String::from_utf8(made.unwrap().stdout).unwrap();
    let connect = json!({"id": 1, "connect": {"token": token.trim()}}).to_string();
    let mut connected = first.connect("/connection/websocket").await;
    connected.send(&*connect).await.unwrap();
    let reply: Value = serde_json::from_str(&next(&mut connected).await).unwrap();
    assert!(reply["connect"].is_object(), "{reply}");
    let second = Server::start_with(&flags);
    until(&second, "/ready", |text| text.starts_with("200")).await;
    let body = json!({"user": "ann", "expire_at": 4_000_000_000_u64}).to_string();
    let length = format!("Content-Length: {}", body.len());
    let mut stream = TcpStream::connect(second.address).await.unwrap();
    let request = format!(
        "POST /api/invalidate_user_tokens HTTP/1.1\r\nHost: {}\r\nX-API-Key: 0123456789abcdef\r\n\
         {length}\r\nConnection: close\r\n\r\n{body}",
        second.address
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let response = crate::support::Response::read_from(&mut stream).await;
    assert!(response.text().contains("result"), "{}", response.text());
    let ended = timeout(PATIENCE, async {
        while let Ok(Some(_)) = connected.recv().await {}
        crate::support::close_code(&mut connected).await
    });
    assert_eq!(ended.await.unwrap(), 3005);
    drop((first, second));
    // Both servers are gone, but the broker has kept the revocation.
    let third = Server::start_with(&flags);
    let refused = async {
        loop {
            let mut ws = third.connect("/connection/websocket").await;
            ws.send(&*connect).await.unwrap();
            let reply: Value = serde_json::from_str(&next(&mut ws).await).unwrap();
            // Until the server has read the revocations from the broker, it accepts no token and
            // replies with a temporary error.
            match reply["error"]["code"].as_u64() {
                Some(109) => return,
                code => assert_eq!(code, Some(100), "{reply}"),
            }
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, refused).await.unwrap();
}

#[tokio::test]
async fn revoked_tokens_are_kept_in_redis() {
    if let Some(redis) = RedisServer::start() {
        revoked_everywhere(&redis.url()).await;
    }
}

#[tokio::test]
async fn revoked_tokens_are_kept_in_nats() {
    if let Some(nats) = start_nats() {
        revoked_everywhere(&format!("nats://{}", nats.address())).await;
    }
}
