//! Tests of server API requests, with a node on the embedded broker.

use std::{net::IpAddr, sync::Arc};

use axum::{Router, body::Body, http::Request};
use http::StatusCode;
use linerate::handshake::Scheme;
use serde_json::{Value, json};
use tower_service::Service;

use crate::{
    config::Loader,
    node::{
        Notice, Worker,
        tests::{Memo, connect, node_in_memory, present, subscription},
    },
    server::Peer,
    session::{SessionEnvironment, Settings},
};

const KEY: &str = "0123456789abcdef";

const WITH_KEY: &str = "
[auth]
api_key = \"0123456789abcdef\"
[channel]
history_size = 10
presence = true
[[namespace]]
name = \"plain\"
history_size = 0
presence = false
[server]
request_bytes_max = 8192
";

struct Rig {
    worker: Arc<Worker>,
    routes: Router,
}

impl Rig {
    fn new(config: &str) -> Self {
        let config = Loader::new().with_text("test.toml", config).load().unwrap();
        let settings = Settings::new(config, None).unwrap();
        let (node, worker) = node_in_memory();
        node.namespaces.replace(settings.namespaces.clone());
        let routes = super::routes(node, Arc::new(SessionEnvironment::new(settings)));
        Self { worker, routes }
    }

    async fn send(&self, request: Request<Body>) -> (StatusCode, Value) {
        let response = self.routes.clone().call(request).await.unwrap();
        let status = response.status();
        let body = axum::body::to_bytes(response.into_body(), 1 << 20)
            .await
            .unwrap();
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    async fn ask(&self, method: &str, body: Value) -> Value {
        let request = request(method).header("x-api-key", KEY);
        let request = request.body(Body::from(body.to_string())).unwrap();
        let (status, answer) = self.send(request).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        answer
    }

    async fn subscribe(&self, name: &str, user: &str, client: &str) -> Arc<Memo> {
        let (id, memo) = connect(&self.worker, user, client);
        self.worker.subscribe(id, subscription(name)).await.unwrap();
        memo
    }
}

fn request(method: &str) -> http::request::Builder {
    let peer = Peer {
        address: IpAddr::from([127, 0, 0, 1]),
        scheme: Scheme::Http,
        is_near: true,
    };
    let request = Request::post(format!("/api/{method}")).extension(peer);
    request.header("host", "127.0.0.1:8080")
}

#[tokio::test]
async fn what_an_application_publishes_arrives_byte_for_byte() {
    let rig = Rig::new(WITH_KEY);
    let memo = rig.subscribe("news", "", "c").await;
    let body = "{\"channel\":\"news\",\"data\":{\"b\" : 1,  \"a\":1.0}}";
    let request = request("publish").header("authorization", format!("apikey {KEY}"));
    let (status, answer) = rig.send(request.body(Body::from(body)).unwrap()).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(answer["result"]["offset"], 1);
    assert!(answer["result"]["epoch"].is_string());
    assert_eq!(memo.payloads(1).await, ["{\"b\" : 1,  \"a\":1.0}"]);
    let answer = rig
        .ask("publish", json!({"channel": "news", "b64data": "aGVsbG8="}))
        .await;
    assert_eq!(answer["result"]["offset"], 2);
    assert_eq!(memo.payloads(1).await, ["hello"]);
    let null = json!({"channel": "news", "data": null});
    assert_eq!(rig.ask("publish", null).await["result"]["offset"], 3);
    assert_eq!(memo.payloads(1).await, ["null"]);
}

#[tokio::test]
async fn a_retry_with_the_same_key_publishes_once() {
    let rig = Rig::new(WITH_KEY);
    let memo = rig.subscribe("news", "", "c").await;
    for data in [1, 2] {
        let body = json!({"channel": "news", "data": data, "idempotency_key": "k"});
        assert_eq!(rig.ask("publish", body).await["result"]["offset"], 1);
    }
    rig.ask("publish", json!({"channel": "news", "data": 3}))
        .await;
    assert_eq!(memo.payloads(2).await, ["1", "3"]);
}

#[tokio::test]
async fn a_broadcast_answers_for_each_channel() {
    let rig = Rig::new(WITH_KEY);
    let memo = rig.subscribe("b", "", "c").await;
    let body = json!({"channels": ["a", "", "b"], "data": "x"});
    let answer = rig.ask("broadcast", body).await;
    let responses = &answer["result"]["responses"];
    assert_eq!(responses[0]["result"]["offset"], 1);
    assert_eq!(responses[1]["error"]["code"], 107);
    assert_eq!(responses[2]["result"]["offset"], 1);
    assert_eq!(memo.payloads(1).await, ["\"x\""]);
}

#[tokio::test]
async fn history_is_read_from_both_ends_and_removed() {
    let rig = Rig::new(WITH_KEY);
    for number in 1..=3 {
        let body = json!({"channel": "news", "data": number, "tags": {"k": "v"}});
        rig.ask("publish", body).await;
    }
    let answer = rig.ask("history", json!({"channel": "news"})).await;
    assert_eq!(answer["result"]["offset"], 3);
    assert_eq!(answer["result"]["publications"], json!([]));
    let epoch = answer["result"]["epoch"].clone();
    let asked = json!({"channel": "news", "limit": -1, "since": {"offset": 1, "epoch": epoch}});
    let publications = rig.ask("history", asked).await["result"]["publications"].clone();
    let expected = json!([
        {"data": 2, "offset": 2, "tags": {"k": "v"}},
        {"data": 3, "offset": 3, "tags": {"k": "v"}},
    ]);
    assert_eq!(publications, expected);
    let asked = json!({"channel": "news", "limit": 1, "reverse": true});
    assert_eq!(
        rig.ask("history", asked).await["result"]["publications"][0]["offset"],
        3
    );
    // In reverse, the publications before the position.
    let since = json!({"offset": 3, "epoch": epoch});
    for (limit, offsets) in [(-1, json!([2, 1])), (1, json!([2])), (0, json!([]))] {
        let asked = json!({"channel": "news", "limit": limit, "since": since, "reverse": true});
        let publications = rig.ask("history", asked).await["result"]["publications"].clone();
        let found = publications.as_array().unwrap().iter();
        let found: Vec<_> = found.map(|publication| &publication["offset"]).collect();
        assert_eq!(json!(found), offsets);
    }
    let asked = json!({"channel": "news", "limit": 1, "since": {"offset": 1, "epoch": "other"}});
    assert_eq!(rig.ask("history", asked).await["error"]["code"], 112);
    assert_eq!(
        rig.ask("history_remove", json!({"channel": "news"})).await,
        json!({"result": {}})
    );
    let answer = rig
        .ask("history", json!({"channel": "news", "limit": 10}))
        .await;
    assert_eq!(answer["result"]["publications"], json!([]));
    assert_eq!(answer["result"]["offset"], 3);
    assert_eq!(
        rig.ask("history", json!({"channel": "plain:x"})).await["error"]["code"],
        108
    );
}

#[tokio::test]
async fn what_is_no_json_is_history_in_base64() {
    let rig = Rig::new(WITH_KEY);
    rig.ask("publish", json!({"channel": "news", "b64data": "/w=="}))
        .await;
    let answer = rig
        .ask("history", json!({"channel": "news", "limit": 1}))
        .await;
    let publication = &answer["result"]["publications"][0];
    assert_eq!(publication, &json!({"b64data": "/w==", "offset": 1}));
}

#[tokio::test]
async fn who_is_there_is_told_where_that_is_kept() {
    let rig = Rig::new(WITH_KEY);
    let (id, _memo) = connect(&rig.worker, "ada", "c1");
    rig.worker
        .subscribe(id, present("room", "ada", "c1"))
        .await
        .unwrap();
    let answer = rig.ask("presence", json!({"channel": "room"})).await;
    let expected = json!({"c1": {"user": "ada", "client": "c1"}});
    assert_eq!(answer["result"]["presence"], expected);
    let answer = rig.ask("presence_stats", json!({"channel": "room"})).await;
    assert_eq!(answer["result"], json!({"num_clients": 1, "num_users": 1}));
    assert_eq!(
        rig.ask("presence", json!({"channel": "plain:x"})).await["error"]["code"],
        108
    );
    let answer = rig.ask("channels", json!({"pattern": "r*"})).await;
    assert_eq!(
        answer["result"]["channels"],
        json!({"room": {"num_clients": 1}})
    );
    let answer = rig.ask("info", json!({})).await;
    assert_eq!(answer["result"]["nodes"][0]["num_clients"], 1);
    assert_eq!(answer["result"]["nodes"][0]["num_users"], 1);
}

#[tokio::test]
async fn connections_hear_what_the_application_decides() {
    let rig = Rig::new(WITH_KEY);
    let memo = rig.subscribe("room", "ada", "c1").await;
    let of_ada = |rest: Value| {
        let mut body = json!({"user": "ada"});
        body.as_object_mut()
            .unwrap()
            .extend(rest.as_object().unwrap().clone());
        body
    };
    let done = json!({"result": {}});
    let subscribe = of_ada(json!({"channel": "more", "info": {"a": 1}}));
    assert_eq!(rig.ask("subscribe", subscribe).await, done);
    let Notice::Subscribe { channel, info } = memo.notice().await else {
        panic!("subscribe");
    };
    assert_eq!(
        (channel.as_str(), &info.unwrap()[..]),
        ("more", &b"{\"a\":1}"[..])
    );
    assert_eq!(
        rig.ask("unsubscribe", of_ada(json!({"channel": "room"})))
            .await,
        done
    );
    assert!(matches!(memo.notice().await, Notice::Unsubscribe { .. }));
    assert_eq!(
        rig.ask("refresh", of_ada(json!({"expire_at": 4_000_000_000_u64})))
            .await,
        done
    );
    assert!(matches!(
        memo.notice().await,
        Notice::Refresh {
            is_expired: false,
            expires: Some(_)
        }
    ));
    let asked = of_ada(json!({"disconnect": {"code": 4001, "reason": "bye"}}));
    assert_eq!(rig.ask("disconnect", asked).await, done);
    let Notice::Disconnect(why) = memo.notice().await else {
        panic!("disconnect");
    };
    assert_eq!((why.code, &*why.reason), (4001, "bye"));
    let asked = of_ada(json!({"disconnect": {"code": 1000}}));
    assert_eq!(rig.ask("disconnect", asked).await["error"]["code"], 107);
    assert_eq!(rig.ask("disconnect", json!({})).await["error"]["code"], 107);
}

#[tokio::test]
async fn a_batch_answers_in_order() {
    let rig = Rig::new(WITH_KEY);
    let commands = json!([
        {"publish": {"channel": "news", "data": 1}},
        {"sing": {}},
        {"publish": {"channel": "news"}},
        {},
    ]);
    for parallel in [false, true] {
        let body = json!({"commands": commands, "parallel": parallel});
        let replies = rig.ask("batch", body).await["replies"].clone();
        assert!(replies[0]["publish"]["offset"].is_u64(), "{replies}");
        for index in 1..4 {
            assert_eq!(replies[index]["error"]["code"], 107, "{replies}");
        }
    }
    let body = json!({"commands": vec![json!({}); 1_001]});
    let message = rig.ask("batch", body).await["error"]["message"].to_string();
    assert!(
        message.contains("1001") && message.contains("1000"),
        "{message}"
    );
}

#[tokio::test]
async fn malformed_requests_change_nothing() {
    let rig = Rig::new(WITH_KEY);
    let long = "x".repeat(2_000);
    for body in [
        "",
        "{",
        "[]",
        "null",
        "{\"channel\":1}",
        "{\"channel\":\"a\"}",
        "{\"channel\":\"a b\",\"data\":1}",
        "{\"channel\":\"\",\"data\":1}",
        "{\"channel\":\"a*\",\"data\":1}",
        "{\"channel\":\"a\",\"b64data\":\"%\"}",
        "{\"channel\":\"a\",\"data\":1,\"version\":2}",
        &format!("{{\"channel\":\"{long}\",\"data\":1}}"),
    ] {
        let request = request("publish").header("x-api-key", KEY);
        let (status, answer) = rig
            .send(request.body(Body::from(body.to_owned())).unwrap())
            .await;
        assert_eq!(status, StatusCode::OK, "{body}");
        let code = &answer["error"]["code"];
        assert!(code == 107 || code == 108, "{body}: {answer}");
    }
    let request = request("publish").header("x-api-key", KEY);
    let (status, _) = rig
        .send(request.body(Body::from("x".repeat(8_193))).unwrap())
        .await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(rig.worker.node().dispatcher.arrived().publications, 0);
}

#[tokio::test]
async fn nobody_gets_in_without_the_key() {
    let rig = Rig::new(WITH_KEY);
    for key in ["", "0123456789abcdeF", "0123456789abcdef0"] {
        for (name, value) in [
            ("x-api-key", key.to_owned()),
            ("authorization", format!("apikey {key}")),
        ] {
            let request = request("info").header(name, value);
            let (status, answer) = rig.send(request.body(Body::from("{}")).unwrap()).await;
            assert_eq!(status, StatusCode::UNAUTHORIZED);
            assert_eq!(answer["error"]["code"], 101);
        }
    }
    let (status, _) = rig.send(request("info").body(Body::empty()).unwrap()).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    let request = request("sing").header("x-api-key", KEY);
    let (status, _) = rig.send(request.body(Body::from("{}")).unwrap()).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn without_a_key_only_this_machine_gets_in() {
    let rig = Rig::new("");
    let base = || request("info");
    let status = |request: http::request::Builder| {
        let request = request.body(Body::from("{}")).unwrap();
        async { rig.send(request).await.0 }
    };
    assert_eq!(status(base()).await, StatusCode::OK);
    let own_page = base().header("origin", "http://127.0.0.1:8080");
    assert_eq!(status(own_page).await, StatusCode::OK);
    let foreign = [
        base().header("origin", "http://evil.example"),
        base().header("x-forwarded-for", "203.0.113.7"),
        base().extension(Peer {
            address: IpAddr::from([203, 0, 113, 7]),
            scheme: Scheme::Http,
            is_near: true,
        }),
    ];
    for request in foreign {
        assert_eq!(status(request).await, StatusCode::FORBIDDEN);
    }
    // DNS rebinding: a host name that was pointed at this server, so that the page's origin equals
    // the request's host.
    let peer = Peer {
        address: IpAddr::from([127, 0, 0, 1]),
        scheme: Scheme::Http,
        is_near: true,
    };
    let rebound = Request::post("/api/info").extension(peer);
    let rebound = rebound
        .header("host", "evil.example")
        .header("origin", "http://evil.example");
    assert_eq!(status(rebound).await, StatusCode::FORBIDDEN);
    let keyed = Rig::new("[auth]\nadmin_key = \"0123456789abcdef\"");
    let request = base().body(Body::from("{}")).unwrap();
    assert_eq!(keyed.send(request).await.0, StatusCode::FORBIDDEN);
}
