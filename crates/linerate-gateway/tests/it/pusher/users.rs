//! Users of connections.

use serde_json::json;

use super::{
    APP,
    client::{Pusher, auth, data},
};
use crate::support::Gateway;

async fn ask_to_sign_in(client: &mut Pusher, user_data: &str) {
    let auth = auth(&format!("{}::user::{user_data}", client.socket_id));
    let data = json!({"auth": auth, "user_data": user_data});
    client
        .send(&json!({"event": "pusher:signin", "data": data}))
        .await;
}

async fn sign_in(client: &mut Pusher, user: &str) {
    let user_data = json!({"id": user, "name": "N"}).to_string();
    ask_to_sign_in(client, &user_data).await;
    let success = client.next().await;
    assert_eq!(success["event"], "pusher:signin_success", "{success}");
    assert_eq!(data(&success)["user_data"], user_data);
}

#[tokio::test]
async fn a_user_gets_the_events_for_the_user() {
    let gateway = Gateway::open(APP).await;
    let mut client = Pusher::connect(&gateway).await;
    client.ask("#server-to-user-7", "", None).await;
    client.subscription_error("#server-to-user-7", 401).await;
    sign_in(&mut client, "7").await;
    client.ask("#server-to-user-8", "", None).await;
    client.subscription_error("#server-to-user-8", 401).await;
    client.ask("#server-to-user-7", "", None).await;
    assert_eq!(
        client.next().await["event"],
        "pusher_internal:subscription_succeeded"
    );
    gateway.publish("#server-to-user-7", "1").await;
    assert_eq!(client.event("#server-to-user-7", "message").await, 1);
}

#[tokio::test]
async fn a_wrong_user_ends_the_connection() {
    let gateway = Gateway::open(APP).await;
    for user_data in ["", "{}", r#"{"id":""}"#, r#"{"id":7}"#] {
        let mut client = Pusher::connect(&gateway).await;
        ask_to_sign_in(&mut client, user_data).await;
        client.closed(4009).await;
    }
    let mut client = Pusher::connect(&gateway).await;
    let data = json!({"auth": auth("1.1::user::{\"id\":\"7\"}"), "user_data": "{\"id\":\"7\"}"});
    client
        .send(&json!({"event": "pusher:signin", "data": data}))
        .await;
    client.closed(4009).await;
    let mut client = Pusher::connect(&gateway).await;
    sign_in(&mut client, "7").await;
    sign_in(&mut client, "7").await;
    ask_to_sign_in(&mut client, r#"{"id":"8"}"#).await;
    client.closed(4009).await;
}

#[tokio::test]
async fn a_signed_in_user_joins_presence_channels_without_channel_data() {
    let gateway = Gateway::open(APP).await;
    let mut client = Pusher::connect(&gateway).await;
    sign_in(&mut client, "7").await;
    let auth = auth(&format!("{}:presence-a", client.socket_id));
    client.ask("presence-a", &auth, None).await;
    let succeeded = client.next().await;
    assert_eq!(
        data(&succeeded)["presence"]["ids"],
        json!(["7"]),
        "{succeeded}"
    );
}

#[tokio::test]
async fn the_connections_of_a_user_are_limited_and_can_be_ended() {
    let toml = format!("{APP}[server]\nconnections_per_user_max = 1\n");
    let gateway = Gateway::guarded(&toml).await;
    let mut client = Pusher::connect(&gateway).await;
    sign_in(&mut client, "7").await;
    let mut second = Pusher::connect(&gateway).await;
    ask_to_sign_in(&mut second, r#"{"id":"7"}"#).await;
    second.closed(4004).await;
    gateway.api("disconnect", &json!({"user": "7"})).await;
    client.closed(4009).await;
}
