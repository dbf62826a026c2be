//! Tests of the admin API, with a node on a bus.

use std::{
    net::IpAddr,
    sync::Arc,
    time::{Duration, SystemTime},
};

use axum::{
    Router,
    body::{Body, BodyDataStream},
    http::Request,
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use futures_util::StreamExt;
use http::StatusCode;
use linerate::handshake::Scheme;
use linerate_broker::{Event, Gap, GapReason};
use linerate_testkit::PATIENCE;
use serde_json::{Value, json};
use tokio::time::timeout;
use tower_service::Service;

use super::Admin;
use crate::{
    config::Loader,
    node::{
        Node, Notice, Worker,
        tests::{Bus, connect, node_on, publish, subscription, until},
    },
    server::Peer,
    session::{SessionEnvironment, Settings},
};

const KEY: &str = "Bearer 0123456789abcdef";

const LOST: Gap = Gap {
    channels: None,
    lasted: Duration::from_millis(1_500),
    reason: GapReason::LinkLost,
};

struct Rig {
    bus: Arc<Bus>,
    node: Arc<Node>,
    worker: Arc<Worker>,
    admin: Arc<Admin>,
    routes: Router,
}

impl Rig {
    fn new() -> Self {
        Self::with("")
    }

    /// Creates one with `settings` in addition to the key.
    fn with(settings: &str) -> Self {
        let config = format!("[auth]\nadmin_key = \"0123456789abcdef\"\n{settings}");
        let config = Loader::new()
            .with_text("test.toml", &config)
            .load()
            .unwrap();
        let settings = Settings::new(config, None).unwrap();
        let bus = Arc::new(Bus::default());
        let (node, mut workers) = node_on(&bus, 1);
        let worker = workers.remove(0);
        let shared = Arc::new(SessionEnvironment::new(settings));
        let admin = Admin::new(node.clone(), shared);
        let routes = admin.routes(worker.clone());
        Self {
            admin,
            bus,
            node,
            worker,
            routes,
        }
    }

    async fn get(&self, path: &str) -> Value {
        let request = Request::get(format!("/admin/api/{path}"));
        self.send(request, Body::empty()).await
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let request = Request::post(format!("/admin/api/{path}"));
        self.send(request, Body::from(body.to_string())).await
    }

    async fn send(&self, request: http::request::Builder, body: Body) -> Value {
        let request = request.header("authorization", KEY).body(body).unwrap();
        let response = self.routes.clone().call(request).await.unwrap();
        let status = response.status();
        let body = axum::body::to_bytes(response.into_body(), 1 << 20)
            .await
            .unwrap();
        let answer: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(
            answer.get("error").is_none(),
            status.is_success(),
            "{answer}"
        );
        answer
    }
}

#[tokio::test]
async fn the_page_sees_what_happens_a_second() {
    let rig = Rig::new();
    let (client, memo) = connect(&rig.worker, "ada", "c1");
    rig.worker
        .subscribe(client, subscription("news"))
        .await
        .unwrap();
    assert_eq!(rig.get("overview").await["publications_per_s"], 0.0);
    rig.get("channels").await;
    rig.admin.series.record(&rig.node).await;
    for number in 0..10 {
        publish(&rig.node, "news", &number.to_string()).await;
    }
    memo.payloads(10).await;
    tokio::time::sleep(Duration::from_millis(1_050)).await;
    rig.admin.series.record(&rig.node).await;
    let overview = rig.get("overview").await;
    assert!(
        overview["publications_per_s"].as_f64().unwrap() > 1.0,
        "{overview}"
    );
    assert!(
        overview["deliveries_per_s"].as_f64().unwrap() > 1.0,
        "{overview}"
    );
    assert_eq!(overview["node"]["clients"], 1);
    assert_eq!(overview["is_draining"], false);
    let channels = rig.get("channels?sort=rate&contains=ew").await;
    assert_eq!(channels["total"], 1);
    let channel = &channels["channels"][0];
    assert_eq!(channel["subscribers"], 1);
    assert_eq!(channel["publications"], 10);
    assert!(
        channel["publications_per_s"].as_f64().unwrap() > 1.0,
        "{channel}"
    );
    assert_eq!(rig.get("channels?contains=x").await["total"], 0);
    assert_eq!(rig.get("nodes").await["nodes"][0]["name"], "test");
}

#[tokio::test]
async fn series_show_what_has_happened_before_the_page_was_opened() {
    let rig = Rig::new();
    let (client, memo) = connect(&rig.worker, "ada", "c1");
    rig.worker
        .subscribe(client, subscription("news"))
        .await
        .unwrap();
    rig.admin.series.record(&rig.node).await;
    publish(&rig.node, "news", "hello").await;
    memo.payloads(1).await;
    rig.bus.tell(vec![Event::Gap(LOST)]).await;
    rig.admin.series.record(&rig.node).await;
    for (step, seconds) in [("second", 1), ("minute", 60)] {
        let series = rig.get(&format!("series?step={step}")).await;
        assert_eq!(series["step_s"], seconds);
        assert!(
            series["publications_per_s"][0].as_f64().unwrap() > 0.0,
            "{series}"
        );
        assert!(
            series["deliveries_per_s"][0].as_f64().unwrap() > 0.0,
            "{series}"
        );
        assert!(
            series["delay_p99_ms"][0].as_f64().unwrap() > 0.0,
            "{series}"
        );
        assert_eq!(series["clients"], json!([1]));
        assert_eq!(series["gaps"], json!([1]));
        let columns = series.as_object().unwrap().values();
        let mut lengths = columns.filter_map(Value::as_array).map(Vec::len);
        assert!(lengths.all(|length| length == 1), "{series}");
        let later = series["at_ms"][0].as_u64().unwrap() + 1;
        let newer = rig.get(&format!("series?step={step}&after={later}")).await;
        assert_eq!(newer["at_ms"], json!([]));
    }
}

#[tokio::test]
async fn settings_are_shown_with_their_defaults_and_without_secrets() {
    let view = Rig::new().get("settings").await;
    assert!(!view.to_string().contains("0123456789abcdef"), "{view}");
    let settings = view["settings"].as_array().unwrap();
    let of = |key: &str| settings.iter().find(|it| it["key"] == key).unwrap();
    let key = of("auth.admin_key");
    assert_eq!(
        (&key["value"], &key["is_changed"]),
        (&json!("(secret)"), &json!(true))
    );
    assert_eq!(key["source"], "test.toml, line 2");
    let limit = of("client.channels_max");
    assert_eq!(
        (&limit["is_changed"], &limit["source"]),
        (&json!(false), &json!("default"))
    );
    let memory = of("server.memory_bytes_max");
    assert_eq!(
        (&memory["value"], &memory["is_changed"]),
        (&json!("0"), &json!(false))
    );
    assert!(memory["resolved"].as_str().unwrap().len() >= 9, "{memory}");
}

#[tokio::test]
async fn the_slowest_connections_come_first() {
    let rig = Rig::new();
    let mut memos = Vec::new();
    for name in ["c1", "c2", "c3"] {
        let (client, memo) = connect(&rig.worker, "ada", name);
        rig.worker
            .subscribe(client, subscription("news"))
            .await
            .unwrap();
        memo.set_full(name == "c2");
        memos.push(memo);
    }
    publish(&rig.node, "news", "hello").await;
    memos[0].payloads(1).await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    let found = rig.get("connections?limit=2").await;
    assert_eq!(found["total"], 3);
    assert_eq!(found["connections"].as_array().unwrap().len(), 2);
    let slowest = &found["connections"][0];
    assert_eq!(slowest["client"], "c2");
    assert_eq!(slowest["channels"], json!(["news"]));
    assert!(slowest["lag_ms"].as_u64().unwrap() >= 5, "{slowest}");
    assert!(slowest["pending_bytes"].as_u64().unwrap() >= 5, "{slowest}");
    assert_eq!(rig.get("connections?client=c3").await["total"], 1);
    assert_eq!(rig.get("connections?channel=other").await["total"], 0);
    assert_eq!(
        rig.get("connections?user=ada&sort=pending").await["connections"][0]["client"],
        "c2"
    );
}

#[tokio::test]
async fn gaps_and_changes_of_the_link_are_listed() {
    let rig = Rig::new();
    rig.bus.tell(vec![Event::Gap(LOST)]).await;
    let link = rig.get("broker").await;
    assert_eq!((&link["link"], &link["gaps"]), (&json!("deaf"), &json!(1)));
    let entry = &link["timeline"][0];
    assert_eq!(entry["change"], "gap");
    assert_eq!(
        (&entry["reason"], &entry["lasted_ms"]),
        (&json!("link_lost"), &json!(1_500))
    );
}

#[tokio::test]
async fn clients_are_sent_away_and_unsubscribed() {
    let rig = Rig::new();
    let (client, memo) = connect(&rig.worker, "ada", "c1");
    rig.worker
        .subscribe(client, subscription("news"))
        .await
        .unwrap();
    let ended = rig
        .post("unsubscribe", json!({"client": "c1", "channel": "news"}))
        .await;
    assert_eq!(ended["clients"], 1);
    assert!(matches!(memo.notice().await, Notice::Unsubscribe { .. }));
    for (may_reconnect, code) in [(true, 3011), (false, 3503)] {
        let asked = json!({"user": "ada", "may_reconnect": may_reconnect});
        assert_eq!(rig.post("disconnect", asked).await["clients"], 1);
        let Notice::Disconnect(why) = memo.notice().await else {
            panic!("disconnect");
        };
        assert_eq!(why.code, code);
    }
    let tagged = json!({"channel": "news", "data": "hello", "tags": {"k": "v"}});
    rig.post("publish", tagged).await;
    assert_eq!(memo.payloads(1).await, ["hello"]);
    assert_eq!(rig.post("drain", json!({})).await["clients"], 1);
    assert!(*rig.node.draining().borrow());
    assert_eq!(rig.get("overview").await["is_draining"], true);
    assert_eq!(rig.post("undrain", json!({})).await["clients"], 1);
    assert_eq!(rig.get("overview").await["is_draining"], false);
}

#[tokio::test]
async fn what_makes_no_sense_is_refused() {
    let rig = Rig::new();
    for path in [
        "connections?limit=1001",
        "connections?sort=beauty",
        "channels?limit=1001",
        "channels?colour=red",
        "tail",
        "tail?channel=news&rate=101",
        "tail?channel=a%20b",
        "series",
        "series?step=hour",
        "series?step=second&after=-1",
    ] {
        assert_eq!(rig.get(path).await["error"]["code"], 107, "{path}");
    }
    for (path, body) in [
        ("disconnect", json!({})),
        ("disconnect", json!({"users": "ada"})),
        ("unsubscribe", json!({"user": "ada"})),
        ("publish", json!({"channel": ""})),
        (
            "publish",
            json!({"channel": "a", "data": "", "tags": {"k": 1}}),
        ),
        ("tokens", json!({})),
        ("tokens", json!({"channel": "a", "user": "ada"})),
        ("tokens", json!({"channel": "a b"})),
    ] {
        assert_eq!(rig.post(path, body).await["error"]["code"], 107, "{path}");
    }
}

#[tokio::test]
async fn tokens_are_for_one_channel_and_one_user_and_expire() {
    let secret = "0123456789abcdef-hmac";
    let rig = Rig::with(&format!("[auth.token]\nhmac_secret_key = \"{secret}\""));
    let tokens = rig.post("tokens", json!({"channel": "news"})).await;
    assert!(!tokens.to_string().contains(secret));
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.unwrap().as_secs();
    for name in ["connection", "channel", "subscribed"] {
        let claims = tokens[name].as_str().unwrap().split('.').nth(1).unwrap();
        let claims: Value =
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap();
        assert_eq!(claims["sub"], "playground", "{name}");
        let expires = claims["exp"].as_u64().unwrap();
        assert!((now + 840..=now + 900).contains(&expires), "{name}");
        let channel = json!({"connection": null, "channel": "news", "subscribed": null});
        assert_eq!(claims["channel"], channel[name], "{name}");
        let channels = json!({"connection": null, "channel": null, "subscribed": ["news"]});
        assert_eq!(claims["channels"], channels[name], "{name}");
    }
    assert_eq!(tokens["expires_in_s"], 900);
}

#[tokio::test]
async fn without_a_secret_there_are_no_tokens() {
    let answer = Rig::new().post("tokens", json!({"channel": "news"})).await;
    assert_eq!(answer["error"]["code"], 108);
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("auth.token.hmac_secret_key"), "{message}");
}

