//! States that no connection can have are refused with an error, and never cause a panic.

use std::{mem::take, sync::Arc};

use linerate_proto::{
    Engine, Role,
    engine::Importer,
    portable::{ImportError, Version},
};
use linerate_testkit::{Cuts, Frame, Record, Rng, TestEndpoint, feed_on};

use super::{NOW, script};

fn import(role: Role, state: &[u8]) -> Result<Engine<TestEndpoint>, ImportError> {
    Importer::new(Arc::default()).import(TestEndpoint(role), state, NOW)
}

/// Returns the states of a server after each byte of the script.
fn states() -> Vec<Vec<u8>> {
    let wire = script(Role::Server);
    let mut engine = Engine::new(TestEndpoint(Role::Server), Arc::default(), NOW);
    let mut record = Record::default();
    wire.iter()
        .map(|byte| {
            record = feed_on(take(&mut record), &mut engine, &[*byte], Cuts::Whole);
            engine
                .export(Version::NEWEST, NOW)
                .expect("it can be exported")
        })
        .collect()
}

#[test]
fn an_unknown_version_is_refused_with_both_versions() {
    let mut state = states().swap_remove(0);
    (state[0], state[1]) = (0, 2);
    let error = import(Role::Server, &state).unwrap_err();
    assert_eq!(error, ImportError::Version { found: 2 });
    let shown = error.to_string();
    assert_eq!(
        shown,
        "state has version 2, and this program reads versions 1 to 1"
    );
}

#[test]
fn the_state_of_the_other_end_is_refused() {
    let error = import(Role::Client, &states()[0]).unwrap_err();
    let (found, expected) = (Role::Server, Role::Client);
    assert_eq!(error, ImportError::Role { found, expected });
}

#[test]
fn a_state_that_is_too_short_or_too_long_is_refused() {
    for state in states() {
        for end in 0..state.len() {
            let error = import(Role::Server, &state[..end]).unwrap_err();
            assert!(matches!(error, ImportError::Truncated { .. }), "{error}");
        }
        let longer = [&state[..], &[0]].concat();
        let error = import(Role::Server, &longer).unwrap_err();
        assert_eq!(error, ImportError::Trailing { bytes: 1 });
    }
}

/// Every value in every byte: refused, or the state of an engine that works.
#[test]
fn changed_states_never_cause_a_panic() {
    let mut rng = Rng::new(2);
    for state in states().into_iter().step_by(7) {
        for at in 0..state.len() {
            for value in [0, 1, 2, 3, 9, 0x7F, 0x80, 0xFF, rng.below(256) as u8] {
                let mut changed = state.clone();
                changed[at] = value;
                let Ok(mut engine) = import(Role::Server, &changed) else {
                    continue;
                };
                let exported = engine.export(Version::NEWEST, NOW).unwrap();
                let mut again = import(Role::Server, &exported).expect("it was just exported");
                assert_eq!(again.export(Version::NEWEST, NOW).as_ref(), Ok(&exported));
                let frame = Frame::new(2, &rng.bytes(300)).to_role(Role::Server);
                let mut input = frame.to_bytes();
                let mut events = engine.handle_input(&mut input, NOW);
                while events.next_raw().is_some_and(|event| event.is_ok()) {}
                engine.poll_transmit(&mut Vec::new());
                _ = engine.handle_timeout(2 * NOW);
            }
        }
    }
}

#[test]
fn errors_name_the_field() {
    let state = states().pop().expect("there are some");
    let mut changed = state.clone();
    changed[3] = 7;
    let error = import(Role::Server, &changed).unwrap_err();
    assert_eq!(error.to_string(), "invalid state of the input: 7");
}
