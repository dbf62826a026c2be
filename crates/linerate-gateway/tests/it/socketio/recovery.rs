//! Connection state recovery: clients that return to their sessions.

use serde_json::{Value, json};

use super::{
    ON,
    client::SocketIo,
    polling_client::Polling,
    returning::{RECOVERY, Session, close, connect, join},
};
use crate::support::{Gateway, config};

async fn start() -> Gateway {
    Gateway::open(RECOVERY).await
}

#[tokio::test]
async fn a_client_returns_and_receives_what_it_has_missed() {
    let gateway = start().await;
    let (mut client, mut session) = connect(&gateway).await;
    gateway.publish("all", "1").await;
    session.expect(&mut client, &[1]).await;
    drop(client);
    gateway.publish("all", "2").await;
    gateway.publish("all", "3").await;
    let mut client = session.resume(&gateway).await;
    gateway.publish("all", "4").await;
    session.expect(&mut client, &[2, 3, 4]).await;
    // The session can be resumed again, here without an event in between.
    close(client).await;
    let client = session.resume(&gateway).await;
    drop(client);
    gateway.publish("all", "5").await;
    let mut client = session.resume(&gateway).await;
    session.expect(&mut client, &[5]).await;
    client.expect_nothing().await;
}

#[tokio::test]
async fn what_was_sent_but_has_not_arrived_is_sent_again() {
    let gateway = start().await;
    let (mut client, mut session) = connect(&gateway).await;
    let rooms = ["all", &*session.sid.clone(), "all", "all"];
    for (number, room) in (1..).zip(rooms) {
        gateway.publish(room, &number.to_string()).await;
        // One after the other, so that the order is known.
        let mut ignored = session.clone();
        ignored.expect(&mut client, &[number]).await;
        if number <= 2 {
            session.offset = ignored.offset;
        }
    }
    drop(client);
    gateway.publish(&session.sid, "5").await;
    let mut client = session.resume(&gateway).await;
    let mut found = Vec::new();
    for _ in 0..3 {
        found.push(session.event(&mut client).await);
    }
    found.sort_by_key(Value::as_u64);
    assert_eq!(found, [3, 4, 5]);
    client.expect_nothing().await;
}

#[tokio::test]
async fn a_client_that_has_received_nothing_receives_everything() {
    let gateway = start().await;
    gateway.publish("all", "0").await;
    let (client, mut session) = connect(&gateway).await;
    gateway.publish("all", "1").await;
    drop(client);
    gateway.publish("all", "2").await;
    let mut client = session.resume(&gateway).await;
    session.expect(&mut client, &[1, 2]).await;
}

#[tokio::test]
async fn the_offset_of_an_earlier_session_is_no_offset_of_this_one() {
    let gateway = start().await;
    let (mut client, mut earlier) = connect(&gateway).await;
    gateway.publish("all", "1").await;
    earlier.expect(&mut client, &[1]).await;
    gateway.publish("all", "2").await;
    // A client keeps its last offset even if it gets a new session.
    let (client, mut session) = connect(&gateway).await;
    session.offset = earlier.offset;
    gateway.publish("all", "3").await;
    drop(client);
    let mut client = session.resume(&gateway).await;
    session.expect(&mut client, &[3]).await;
}

