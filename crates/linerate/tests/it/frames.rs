//! Invalid frames on a real socket: checks the exact bytes of the Close frame, and then the end of
//! the stream. There is one test for each row of the project's table of bad inputs, named after it.

use linerate_proto::Role;
use linerate_testkit::{Frame, LengthForm};

use crate::{raw::Raw, support::Running};

/// Sends `wire` and asserts that the server replies with nothing but a Close frame with `code`, and
/// closes the connection.
async fn fails_with(wire: &[u8], code: u16) {
    let server = Running::echo().await;
    let mut raw = Raw::open(server.address).await;
    raw.send(wire).await;
    let expected = [&[0x88, 0x02], &code.to_be_bytes()[..]].concat();
    assert_eq!(raw.rest().await, expected, "{}", wire.escape_ascii());
    drop(raw);
    server.stop().await;
}

/// Masks and joins frames.
fn wire(frames: &[Frame]) -> Vec<u8> {
    let bytes = |frame: &Frame| frame.clone().to_role(Role::Server).to_bytes();
    frames.iter().flat_map(bytes).collect()
}

fn fragment(opcode: u8, payload: &[u8]) -> Frame {
    Frame::new(opcode, payload).with_fin(false)
}

/// Defines tests of frames that fail a connection, with the close code that they are answered with.
macro_rules! rows {
    ($($name:ident: [$($frame:expr),+] => $code:literal;)+) => {$(
        #[tokio::test]
        async fn $name() {
            fails_with(&wire(&[$($frame),+]), $code).await;
        }
    )+};
}

rows! {
    f01_rsv1_without_an_extension: [Frame::new(0x1, b"x").with_rsv(4)] => 1002;
    f02_rsv2_and_rsv3: [Frame::new(0x9, b"").with_rsv(3)] => 1002;
    f03_a_reserved_opcode: [Frame::new(0x3, b"x")] => 1002;
    f03_a_reserved_control_opcode: [fragment(0x1, b"x"), Frame::new(0xB, b"")] => 1002;
    f06_a_length_that_is_not_minimal:
        [Frame::new(0x1, b"x").with_length_form(LengthForm::Bits16)] => 1002;
    f07_a_length_of_64_bits: [Frame::new(0x2, b"").with_claimed_bytes(u64::MAX)] => 1002;
    f10_a_claimed_length_over_the_limit:
        [Frame::new(0x2, b"").with_claimed_bytes((1 << 20) + 1)] => 1009;
    f10_fragments_over_the_limit:
        [fragment(0x2, &[0; 1 << 10]), Frame::new(0x0, b"").with_claimed_bytes(1 << 20)] => 1009;
    f11_a_long_ping: [Frame::new(0x9, &[b'x'; 126])] => 1002;
    f11_a_long_close: [Frame::new(0x8, &[b'x'; 126])] => 1002;
    f12_a_fragmented_ping: [fragment(0x9, b"x")] => 1002;
    f14_a_continuation_of_nothing: [Frame::new(0x0, b"x")] => 1002;
    f15_a_message_inside_a_message: [fragment(0x1, b"x"), Frame::new(0x1, b"y")] => 1002;
    f20_a_close_of_one_byte: [Frame::new(0x8, b"\x03")] => 1002;
    f21_close_code_0: [Frame::new(0x8, b"\x00\x00")] => 1002;
    f21_close_code_1005: [Frame::new(0x8, b"\x03\xed")] => 1002;
    f21_close_code_1006: [Frame::new(0x8, b"\x03\xee")] => 1002;
    f21_close_code_1015: [Frame::new(0x8, b"\x03\xf7")] => 1002;
    f21_close_code_2999: [Frame::new(0x8, b"\x0b\xb7")] => 1002;
    f21_close_code_5000: [Frame::new(0x8, b"\x13\x88")] => 1002;
    f22_a_close_reason_that_is_no_text: [Frame::new(0x8, b"\x03\xe8\xff")] => 1007;
    u01_an_overlong_form: [Frame::new(0x1, b"\xc0\x80")] => 1007;
    u02_a_surrogate: [Frame::new(0x1, b"\xed\xa0\x80")] => 1007;
    u03_beyond_unicode: [Frame::new(0x1, b"\xf4\x90\x80\x80")] => 1007;
    u04_a_text_that_ends_inside_a_code_point: [Frame::new(0x1, b"\xe2\x82")] => 1007;
    u04_a_lone_continuation: [Frame::new(0x1, b"\x80")] => 1007;
    u06_a_bad_byte_in_the_first_fragment: [fragment(0x1, b"\xff")] => 1007;
    u06_a_bad_byte_in_an_unfinished_frame:
        [Frame::new(0x1, b"x\xff").with_claimed_bytes(1_000)] => 1007;
}

#[tokio::test]
async fn f04_a_frame_that_is_not_masked() {
    fails_with(b"\x81\x01x", 1002).await;
    fails_with(b"\x88\x02\x03\xe8", 1002).await;
}

