//! Presence channels.

use serde_json::json;

use super::{
    APP,
    client::{Pusher, data},
};
use crate::support::Gateway;

const ROOM: &str = "presence-room";

#[tokio::test]
async fn users_see_who_is_there_and_who_joins_and_leaves() {
    let gateway = Gateway::open(APP).await;
    let mut ann = Pusher::connect(&gateway).await;
    let presence = ann.join(ROOM, "ann").await;
    let expected = json!({"ids": ["ann"], "hash": {"ann": {"name": "ann"}}, "count": 1});
    assert_eq!(presence, expected);
    let mut bob = Pusher::connect(&gateway).await;
    let presence = bob.join(ROOM, "bob").await;
    assert_eq!(
        (&presence["ids"], &presence["count"]),
        (&json!(["ann", "bob"]), &json!(2))
    );
    let added = ann.event(ROOM, "pusher_internal:member_added").await;
    assert_eq!(
        added,
        json!({"user_id": "bob", "user_info": {"name": "bob"}})
    );
    bob.unsubscribe(ROOM).await;
    let removed = ann.event(ROOM, "pusher_internal:member_removed").await;
    assert_eq!(removed, json!({"user_id": "bob"}));
    bob.join(ROOM, "bob").await;
    ann.event(ROOM, "pusher_internal:member_added").await;
    drop(bob);
    ann.event(ROOM, "pusher_internal:member_removed").await;
    ann.expect_nothing().await;
}

#[tokio::test]
async fn a_user_with_several_connections_counts_once() {
    let gateway = Gateway::open(APP).await;
    let mut watcher = Pusher::connect(&gateway).await;
    watcher.join(ROOM, "watcher").await;
    let mut bobs = Vec::new();
    for _ in 0..3 {
        let mut bob = Pusher::connect(&gateway).await;
        let presence = bob.join(ROOM, "bob").await;
        assert_eq!(presence["count"], 2);
        bobs.push(bob);
    }
    watcher.event(ROOM, "pusher_internal:member_added").await;
    watcher.expect_nothing().await;
    bobs.pop();
    bobs[0].unsubscribe(ROOM).await;
    bobs[0].expect_nothing().await;
    watcher.expect_nothing().await;
    bobs.pop();
    drop(bobs);
    watcher.event(ROOM, "pusher_internal:member_removed").await;
}

#[tokio::test]
async fn a_user_who_returns_at_once_is_not_told_of_it() {
    let gateway = Gateway::open(APP).await;
    let mut ann = Pusher::connect(&gateway).await;
    for _ in 0..20 {
        assert_eq!(ann.join(ROOM, "ann").await["count"], 1);
        ann.unsubscribe(ROOM).await;
    }
    assert_eq!(ann.join(ROOM, "ann").await["count"], 1);
    ann.expect_nothing().await;
}

#[tokio::test]
async fn client_events_name_their_user() {
    let gateway = Gateway::open(APP).await;
    let mut clients = [
        Pusher::connect(&gateway).await,
        Pusher::connect(&gateway).await,
    ];
    clients[0].join(ROOM, "ann").await;
    clients[1].join(ROOM, "bob").await;
    // Who joins is told on another way than events, so that nothing orders the two.
    clients[0].event(ROOM, "pusher_internal:member_added").await;
    clients[1].trigger(ROOM, "client-hi", json!({})).await;
    let message = clients[0].next().await;
    assert_eq!(message["user_id"], "bob", "{message}");
    assert_eq!(data(&message), json!({}));
    clients[1].expect_nothing().await;
}

#[tokio::test]
async fn ids_may_be_numbers_and_info_may_be_missing() {
    let gateway = Gateway::open(APP).await;
    let mut client = Pusher::connect(&gateway).await;
    client.ask_as(ROOM, r#"{"user_id":10}"#).await;
    let succeeded = client.next().await;
    let presence = &data(&succeeded)["presence"];
    assert_eq!(
        *presence,
        json!({"ids": ["10"], "hash": {"10": null}, "count": 1})
    );
}

#[tokio::test]
async fn channel_data_is_checked() {
    let gateway = Gateway::open(APP).await;
    let mut client = Pusher::connect(&gateway).await;
    let long = |bytes: usize| "x".repeat(bytes);
    let info = json!({"user_id": "a", "user_info": long(1_023)}).to_string();
    let user = json!({"user_id": long(129)}).to_string();
    for channel_data in [
        "",
        "{}",
        "7",
        r#"{"user_id":""}"#,
        r#"{"user_id":null}"#,
        &info,
        &user,
    ] {
        client.ask_as(ROOM, channel_data).await;
        client.subscription_error(ROOM, 401).await;
    }
    let channel_data = json!({"user_id": long(128), "user_info": long(1_022)});
    client.ask_as(ROOM, &channel_data.to_string()).await;
    assert_eq!(
        client.next().await["event"],
        "pusher_internal:subscription_succeeded"
    );
}

#[tokio::test]
async fn the_number_of_users_is_limited() {
    let gateway = Gateway::open(&format!("{APP}presence_members_max = 2\n")).await;
    let mut clients = Vec::new();
    for user in ["a", "b", "b", "c"] {
        let mut client = Pusher::connect(&gateway).await;
        let channel_data = json!({"user_id": user}).to_string();
        client.ask_as(ROOM, &channel_data).await;
        match user {
            "c" => client.subscription_error(ROOM, 429).await,
            _ => assert_eq!(
                client.next().await["event"],
                "pusher_internal:subscription_succeeded"
            ),
        }
        clients.push(client);
    }
    let mut last = clients.pop().unwrap();
    clients.truncate(1);
    clients[0].event(ROOM, "pusher_internal:member_added").await;
    clients[0]
        .event(ROOM, "pusher_internal:member_removed")
        .await;
    last.join(ROOM, "c").await;
}
