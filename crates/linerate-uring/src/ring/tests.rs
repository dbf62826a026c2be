//! Tests of the ring on real sockets. If io_uring is forbidden or too old, the tests report that
//! and pass.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    os::fd::AsFd,
};

use super::*;

/// Creates a ring, or reports why that is not possible.
fn ring(setup: Setup) -> Option<Ring> {
    match Ring::new(&setup) {
        Ok(ring) => Some(ring),
        Err(error) => {
            assert!(
                matches!(error, SetupError::Forbidden | SetupError::Missing { .. }),
                "{error}"
            );
            linerate_testkit::skip(error);
            None
        }
    }
}

fn small() -> Setup {
    Setup {
        buffers: 2,
        buffer_bytes: 1_000,
        whole_buffers: (2, 1_000),
        ..Setup::default()
    }
}

/// Returns our end and the peer's end of a connection.
fn pair() -> (OwnedFd, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (ours, _) = listener.accept().unwrap();
    ours.set_nonblocking(true).unwrap();
    (ours.into(), peer)
}

fn wait(ring: &mut Ring) -> Vec<Completion> {
    ring.submit_and_wait(Some(Duration::from_secs(30))).unwrap();
    std::iter::from_fn(|| ring.next_completion()).collect()
}

/// Receives until the end of the stream; restarts when the buffers run out.
fn receive_all(ring: &mut Ring, socket: &OwnedFd, token: u64) -> Vec<u8> {
    let mut all = Vec::new();
    ring.receive(socket.as_fd(), token);
    loop {
        for completion in wait(ring) {
            let Completion::Received {
                token: told,
                received,
                more,
            } = completion
            else {
                panic!("{completion:?}");
            };
            assert_eq!(told, token);
            match received {
                Ok(Some(input)) => all.extend_from_slice(&input),
                Ok(None) => return all,
                Err(error) => assert_eq!(error.raw_os_error(), Some(libc::ENOBUFS)),
            }
            if !more {
                ring.receive(socket.as_fd(), token);
            }
        }
    }
}

