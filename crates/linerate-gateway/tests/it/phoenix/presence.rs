//! Who is in a topic.

use serde_json::{Value, json};

use super::{
    ON,
    client::{PATH, Phoenix, ok},
};
use crate::support::{Gateway, token};

const PRESENCE: &str = "[channel]\nallow_subscribe = true\npresence = true\njoin_leave = true\nallow_presence = true\n";

async fn connect(gateway: &Gateway, user: &str) -> Phoenix {
    let token = token(&json!({"sub": user, "info": {"name": user}}));
    Phoenix::open(gateway, &format!("{PATH}&token={token}")).await
}

/// Joins a topic and returns who is in it. Diffs may arrive before.
async fn join(client: &mut Phoenix, topic: &str) -> Value {
    assert_eq!(client.join(topic, json!({})).await, ok(json!({})));
    loop {
        let mut message = client.json().await;
        match message[3].as_str() {
            Some("presence_diff") => {}
            _ => {
                let state = message[4].take();
                assert_eq!(message, json!(["1", null, topic, "presence_state", null]));
                return state;
            }
        }
    }
}

/// Returns the names of the users with the number of their connections.
fn users(state: &Value) -> Vec<(&str, usize)> {
    let users = state.as_object().unwrap().iter();
    users
        .map(|(user, entry)| (user.as_str(), entry["metas"].as_array().unwrap().len()))
        .collect()
}

#[tokio::test]
async fn clients_see_who_is_there_and_who_joins_and_leaves() {
    let gateway = Gateway::guarded(&format!("{ON}{PRESENCE}")).await;
    let mut ann = connect(&gateway, "ann").await;
    let state = join(&mut ann, "room:1").await;
    assert_eq!(users(&state), [("ann", 1)]);
    assert_eq!(state["ann"]["metas"][0]["name"], "ann");
    let mut bob = connect(&gateway, "bob").await;
    let state = join(&mut bob, "room:1").await;
    assert_eq!(users(&state), [("ann", 1), ("bob", 1)]);
    let mut joined = next_diff(&mut ann).await;
    while users(&joined["joins"]) != [("bob", 1)] {
        joined = next_diff(&mut ann).await;
    }
    assert_eq!(joined["leaves"], json!({}));
    let reference = &joined["joins"]["bob"]["metas"][0]["phx_ref"];
    bob.send(json!(["1", "2", "room:1", "phx_leave", {}])).await;
    let left = next_diff(&mut ann).await;
    assert_eq!(left["joins"], json!({}));
    assert_eq!(&left["leaves"]["bob"]["metas"][0]["phx_ref"], reference);
}

async fn next_diff(client: &mut Phoenix) -> Value {
    let mut message = client.json().await;
    let diff = message[4].take();
    assert_eq!(
        message,
        json!([null, null, "room:1", "presence_diff", null])
    );
    diff
}

#[tokio::test]
async fn connections_of_a_user_are_entries_of_one_user() {
    let gateway = Gateway::guarded(&format!("{ON}{PRESENCE}")).await;
    let mut first = connect(&gateway, "ann").await;
    join(&mut first, "room:1").await;
    let mut second = connect(&gateway, "ann").await;
    let state = join(&mut second, "room:1").await;
    assert_eq!(users(&state), [("ann", 2)]);
}

#[tokio::test]
async fn a_channel_without_presence_has_none() {
    let toml = format!("{ON}[channel]\nallow_subscribe = true\n");
    let gateway = Gateway::guarded(&toml).await;
    let mut client = connect(&gateway, "ann").await;
    client.join("room:1", json!({})).await;
    client.expect_nothing().await;
}
