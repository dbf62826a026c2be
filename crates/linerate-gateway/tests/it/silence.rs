//! Clients that vanish, trickle, or never close: each is disconnected in time, and its resources
//! are released.

use linerate_testkit::Frame;

use crate::{
    bare::{Bare, is_closed_with},
    http::request,
    support::{Gateway, Json, in_time},
};

const IMPATIENT: &str = "[client]\nping_interval_s = 1\npong_timeout_s = 1";

/// Connects a client that follows who joins and leaves `demo:x`.
async fn watcher(gateway: &Gateway) -> Json {
    let mut watcher = Json::connect(gateway).await;
    watcher
        .ask(r#"{"id":2,"subscribe":{"channel":"demo:x","join_leave":true}}"#)
        .await;
    assert!(watcher.next().await["push"]["join"].is_object());
    watcher
}

/// Waits until only the watcher is left.
async fn only_one_is_left(gateway: &Gateway, watcher: &mut Json) {
    let gone = async {
        while gateway.info().clients > 1 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    in_time(gone).await;
    assert_eq!(gateway.info().subscriptions, 1);
    watcher
        .send(r#"{"id":3,"presence_stats":{"channel":"demo:x"}}"#)
        .await;
    let reply = watcher.next_reply().await;
    assert_eq!(reply["presence_stats"]["num_clients"], 1, "{reply}");
}

#[tokio::test]
async fn r04_a_client_that_vanished_is_gone_with_all_that_it_held() {
    let gateway = Gateway::open(IMPATIENT).await;
    let mut watcher = watcher(&gateway).await;
    // The client answers no pings, and sends no FIN either.
    let vanished = Bare::subscribe(&gateway, "demo:x").await;
    let join = watcher.next().await;
    let leave = watcher.next().await;
    assert_eq!(
        leave["push"]["leave"]["info"]["client"],
        join["push"]["join"]["info"]["client"]
    );
    only_one_is_left(&gateway, &mut watcher).await;
    let said = vanished.rest().await;
    assert!(is_closed_with(&said, 3012), "{}", said.escape_ascii());
}

#[tokio::test]
async fn r04_a_raw_client_that_vanished_is_gone_with_all_that_it_held() {
    let gateway = Gateway::open(IMPATIENT).await;
    let mut watcher = watcher(&gateway).await;
    let vanished = Bare::open(&gateway, "/raw?channel=demo:x").await;
    assert!(watcher.next().await["push"]["join"].is_object());
    assert!(watcher.next().await["push"]["leave"].is_object());
    only_one_is_left(&gateway, &mut watcher).await;
    let said = vanished.rest().await;
    assert!(said.contains(&0x89), "pinged: {}", said.escape_ascii());
}

#[tokio::test]
async fn r04_a_stream_whose_client_answers_no_ping_ends() {
    let gateway = Gateway::open(IMPATIENT).await;
    let connect = br#"{"id":1,"connect":{}}"#;
    let target = "POST /connection/http_stream";
    let mut answer = request(gateway.address, target, "", connect).await;
    let said = answer.rest().await;
    assert!(said.contains(r#""code":3012"#), "{said}");
    assert_eq!(gateway.info().clients, 0);
}

/// Returns the header of a message that claims to be long.
fn claim() -> Vec<u8> {
    let claim = Frame::new(1, b"").with_claimed_bytes(60_000);
    claim.with_mask(Some(*b"mask")).to_bytes()
}

#[tokio::test]
async fn r03_a_message_that_trickles_in_ends_the_connection_of_a_listener() {
    let gateway = Gateway::open("[client]\nmessage_timeout_s = 1").await;
    let mut slow = Bare::open(&gateway, "/raw?channel=demo:x").await;
    slow.write(&claim()).await;
    let said = slow.trickle().await;
    assert!(is_closed_with(&said, 3502), "{}", said.escape_ascii());
    assert_eq!(gateway.info().subscriptions, 0);
}

#[tokio::test]
async fn r03_a_command_that_trickles_in_ends_the_connection() {
    let gateway = Gateway::open(IMPATIENT).await;
    let mut slow = Bare::subscribe(&gateway, "demo:x").await;
    slow.write(&claim()).await;
    let said = slow.trickle().await;
    assert!(is_closed_with(&said, 3012), "{}", said.escape_ascii());
    assert_eq!(gateway.info().subscriptions, 0);
}

#[tokio::test]
async fn r05_a_client_that_never_answers_a_close_frame_is_cut_off() {
    let gateway = Gateway::open("").await;
    let mut rude = Bare::open(&gateway, "/connection/websocket").await;
    rude.send("no command").await;
    let said = rude.rest().await;
    assert!(is_closed_with(&said, 3501), "{}", said.escape_ascii());
}