#[tokio::test]
async fn nobody_gets_in_without_the_key() {
    let rig = Rig::new();
    let peer = Peer {
        address: IpAddr::from([127, 0, 0, 1]),
        scheme: Scheme::Http,
        is_near: true,
    };
    for path in [
        "overview",
        "nodes",
        "connections",
        "channels",
        "broker",
        "series?step=second",
        "settings",
        "tail?channel=a",
    ] {
        let request = Request::get(format!("/admin/api/{path}")).extension(peer);
        let request = request
            .header("host", "127.0.0.1")
            .body(Body::empty())
            .unwrap();
        let response = rig.routes.clone().call(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{path}");
    }
    for path in [
        "disconnect",
        "unsubscribe",
        "publish",
        "tokens",
        "drain",
        "undrain",
    ] {
        let request = Request::post(format!("/admin/api/{path}")).header("x-admin-key", "wrong");
        let request = request.body(Body::from("{\"user\":\"a\"}")).unwrap();
        let response = rig.routes.clone().call(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{path}");
    }
    assert!(!*rig.node.draining().borrow());
}

async fn read_until(stream: &mut BodyDataStream, text: &str) -> String {
    let mut seen = String::new();
    let reading = async {
        while !seen.contains(text) {
            let bytes = stream.next().await.expect("the stream continues").unwrap();
            seen.push_str(std::str::from_utf8(&bytes).unwrap());
        }
    };
    timeout(PATIENCE, reading).await.expect(text);
    seen
}

#[tokio::test]
async fn a_tail_shows_some_and_counts_the_rest() {
    let rig = Rig::new();
    let request = Request::get("/admin/api/tail?channel=news&rate=3").header("authorization", KEY);
    let request = request.body(Body::empty()).unwrap();
    let response = rig.routes.clone().call(request).await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut stream = response.into_body().into_data_stream();
    assert_eq!(read_until(&mut stream, "\n\n").await, ": open\n\n");
    for number in 0..20 {
        publish(&rig.node, "news", &format!("\"a\n\nb{number}\"")).await;
    }
    let seen = read_until(&mut stream, "event: skipped").await;
    assert!(seen.contains("\"skipped\":17"), "{seen}");
    assert_eq!(seen.matches("event: publication").count(), 3, "{seen}");
    assert!(seen.contains("\"data\":\"\\\"a\\n\\nb2\\\"\""), "{seen}");
    assert_eq!(rig.node.counts.clients(), 1);
    drop(stream);
    until("it ends with its page", || rig.node.counts.clients() == 0).await;
}
