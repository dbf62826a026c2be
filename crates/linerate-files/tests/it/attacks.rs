//! Clients that lie or break the rules.

use linerate_files::{Folder, Limits};
use serde_json::json;

use crate::{
    client::{Client, serve},
    stores::Memory,
};

const UNKNOWN: &str = "0123456789abcdef0123456789abcdef";

#[tokio::test]
async fn offset_other_than_the_next_byte_ends_the_upload_which_can_be_resumed() {
    let (_, address) = serve(Memory, Limits::default()).await;
    let mut client = Client::connect(address).await;
    let id = client.start(1, "a", 8).await;
    client.data(1, 0, b"Spam").await;
    // Overlapping, with a gap, at the end, beyond it.
    for (number, offset) in [0, 3, 5, 8, 9, u64::MAX].into_iter().enumerate() {
        let number = number as u64 + 1;
        client.data(number, offset, b"Evil").await;
        assert_eq!(client.expect_error().await, "wrong_offset");
        assert_eq!(client.resume(number + 1, &id, "a", 8).await, 4);
    }
    client.data(7, 4, b"Eggs").await;
    assert_eq!(client.expect("done", 7).await["result"], "SpamEggs");
}

#[tokio::test]
async fn more_bytes_than_announced_are_not_stored() {
    let (_, address) = serve(Memory, Limits::default()).await;
    let mut client = Client::connect(address).await;
    let id = client.start(1, "a", 8).await;
    client.data(1, 0, b"Spam").await;
    client.send(b"Eggs and more").await;
    assert_eq!(client.expect_error().await, "size_mismatch");
    assert_eq!(client.resume(2, &id, "a", 8).await, 4);
}

#[tokio::test]
async fn resuming_needs_the_identifier_and_the_same_file() {
    let (_, address) = serve(Memory, Limits::default()).await;
    let mut client = Client::connect(address).await;
    let id = client.start(1, "a", 8).await;
    for (number, (id, name, size, code)) in [
        (UNKNOWN, "a", 8, "unknown_upload"),
        ("", "a", 8, "unknown_upload"),
        ("../../etc/passwd", "a", 8, "unknown_upload"),
        (&*id, "b", 8, "mismatch"),
        (&*id, "a", 7, "mismatch"),
    ]
    .into_iter()
    .enumerate()
    {
        client
            .ask_to_resume(number as u64 + 2, id, name, size)
            .await;
        assert_eq!(client.expect_error().await, code);
    }
    // None of these attempts has taken the upload.
    client.data(1, 0, b"SpamEggs").await;
    assert_eq!(client.expect("done", 1).await["result"], "SpamEggs");
}

#[tokio::test]
async fn file_that_is_refused_leaves_the_others_alone() {
    let mut limits = Limits::default();
    limits.file_bytes_max = 10;
    limits.name_bytes_max = 10;
    let (uploads, address) = serve(Memory, limits).await;
    let mut client = Client::connect(address).await;
    client.start(1, "a", 10).await;
    for (upload, name, size, code) in [
        (2, "b", 11, "too_large"),
        (3, "12345678901", 1, "bad_name"),
        (4, "refused", 1, "quota"),
    ] {
        client
            .say(json!({"type": "start", "upload": upload, "name": name, "size": size}))
            .await;
        assert_eq!(client.expect_error().await, code);
    }
    assert_eq!(uploads.kept(), 1);
    client.data(1, 0, b"0123456789").await;
    client.expect("done", 1).await;
}

#[tokio::test]
async fn failing_store_ends_the_upload() {
    let (uploads, address) = serve(Memory, Limits::default()).await;
    let mut client = Client::connect(address).await;
    client.start(1, "a", 8).await;
    client.data(1, 0, b"full").await;
    client.expect("ack", 1).await;
    client.data(1, 4, b"Eggs").await;
    assert_eq!(client.expect_error().await, "storage");
    assert_eq!(uploads.kept(), 0);
}

