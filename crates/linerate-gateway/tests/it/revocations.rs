//! Revoked tokens: which clients are disconnected, and which cannot connect.

use serde_json::{Value, json};

use crate::{
    http::request,
    support::{Gateway, Json, closed, error, seconds_from_now, token},
};

const OPTIONS: &str = "[channel]\nallow_subscribe = true\n";

/// Returns the reply to a client that connects with a token.
async fn connect(gateway: &Gateway, token: &str) -> Value {
    let command = json!({"id": 1, "connect": {"token": token}});
    Json::open(gateway).await.ask(&command.to_string()).await
}

#[tokio::test]
async fn a_revoked_token_ends_its_connection_and_opens_no_other() {
    let gateway = Gateway::guarded(OPTIONS).await;
    let claims = |id: &str| token(&json!({"sub": "ann", "jti": id}));
    let (bad, good) = (claims("bad"), claims("good"));
    let mut ended = Json::connect_with(&gateway, &bad).await;
    let mut raw = gateway
        .raw(&linerate::Client::new(), &format!("channel=a&token={bad}"))
        .await;
    let mut stays = Json::connect_with(&gateway, &good).await;
    gateway.api("revoke_token", &json!({"uid": "bad"})).await;
    assert_eq!(ended.closed(3005).await, "token revoked");
    assert_eq!(closed(&mut raw, 3005).await, "token revoked");
    stays.subscribe("a").await;
    let refused = connect(&gateway, &bad).await;
    assert_eq!(error(&refused), (109, "token revoked"), "SDKs get another");
    let target = format!("GET /sse?channel=a&token={bad}");
    let answer = request(gateway.address, &target, "", b"").await;
    assert_eq!(answer.status, 401, "{}", answer.head);
    let refresh = json!({"id": 3, "refresh": {"token": bad}});
    assert_eq!(error(&stays.ask(&refresh.to_string()).await).0, 113);
    assert!(connect(&gateway, &good).await["connect"].is_object());
}

#[tokio::test]
async fn tokens_of_a_user_are_revoked_by_when_they_were_issued() {
    let gateway = Gateway::guarded(OPTIONS).await;
    let issued = |user: &str, at: i64| token(&json!({"sub": user, "iat": seconds_from_now(at)}));
    let (old, new) = (issued("ann", -100), issued("ann", -10));
    let mut ended = Json::connect_with(&gateway, &old).await;
    // This client replaces its token in time.
    let mut renewed = Json::connect_with(&gateway, &old).await;
    let refresh = json!({"id": 2, "refresh": {"token": new}});
    assert!(renewed.ask(&refresh.to_string()).await["refresh"].is_object());
    let mut other = Json::connect_with(&gateway, &issued("bob", -100)).await;
    let which = json!({"user": "ann", "issued_before": seconds_from_now(-50)});
    gateway.api("invalidate_user_tokens", &which).await;
    ended.closed(3005).await;
    renewed.subscribe("a").await;
    other.subscribe("a").await;
    assert_eq!(error(&connect(&gateway, &old).await).0, 109);
    let undated = token(&json!({"sub": "ann"}));
    assert_eq!(error(&connect(&gateway, &undated).await).0, 109);
    assert!(connect(&gateway, &new).await["connect"].is_object());
    let which = json!({"issued_before": seconds_from_now(-5)});
    gateway.api("invalidate_tokens", &which).await;
    renewed.closed(3005).await;
    other.closed(3005).await;
}

#[tokio::test]
async fn a_revoked_token_for_a_channel_ends_its_subscription_only() {
    let gateway = Gateway::guarded("").await;
    let ann = token(&json!({"sub": "ann", "jti": "connection"}));
    let channel = token(&json!({"sub": "ann", "jti": "subscription", "channel": "news"}));
    let mut client = Json::connect_with(&gateway, &ann).await;
    let subscribe =
        json!({"id": 2, "subscribe": {"channel": "news", "token": channel}}).to_string();
    assert!(client.ask(&subscribe).await["subscribe"].is_object());
    gateway
        .api("revoke_token", &json!({"uid": "subscription"}))
        .await;
    let push = client.next().await;
    let told = &push["push"]["unsubscribe"];
    assert_eq!(
        (&told["code"], &told["reason"]),
        (&json!(2501), &json!("token revoked")),
        "{push}"
    );
    assert_eq!(error(&client.ask(&subscribe).await).0, 109);
    let refresh = json!({"id": 3, "refresh": {"token": ann}}).to_string();
    assert!(client.ask(&refresh).await["refresh"].is_object());
}
