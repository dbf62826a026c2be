use tokio::sync::oneshot::{self, Receiver, error::TryRecvError};

use super::{Name, ReplyOutcome, Subscription, SubscriptionKind, Subscriptions, Target};
use crate::{
    broker::BrokerError,
    redis::resp::{Reply, RespError},
};

fn name(text: &str) -> Name {
    text.as_bytes().into()
}

fn subscribe(
    subscriptions: &mut Subscriptions,
    text: &str,
    kind: SubscriptionKind,
) -> Receiver<Result<(), BrokerError>> {
    let (waiter, ready) = oneshot::channel();
    let subscription = Subscription {
        kind,
        target: Target::Control,
        waiters: vec![waiter],
    };
    subscriptions.subscribe(name(text), subscription);
    ready
}

/// Returns the commands that were sent, one per line.
fn flush(subscriptions: &mut Subscriptions) -> Vec<String> {
    let mut out = Vec::new();
    subscriptions.flush(&mut out);
    let text = String::from_utf8(out).unwrap();
    let words = text
        .split("\r\n")
        .filter(|line| !line.is_empty() && !line.starts_with('$'));
    let mut commands: Vec<String> = Vec::new();
    for word in words {
        match (word.starts_with('*'), commands.last_mut()) {
            (false, Some(command)) if command.is_empty() => command.push_str(word),
            (false, Some(command)) => *command = format!("{command} {word}"),
            _ => commands.push(String::new()),
        }
    }
    commands
}

fn subscribed(subscriptions: &mut Subscriptions, name: &str) {
    let reply = Reply::Subscribed(name.as_bytes());
    assert_eq!(subscriptions.handle_reply(reply), Ok(ReplyOutcome::Nothing));
}

#[test]
fn names_are_subscribed_together() {
    let mut subscriptions = Subscriptions::default();
    let mut a = subscribe(&mut subscriptions, "a", SubscriptionKind::Channel);
    let mut b = subscribe(&mut subscriptions, "b", SubscriptionKind::Channel);
    let mut p = subscribe(&mut subscriptions, "p", SubscriptionKind::Pattern);
    assert_eq!(flush(&mut subscriptions), ["SUBSCRIBE a b", "PSUBSCRIBE p"]);
    assert!(flush(&mut subscriptions).is_empty());
    assert!(!subscriptions.is_answered(1));
    subscribed(&mut subscriptions, "a");
    assert!(a.try_recv().unwrap().is_ok());
    assert_eq!(b.try_recv().unwrap_err(), TryRecvError::Empty);
    subscribed(&mut subscriptions, "b");
    assert!(subscriptions.is_answered(1) && !subscriptions.is_answered(2));
    subscribed(&mut subscriptions, "p");
    assert!(b.try_recv().unwrap().is_ok() && p.try_recv().unwrap().is_ok());
    assert!(subscriptions.is_answered(2));
}

#[test]
fn a_command_carries_a_bounded_number_of_names() {
    let mut subscriptions = Subscriptions::default();
    for number in 0..513 {
        drop(subscribe(
            &mut subscriptions,
            &number.to_string(),
            SubscriptionKind::Channel,
        ));
    }
    let commands = flush(&mut subscriptions);
    let names = |command: &String| command.split(' ').count() - 1;
    assert_eq!(commands.iter().map(names).collect::<Vec<_>>(), [512, 1]);
}

#[test]
fn shards_are_subscribed_slot_by_slot() {
    let mut subscriptions = Subscriptions::default();
    for text in ["{a}1", "{a}2", "{b}1"] {
        drop(subscribe(&mut subscriptions, text, SubscriptionKind::Shard));
    }
    assert_eq!(
        flush(&mut subscriptions),
        ["SSUBSCRIBE {a}1 {a}2", "SSUBSCRIBE {b}1"]
    );
}

#[test]
fn only_the_answer_to_the_last_command_counts() {
    let mut subscriptions = Subscriptions::default();
    let mut first = subscribe(&mut subscriptions, "a", SubscriptionKind::Channel);
    flush(&mut subscriptions);
    subscriptions.unsubscribe(b"a");
    flush(&mut subscriptions);
    assert!(subscriptions.target(b"a").is_none());
    let mut second = subscribe(&mut subscriptions, "a", SubscriptionKind::Channel);
    assert_eq!(flush(&mut subscriptions), ["SUBSCRIBE a"]);
    subscribed(&mut subscriptions, "a");
    let reply = Reply::Unsubscribed(b"a");
    assert_eq!(subscriptions.handle_reply(reply), Ok(ReplyOutcome::Nothing));
    assert_eq!(second.try_recv().unwrap_err(), TryRecvError::Empty);
    subscribed(&mut subscriptions, "a");
    assert!(second.try_recv().unwrap().is_ok());
    assert_eq!(first.try_recv().unwrap_err(), TryRecvError::Closed);
    assert!(subscriptions.target(b"a").is_some());
}