#[tokio::test]
async fn f05_a_server_that_masks_is_failed() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = Running::echo().await;
    // A proxy in front of a correct server adds a masked frame.
    let between = tokio::spawn(async move {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let (mut client, _) = listener.accept().await.unwrap();
        let mut upstream = tokio::net::TcpStream::connect(server.address)
            .await
            .unwrap();
        let mut bytes = [0; 1_024];
        let count = client.read(&mut bytes).await.unwrap();
        upstream.write_all(&bytes[..count]).await.unwrap();
        let count = upstream.read(&mut bytes).await.unwrap();
        client.write_all(&bytes[..count]).await.unwrap();
        client.write_all(b"\x81\x81\0\0\0\0x").await.unwrap();
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).await.unwrap();
        drop(upstream);
        server.stop().await;
        rest
    });
    let mut ws = linerate::connect(&format!("ws://{address}/"))
        .await
        .unwrap();
    let error = ws.recv().await.unwrap_err();
    let linerate::Error::Protocol(error) = error else {
        panic!("{error}");
    };
    assert_eq!(error, linerate::ProtocolError::MaskedFrame);
    assert_eq!(ws.recv().await.unwrap(), None);
    let mut close = between.await.unwrap();
    let key: Vec<u8> = close[2..6].to_vec();
    for (byte, key) in close[6..].iter_mut().zip(key) {
        *byte ^= key;
    }
    assert_eq!(
        (&close[..2], &close[6..]),
        (&b"\x88\x82"[..], &b"\x03\xea"[..])
    );
}

#[tokio::test]
async fn f13_control_frames_between_fragments_are_answered_at_once() {
    let server = Running::echo().await;
    let mut raw = Raw::open(server.address).await;
    raw.send_frame(fragment(0x1, b"one ")).await;
    raw.send_frame(Frame::new(0x9, b"?")).await;
    assert_eq!(raw.frame().await, Some((0x8A, b"?".to_vec())));
    raw.send_frame(Frame::new(0x0, b"two")).await;
    assert_eq!(raw.frame().await, Some((0x81, b"one two".to_vec())));
    drop(raw);
    server.stop().await;
}

#[tokio::test]
async fn f21_close_codes_that_may_be_sent_are_echoed() {
    let server = Running::echo().await;
    for code in [1000_u16, 1001, 1003, 1007, 1011, 1014, 3000, 4999] {
        let mut raw = Raw::open(server.address).await;
        let payload = [&code.to_be_bytes()[..], b"reason"].concat();
        raw.send_frame(Frame::new(0x8, &payload)).await;
        let expected = [&[0x88, 0x02], &code.to_be_bytes()[..]].concat();
        assert_eq!(raw.rest().await, expected);
    }
    server.stop().await;
}

#[tokio::test]
async fn f23_what_follows_a_close_is_not_answered() {
    let server = Running::echo().await;
    let mut raw = Raw::open(server.address).await;
    let close = Frame::new(0x8, b"\x03\xe8");
    let late = [
        Frame::new(0x1, b"late"),
        Frame::new(0x9, b"late"),
        close.clone(),
    ];
    raw.send(wire(&[&[close][..], &late].concat())).await;
    assert_eq!(raw.rest().await, b"\x88\x02\x03\xe8");
    drop(raw);
    server.stop().await;
}

#[tokio::test]
async fn messages_before_a_frame_that_breaks_the_rules_are_answered() {
    let server = Running::echo().await;
    let mut raw = Raw::open(server.address).await;
    let frames = [
        Frame::new(0x1, b"one"),
        Frame::new(0x1, b"two"),
        Frame::new(0x3, b""),
    ];
    raw.send(wire(&frames)).await;
    assert_eq!(raw.rest().await, b"\x81\x03one\x81\x03two\x88\x02\x03\xea");
    drop(raw);
    server.stop().await;
}

#[tokio::test]
async fn f24_frames_cut_into_single_bytes_mean_the_same() {
    let server = Running::echo().await;
    let mut raw = Raw::open(server.address).await;
    let frames = [
        fragment(0x1, "gr".as_bytes()),
        Frame::new(0x9, b"?"),
        Frame::new(0x0, "ößer".as_bytes()),
        Frame::new(0x2, &[7; 130]),
        Frame::new(0x8, b"\x03\xe8"),
    ];
    for byte in wire(&frames) {
        raw.send([byte]).await;
        tokio::task::yield_now().await;
    }
    let mut expected = b"\x8a\x01?\x81\x08gr\xc3\xb6\xc3\x9fer\x82\x7e\x00\x82".to_vec();
    expected.extend([7; 130]);
    expected.extend(b"\x88\x02\x03\xe8");
    assert_eq!(raw.rest().await, expected);
    drop(raw);
    server.stop().await;
}
