//! What a client returns to.

use proptest::prelude::*;

use super::*;

fn channel(name: &str) -> ChannelName {
    ChannelName::new(name).unwrap()
}

fn at(offset: u64) -> StreamPosition {
    let epoch = Epoch::new("e");
    StreamPosition { epoch, offset }
}

fn event(name: &str, offset: u64) -> EventOffset {
    EventOffset {
        stream: StreamDigest::of(&channel(name), &Epoch::new("e")),
        offset,
    }
}

/// A client that is in these rooms, each from an offset on.
fn journal(rooms: &[(&str, u64)]) -> Journal {
    let journal = Journal::new(&Account::default());
    for (name, start) in rooms {
        journal.enter(&channel(name), Some(at(*start)));
    }
    journal
}

/// What a client returns to in a namespace, whose last event was this.
fn returned(
    journal: &Journal,
    namespace: &str,
    last: Option<EventOffset>,
) -> Option<Vec<(String, u64)>> {
    let stored = serde_json::to_string(&journal.of_namespace(namespace)?).unwrap();
    let stored: StoredJournal = serde_json::from_str(&stored).unwrap();
    let rooms = stored.rooms_after(last)?.into_iter();
    let place = |room: ReturnedRoom| (room.channel.to_string(), room.position.offset);
    Some(rooms.map(place).collect())
}

fn rooms(list: &[(&str, u64)]) -> Option<Vec<(String, u64)>> {
    let owned = list
        .iter()
        .map(|(name, offset)| ((*name).to_owned(), *offset));
    Some(owned.collect())
}

#[test]
fn the_last_event_tells_what_was_received_in_all_rooms() {
    let journal = journal(&[("a", 10), ("b", 20)]);
    for (name, offset) in [("a", 11), ("a", 12), ("b", 21), ("a", 15), ("b", 22)] {
        journal.note(event(name, offset));
    }
    for (last, expected) in [
        (None, [10, 20]),
        (Some(("a", 10)), [10, 20]),
        (Some(("a", 11)), [11, 20]),
        (Some(("a", 12)), [12, 20]),
        (Some(("b", 21)), [12, 21]),
        (Some(("a", 13)), [13, 21]),
        (Some(("a", 15)), [15, 21]),
        (Some(("b", 22)), [15, 22]),
        // These were not handed to the client.
        (Some(("a", 16)), [10, 20]),
        (Some(("c", 11)), [10, 20]),
    ] {
        let last = last.map(|(name, offset)| event(name, offset));
        let expected = rooms(&[("a", expected[0]), ("b", expected[1])]);
        assert_eq!(returned(&journal, "/", last), expected, "{last:?}");
    }
}

#[test]
fn each_namespace_has_its_own_order() {
    let journal = journal(&[("a", 0), ("/chat:a", 0)]);
    for (name, offset) in [("a", 1), ("/chat:a", 1), ("a", 2), ("/chat:a", 2)] {
        journal.note(event(name, offset));
    }
    assert_eq!(
        returned(&journal, "/", Some(event("a", 1))),
        rooms(&[("a", 1)])
    );
    let last = Some(event("/chat:a", 2));
    assert_eq!(returned(&journal, "/chat", last), rooms(&[("/chat:a", 2)]));
    journal.forget_namespace("/chat");
    assert_eq!(returned(&journal, "/chat", None), rooms(&[]));
    assert_eq!(
        returned(&journal, "/", Some(event("a", 2))),
        rooms(&[("a", 2)])
    );
}

#[test]
fn a_room_that_was_left_must_have_arrived_completely() {
    let journal = journal(&[("a", 0), ("b", 0)]);
    journal.note(event("a", 1));
    journal.note(event("b", 1));
    journal.leave(&channel("b"));
    journal.note(event("a", 2));
    assert_eq!(returned(&journal, "/", Some(event("a", 1))), None);
    assert_eq!(
        returned(&journal, "/", Some(event("b", 1))),
        rooms(&[("a", 1)])
    );
    // The client joins again.
    journal.enter(&channel("b"), Some(at(5)));
    journal.note(event("b", 6));
    let last = Some(event("a", 2));
    assert_eq!(returned(&journal, "/", last), rooms(&[("a", 2), ("b", 5)]));
    let last = Some(event("b", 6));
    assert_eq!(returned(&journal, "/", last), rooms(&[("a", 2), ("b", 6)]));
}