#[test]
fn abandoned_subscriptions_are_removed_once_redis_confirms() {
    let mut subscriptions = Subscriptions::default();
    drop(subscribe(
        &mut subscriptions,
        "a",
        SubscriptionKind::Pattern,
    ));
    subscriptions.unsubscribe(b"a");
    subscriptions.unsubscribe(b"a");
    subscriptions.unsubscribe(b"unknown");
    assert_eq!(flush(&mut subscriptions), ["PUNSUBSCRIBE a"]);
    let reply = Reply::Unsubscribed(b"a");
    assert_eq!(subscriptions.handle_reply(reply), Ok(ReplyOutcome::Nothing));
    assert!(subscriptions.entries.is_empty());
}

#[test]
fn a_dropped_subscriber_is_unsubscribed() {
    let mut subscriptions = Subscriptions::default();
    drop(subscribe(
        &mut subscriptions,
        "a",
        SubscriptionKind::Channel,
    ));
    flush(&mut subscriptions);
    subscribed(&mut subscriptions, "a");
    assert_eq!(flush(&mut subscriptions), ["UNSUBSCRIBE a"]);
}

#[test]
fn a_refused_command_is_retried_name_by_name() {
    let mut subscriptions = Subscriptions::default();
    let mut a = subscribe(&mut subscriptions, "a", SubscriptionKind::Channel);
    let mut b = subscribe(&mut subscriptions, "b", SubscriptionKind::Channel);
    flush(&mut subscriptions);
    let refused = Reply::Error(b"NOPERM no permissions\x07");
    assert_eq!(
        subscriptions.handle_reply(refused),
        Ok(ReplyOutcome::Nothing)
    );
    assert_eq!(flush(&mut subscriptions), ["SUBSCRIBE a", "SUBSCRIBE b"]);
    subscriptions.handle_reply(refused).unwrap();
    subscribed(&mut subscriptions, "b");
    let error = a.try_recv().unwrap().unwrap_err();
    assert_eq!(
        error.to_string(),
        "broker refused the request: NOPERM no permissions"
    );
    assert!(b.try_recv().unwrap().is_ok());
    assert!(subscriptions.target(b"a").is_none());
}

#[test]
fn a_new_connection_subscribes_again() {
    let mut subscriptions = Subscriptions::default();
    let mut a = subscribe(&mut subscriptions, "a", SubscriptionKind::Channel);
    drop(subscribe(
        &mut subscriptions,
        "b",
        SubscriptionKind::Channel,
    ));
    flush(&mut subscriptions);
    subscriptions.unsubscribe(b"b");
    subscriptions.restart();
    assert_eq!(flush(&mut subscriptions), ["SUBSCRIBE a"]);
    subscribed(&mut subscriptions, "a");
    assert!(a.try_recv().unwrap().is_ok());
    subscriptions.restart();
    assert_eq!(flush(&mut subscriptions), ["SUBSCRIBE a"]);
    assert_eq!(subscriptions.targets().count(), 1);
}

#[test]
fn a_moved_slot_is_reported() {
    let mut subscriptions = Subscriptions::default();
    drop(subscribe(
        &mut subscriptions,
        "{a}1",
        SubscriptionKind::Shard,
    ));
    drop(subscribe(
        &mut subscriptions,
        "{a}2",
        SubscriptionKind::Shard,
    ));
    flush(&mut subscriptions);
    let moved = Reply::Error(b"MOVED 15495 127.0.0.1:7001");
    let both = vec![name("{a}1"), name("{a}2")];
    assert_eq!(
        subscriptions.handle_reply(moved),
        Ok(ReplyOutcome::Moved(both))
    );
    let ended = Reply::Unsubscribed(b"{a}1");
    assert_eq!(
        subscriptions.handle_reply(ended),
        Ok(ReplyOutcome::Moved(vec![name("{a}1")]))
    );
    assert!(subscriptions.take(b"{a}1").is_some());
    assert!(subscriptions.take(b"{a}1").is_none());
}

#[test]
fn unexpected_answers_are_errors() {
    let mut subscriptions = Subscriptions::default();
    for reply in [
        Reply::Subscribed(b"a"),
        Reply::Pong,
        Reply::Simple(b"OK"),
        Reply::Error(b"ERR"),
    ] {
        assert_eq!(subscriptions.handle_reply(reply), Err(RespError::Reply));
    }
    let text = "NOAUTH Authentication required.";
    assert_eq!(
        subscriptions.handle_reply(Reply::Error(text.as_bytes())),
        Ok(ReplyOutcome::Unauthenticated(text.to_owned()))
    );
    let mut out = Vec::new();
    subscriptions.ping(&mut out);
    assert_eq!(out, b"*1\r\n$4\r\nPING\r\n");
    assert_eq!(
        subscriptions.handle_reply(Reply::Pong),
        Ok(ReplyOutcome::Nothing)
    );
}
