//! Clients that must not return to a session, and what they present.

use serde_json::{Value, json};

use super::{
    client::{Arrived, SocketIo},
    returning::{RECOVERY, Session, close, connect, losses_are_noticed},
};
use crate::support::{Gateway, seconds_from_now, token};

#[tokio::test]
async fn what_no_session_has_begins_a_new_one() {
    let gateway = Gateway::open(RECOVERY).await;
    let (mut client, mut session) = connect(&gateway).await;
    gateway.publish("all", "1").await;
    session.expect(&mut client, &[1]).await;
    drop(client);
    losses_are_noticed(&gateway).await;
    let stranger = "A".repeat(22);
    let long = "A".repeat(30_000);
    let offset = session.offset.clone().unwrap();
    for auth in [
        json!({"pid": stranger}),
        json!({"pid": stranger, "offset": offset}),
        json!({"pid": long, "offset": long}),
        json!({"pid": "", "offset": ""}),
        json!({"pid": session.sid}),
        json!({"pid": 1, "offset": offset}),
        json!({"pid": [session.pid], "offset": {}}),
        // The ID of the session is right, but not the offset: the session stays.
        json!({"pid": session.pid, "offset": long}),
        json!({"pid": session.pid, "offset": 1}),
        json!({"pid": session.pid, "offset": "hello"}),
        json!({"pid": session.pid, "offset": "AAAAAAAAAAA.18446744073709551616"}),
    ] {
        let mut client = SocketIo::open(&gateway).await;
        assert!(!session.is_resumed_on(&mut client, auth).await);
        client.expect_nothing().await;
    }
    session.resume(&gateway).await;
}

#[tokio::test]
async fn an_offset_beyond_what_was_sent_delivers_nothing_twice_and_skips_nothing() {
    let gateway = Gateway::open(RECOVERY).await;
    let (mut client, mut session) = connect(&gateway).await;
    gateway.publish("all", "1").await;
    session.expect(&mut client, &[1]).await;
    drop(client);
    gateway.publish("all", "2").await;
    let (stream, _) = session.offset.as_deref().unwrap().split_once('.').unwrap();
    session.offset = Some(format!("{stream}.{}", u64::MAX));
    // It is treated as that of another session: the client has received nothing in this one.
    let mut client = session.resume(&gateway).await;
    session.expect(&mut client, &[1, 2]).await;
    client.expect_nothing().await;
}