#[tokio::test]
async fn events_keep_their_form_with_an_offset_after_the_arguments() {
    let gateway = start().await;
    let (mut client, mut session) = connect(&gateway).await;
    gateway
        .publish("all", r#"{"event":"moved","args":[1,"a"]}"#)
        .await;
    assert_eq!(session.event(&mut client).await, json!(["moved", 1, "a"]));
    gateway
        .publish("all", r#"{"event":"moved","args":[]}"#)
        .await;
    assert_eq!(session.event(&mut client).await, json!(["moved"]));
    gateway.publish_bytes("all", b"\xff").await;
    let packet = client.text().await;
    let start = r#"451-["message",{"_placeholder":true,"num":0},""#;
    assert!(packet.starts_with(start), "{packet}");
}

#[tokio::test]
async fn each_namespace_has_its_own_session() {
    let gateway = start().await;
    let mut client = SocketIo::open(&gateway).await;
    let mut main = Session::begin(&mut client, "40", json!({})).await;
    let mut chat = Session::begin(&mut client, "40/chat,", json!({})).await;
    assert_eq!(main.sid, chat.sid);
    assert_ne!(main.pid, chat.pid);
    gateway.publish("/chat:all", "1").await;
    chat.expect(&mut client, &[1]).await;
    drop(client);
    gateway.publish("all", "2").await;
    gateway.publish("/chat:all", "3").await;
    let mut client = main.resume(&gateway).await;
    main.expect(&mut client, &[2]).await;
    let auth = chat.auth();
    assert!(chat.is_resumed_on(&mut client, auth).await);
    chat.expect(&mut client, &[3]).await;
    // A session that was left on purpose is not resumed, and the other one is not affected.
    client.send("41/chat,").await;
    close(client).await;
    let mut client = main.resume(&gateway).await;
    let found = Session::begin(&mut client, "40/chat,", chat.auth()).await;
    assert_ne!(found.pid, chat.pid);
    assert_eq!(found.sid, chat.sid);
}

#[tokio::test]
async fn rooms_that_the_application_has_chosen_stay() {
    let gateway = start().await;
    let (mut client, mut session) = connect(&gateway).await;
    for channel in ["a", "b"] {
        join(&gateway, &mut client, &session.sid, channel).await;
    }
    let change = json!({"client": session.sid, "user": "", "channel": "b"});
    gateway.api("unsubscribe", &change).await;
    client.expect_nothing().await;
    drop(client);
    gateway.publish("b", "1").await;
    gateway.publish("a", "2").await;
    let mut client = session.resume(&gateway).await;
    session.expect(&mut client, &[2]).await;
    gateway.publish("b", "3").await;
    gateway.publish("a", "4").await;
    session.expect(&mut client, &[4]).await;
    // Also the second time.
    drop(client);
    gateway.publish("a", "5").await;
    let mut client = session.resume(&gateway).await;
    session.expect(&mut client, &[5]).await;
    client.expect_nothing().await;
}

#[tokio::test]
async fn events_of_a_room_that_was_left_before_they_arrived_make_the_session_a_new_one() {
    let gateway = start().await;
    let (mut client, session) = connect(&gateway).await;
    join(&gateway, &mut client, &session.sid, "a").await;
    gateway.publish("a", "1").await;
    session.clone().expect(&mut client, &[1]).await;
    let change = json!({"client": session.sid, "user": "", "channel": "a"});
    gateway.api("unsubscribe", &change).await;
    client.expect_nothing().await;
    drop(client);
    session.is_lost(&gateway).await;
}

#[tokio::test]
async fn a_session_is_new_if_the_history_does_not_reach_back() {
    let gateway = start().await;
    let (mut client, mut session) = connect(&gateway).await;
    gateway.publish("all", "0").await;
    session.expect(&mut client, &[0]).await;
    drop(client);
    for number in 1..=11 {
        gateway.publish("all", &number.to_string()).await;
    }
    session.is_lost(&gateway).await;
}

#[tokio::test]
async fn a_session_is_new_if_publications_were_removed() {
    let gateway = start().await;
    let (mut client, mut session) = connect(&gateway).await;
    gateway.publish("all", "0").await;
    session.expect(&mut client, &[0]).await;
    drop(client);
    gateway.publish("all", "1").await;
    let channel = json!({"channel": "all"});
    gateway.api("history_remove", &channel).await;
    session.is_lost(&gateway).await;
}

#[tokio::test]
async fn what_is_not_to_be_stored_is_volatile() {
    let gateway = start().await;
    let (mut client, mut session) = connect(&gateway).await;
    gateway.publish("all", "1").await;
    session.expect(&mut client, &[1]).await;
    let volatile = json!({"channel": "all", "data": 2, "skip_history": true});
    gateway.api("publish", &volatile).await;
    client.expect(&[r#"42["message",2]"#]).await;
    drop(client);
    gateway.api("publish", &volatile).await;
    gateway.publish("all", "3").await;
    let mut client = session.resume(&gateway).await;
    session.expect(&mut client, &[3]).await;
    client.expect_nothing().await;
}

#[tokio::test]
async fn a_session_can_be_resumed_for_a_limited_time() {
    let gateway = Gateway::open(&RECOVERY.replace("recovery_s = 60", "recovery_s = 1")).await;
    let (client, mut session) = connect(&gateway).await;
    drop(client);
    let client = session.resume(&gateway).await;
    drop(client);
    tokio::time::sleep(std::time::Duration::from_millis(1_500)).await;
    session.is_lost(&gateway).await;
}

#[tokio::test]
async fn clients_in_rooms_without_a_history_in_the_broker_have_no_private_id() {
    for toml in [
        ON.to_owned(),
        RECOVERY.replace("recovery_s = 60", ""),
        RECOVERY.replace("durable = true", "durable = false"),
        RECOVERY.replace("recover = true", "recover = false"),
        format!("{RECOVERY}conflate = \"latest\"\n"),
        format!("{RECOVERY}recovery = \"cache\"\n"),
    ] {
        let gateway = Gateway::open(&toml).await;
        let (mut client, sid) = SocketIo::connect(&gateway).await;
        client.send("40").await;
        assert_eq!(
            client.text().await,
            format!(r#"40{{"sid":"{sid}"}}"#),
            "{toml}"
        );
        gateway.publish("all", "1").await;
        client.expect(&[r#"42["message",1]"#]).await;
    }
}

#[tokio::test]
async fn a_room_without_a_history_makes_the_next_session_a_new_one() {
    let toml = format!("{RECOVERY}[[namespace]]\nname = \"volatile\"\ndurable = false\n");
    let gateway = Gateway::open(&toml).await;
    let (mut client, session) = connect(&gateway).await;
    join(&gateway, &mut client, &session.sid, "volatile:a").await;
    gateway.publish("volatile:a", "1").await;
    client.expect(&[r#"42["message",1]"#]).await;
    drop(client);
    session.is_lost(&gateway).await;
}

#[tokio::test]
async fn the_setting_can_be_changed() {
    let gateway = start().await;
    let (client, mut session) = connect(&gateway).await;
    drop(client);
    drop(session.resume(&gateway).await);
    let off = RECOVERY.replace("recovery_s = 60", "recovery_s = 0");
    gateway.reload(config(&off));
    let (mut client, _) = SocketIo::connect(&gateway).await;
    gateway.publish("all", "1").await;
    client.expect(&[r#"42["message",1]"#]).await;
}

#[tokio::test]
async fn a_client_that_polls_returns() {
    let gateway = start().await;
    let (polling, _) = Polling::connect(&gateway).await;
    polling.send("40").await;
    let connected = polling.poll().await;
    let connected: Value = serde_json::from_str(&connected["40".len()..]).unwrap();
    let pid = connected["pid"].as_str().unwrap();
    gateway.publish("all", "1").await;
    let event = polling.poll().await;
    let event: Vec<Value> = serde_json::from_str(&event["42".len()..]).unwrap();
    gateway.publish("all", "2").await;
    polling.send("1").await;
    gateway.publish("all", "3").await;
    let auth = json!({"pid": pid, "offset": event[2]});
    loop {
        let polling = Polling::open(&gateway).await;
        polling.send(&format!("40{auth}")).await;
        let packets = polling.poll().await;
        if packets.contains(pid) {
            let mut packets = packets.split('\u{1e}').skip(1).map(str::to_owned);
            let packets: Vec<_> = match packets.next() {
                Some(first) => [first].into_iter().chain(packets).collect(),
                None => polling
                    .poll()
                    .await
                    .split('\u{1e}')
                    .map(str::to_owned)
                    .collect(),
            };
            let starts = [r#"42["message",2,"#, r#"42["message",3,"#];
            assert_eq!(packets.len(), 2);
            assert!(
                packets
                    .iter()
                    .zip(starts)
                    .all(|(packet, start)| packet.starts_with(start))
            );
            return;
        }
    }
}
