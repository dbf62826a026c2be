//! Rooms, with members that read slowly or not at all.

use linerate_budget::{Account, Budget, Consumer};
use linerate_proto::engine::MessageKind;

use super::*;
use crate::{
    memory::Accounts,
    room::{JoinError, Member, Room, RoomOptions, Rooms, SlowMember},
};

/// Returns a room whose members may have a backlog of about ten short messages, and which notifies
/// them of gaps.
fn small_room(slow: SlowMember) -> Room {
    let mut options = RoomOptions::default();
    options.slow = slow;
    options.backlog_bytes_max = 1_300;
    Room::with_options(options.with_notice(|missed| format!("missed {missed}").into()))
}

fn small_queue() -> Options {
    let mut options = quiet();
    options.send_queue_bytes_max = 100;
    options
}

/// Starts a connection that is a member of `room`, over a pipe that holds `pipe_bytes`. It stays a
/// member until its peer closes the connection, and then returns how many messages it has missed.
async fn start(place: Place, pipe_bytes: usize, room: &Room) -> (Peer, JoinHandle<u64>) {
    let joins = room.clone();
    let members = room.len();
    let application = move |mut ws: WebSocket| async move {
        let member = joins.join(&ws).expect("there is room");
        while let Ok(Some(_)) = ws.recv().await {}
        member.missed()
    };
    let started = place.start(pipe_bytes, small_queue(), application);
    while room.len() == members {
        yield_now().await;
    }
    started
}

/// Reads text messages up to the one that is `last`.
async fn texts(peer: &mut Peer, last: &str) -> Vec<String> {
    let mut texts = Vec::new();
    while texts.last().is_none_or(|text| text != last) {
        let (first, payload) = in_time(peer.frame()).await.expect("a frame");
        let payload = String::from_utf8(payload).expect("text");
        assert_eq!(first, 0x81, "{payload} after {texts:?}");
        texts.push(payload);
    }
    texts
}

/// Checks that the messages are all of `0..count` in order, except those that a notice counts;
/// returns how many those are.
fn missed(texts: &[String], count: u64) -> u64 {
    let (mut next, mut missed) = (0, 0);
    for text in texts {
        if let Some(gap) = text.strip_prefix("missed ") {
            let gap: u64 = gap.parse().expect("a number");
            next += gap;
            missed += gap;
        } else {
            assert_eq!(*text, next.to_string(), "in {texts:?}");
            next += 1;
        }
    }
    assert_eq!(next, count, "{texts:?}");
    missed
}

