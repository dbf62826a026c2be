use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::num::NonZeroU32;
use std::sync::Arc;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress};
use linerate_proto::{CloseCode, Opcode};
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use super::*;
use crate::cell::{Deflate, Payload};
use crate::load::Usage;
use crate::load::testing::{
    BUDGET, IMPATIENT, Opaque, Peer, serve_raw, serve_websocket, serve_websocket_with,
};

const ECHO: Echo = Echo {
    connections: 3,
    window: 4,
    payload_bytes: 300,
    payload: Payload::Ascii,
    frames: 1,
    write_bytes_max: None,
    tls: false,
    deflate: Deflate::Off,
    rate: None,
    messages: None,
};

/// Long enough for an answer from any server here, even on a busy machine.
const LONGER: Budget = Budget {
    measured: Duration::from_millis(200),
    ..BUDGET
};

fn run(echo: &Echo, target: &Target) -> Result<Figures, LoadError> {
    measure(echo, target, &LONGER, &[], &mut Opaque)
}

/// Runs a load that must fail because of the server.
fn fail(echo: &Echo, target: &Target, budget: &Budget) -> LoadError {
    let error = measure(echo, target, budget, &[], &mut Opaque).unwrap_err();
    assert!(!error.is_ours(), "{error}");
    error
}

/// Echoes single-frame messages, and closes when the client does.
fn echo(peer: &mut Peer) -> io::Result<()> {
    loop {
        let (opcode, payload) = peer.read()?;
        peer.send(opcode, &payload)?;
        if opcode == Opcode::Close {
            return Ok(());
        }
    }
}

/// Answers each message of a connection with `serve`, which receives the number of the message.
fn answer<F>(serve: F) -> Target
where
    F: Fn(&mut Peer, u64, &[u8]) -> io::Result<()> + Send + Sync + 'static,
{
    serve_websocket(move |peer, _| {
        for number in 0_u64.. {
            let (_, payload) = peer.read()?;
            serve(peer, number, &payload)?;
        }
        Ok(())
    })
}

fn echo_bytes(mut stream: impl Read + Write) -> io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            bytes => stream.write_all(&buffer[..bytes])?,
        }
    }
}

fn assert_counted(echo: &Echo, figures: &Figures) {
    assert!(figures.messages > 0.0);
    let payload_bytes = figures.messages * f64::from(echo.payload_bytes);
    assert!((figures.payload_bytes - payload_bytes).abs() < 1e-3);
    assert!(figures.elapsed_s >= LONGER.measured.as_secs_f64());
    assert!(figures.load_cpu_s > 0.0);
    assert_eq!(figures.load_threads, 1);
    assert!(figures.latency.unwrap().count > 0);
}

#[test]
fn right_echo_is_counted() {
    let echoes = serve_websocket(|peer, _| echo(peer));
    for case in [
        ECHO,
        Echo {
            window: 1,
            connections: 1,
            payload_bytes: 8,
            ..ECHO
        },
        Echo {
            payload_bytes: 1 << 20,
            window: 3,
            payload: Payload::Multibyte,
            ..ECHO
        },
        Echo {
            write_bytes_max: NonZeroU32::new(100),
            payload: Payload::Binary,
            ..ECHO
        },
        Echo {
            window: 700,
            payload_bytes: 0,
            ..ECHO
        },
    ] {
        let figures = run(&case, &echoes).unwrap();
        assert_counted(&case, &figures);
        assert_eq!(figures.connections, 0.0);
    }
}

#[test]
fn bytes_that_come_back_are_counted() {
    let target = serve_raw(|stream, _| echo_bytes(stream));
    for case in [
        ECHO,
        Echo {
            frames: 5,
            payload_bytes: 1 << 20,
            ..ECHO
        },
        Echo {
            messages: Some(5),
            ..ECHO
        },
    ] {
        assert_counted(&case, &run(&case, &target).unwrap());
    }
}

#[test]
fn fragments_are_joined_by_the_server_and_answers_fragmented() {
    let target = serve_websocket(|peer, _| {
        let mut message = Vec::new();
        for frame in 1_u64.. {
            message.extend(peer.read()?.1);
            if frame % 3 == 0 {
                // Half in the first frame, half in the second, and a Ping in between.
                peer.stream.write_all(&[0x01, 126, 0, 150])?;
                peer.stream.write_all(&message[..150])?;
                peer.stream.write_all(b"\x89\x01?")?;
                peer.stream.write_all(&[0x80, 126, 0, 150])?;
                peer.stream.write_all(&message[150..])?;
                let (opcode, payload) = peer.read()?;
                assert_eq!(
                    (opcode, payload.as_slice()),
                    (Opcode::Pong, b"?".as_slice())
                );
                message.clear();
            }
        }
        Ok(())
    });
    let case = Echo {
        frames: 3,
        window: 1,
        ..ECHO
    };
    assert_counted(&case, &run(&case, &target).unwrap());
}