#[tokio::test]
async fn names_cannot_leave_the_folder() {
    let place = tempfile::tempdir().unwrap();
    let folder = Folder::open(place.path().join("in")).await.unwrap();
    let (_, address) = serve(folder, Limits::default()).await;
    let mut client = Client::connect(address).await;
    for (number, name) in [
        "../evil",
        "..\\evil",
        "/tmp/evil",
        "a\0.txt",
        "..",
        ".",
        "",
        ".partial",
        "a/../../evil",
    ]
    .into_iter()
    .enumerate()
    {
        client
            .say(json!({"type": "start", "upload": number, "name": name, "size": 0}))
            .await;
        assert_eq!(client.expect_error().await, "bad_name", "{name:?}");
    }
    let beside = std::fs::read_dir(place.path()).unwrap().count();
    let inside = std::fs::read_dir(place.path().join("in/.partial")).unwrap();
    assert_eq!((beside, inside.count()), (1, 0));
}

#[tokio::test]
async fn ten_thousand_uploads_are_limited() {
    let (uploads, address) = serve(Memory, Limits::default()).await;
    let mut client = Client::connect(address).await;
    let mut refused = 0;
    for upload in 0..10_000 {
        client
            .say(json!({"type": "start", "upload": upload, "name": "a", "size": 1}))
            .await;
        let answer = client.hear().await;
        refused += u32::from(answer["code"] == "busy");
    }
    assert_eq!(refused, 10_000 - 16);
    assert_eq!(uploads.kept(), 16);
}

#[tokio::test]
async fn uploads_left_on_many_connections_are_limited() {
    let mut limits = Limits::default();
    limits.open_max = 50;
    let (uploads, address) = serve(Memory, limits).await;
    for _ in 0..20 {
        let mut client = Client::connect(address).await;
        let mut number = 0;
        for _ in 0..16 {
            number = client.start_patiently(number).await + 1;
        }
        client.close().await;
        assert!(uploads.kept() <= 50);
    }
}

#[tokio::test]
async fn broken_rules_end_the_connection() {
    let (_, address) = serve(Memory, Limits::default()).await;
    let long = format!(
        r#"{{"type":"cancel","upload":1,"x":"{}"}}"#,
        "x".repeat(9_000)
    );
    for text in [
        "",
        "{}",
        &long,
        r#"{"type":"start","upload":1,"name":"a","size":-1}"#,
        r#"{"type":"start","upload":1,"name":"a","size":1}{}"#,
        r#"{"type":"start","upload":0,"name":"a","size":1}"#,
        r#"{"type":"data","upload":0,"offset":-1}"#,
        r#"{"type":"data","upload":1,"offset":0}"#,
        r#"{"type":"cancel","upload":1}"#,
    ] {
        let mut client = Client::connect(address).await;
        client.start(0, "a", 1).await;
        client.say_text(text).await;
        assert_eq!(client.expect_error().await, "protocol", "{text}");
        assert_eq!(client.expect_close().await, 1008);
    }
}

#[tokio::test]
async fn bytes_need_an_upload() {
    let (_, address) = serve(Memory, Limits::default()).await;
    let mut client = Client::connect(address).await;
    client.send(b"Spam").await;
    assert_eq!(client.expect_error().await, "protocol");
    assert_eq!(client.expect_close().await, 1008);
}

#[tokio::test]
async fn only_a_window_of_bytes_is_ignored_after_the_end_of_an_upload() {
    let mut limits = Limits::default();
    limits.window_bytes = 100;
    let (_, address) = serve(Memory, limits).await;
    let mut client = Client::connect(address).await;
    client.start(1, "a", 200).await;
    client.say(json!({"type": "cancel", "upload": 1})).await;
    client.data(1, 0, &[0; 100]).await;
    client.start(2, "b", 0).await;
    client.expect("done", 2).await;
    client.data(1, 0, &[0; 100]).await;
    client.data(1, 0, &[0; 1]).await;
    assert_eq!(client.expect_error().await, "protocol");
    assert_eq!(client.expect_close().await, 1008);
}

#[tokio::test]
async fn message_longer_than_the_window_ends_the_connection() {
    let mut limits = Limits::default();
    limits.window_bytes = 100;
    let (_, address) = serve(Memory, limits).await;
    let mut client = Client::connect(address).await;
    client.start(1, "a", 200).await;
    client.data(1, 0, &[0; 101]).await;
    assert_eq!(client.expect_close().await, 1009);
}