#[test]
fn connections_are_accepted_until_that_is_cancelled() {
    let Some(mut ring) = ring(small()) else {
        return;
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    ring.accept(listener.as_fd(), TOKEN_MAX);
    for _ in 0..3 {
        let peer = TcpStream::connect(address).unwrap();
        let completions = wait(&mut ring);
        let [
            Completion::Accepted {
                token: TOKEN_MAX,
                accepted: Ok(socket),
                more: true,
            },
        ] = &completions[..]
        else {
            panic!("{completions:?}");
        };
        let accepted = TcpStream::from(socket.try_clone().unwrap());
        assert_eq!(accepted.peer_addr().unwrap(), peer.local_addr().unwrap());
    }
    ring.cancel_accept(TOKEN_MAX);
    let completions = wait(&mut ring);
    let [
        Completion::Accepted {
            accepted: Err(error),
            more: false,
            ..
        },
    ] = &completions[..]
    else {
        panic!("{completions:?}");
    };
    assert_eq!(error.raw_os_error(), Some(libc::ECANCELED));
    assert_eq!(ring.outstanding, 0);
}

#[test]
fn a_stream_arrives_whole_and_in_order_through_few_buffers() {
    for whole in [true, false] {
        let mut setup = small();
        setup.piecewise = !whole;
        let Some(mut ring) = ring(setup) else {
            return;
        };
        let (ours, mut peer) = pair();
        let sent: Vec<u8> = (0..300_000_u32).map(|number| (number / 7) as u8).collect();
        let expected = sent.clone();
        let sender = std::thread::spawn(move || {
            for piece in sent.chunks(777) {
                peer.write_all(piece).unwrap();
            }
        });
        assert!(receive_all(&mut ring, &ours, 5) == expected);
        sender.join().unwrap();
    }
}

#[test]
fn what_is_lent_stays_while_more_arrives() {
    let Some(mut ring) = ring(small()) else {
        return;
    };
    let (ours, mut peer) = pair();
    ring.receive(ours.as_fd(), 1);
    let mut lent = Vec::new();
    for number in 0..4_u8 {
        peer.write_all(&[number; 100]).unwrap();
        for completion in wait(&mut ring) {
            if let Completion::Received {
                received: Ok(Some(input)),
                ..
            } = completion
            {
                lent.push((number, input));
            }
        }
    }
    assert!(!lent.is_empty());
    drop(ring);
    for (number, input) in lent {
        assert_eq!(input[..], [number; 100]);
    }
}

#[test]
fn a_receive_that_is_cancelled_says_so_and_nothing_is_lost() {
    let Some(mut ring) = ring(small()) else {
        return;
    };
    let (ours, mut peer) = pair();
    ring.receive(ours.as_fd(), 1);
    ring.submit().unwrap();
    ring.cancel_receive(1);
    let completions = wait(&mut ring);
    assert!(
        matches!(
            &completions[..],
            [Completion::Received { received: Err(error), more: false, .. }]
                if error.raw_os_error() == Some(libc::ECANCELED)
        ),
        "{completions:?}"
    );
    peer.write_all(b"late").unwrap();
    peer.shutdown(Shutdown::Write).unwrap();
    assert_eq!(receive_all(&mut ring, &ours, 1), b"late");
}

#[test]
fn sends_of_a_turn_go_out_in_order_and_their_memory_comes_back() {
    let Some(mut ring) = ring(small()) else {
        return;
    };
    let (ours, mut peer) = pair();
    for number in 0..2_000_u32 {
        let key = {
            let mut memory = ring.memory();
            memory.extend(number.to_be_bytes());
            ring.send(ours.as_fd(), 9, memory)
        };
        if number % 3 == 0 {
            ring.queued_send(key, 9).unwrap().push(b'!');
            assert!(ring.queued_send(key, 8).is_none());
            assert_eq!(ring.sending(key, 9), Sending::Queued);
        } else if number % 3 == 1 {
            assert_eq!(ring.withdraw(key, 9).unwrap(), number.to_be_bytes());
            assert!(ring.queued_send(key, 9).is_none());
            assert_eq!(ring.sending(key, 9), Sending::Over);
        }
    }
    ring.submit().unwrap();
    assert_eq!(ring.queued_sends(), 0);
    assert!(ring.next_completion().is_none(), "all was sent");
    assert!(ring.sends.is_empty());
    // Memory is kept up to the limit, and is empty.
    assert_eq!(ring.spare.len(), SPARE_BYTES_MAX / SEND_CAPACITY_MIN.max(4));
    assert_eq!(ring.memory().len(), 0);
    ring.close(ours);
    ring.submit().unwrap();
    let mut read = Vec::new();
    peer.read_to_end(&mut read).unwrap();
    let expected: Vec<u8> = (0..2_000_u32)
        .filter(|number| number % 3 != 1)
        .flat_map(|number| {
            let mark = (number % 3 == 0).then_some(b'!');
            number.to_be_bytes().into_iter().chain(mark)
        })
        .collect();
    assert!(read == expected);
}

#[test]
fn a_send_that_was_withdrawn_is_not_waited_for() {
    let Some(mut ring) = ring(small()) else {
        return;
    };
    let (ours, mut peer) = pair();
    ring.receive(ours.as_fd(), 1);
    let key = ring.send(ours.as_fd(), 1, b"x".to_vec());
    assert_eq!(ring.withdraw(key, 1).unwrap(), b"x");
    peer.write_all(b"y").unwrap();
    // There is no timeout: if this failed, it would not return.
    ring.submit_and_wait(None).unwrap();
    assert!(ring.next_completion().is_some());
}

#[test]
fn a_send_takes_what_fits_and_does_not_wait() {
    let Some(mut ring) = ring(small()) else {
        return;
    };
    let (ours, peer) = pair();
    let bytes = 64 << 20;
    let mut all = 0;
    // The peer's socket may keep making room for a while.
    loop {
        let key = ring.send(ours.as_fd(), 1, vec![7; bytes]);
        ring.submit().unwrap();
        assert_eq!(ring.sending(key, 1), Sending::Unsure);
        let Some(Completion::Unsent { sent, .. }) = ring.next_completion() else {
            panic!("a send waits");
        };
        assert_eq!(ring.sending(key, 1), Sending::Over);
        match sent {
            Ok(sent) => all += sent,
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                break;
            }
        }
    }
    assert!(all > 0 && all < bytes);
    drop(peer);
}

#[test]
fn a_poll_is_told_once() {
    let Some(mut ring) = ring(small()) else {
        return;
    };
    let (ours, mut peer) = pair();
    ring.poll(ours.as_fd(), 3);
    let timeout = Some(Duration::from_millis(1));
    ring.submit_and_wait(timeout).unwrap();
    assert!(ring.next_completion().is_none());
    peer.write_all(b"x").unwrap();
    assert!(matches!(
        wait(&mut ring)[..],
        [Completion::Polled { token: 3 }]
    ));
    ring.submit_and_wait(timeout).unwrap();
    assert!(ring.next_completion().is_none());
}

#[test]
fn a_ring_that_is_dropped_holds_no_socket_any_more() {
    let Some(mut ring) = ring(small()) else {
        return;
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (ours, mut peer) = pair();
    ring.accept(listener.as_fd(), 1);
    ring.receive(ours.as_fd(), 2);
    ring.submit().unwrap();
    let mut waiting = TcpStream::connect(address).unwrap();
    ring.send(ours.as_fd(), 2, b"last words".to_vec());
    ring.close(ours);
    drop(listener);
    drop(ring);
    let mut read = Vec::new();
    peer.read_to_end(&mut read).unwrap();
    assert_eq!(read, b"last words");
    assert!(TcpStream::connect(address).is_err());
    // This socket was closed as well, whether it was accepted or not.
    assert!(matches!(waiting.read(&mut [0; 1]), Ok(0) | Err(_)));
}

#[test]
#[should_panic(expected = "61 bits")]
fn a_token_that_is_too_large_is_refused() {
    Kind::Poll.user_data(TOKEN_MAX + 1);
}
