//! Uploads that succeed, with interruptions.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use linerate_files::{Folder, Limits};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::{
    client::{Client, serve},
    stores::{Memory, Slow},
};

#[tokio::test]
async fn files_of_one_connection_are_interleaved() {
    let (_, address) = serve(Memory, Limits::default()).await;
    let mut client = Client::connect(address).await;
    client.start(1, "one", 8).await;
    client.start(7, "two", 4).await;
    client.data(1, 0, b"Spam").await;
    client.data(7, 0, b"Ham").await;
    // Several messages may follow one `data`.
    client.data(1, 4, b"Eg").await;
    client.send(b"").await;
    client.send(b"gs").await;
    assert_eq!(client.expect("done", 1).await["result"], "SpamEggs");
    client.data(7, 3, b"!").await;
    assert_eq!(client.expect("done", 7).await["result"], "Ham!");
    client.close().await;
}

#[tokio::test]
async fn empty_file_is_complete_at_once() {
    let (_, address) = serve(Memory, Limits::default()).await;
    let mut client = Client::connect(address).await;
    client.start(0, "empty", 0).await;
    assert_eq!(client.expect("done", 0).await["result"], "");
}

#[tokio::test]
async fn each_message_is_acknowledged_once_it_is_stored() {
    let (_, address) = serve(Memory, Limits::default()).await;
    let mut client = Client::connect(address).await;
    client.start(1, "a", 100).await;
    for (offset, length) in [(0, 1), (1, 2), (3, 30)] {
        client.data(1, offset, &vec![b'x'; length]).await;
        let bytes = offset + length as u64;
        assert_eq!(client.expect("ack", 1).await["bytes"], bytes);
    }
}

#[tokio::test]
async fn lost_upload_continues_at_its_last_byte() {
    let (uploads, address) = serve(Memory, Limits::default()).await;
    let mut client = Client::connect(address).await;
    let id = client.start(1, "a", 8).await;
    client.data(1, 0, b"Spam").await;
    client.expect("ack", 1).await;
    client.vanish();
    assert_eq!(uploads.kept(), 1);

    let mut client = Client::connect(address).await;
    assert_eq!(client.resume(1, &id, "a", 8).await, 4);
    client.data(1, 4, b"Eggs").await;
    assert_eq!(client.expect("done", 1).await["result"], "SpamEggs");
}

#[tokio::test]
async fn result_is_repeated_to_a_client_that_did_not_receive_it() {
    let (_, address) = serve(Memory, Limits::default()).await;
    let mut client = Client::connect(address).await;
    let id = client.start(1, "a", 4).await;
    client.data(1, 0, b"Spam").await;
    client.expect("done", 1).await;
    client.vanish();
    let mut client = Client::connect(address).await;
    assert_eq!(client.resume(1, &id, "a", 4).await, 4);
    assert_eq!(client.expect("done", 1).await["result"], "Spam");
}

#[tokio::test]
async fn upload_is_taken_from_a_connection_that_seems_alive() {
    let (_, address) = serve(Memory, Limits::default()).await;
    let mut old = Client::connect(address).await;
    let id = old.start(1, "a", 8).await;
    old.data(1, 0, b"Spam").await;
    old.expect("ack", 1).await;

    let mut new = Client::connect(address).await;
    assert_eq!(new.resume(1, &id, "a", 8).await, 4);
    old.data(1, 4, b"Evil").await;
    assert_eq!(old.expect_error().await, "taken");
    new.data(1, 4, b"Eggs").await;
    assert_eq!(new.expect("done", 1).await["result"], "SpamEggs");
    // The other uploads of the old connection continue.
    old.start(2, "b", 0).await;
    old.expect("done", 2).await;
}