#[tokio::test(start_paused = true)]
async fn a_slow_member_misses_the_oldest_messages_and_is_told_where() {
    for place in PLACES {
        let room = small_room(SlowMember::DropOldest);
        let (mut peer, running) = start(place, 64, &room).await;
        for number in 0..1_000 {
            assert_eq!(room.send(number.to_string()), 1);
            yield_now().await;
        }
        let texts = texts(&mut peer, "999").await;
        let missed = missed(&texts, 1_000);
        assert!(missed > 900, "{place:?}: {missed}");
        assert_eq!(texts.iter().filter(|text| text.contains(' ')).count(), 1);
        // The room works as before once the member has caught up.
        room.send("1000");
        assert_eq!(in_time(peer.frame()).await.expect("a frame").1, b"1000");
        peer.send(close(1000)).await;
        assert_eq!(in_time(running).await.expect("it ends"), missed);
        assert_eq!((room.missed(), room.len()), (missed, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_member_misses_the_newest_messages_and_is_told_at_once() {
    for place in PLACES {
        let room = small_room(SlowMember::DropNewest);
        let (mut peer, running) = start(place, 64, &room).await;
        let mut accepted = 0;
        for number in 0..100 {
            accepted += room.send(number.to_string());
            yield_now().await;
        }
        let notice = format!("missed {}", room.missed());
        let texts = texts(&mut peer, &notice).await;
        let missed = missed(&texts, 100);
        assert_eq!(missed, 100 - accepted as u64, "{place:?}");
        peer.send(close(1000)).await;
        assert_eq!(in_time(running).await.expect("it ends"), missed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_member_is_closed_and_leaves() {
    for place in PLACES {
        let room = small_room(SlowMember::Close(CloseCode::TRY_AGAIN_LATER));
        let (mut slow, ends) = start(place, 64, &room).await;
        let (mut fast, _running) = start(place, 64, &room).await;
        let mut sent = 0;
        while room.len() == 2 {
            room.send("a message");
            sent += 1;
            assert!(sent < 1_000);
            assert_eq!(in_time(fast.frame()).await.expect("a frame").0, 0x81);
        }
        assert!(sent > 10, "{place:?}: {sent}");
        let (code, payload) = loop {
            let frame = in_time(slow.frame()).await.expect("a Close");
            if frame.0 != 0x81 {
                break frame;
            }
        };
        assert_eq!(code, 0x88);
        assert_eq!(payload, b"\x03\xf5reads too slowly");
        slow.send(close(1013)).await;
        let missed = in_time(ends).await.expect("it ends");
        assert!((9..=11).contains(&missed), "{place:?}: {missed}");
        assert_eq!(room.missed(), missed);
        assert_eq!(room.send("for one"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_no_bytes_keeps_the_newest_message() {
    let mut options = RoomOptions::default();
    options.backlog_bytes_max = 0;
    let room = Room::with_options(options);
    let (mut peer, _running) = start(Place::Server, 64, &room).await;
    for number in 0..100 {
        room.send(number.to_string());
    }
    let texts = texts(&mut peer, "99").await;
    assert_eq!(texts.len() as u64 + room.missed(), 100);
}

#[tokio::test(start_paused = true)]
async fn a_closed_member_is_removed_and_the_others_are_not_affected() {
    let room = Room::new();
    let (mut first, _running) = start(Place::Server, 64, &room).await;
    let (second, _running) = start(Place::Server, 64, &room).await;
    drop(second);
    assert_eq!(room.send("for both"), 2);
    in_time(first.frame()).await;
    assert_eq!(room.send("for one"), 1);
    assert_eq!((room.len(), room.missed()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn members_leave_in_any_order_and_the_limit_applies() {
    let mut options = RoomOptions::default();
    options.members_max = 10;
    let room = Room::with_options(options);
    let (give, mut take) = tokio::sync::mpsc::unbounded_channel();
    let mut peers = Vec::new();
    for _ in 0..10 {
        let give = give.clone();
        peers.push(
            Place::Server.start(1_000, quiet(), |ws: WebSocket| async move {
                let (sender, receiver) = ws.split();
                give.send((sender, receiver)).expect("it is received");
            }),
        );
    }
    let mut halves = Vec::new();
    for _ in 0..10 {
        halves.push(in_time(take.recv()).await.expect("a connection"));
    }
    let mut members: Vec<Member> = Vec::new();
    for (sender, _) in &halves {
        members.push(room.join(sender).expect("there is room"));
    }
    let members_max = 10;
    let full = room.join(&halves[0].0).expect_err("the room is full");
    assert_eq!(full, JoinError::MembersMax { members_max });
    assert!(full.to_string().contains("10"), "{full}");
    for index in [0, 8, 3, 0, 2] {
        drop(members.swap_remove(index));
    }
    assert_eq!((room.len(), room.send("for the rest")), (5, 5));
    assert_eq!(room.send_except(&members[2], "for four"), 4);
    let again = room.join(&halves[0].0).expect("there is room again");
    assert_eq!(room.len(), 6);
    // The room keeps its members as long as they want, and does not close them.
    let kept = again.room().clone();
    drop((room, members));
    assert_eq!(kept.send("for the last"), 1);
    drop(again);
    assert!(kept.is_empty());
    assert!(halves.iter().all(|(sender, _)| sender.room() > 0));
    drop(halves.pop());
    let (mut last, _) = peers.pop().expect("a peer");
    while in_time(last.frame()).await.expect("a Close").0 != 0x88 {}
}

#[tokio::test(start_paused = true)]
async fn a_closing_connection_cannot_join() {
    let application = |ws: WebSocket| async move {
        let (sender, _receiver) = ws.split();
        sender
            .start_close(CloseCode::NORMAL, "")
            .expect("it has no reason");
        Room::new().join(&sender).map(drop)
    };
    let (_peer, running) = Place::Server.start(1_000, quiet(), application);
    let joined = in_time(running).await.expect("it ends");
    assert_eq!(joined, Err(JoinError::Closed));
}

#[tokio::test(start_paused = true)]
async fn messages_wait_while_a_member_sends_a_message_in_fragments() {
    for place in PLACES {
        let room = Room::new();
        let joins = room.clone();
        let application = move |mut ws: WebSocket| async move {
            let _member = joins.join(&ws)?;
            let mut writer = ws.writer(MessageKind::Text);
            writer.write(b"one ").await?;
            assert_eq!(joins.send("room"), 1);
            writer.write(b"message").await?;
            writer.finish().await?;
            while ws.recv().await?.is_some() {}
            Result::<_>::Ok(())
        };
        let (mut peer, running) = place.start(1 << 10, quiet(), application);
        for expected in ["one ", "message", "", "room"] {
            let frame = in_time(peer.frame()).await.expect("a frame");
            assert_eq!(frame.1, expected.as_bytes(), "{place:?}");
        }
        peer.send(close(1000)).await;
        in_time(running).await.expect("it ends").expect("no error");
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_member_can_send_and_learns_what_it_missed_however_often_it_stops_waiting() {
    for polls in [1, 2, 3] {
        let room = small_room(SlowMember::DropOldest);
        let joins = room.clone();
        let application = move |mut ws: WebSocket| async move {
            let mut member = joins.join(&ws).expect("there is room");
            for number in 0..100 {
                joins.send(number.to_string());
            }
            let missed = loop {
                if let Some(missed) = poll_times(member.lagged(), polls).await {
                    break missed;
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            };
            ws.send(format!("missed {missed} of 100")).await?;
            assert_eq!((missed, joins.missed()), (member.missed(), missed));
            assert!(poll_times(member.lagged(), 3).await.is_none());
            ws.close(CloseCode::NORMAL, "").await?;
            Result::<_>::Ok(missed)
        };
        let (mut peer, running) = Place::Server.start(64, small_queue(), application);
        tokio::time::sleep(Duration::from_secs(1)).await;
        let mut seen = Vec::new();
        while let Some((0x81, text)) = in_time(peer.frame()).await {
            seen.push(String::from_utf8(text).expect("text"));
        }
        peer.send(close(1000)).await;
        let missed = in_time(running).await.expect("it ends").expect("no error");
        assert_eq!(seen.last(), Some(&format!("missed {missed} of 100")));
    }
}

#[tokio::test(start_paused = true)]
async fn a_busy_room_does_not_keep_a_slow_member_from_sending() {
    let room = small_room(SlowMember::DropOldest);
    let joins = room.clone();
    let application = move |mut ws: WebSocket| async move {
        let _member = joins.join(&ws)?;
        for number in 0..50 {
            ws.send(format!("reply {number}")).await?;
        }
        ws.close(CloseCode::NORMAL, "").await
    };
    let (mut peer, _running) = Place::Server.start(64, small_queue(), application);
    let mut replies = 0;
    // The room sends more than the peer reads, all the time.
    while replies < 50 {
        for _ in 0..20 {
            room.send("a message of the room");
        }
        let (_, text) = in_time(peer.frame()).await.expect("a frame");
        replies += usize::from(text.starts_with(b"reply"));
    }
    assert!(room.missed() > 0);
}

#[tokio::test(start_paused = true)]
async fn rooms_vanish_when_the_last_member_leaves() {
    let rooms = Rooms::new().with_rooms_max(2);
    let joins = rooms.clone();
    let application = move |ws: WebSocket| async move {
        let rooms = joins;
        let attic = rooms.join("attic", &ws).expect("the first room");
        let again = rooms.join("attic", &ws).expect("the same room");
        let cellar = rooms.join("cellar", &ws).expect("the second room");
        assert_eq!((rooms.len(), again.room().len()), (2, 2));
        let error = rooms.join("garden", &ws).map(drop);
        assert_eq!(error, Err(JoinError::RoomsMax { rooms_max: 2 }));
        let error = rooms.join(&"x".repeat(1_025), &ws).map(drop);
        let (bytes, bytes_max) = (1_025, 1_024);
        assert_eq!(error, Err(JoinError::NameTooLong { bytes, bytes_max }));
        assert_eq!(rooms.send("cellar", "down"), 1);
        assert_eq!(rooms.send("garden", "out"), 0);
        drop(attic);
        assert_eq!(rooms.len(), 2);
        let gone = again.room().clone();
        drop(again);
        assert_eq!(rooms.len(), 1);
        assert_eq!(gone.join(&ws).map(drop), Err(JoinError::RoomVanished));
        let garden = rooms.join(&"x".repeat(1_024), &ws).expect("there is room");
        drop((cellar, garden));
        assert!(rooms.is_empty());
    };
    let (_peer, running) = Place::Server.start(1_000, quiet(), application);
    in_time(running).await.expect("it does not panic");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn all_members_see_messages_of_many_tasks_in_the_same_order() {
    const SENDERS: usize = 8;
    const EACH: usize = 100;
    let mut options = RoomOptions::default();
    options.backlog_bytes_max = 1 << 20;
    let room = Room::with_options(options);
    let mut peers = Vec::new();
    for place in PLACES.into_iter().cycle().take(150) {
        peers.push(start(place, 64, &room).await.0);
    }
    let mut senders = Vec::new();
    for sender in 0..SENDERS {
        let room = room.clone();
        senders.push(tokio::spawn(async move {
            for number in 0..EACH {
                room.send(format!("{sender} {number}"));
                yield_now().await;
            }
        }));
    }
    let mut seen = Vec::new();
    for mut peer in peers {
        let mut texts = Vec::new();
        for _ in 0..SENDERS * EACH {
            texts.push(in_time(peer.frame()).await.expect("a frame").1);
        }
        seen.push(texts);
    }
    for sender in senders {
        sender.await.expect("it does not panic");
    }
    assert!(seen.iter().all(|texts| *texts == seen[0]));
    for sender in 0..SENDERS {
        let prefix = format!("{sender} ");
        let own = seen[0]
            .iter()
            .filter(|text| text.starts_with(prefix.as_bytes()));
        let expected = (0..EACH).map(|number| format!("{sender} {number}").into_bytes());
        assert!(own.cloned().eq(expected), "{sender}");
    }
    assert_eq!(room.missed(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_member_that_never_reads_costs_no_more_than_its_backlog_until_it_leaves() {
    let budget = Budget::new(1 << 30);
    let account = budget.account(Consumer::Backlogs);
    let mut counted = small_queue();
    counted.accounts = Accounts::new(account.clone(), Account::default());
    let mut options = RoomOptions::default();
    options.backlog_bytes_max = 10_000;
    let room = Room::with_options(options);
    let joins = room.clone();
    let application = move |mut ws: WebSocket| async move {
        let member = joins.join(&ws)?;
        ws.recv().await?;
        drop(member);
        ws.recv().await
    };
    let (mut slow, _running) = Place::Handler.start(64, counted, application);
    let mut others = Vec::new();
    for _ in 0..999 {
        others.push(start(Place::Server, 2_000, &room).await);
    }
    for number in 0..30 {
        assert_eq!(room.send(vec![number; 1_000]), 1_000);
        for (peer, _) in &mut others {
            let frame = in_time(peer.frame()).await;
            assert!(frame == Some((0x82, vec![number; 1_000])));
        }
    }
    let bytes = account.bytes();
    assert!((8_000..12_300).contains(&bytes), "{bytes}");
    let missed = room.missed();
    assert!((18..24).contains(&missed), "{missed}");
    slow.send(Frame::new(0x1, b"leave")).await;
    while room.len() == 1_000 {
        yield_now().await;
    }
    yield_now().await;
    assert!(account.bytes() < 4_100, "{}", account.bytes());
    // What was waiting counts as missed.
    assert!(room.missed() > missed + 7, "{}", room.missed());
}