#[tokio::test]
async fn one_of_several_connections_has_the_session() {
    let gateway = Gateway::open(RECOVERY).await;
    let (client, session) = connect(&gateway).await;
    close(client).await;
    losses_are_noticed(&gateway).await;
    let mut clients = Vec::new();
    for _ in 0..8 {
        let mut client = SocketIo::open(&gateway).await;
        client.send(&format!("40{}", session.auth())).await;
        clients.push(client);
    }
    for client in &mut clients {
        client.text().await;
    }
    gateway.publish(&session.sid, "1").await;
    gateway.publish("all", "2").await;
    let mut received = 0;
    for client in &mut clients {
        loop {
            match client.next().await {
                // The session has passed to another connection.
                Arrived::Closed(code) => break assert_eq!(code, 3012),
                Arrived::Text(text) if text.starts_with(r#"42["message",2"#) => break,
                Arrived::Text(text) => {
                    assert!(text.starts_with(r#"42["message",1,"#), "{text}");
                    received += 1;
                }
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(received, 1);
}

#[tokio::test]
async fn a_connection_whose_loss_was_not_noticed_is_closed_when_its_client_returns() {
    let gateway = Gateway::open(RECOVERY).await;
    let (mut client, mut session) = connect(&gateway).await;
    gateway.publish("all", "1").await;
    session.expect(&mut client, &[1]).await;
    gateway.publish("all", "2").await;
    let mut again = SocketIo::open(&gateway).await;
    assert!(session.is_resumed_on(&mut again, session.auth()).await);
    session.expect(&mut again, &[2]).await;
    session.clone().expect(&mut client, &[2]).await;
    client.closed(3012).await;
    gateway.publish(&session.sid, "3").await;
    session.expect(&mut again, &[3]).await;
}

#[tokio::test]
async fn the_connection_of_another_user_is_not_closed() {
    let (gateway, mut client, mut session) = guarded(json!({"sub": "ann"})).await;
    let stolen = present(&gateway, &session, &token(&json!({"sub": "bob"}))).await;
    assert!(!stolen.contains(&session.pid));
    gateway.publish(&session.sid, "1").await;
    session.expect(&mut client, &[1]).await;
}

/// Starts a server that wants tokens, and begins a session with one.
async fn guarded(claims: Value) -> (Gateway, SocketIo, Session) {
    let gateway = Gateway::guarded(RECOVERY).await;
    let mut client = SocketIo::open(&gateway).await;
    let auth = json!({"token": token(&claims)});
    let session = Session::begin(&mut client, "40", auth).await;
    (gateway, client, session)
}

/// Connects as a client that returns does, with a token, and returns the answer.
async fn present(gateway: &Gateway, session: &Session, token: &str) -> String {
    let mut client = SocketIo::open(gateway).await;
    let mut auth = session.auth();
    auth["token"] = token.into();
    client.send(&format!("40{auth}")).await;
    client.text().await
}

/// Waits until the loss of the connection has been noticed.
async fn is_stored(gateway: &Gateway, claims: &Value) {
    let token = token(claims);
    let mut client = SocketIo::open(gateway).await;
    let session = Session::begin(&mut client, "40", json!({"token": token})).await;
    drop(client);
    while !present(gateway, &session, &token)
        .await
        .contains(&session.pid)
    {}
}

#[tokio::test]
async fn another_user_does_not_get_the_session() {
    let claims = json!({"sub": "ann"});
    let (gateway, client, session) = guarded(claims.clone()).await;
    drop(client);
    is_stored(&gateway, &claims).await;
    let stolen = present(&gateway, &session, &token(&json!({"sub": "bob"}))).await;
    assert!(stolen.starts_with(r#"40{"sid":"#), "{stolen}");
    assert!(!stolen.contains(&session.pid) && !stolen.contains(&session.sid));
}

#[tokio::test]
async fn an_expired_token_is_refused_and_a_new_one_returns_to_the_session() {
    let claims = json!({"sub": "ann"});
    let (gateway, client, session) = guarded(claims.clone()).await;
    drop(client);
    is_stored(&gateway, &claims).await;
    let expired = token(&json!({"sub": "ann", "exp": seconds_from_now(-60)}));
    let refused = present(&gateway, &session, &expired).await;
    assert!(refused.contains(r#""code":109"#), "{refused}");
    let returned = present(&gateway, &session, &token(&claims)).await;
    assert!(returned.contains(&session.pid), "{returned}");
}

#[tokio::test]
async fn a_client_that_is_granted_other_rooms_gets_a_new_session() {
    for now in [json!([]), json!(["a", "b"]), json!(["b"])] {
        let claims = json!({"sub": "ann", "channels": ["a"]});
        let (gateway, client, session) = guarded(claims.clone()).await;
        drop(client);
        is_stored(&gateway, &claims).await;
        let token = token(&json!({"sub": "ann", "channels": now}));
        let answer = present(&gateway, &session, &token).await;
        assert!(!answer.contains(&session.pid), "{answer}");
    }
}

#[tokio::test]
async fn a_client_that_the_application_has_disconnected_does_not_return() {
    let gateway = Gateway::open(RECOVERY).await;
    for code in [3503, 4000] {
        let (mut client, session) = connect(&gateway).await;
        let whom = json!({"user": "", "client": session.sid, "disconnect": {"code": code, "reason": "bye"}});
        gateway.api("disconnect", &whom).await;
        loop {
            match client.next().await {
                Arrived::Closed(closed) => break assert_eq!(closed, code),
                other => assert_eq!(other, Arrived::Text("41".into())),
            }
        }
        session.is_lost(&gateway).await;
    }
}

#[tokio::test]
async fn a_client_that_has_left_or_broken_the_protocol_does_not_return() {
    let gateway = Gateway::open(RECOVERY).await;
    for last in ["41", "nonsense"] {
        let (mut client, session) = connect(&gateway).await;
        client.send(last).await;
        if last == "41" {
            close(client).await;
        } else {
            client.expect(&["41"]).await;
            client.closed(3501).await;
        }
        session.is_lost(&gateway).await;
    }
}