#[test]
fn every_core_has_a_thread() {
    let target = serve_websocket(|peer, _| echo(peer));
    let figures = measure(&ECHO, &target, &BUDGET, &[0, 0], &mut Opaque).unwrap();
    assert_eq!(figures.load_threads, 2);
    // There are no more threads than connections.
    let one = Echo {
        connections: 1,
        ..ECHO
    };
    let figures = measure(&one, &target, &BUDGET, &[0, 0], &mut Opaque).unwrap();
    assert_eq!(figures.load_threads, 1);
}

#[test]
fn connections_come_and_go() {
    let target = serve_websocket(|peer, _| echo(peer));
    for (messages, window) in [(1, 1), (5, 4)] {
        let case = Echo {
            messages: Some(messages),
            window,
            ..ECHO
        };
        let figures = run(&case, &target).unwrap();
        assert_counted(&case, &figures);
        assert!(figures.connections > 0.0);
        let per_connection = figures.messages / figures.connections;
        let messages = f64::from(messages);
        // Messages that are in flight at the start and the end may account for this much of a
        // difference.
        let error = 2.0 * messages * f64::from(case.connections) / figures.connections;
        assert!(
            (per_connection - messages).abs() <= error,
            "{per_connection} ± {error}"
        );
    }
}

#[test]
fn schedule_is_kept_and_latency_counted_from_it() {
    let target = serve_websocket(|peer, _| echo(peer));
    let case = Echo {
        rate: Some(2_000.0),
        ..ECHO
    };
    let figures = run(&case, &target).unwrap();
    assert_counted(&case, &figures);
    // A closed loop would have sent many times as many.
    assert!(figures.messages <= 2_000.0 * (figures.elapsed_s + 1.0));
}

/// Starts a server that needs at least five milliseconds for each message.
fn serve_slowly() -> Target {
    answer(|peer, _, payload| {
        thread::sleep(Duration::from_millis(5));
        peer.send(Opcode::Text, payload)
    })
}

#[test]
fn latency_in_an_open_loop_includes_the_wait_before_sending() {
    let case = Echo {
        connections: 1,
        rate: Some(1_000.0),
        ..ECHO
    };
    let latency = run(&case, &serve_slowly()).unwrap().latency.unwrap();
    // Message n is due after n ms and answered after 5 n ms at the earliest, and the warm-up takes
    // 20 ms. If the client had waited for each answer, all latencies would have been 5 ms.
    assert!(latency.p50_us >= 80e3, "{latency:?}");
}

#[test]
fn a_schedule_that_cannot_be_kept_is_given_up() {
    let budget = Budget {
        measured: Duration::from_secs(60),
        silence_max: Duration::from_millis(250),
        ..BUDGET
    };
    let case = Echo {
        connections: 1,
        rate: Some(10_000.0),
        ..ECHO
    };
    let figures = measure(&case, &serve_slowly(), &budget, &[], &mut Opaque).unwrap();
    assert!(figures.elapsed_s < 60.0);
    assert!(figures.latency.unwrap().max_us >= 500e3);
}

/// A process that has exited when the measurement ends.
#[derive(Debug)]
struct Mortal(u32);

impl Probe for Mortal {
    fn usage(&mut self) -> io::Result<Option<Usage>> {
        self.0 -= 1;
        match self.0 {
            0 => Err(io::ErrorKind::NotFound.into()),
            _ => Ok(Some(Usage::default())),
        }
    }

    fn reset_peak(&mut self) -> io::Result<()> {
        match self.0 {
            1 => Err(io::ErrorKind::NotFound.into()),
            _ => Ok(()),
        }
    }

    fn cores(&self) -> u32 {
        1
    }
}

#[test]
fn a_process_that_is_gone_has_no_figures() {
    let target = serve_websocket(|peer, _| echo(peer));
    for looks in [1, 2] {
        let error = measure(&ECHO, &target, &BUDGET, &[], &mut Mortal(looks)).unwrap_err();
        assert!(matches!(error, LoadError::Gone(_)), "{error}");
    }
    let figures = measure(&ECHO, &target, &BUDGET, &[], &mut Mortal(3)).unwrap();
    assert_eq!(figures.server.unwrap().cores, 1);
}