#[tokio::test]
async fn cancelled_upload_is_forgotten_and_bytes_under_way_are_ignored() {
    let (uploads, address) = serve(Memory, Limits::default()).await;
    let mut client = Client::connect(address).await;
    let id = client.start(1, "a", 8).await;
    client.data(1, 0, b"Spam").await;
    client.say(json!({"type": "cancel", "upload": 1})).await;
    client.data(1, 4, b"Eg").await;
    client.say(json!({"type": "cancel", "upload": 1})).await;
    client.ask_to_resume(2, &id, "a", 8).await;
    assert_eq!(client.expect_error().await, "unknown_upload");
    assert_eq!(uploads.kept(), 0);
}

#[tokio::test]
async fn folder_continues_after_a_restart() {
    let place = tempfile::tempdir().unwrap();
    let folder = Folder::open(place.path()).await.unwrap();
    let (_, address) = serve(folder, Limits::default()).await;
    let mut client = Client::connect(address).await;
    let id = client.start(1, "a.txt", 8).await;
    client.data(1, 0, b"Spam").await;
    client.expect("ack", 1).await;
    client.vanish();

    let folder = Folder::open(place.path()).await.unwrap();
    let (_, address) = serve(folder, Limits::default()).await;
    let mut client = Client::connect(address).await;
    assert_eq!(client.resume(1, &id, "a.txt", 8).await, 4);
    client.data(1, 4, b"Eggs").await;
    assert_eq!(
        client.expect("done", 1).await["result"],
        json!({"name": "a.txt"})
    );
    let stored = std::fs::read(place.path().join("a.txt")).unwrap();
    assert_eq!(stored, b"SpamEggs");
}

#[tokio::test]
async fn abandoned_uploads_are_freed_after_a_time() {
    let mut limits = Limits::default();
    limits.idle_max = Duration::from_millis(300);
    let (uploads, address) = serve(Memory, limits).await;
    let mut client = Client::connect(address).await;
    let id = client.start(1, "a", 8).await;
    client.vanish();
    let mut idle = Client::connect(address).await;
    idle.start(1, "b", 8).await;
    while uploads.kept() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(idle.expect_close().await, 1000);
    let mut client = Client::connect(address).await;
    client.ask_to_resume(1, &id, "a", 8).await;
    assert_eq!(client.expect_error().await, "unknown_upload");
}

#[tokio::test]
async fn upload_without_a_connection_gives_way_and_others_do_not() {
    let mut limits = Limits::default();
    limits.open_max = 2;
    let (uploads, address) = serve(Memory, limits).await;
    let mut lost = Client::connect(address).await;
    let id = lost.start(1, "lost", 8).await;
    lost.close().await;
    let mut client = Client::connect(address).await;
    client.start(1, "a", 8).await;
    let second = client.start_patiently(2).await;
    assert_eq!(uploads.kept(), 2);
    client
        .say(json!({"type": "start", "upload": second + 1, "name": "c", "size": 8}))
        .await;
    assert_eq!(client.expect_error().await, "busy");
    client.say(json!({"type": "cancel", "upload": 1})).await;
    client.ask_to_resume(second + 2, &id, "lost", 8).await;
    assert_eq!(client.expect_error().await, "unknown_upload");
}

#[tokio::test]
async fn slow_store_is_not_acknowledged_before_it_has_taken_the_bytes() {
    let store = Slow {
        permits: Arc::new(Semaphore::new(0)),
        taken: Arc::default(),
    };
    let (_, address) = serve(store.clone(), Limits::default()).await;
    let mut client = Client::connect(address).await;
    let size = 4 << 20;
    client.start(1, "a", size).await;
    client
        .say(json!({"type": "data", "upload": 1, "offset": 0}))
        .await;
    let bytes = vec![0; 1 << 20];
    let mut acked = 0;
    for message in 1..=4 {
        client.send(&bytes).await;
        assert!(store.taken.load(Ordering::Relaxed) <= acked);
        store.permits.add_permits(1 << 20);
        let kind = if message < 4 { "ack" } else { "done" };
        let answer = client.expect(kind, 1).await;
        acked = answer["bytes"].as_u64().unwrap_or(size as u64);
        assert!(store.taken.load(Ordering::Relaxed) >= acked);
        store.permits.forget_permits(1 << 20);
    }
}
