//! Hostile servers, which must not harm a client.

use linerate::{
    Client, Error, Options, ProtocolError, WebSocket,
    dial::{DialError, Phase},
};
use linerate_proto::{Header, MaskKey, Role};
use linerate_testkit::Frame;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use crate::{raw::in_time, relay::answer_handshake};

/// Returns a client and the server's end of its stream.
async fn connected(options: Options) -> (WebSocket, DuplexStream) {
    let (ours, mut theirs) = duplex(1 << 16);
    let client = Client::new().with_options(options);
    let connecting = client.connect_over(ours, "ws://example.com/");
    let (ws, ()) = tokio::join!(connecting, answer_handshake(&mut theirs));
    (ws.unwrap(), theirs)
}

/// Returns the error that a server's frames cause, and the close code that is sent to the server.
async fn judged(wire: &[u8]) -> (ProtocolError, u16) {
    let (mut ws, theirs) = connected(Options::default()).await;
    let (mut theirs, mut writer) = tokio::io::split(theirs);
    let wire = wire.to_vec();
    let _writing = tokio::spawn(async move { writer.write_all(&wire).await });
    let error = loop {
        match in_time(ws.recv()).await {
            Ok(message) => assert!(message.is_some()),
            Err(Error::Protocol(error)) => break error,
            Err(error) => panic!("{error}"),
        }
    };
    let mut frame = [0; 8];
    in_time(theirs.read_exact(&mut frame)).await.unwrap();
    let (header, bytes) = Header::decode(&frame).unwrap().unwrap();
    let MaskKey(key) = header.mask.unwrap();
    let code = [frame[bytes] ^ key[0], frame[bytes + 1] ^ key[1]];
    (error, u16::from_be_bytes(code))
}

/// The deadline is absolute: arriving bytes do not extend it.
#[tokio::test(start_paused = true)]
async fn c02_an_answer_that_dribbles_for_ever_ends_at_the_deadline() {
    let (ours, mut theirs) = duplex(1 << 10);
    let client = Client::new();
    let dribbling = async {
        theirs.write_all(b"HTTP/1.1 101 ").await.unwrap();
        while theirs.write_all(b"x").await.is_ok() {
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        }
    };
    let connecting = async {
        let connected = client.connect_over(ours, "ws://example.com/").await;
        connected.expect_err("the server never responds")
    };
    let (error, ()) = tokio::join!(connecting, dribbling);
    let Error::Dial(DialError::TimedOut { phase, elapsed, .. }) = error else {
        panic!("{error}");
    };
    assert_eq!((phase, elapsed.as_secs()), (Phase::Handshake, 10));
}

/// Input after an error is discarded, so that a reset does not destroy our Close frame, but not for
/// longer than the closing handshake may take.
#[tokio::test(start_paused = true)]
async fn c02_junk_without_end_behind_the_101_is_given_up() {
    let (mut ws, mut theirs) = connected(Options::default()).await;
    let begun = tokio::time::Instant::now();
    let junk = tokio::spawn(async move {
        while theirs.write_all(&[0xFF; 1 << 12]).await.is_ok() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    });
    let error = ws.recv().await.unwrap_err();
    assert!(
        matches!(
            error,
            Error::Protocol(ProtocolError::ReservedBits { rsv: 7 })
        ),
        "{error}"
    );
    junk.await.unwrap();
    let budget = Options::default().config.close_timeout;
    assert_eq!(begun.elapsed().as_secs(), budget.as_secs());
}

#[tokio::test]
async fn c04_frames_of_a_server_that_break_the_rules_or_a_limit_are_told_so() {
    let first = Frame::new(0x2, b"").with_fin(false).to_bytes();
    let fragment = Frame::new(0x0, b"x").with_fin(false).to_bytes();
    for (wire, expected, code) in [
        (
            Frame::new(0x2, b"x").to_role(Role::Server).to_bytes(),
            "MaskedFrame",
            1002,
        ),
        (
            Frame::new(0x2, b"").with_claimed_bytes(1 << 62).to_bytes(),
            "MessageTooBig",
            1009,
        ),
        (
            Frame::new(0x2, b"x").with_rsv(4).to_bytes(),
            "ReservedBits",
            1002,
        ),
        (
            [first, fragment.repeat(131_072)].concat(),
            "TooManyFragments",
            1008,
        ),
        (Frame::new(0x1, b"\xff").to_bytes(), "InvalidUtf8", 1007),
    ] {
        let (error, told) = judged(&wire).await;
        assert!(format!("{error:?}").starts_with(expected), "{error:?}");
        assert_eq!(told, code, "{error}");
    }
}

#[tokio::test]
async fn c05_each_frame_to_a_server_is_masked_with_a_key_of_its_own() {
    let (mut ws, mut theirs) = connected(Options::default()).await;
    let mut keys = Vec::new();
    for _ in 0..100 {
        ws.send("same").await.unwrap();
        ws.flush().await.unwrap();
        let mut frame = [0; 10];
        in_time(theirs.read_exact(&mut frame)).await.unwrap();
        let (header, bytes) = Header::decode(&frame).unwrap().unwrap();
        let MaskKey(key) = header.mask.unwrap();
        let payload: Vec<u8> = frame[bytes..]
            .iter()
            .zip(key)
            .map(|(byte, key)| byte ^ key)
            .collect();
        assert_eq!(payload, b"same");
        keys.push(u32::from_be_bytes(key));
    }
    let differences: std::collections::HashSet<u32> = keys
        .windows(2)
        .map(|two| two[1].wrapping_sub(two[0]))
        .collect();
    // The keys are neither all the same nor counted up.
    assert!(differences.len() > 90, "{keys:x?}");
}
