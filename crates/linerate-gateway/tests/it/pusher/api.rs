//! Pusher's HTTP API.

use md5::{Digest, Md5};
use serde_json::{Value, json};

use super::{
    APP,
    client::{KEY, Pusher, auth, signature},
};
use crate::{
    http::request,
    support::{Gateway, Json, seconds_from_now},
};

/// Sends a signed request, and returns the status and the body of the response.
async fn call(
    gateway: &Gateway,
    method: &str,
    path: &str,
    query: &str,
    body: &str,
) -> (u16, String) {
    let target = signed(method, path, query, body, 0);
    let answer = request(gateway.address, &target, "", body.as_bytes()).await;
    (answer.status, answer.text().await)
}

/// Returns the first line of a request that is signed `age` seconds ago.
fn signed(method: &str, path: &str, query: &str, body: &str, age: i64) -> String {
    let at = seconds_from_now(-age);
    let mut parameters = vec![
        format!("auth_key={KEY}"),
        format!("auth_timestamp={at}"),
        "auth_version=1.0".to_owned(),
    ];
    if !body.is_empty() {
        let digest = Md5::digest(body.as_bytes());
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        parameters.push(format!("body_md5={digest}"));
    }
    parameters.extend(
        query
            .split('&')
            .filter(|one| !one.is_empty())
            .map(str::to_owned),
    );
    parameters.sort();
    let parameters = parameters.join("&");
    let signature = signature(&format!("{method}\n{path}\n{parameters}"));
    format!("{method} {path}?{parameters}&auth_signature={signature}")
}

/// Sends a signed request with a body, and returns the status and the body of the response.
pub(crate) async fn post(gateway: &Gateway, path: &str, body: &Value) -> (u16, String) {
    call(
        gateway,
        "POST",
        &format!("/apps/7/{path}"),
        "",
        &body.to_string(),
    )
    .await
}

async fn get(gateway: &Gateway, path: &str, query: &str) -> Value {
    let (status, text) = call(gateway, "GET", &format!("/apps/7/{path}"), query, "").await;
    assert_eq!(status, 200, "{text}");
    serde_json::from_str(&text).unwrap()
}

async fn trigger(gateway: &Gateway, body: &Value) {
    assert_eq!(post(gateway, "events", body).await, (200, "{}".to_owned()));
}

#[tokio::test]
async fn an_event_reaches_the_subscribers_of_its_channels() {
    let gateway = Gateway::open(APP).await;
    let mut client = Pusher::connect(&gateway).await;
    let mut centrifuge = Json::connect(&gateway).await;
    centrifuge.subscribe("news").await;
    client.subscribe("news").await;
    client.subscribe("private-a").await;
    let channels = json!(["news", "private-a"]);
    let event = json!({"name": "created", "channels": channels, "data": "{\"a\": 1}"});
    trigger(&gateway, &event).await;
    assert_eq!(client.event("news", "created").await, json!({"a": 1}));
    assert_eq!(client.event("private-a", "created").await, json!({"a": 1}));
    let push = &centrifuge.next().await["push"]["pub"];
    assert_eq!(
        (&push["data"], &push["tags"]["event"]),
        (&json!({"a": 1}), &json!("created"))
    );
    trigger(
        &gateway,
        &json!({"name": "e", "channel": "news", "data": {"b": 2}}),
    )
    .await;
    assert_eq!(client.event("news", "e").await, json!({"b": 2}));
    trigger(
        &gateway,
        &json!({"name": "e", "channel": "news", "data": "text"}),
    )
    .await;
    assert_eq!(client.event("news", "e").await, "text");
}

#[tokio::test]
async fn a_socket_does_not_get_the_event_that_it_caused() {
    let gateway = Gateway::open(APP).await;
    let mut clients = [
        Pusher::connect(&gateway).await,
        Pusher::connect(&gateway).await,
    ];
    for client in &mut clients {
        client.subscribe("news").await;
    }
    let event = json!({
        "name": "e", "channel": "news", "data": "1", "socket_id": clients[0].socket_id,
    });
    trigger(&gateway, &event).await;
    assert_eq!(clients[1].event("news", "e").await, 1);
    clients[0].expect_nothing().await;
}