#[test]
fn swapped_messages_are_noticed() {
    let target = serve_websocket(|peer, _| {
        let (first, second) = (peer.read()?, peer.read()?);
        peer.send(second.0, &second.1)?;
        peer.send(first.0, &first.1)?;
        echo(peer)
    });
    let error = fail(&ECHO, &target, &BUDGET);
    assert!(
        matches!(
            error,
            LoadError::Differs {
                message: 0,
                byte: 0,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn a_changed_byte_is_noticed() {
    let target = answer(|peer, number, payload| {
        let mut payload = payload.to_vec();
        if number == 6 {
            payload[123] ^= 1;
        }
        peer.send(Opcode::Text, &payload)
    });
    let error = fail(&ECHO, &target, &BUDGET);
    assert!(
        matches!(
            error,
            LoadError::Differs {
                message: 6,
                byte: 123,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn a_lost_message_is_noticed() {
    let target = answer(|peer, number, payload| match number {
        3 => Ok(()),
        _ => peer.send(Opcode::Text, payload),
    });
    let error = fail(&ECHO, &target, &IMPATIENT);
    assert!(matches!(error, LoadError::Silent { .. }), "{error}");
}

#[test]
fn one_silent_connection_is_noticed_in_a_short_measurement() {
    let target = serve_websocket(|peer, number| match number % 3 {
        1 => loop {
            peer.read()?;
        },
        _ => echo(peer),
    });
    let patient = Budget {
        silence_max: Duration::from_millis(300),
        ..BUDGET
    };
    for rate in [None, Some(1_000.0)] {
        let error = fail(&Echo { rate, ..ECHO }, &target, &patient);
        assert!(matches!(error, LoadError::Silent { .. }), "{error}");
    }
}

#[test]
fn a_close_in_the_middle_is_noticed() {
    let target = answer(|peer, number, payload| match number {
        5 => peer.send(Opcode::Close, b"\x03\xf3oops"),
        _ => peer.send(Opcode::Text, payload),
    });
    let error = fail(&ECHO, &target, &BUDGET);
    let code = Some(CloseCode::INTERNAL_ERROR.as_u16());
    assert!(
        matches!(error, LoadError::Closed { code: there } if there == code),
        "{error}"
    );
    assert_eq!(
        error.to_string(),
        "the server closed the connection before the load ended, with code 1011"
    );
}

#[test]
fn an_end_in_the_middle_is_noticed() {
    let ends = |stream: &mut TcpStream| {
        let mut buffer = [0; 64];
        stream.read_exact(&mut buffer).unwrap();
    };
    // The kernel resets the connection if there is unread input.
    let raw = serve_raw(move |mut stream, _| {
        ends(&mut stream);
        Ok(())
    });
    let websocket = serve_websocket(move |peer, _| {
        ends(&mut peer.stream);
        Ok(())
    });
    for target in [raw, websocket] {
        let error = fail(&ECHO, &target, &BUDGET);
        assert!(
            matches!(error, LoadError::Ended | LoadError::Broken(_)),
            "{error}"
        );
    }
    let orderly = serve_raw(|mut stream, _| {
        let mut message = [0; 308];
        stream.read_exact(&mut message)?;
        stream.write_all(&message)
    });
    let one = Echo {
        window: 1,
        payload_bytes: 300,
        ..ECHO
    };
    let error = fail(&one, &orderly, &BUDGET);
    assert!(
        matches!(error, LoadError::Ended | LoadError::Broken(_)),
        "{error}"
    );
}

#[test]
fn an_unanswered_close_is_noticed() {
    let target = serve_websocket(|peer, _| {
        let (opcode, payload) = peer.read()?;
        peer.send(opcode, &payload)?;
        peer.read().map(drop)
    });
    let case = Echo {
        messages: Some(1),
        window: 1,
        ..ECHO
    };
    let error = fail(&case, &target, &BUDGET);
    assert!(matches!(error, LoadError::CloseUnanswered), "{error}");
}

#[test]
fn a_server_that_is_not_there_refuses() {
    let target = serve_raw(|_, _| Ok(()));
    // No process listens on port 1 of this address.
    let target = Target {
        address: ([127, 77, 77, 77], 1).into(),
        ..target
    };
    for messages in [None, Some(1)] {
        let error = fail(&Echo { messages, ..ECHO }, &target, &BUDGET);
        assert!(matches!(error, LoadError::Refused(_)), "{error}");
    }
}

#[test]
fn what_makes_no_sense_is_our_own_failure() {
    let target = serve_raw(|stream, _| echo_bytes(stream));
    for case in [
        Echo {
            connections: 0,
            ..ECHO
        },
        Echo { window: 0, ..ECHO },
        Echo {
            messages: Some(0),
            ..ECHO
        },
        Echo {
            rate: Some(1.0),
            messages: Some(1),
            ..ECHO
        },
        Echo {
            rate: Some(0.0),
            ..ECHO
        },
        Echo { tls: true, ..ECHO },
        Echo {
            deflate: Deflate::Takeover,
            ..ECHO
        },
        Echo {
            payload_bytes: 100 << 20,
            ..ECHO
        },
    ] {
        let error = run(&case, &target).unwrap_err();
        assert!(error.is_ours(), "{case:?}: {error}");
    }
}

/// Decompresses each message and compresses it again, with or without the context of the messages
/// before it.
fn echo_compressed(peer: &mut Peer, deflate: Deflate) -> io::Result<()> {
    let mut inflate = Decompress::new(false);
    let mut compress = Compress::new(Compression::default(), false);
    loop {
        let (_, mut payload) = peer.read()?;
        if deflate == Deflate::NoTakeover {
            inflate.reset(false);
            compress.reset();
        }
        payload.extend(b"\0\0\xff\xff");
        let mut plain = Vec::with_capacity(4_000);
        inflate.decompress_vec(&payload, &mut plain, FlushDecompress::Sync)?;
        let mut frame = Vec::with_capacity(4_000);
        frame.extend([0xc1, 126, 0, 0]);
        compress.compress_vec(&plain, &mut frame, FlushCompress::Sync)?;
        frame.truncate(frame.len() - 4);
        let bytes = (frame.len() - 4) as u16;
        assert!(bytes > 125, "{bytes}");
        frame[2..4].copy_from_slice(&bytes.to_be_bytes());
        peer.stream.write_all(&frame)?;
    }
}

#[test]
fn compressed_echo_is_counted() {
    let answers = [
        (
            Deflate::NoTakeover,
            "Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover; \
            client_no_context_takeover\r\n",
        ),
        (
            Deflate::Takeover,
            "Sec-WebSocket-Extensions: permessage-deflate\r\n",
        ),
    ];
    for (deflate, answer) in answers {
        let target = serve_websocket_with(answer, move |peer, _| echo_compressed(peer, deflate));
        let case = Echo {
            deflate,
            payload: Payload::Json,
            payload_bytes: 3_000,
            ..ECHO
        };
        let figures = run(&case, &target).unwrap();
        assert_counted(&case, &figures);
        let (payload, wire) = (figures.payload_bytes, figures.wire_bytes.unwrap());
        assert!(wire > 0.0 && wire < payload / 2.0, "{wire} of {payload}");
    }
}

/// Starts a server that echoes bytes inside TLS, and returns how to reach it.
fn serve_tls() -> Target {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
    let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)
        .unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certified.cert.der().clone()).unwrap();
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let server = Arc::new(server);
    let target = serve_raw(move |stream, _| {
        let session = ServerConnection::new(Arc::clone(&server)).unwrap();
        let mut stream = StreamOwned::new(session, stream);
        echo_bytes(&mut stream)?;
        stream.conn.send_close_notify();
        stream.flush()
    });
    let name = ServerName::try_from("localhost").unwrap();
    Target {
        tls: Some((Arc::new(client), name)),
        ..target
    }
}

#[test]
fn encrypted_echo_is_counted() {
    let target = serve_tls();
    for case in [
        Echo { tls: true, ..ECHO },
        // Longer than what is encrypted at once, than a read, and than the kernel's buffers.
        Echo {
            tls: true,
            payload_bytes: 5 << 20,
            window: 1,
            ..ECHO
        },
        Echo {
            tls: true,
            payload_bytes: 8,
            window: 500,
            write_bytes_max: NonZeroU32::new(1_400),
            ..ECHO
        },
        Echo {
            tls: true,
            rate: Some(1_000.0),
            ..ECHO
        },
    ] {
        assert_counted(&case, &run(&case, &target).unwrap());
    }
}

#[test]
fn a_certificate_for_another_name_is_the_servers_failure() {
    let target = serve_tls();
    let (config, _) = target.tls.clone().unwrap();
    let other = ServerName::try_from("example.com").unwrap();
    let target = Target {
        tls: Some((config, other)),
        ..target
    };
    let error = fail(&Echo { tls: true, ..ECHO }, &target, &BUDGET);
    assert!(matches!(error, LoadError::Tls(_)), "{error}");
}