#[test]
fn what_is_not_known_exactly_is_not_returned_to() {
    let another_epoch = EventOffset {
        stream: StreamDigest::of(&channel("a"), &Epoch::new("f")),
        offset: 1,
    };
    let replaced = journal(&[("a", 0)]);
    replaced.note(another_epoch);
    assert_eq!(returned(&replaced, "/", None), None);
    // A room without positions concerns its namespace only.
    let partly = journal(&[("a", 0), ("/chat:a", 0)]);
    partly.enter(&channel("/chat:b"), None);
    assert!(partly.is_exact_in("/") && !partly.is_exact_in("/chat"));
    assert_eq!(returned(&partly, "/chat", None), None);
    assert_eq!(returned(&partly, "/", None), rooms(&[("a", 0)]));
}

#[test]
fn the_number_of_runs_is_limited() {
    let journal = journal(&[("a", 0), ("b", 0)]);
    let half = RUNS_MAX as u64 / 2;
    for offset in 1..=half {
        journal.note(event("a", offset));
        journal.note(event("b", offset));
    }
    assert_eq!(returned(&journal, "/", None), rooms(&[("a", 0), ("b", 0)]));
    journal.note(event("a", half + 1));
    // It is not known whether the client has received the run that was forgotten.
    assert_eq!(returned(&journal, "/", None), None);
    assert_eq!(returned(&journal, "/", Some(event("a", 1))), None);
    let last = Some(event("b", 1));
    assert_eq!(returned(&journal, "/", last), rooms(&[("a", 1), ("b", 1)]));
    assert_eq!(journal.0.lock().runs.len(), RUNS_MAX);
}

#[test]
fn the_number_of_rooms_is_limited() {
    let journal = journal(&[]);
    for number in 0..ROOMS_MAX {
        journal.enter(&channel(&number.to_string()), Some(at(0)));
    }
    assert!(journal.is_exact_in("/"));
    journal.enter(&channel("more"), Some(at(0)));
    assert!(!journal.is_exact_in("/"));
}

#[test]
fn another_process_continues_the_journal() {
    let journal = journal(&[("a", 0), ("b", 0)]);
    journal.enter(&channel("/chat:a"), None);
    journal.note(event("a", 1));
    journal.set_joined(&channel("b"), Joined::default());
    let stored = journal.stored().unwrap();
    let again = Journal::restored(stored.clone(), &Account::default());
    assert_eq!(again.stored().unwrap(), stored);
    again.note(event("b", 1));
    let last = Some(event("a", 1));
    assert_eq!(returned(&again, "/", last), rooms(&[("a", 1), ("b", 0)]));
    assert!(!again.is_exact_in("/chat"));
}

#[test]
fn runs_of_unknown_rooms_are_refused() {
    let stored = |runs| StoredJournal {
        runs,
        is_whole: true,
        ..StoredJournal::default()
    };
    assert_eq!(stored(vec![(0, 1)]).rooms_after(None), None);
    assert_eq!(stored(vec![(u32::MAX, 1)]).rooms_after(None), None);
    let journal = Journal::restored(stored(vec![(7, 1)]), &Account::default());
    journal.note(event("a", 1));
    assert!(!journal.is_exact_in("/"));
}

proptest! {
    /// The connection can be lost anywhere: the client returns to exactly what has arrived.
    #[test]
    fn a_client_returns_to_what_has_arrived(
        handed in prop::collection::vec((0_usize..3, 1_u64..4), 0..40),
        arrived in 0_usize..40,
    ) {
        const NAMES: [&str; 3] = ["a", "b", "c"];
        let journal = journal(&NAMES.map(|name| (name, 100)));
        let arrived = arrived.min(handed.len());
        let mut offsets = [100; 3];
        let (mut expected, mut last) = (offsets, None);
        for (number, (room, count)) in handed.iter().enumerate() {
            offsets[*room] += count;
            journal.note(event(NAMES[*room], offsets[*room]));
            if number < arrived {
                expected = offsets;
                last = Some(event(NAMES[*room], offsets[*room]));
            }
        }
        let expected: Vec<_> = NAMES.into_iter().zip(expected).collect();
        prop_assert_eq!(returned(&journal, "/", last), rooms(&expected));
    }
}