#[tokio::test]
async fn a_batch_is_triggered_in_order_or_not_at_all() {
    let gateway = Gateway::open(APP).await;
    let mut client = Pusher::connect(&gateway).await;
    client.subscribe("news").await;
    let event = |number: usize| json!({"channel": "news", "name": "e", "data": number.to_string()});
    let batch: Vec<_> = (0..10).map(event).collect();
    let reply = post(&gateway, "batch_events", &json!({ "batch": batch })).await;
    assert_eq!(reply, (200, "{}".to_owned()));
    for number in 0..10 {
        assert_eq!(client.event("news", "e").await, number);
    }
    let long: Vec<_> = (0..11).map(event).collect();
    assert_eq!(
        post(&gateway, "batch_events", &json!({ "batch": long }))
            .await
            .0,
        400
    );
    let wrong = json!({"batch": [event(0), {"channel": "a b", "name": "e", "data": ""}]});
    assert_eq!(post(&gateway, "batch_events", &wrong).await.0, 400);
    client.expect_nothing().await;
    let mut wanted = event(1);
    wanted["info"] = json!("subscription_count");
    let (_, text) = post(
        &gateway,
        "batch_events",
        &json!({"batch": [wanted, event(2)]}),
    )
    .await;
    assert_eq!(text, r#"{"batch":[{"subscription_count":1},{}]}"#);
}

#[tokio::test]
async fn invalid_events_are_refused() {
    let gateway = Gateway::open(&format!("{APP}event_bytes_max = 10\n")).await;
    let names: Vec<_> = (0..101).map(|number| format!("c{number}")).collect();
    let event = |key: &str, value: Value| {
        let mut event = json!({"name": "e", "channels": ["a"], "data": "1"});
        event[key] = value;
        event
    };
    for (body, status) in [
        (json!({}), 400),
        (event("name", json!("")), 400),
        (event("name", json!("x".repeat(201))), 400),
        (event("name", json!("pusher:error")), 400),
        (event("name", json!("pusher_internal:member_added")), 400),
        (event("channels", json!([])), 400),
        (event("channels", json!(names)), 400),
        (event("channels", json!(["a b"])), 400),
        (event("channels", json!(["*"])), 400),
        (event("channels", json!(["x".repeat(1_025)])), 400),
        (event("socket_id", json!("1")), 400),
        (event("socket_id", json!("1.x")), 400),
        (event("socket_id", json!("1".repeat(100))), 400),
        (event("data", json!("x".repeat(11))), 413),
        (event("data", Value::Null), 200),
        (event("data", json!("x".repeat(10))), 200),
        (event("channels", json!(names[..100])), 200),
        (event("name", json!("x".repeat(200))), 200),
    ] {
        let (got, text) = post(&gateway, "events", &body).await;
        assert_eq!(got, status, "{body} {text}");
    }
}

#[tokio::test]
async fn channels_and_users_can_be_listed() {
    let gateway = Gateway::open(APP).await;
    let mut clients = Vec::new();
    for user in ["ann", "bob", "bob"] {
        let mut client = Pusher::connect(&gateway).await;
        client.join("presence-room", user).await;
        clients.push(client);
    }
    clients[2].subscribe("news").await;
    let all = get(&gateway, "channels", "").await;
    assert_eq!(all, json!({"channels": {"news": {}, "presence-room": {}}}));
    let query = "filter_by_prefix=presence-&info=user_count,subscription_count";
    let rooms = get(&gateway, "channels", query).await;
    let counts = json!({"user_count": 2, "subscription_count": 3});
    assert_eq!(rooms, json!({"channels": {"presence-room": counts}}));
    let room = get(&gateway, "channels/presence-room", "info=user_count").await;
    assert_eq!(room, json!({"occupied": true, "user_count": 2}));
    let news = get(&gateway, "channels/news", "info=subscription_count").await;
    assert_eq!(news, json!({"occupied": true, "subscription_count": 1}));
    let empty = get(&gateway, "channels/empty", "").await;
    assert_eq!(empty, json!({"occupied": false}));
    let users = get(&gateway, "channels/presence-room/users", "").await;
    assert_eq!(users, json!({"users": [{"id": "ann"}, {"id": "bob"}]}));
    for (path, query) in [
        ("channels", "info=user_count"),
        ("channels/news", "info=user_count"),
        ("channels/news/users", ""),
        ("channels/a%20b", ""),
    ] {
        let path = format!("/apps/7/{path}");
        assert_eq!(
            call(&gateway, "GET", &path, query, "").await.0,
            400,
            "{path}"
        );
    }
    let event = json!({
        "name": "e", "channels": ["news", "presence-room"], "data": "",
        "info": "subscription_count,user_count",
    });
    let (_, text) = post(&gateway, "events", &event).await;
    let channels = json!({"news": {"subscription_count": 1}, "presence-room": counts});
    assert_eq!(
        serde_json::from_str::<Value>(&text).unwrap(),
        json!({ "channels": channels })
    );
}

#[tokio::test]
async fn the_connections_of_a_user_are_terminated() {
    let gateway = Gateway::open(APP).await;
    let mut client = Pusher::connect(&gateway).await;
    let user_data = json!({"id": "u 7"}).to_string();
    let auth = auth(&format!("{}::user::{user_data}", client.socket_id));
    let data = json!({"auth": auth, "user_data": user_data});
    client
        .send(&json!({"event": "pusher:signin", "data": data}))
        .await;
    assert_eq!(client.next().await["event"], "pusher:signin_success");
    let mut other = Pusher::connect(&gateway).await;
    let reply = post(&gateway, "users/u%207/terminate_connections", &json!({})).await;
    assert_eq!(reply, (200, "{}".to_owned()));
    client.closed(4009).await;
    other.expect_nothing().await;
}

#[tokio::test]
async fn other_requests_are_refused() {
    let gateway = Gateway::open(APP).await;
    let body = json!({"name": "e", "channel": "a", "data": ""}).to_string();
    for (target, status) in [
        ("POST /apps/7/events".to_owned(), 401),
        (signed("POST", "/apps/7/events", "", "", 0), 401),
        (signed("POST", "/apps/7/events", "", "other", 0), 401),
        (signed("POST", "/apps/7/events", "", &body, 601), 401),
        (signed("POST", "/apps/7/events", "", &body, -601), 401),
        (signed("POST", "/apps/7/events", "", &body, 0) + "0", 401),
        (
            signed("POST", "/apps/7/batch_events", "", &body, 0).replace("batch_", ""),
            401,
        ),
        (signed("POST", "/apps/8/events", "", &body, 0), 404),
        (signed("POST", "/apps/7/other", "", &body, 0), 404),
        (signed("GET", "/apps/7/events", "", &body, 0), 404),
        (signed("POST", "/apps/7/channels/%ff", "", &body, 0), 404),
        (signed("POST", "/apps/7/events", "", &body, 599), 200),
    ] {
        let answer = request(gateway.address, &target, "", body.as_bytes()).await;
        assert_eq!(answer.status, status, "{target}");
    }
    let off = Gateway::open("").await;
    let (status, text) = post(&off, "events", &json!({})).await;
    assert_eq!(status, 404);
    assert!(text.contains("protocols.pusher = false"), "{text}");
}

#[tokio::test]
async fn an_address_with_many_wrong_signatures_is_refused() {
    let gateway = Gateway::open(APP).await;
    let wrong = signed("GET", "/apps/7/channels", "", "", 0) + "0";
    for _ in 0..20 {
        assert_eq!(request(gateway.address, &wrong, "", b"").await.status, 401);
    }
    let right = signed("GET", "/apps/7/channels", "", "", 0);
    let answer = request(gateway.address, &right, "", b"").await;
    assert_eq!(answer.status, 429);
    assert!(answer.head.to_ascii_lowercase().contains("retry-after"));
}

#[tokio::test]
async fn the_body_of_a_request_is_limited() {
    let toml = format!("{APP}[server]\nrequest_bytes_max = 1024\n");
    let gateway = Gateway::open(&toml).await;
    let body = "x".repeat(1_025);
    let (status, _) = call(&gateway, "POST", "/apps/7/events", "", &body).await;
    assert_eq!(status, 413);
}
