//! The opening handshake on real sockets. There is one test for each row from H01 to H23 of the
//! project's table of bad inputs that can occur on a socket, named after the row.

use std::time::Duration;

use linerate::{
    Client, Error, Message, Options, Server,
    dial::{DialError, Phase},
    handshake::HandshakeError,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use crate::{
    raw::{ACCEPTED, REQUEST, Raw, edited, in_time, with_line},
    support::{Running, echo},
};

/// Sends `request` and returns the whole response of a server that refuses it and closes the
/// connection.
async fn refusal(server: &Running, request: impl AsRef<[u8]>) -> String {
    let mut raw = Raw::connect(server.address).await;
    raw.send(request).await;
    String::from_utf8(raw.rest().await).unwrap()
}

/// Asserts that each request is refused with exactly this status line, in a single response, and
/// that the connection is then closed.
async fn refuses<R: AsRef<[u8]>>(requests: impl IntoIterator<Item = R>, status: &str) {
    let server = Running::echo().await;
    for request in requests {
        let answer = refusal(&server, &request).await;
        let request = request.as_ref().escape_ascii();
        let line = format!("HTTP/1.1 {status}\r\n");
        assert!(answer.starts_with(&line), "{request}: {answer}");
        assert_eq!(
            answer.matches("HTTP/1.1 ").count(),
            1,
            "{request}: {answer}"
        );
        assert!(answer.contains("\r\nConnection: "), "{answer}");
        assert!(answer.contains("close\r\n"), "{answer}");
    }
    server.stop().await;
}

/// Asserts that each request opens a working WebSocket.
async fn accepts<R: AsRef<[u8]>>(requests: impl IntoIterator<Item = R>) {
    let server = Running::echo().await;
    for request in requests {
        let mut raw = Raw::connect(server.address).await;
        raw.send(&request).await;
        assert_eq!(
            raw.head().await,
            ACCEPTED,
            "{}",
            request.as_ref().escape_ascii()
        );
        raw.send(b"\x81\x84\0\0\0\0Spam").await;
        assert_eq!(raw.frame().await, Some((0x81, b"Spam".to_vec())));
    }
    server.stop().await;
}

#[tokio::test]
async fn h01_each_header_is_required() {
    let without = |line: &str| edited(line, "");
    refuses(
        [
            without("Host: example.com\r\n"),
            without("Upgrade: websocket\r\n"),
            without("Connection: Upgrade\r\n"),
            without("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"),
        ],
        "400 Bad Request",
    )
    .await;
    refuses(
        [without("Sec-WebSocket-Version: 13\r\n")],
        "426 Upgrade Required",
    )
    .await;
}

#[tokio::test]
async fn h02_headers_that_are_single_appear_once() {
    refuses(
        [
            "Host: example.com",
            "Host: example.org",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
            "Sec-WebSocket-Version: 13",
            "Content-Length: 1\r\nContent-Length: 2",
        ]
        .map(with_line),
        "400 Bad Request",
    )
    .await;
}

#[tokio::test]
async fn h03_case_white_space_and_lists_make_no_difference() {
    accepts([
        edited("Connection: Upgrade", "connection: keep-alive, uPgRaDe"),
        edited(
            "Connection: Upgrade",
            "Connection: keep-alive\r\nConnection:\tUPGRADE \t",
        ),
        edited("Upgrade: websocket", "UPGRADE:WebSocket"),
    ])
    .await;
}

#[tokio::test]
async fn h04_the_key_is_the_base64_of_sixteen_bytes() {
    let keys = [
        "",
        "AAAA",
        "dGhlIHNhbXBsZSBub25jZQ=",
        "dGhlIHNhbXBsZSBub25jZQ== x",
    ];
    let requests = keys.map(|key| edited("dGhlIHNhbXBsZSBub25jZQ==", key));
    refuses(requests, "400 Bad Request").await;
}

#[tokio::test]
async fn h05_other_versions_are_told_which_one_we_speak() {
    let server = Running::echo().await;
    for version in ["0", "8", "12", "14", "13, 8", "013"] {
        let answer = refusal(
            &server,
            edited("Version: 13", &format!("Version: {version}")),
        )
        .await;
        assert!(
            answer.starts_with("HTTP/1.1 426 Upgrade Required\r\n"),
            "{answer}"
        );
        assert!(
            answer.contains("\r\nSec-WebSocket-Version: 13\r\n"),
            "{answer}"
        );
        assert!(answer.contains("\r\nUpgrade: websocket\r\n"), "{answer}");
    }
    server.stop().await;
}

#[tokio::test]
async fn h06_a_body_is_refused_and_never_taken_for_a_request() {
    let smuggled = [&with_line("Content-Length: 200")[..], REQUEST.as_bytes()].concat();
    let chunked = with_line("Transfer-Encoding: chunked");
    refuses(
        [smuggled, [&chunked[..], b"0\r\n\r\n"].concat()],
        "400 Bad Request",
    )
    .await;
}

#[tokio::test]
async fn h07_what_follows_a_refused_request_is_not_answered() {
    let refused = edited("Upgrade: websocket", "Upgrade: h2c");
    refuses([[&refused, REQUEST].concat()], "400 Bad Request").await;
}

#[tokio::test]
async fn h08_frames_in_the_segment_of_the_request_are_kept() {
    let server = Running::echo().await;
    let mut raw = Raw::connect(server.address).await;
    let frames = b"\x81\x83\0\0\0\0one\x82\x83\0\0\0\0two\x88\x80\0\0\0\0";
    raw.send([REQUEST.as_bytes(), frames].concat()).await;
    assert_eq!(raw.head().await, ACCEPTED);
    assert_eq!(raw.rest().await, b"\x81\x03one\x82\x03two\x88\x00");
    drop(raw);
    server.stop().await;
}

#[tokio::test]
async fn h08_frames_in_the_segment_of_the_response_are_kept() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let key = read_key(&mut stream).await;
        let frames = b"\x81\x03one\x82\x03two\x88\x00";
        let answer = accepted(&key);
        stream
            .write_all(&[answer.as_bytes(), frames].concat())
            .await
            .unwrap();
        let mut rest = Vec::new();
        stream.shutdown().await.unwrap();
        stream.read_to_end(&mut rest).await.unwrap();
        rest
    });
    let mut ws = linerate::connect(&url).await.unwrap();
    assert_eq!(in_time(ws.recv()).await.unwrap(), Some("one".into()));
    assert_eq!(
        in_time(ws.recv()).await.unwrap(),
        Some(Message::from(b"two"))
    );
    assert_eq!(in_time(ws.recv()).await.unwrap(), None);
    let answer = in_time(server).await.unwrap();
    assert_eq!((answer.len(), answer[..2].to_vec()), (6, vec![0x88, 0x80]));
}

/// Reads a request and returns its key.
async fn read_key(stream: &mut tokio::net::TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(in_time(stream.read_u8()).await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    let (_, key) = head.split_once("Sec-WebSocket-Key: ").unwrap();
    key.split("\r\n").next().unwrap().to_owned()
}

/// Returns the response that opens a WebSocket, as the library's own server writes it.
fn accepted(key: &str) -> String {
    use linerate_proto::handshake::{HandshakeLimits, RequestReader};
    let mut reader = RequestReader::new(HandshakeLimits::default());
    let request = edited("dGhlIHNhbXBsZSBub25jZQ==", key);
    let (request, _) = reader.handle_input(request.as_bytes()).unwrap().unwrap();
    let mut answer = Vec::new();
    request.websocket().unwrap().accept().encode(&mut answer);
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn h09_lengths_that_two_parsers_could_read_differently_are_refused() {
    refuses(
        [
            "Content-Length: 5\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding: chunked, chunked",
            "Content-Length: +5",
            "Content-Length: 0x5",
            "Content-Length:",
        ]
        .map(with_line),
        "400 Bad Request",
    )
    .await;
}

#[tokio::test]
async fn h10_h11_heads_beyond_the_limits_are_refused() {
    let giant = with_line(format!("X: {}", "x".repeat(1 << 20)));
    let many = with_line("X: x\r\n".repeat(100_000));
    let status = "431 Request Header Fields Too Large";
    refuses([giant, many], status).await;
}

/// Returns a server with a short deadline for the opening handshake.
async fn hasty() -> Running {
    let mut options = Options::default();
    options.handshake_timeout = Duration::from_millis(150);
    Running::start(Server::new().with_options(options), echo).await
}

#[tokio::test]
async fn h12_a_client_that_says_nothing_is_told_that_its_time_is_up() {
    let server = hasty().await;
    let mut raw = Raw::connect(server.address).await;
    let answer = String::from_utf8(raw.rest().await).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 408 Request Timeout\r\n"),
        "{answer}"
    );
    drop(raw);
    server.stop().await;
}

#[tokio::test]
async fn h12_a_client_that_dribbles_gains_nothing() {
    let server = hasty().await;
    let mut raw = Raw::connect(server.address).await;
    let (mut reader, mut writer) = raw.stream.split();
    let dribble = async {
        for byte in REQUEST.bytes().cycle() {
            if writer.write_all(&[byte]).await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let mut answer = [0; 30];
    tokio::select! {
        () = dribble => panic!("the response must come first"),
        read = in_time(reader.read_exact(&mut answer)) => read.map(drop).unwrap(),
    }
    assert_eq!(&answer, b"HTTP/1.1 408 Request Timeout\r\n");
    drop(raw);
    server.stop().await;
}

#[tokio::test]
async fn h13_bytes_that_cannot_stand_in_a_head_are_refused() {
    refuses(
        [
            with_line("X: a\rb"),
            with_line("X: a\0b"),
            with_line("X: a\r\n folded"),
            with_line("X : a"),
            [b"\r\n\r\n", REQUEST.as_bytes()].concat(),
        ],
        "400 Bad Request",
    )
    .await;
}

#[tokio::test]
async fn h14_bytes_beyond_ascii_break_nothing() {
    refuses(
        [
            with_line(b"Sec-WebSocket-Protocol: \xFF"),
            with_line(b"Sec-WebSocket-Extensions: \xC3\x28"),
        ],
        "400 Bad Request",
    )
    .await;
    accepts([with_line(b"Connection: \xFF"), with_line(b"X: \xC3\x28")]).await;
}

#[tokio::test]
async fn h15_other_versions_of_http_are_refused() {
    let requests = ["HTTP/1.0", "HTTP/2.0"].map(|version| edited("HTTP/1.1", version));
    refuses(requests, "505 HTTP Version Not Supported").await;
    refuses(["GET /\r\n\r\n"], "400 Bad Request").await;
}

#[tokio::test]
async fn h16_other_methods_are_refused() {
    let requests = ["POST", "PUT", "OPTIONS"].map(|method| edited("GET", method));
    refuses(requests, "405 Method Not Allowed").await;
    let server = Running::echo().await;
    let answer = refusal(&server, edited("GET", "HEAD")).await;
    assert!(answer.starts_with("HTTP/1.1 405 Method Not Allowed\r\n"));
    assert!(
        answer.ends_with("\r\n\r\n"),
        "the response has a body: {answer}"
    );
    server.stop().await;
}

#[tokio::test]
async fn h17_pages_of_other_origins_are_refused() {
    let origins = [
        "https://evil.example",
        "null",
        "http://example.com.evil.example",
    ];
    let requests = origins.map(|origin| with_line(format!("Origin: {origin}")));
    refuses(requests, "403 Forbidden").await;
    refuses(
        [with_line(
            "Origin: http://example.com\r\nOrigin: http://example.com",
        )],
        "400 Bad Request",
    )
    .await;
    accepts([with_line("Origin: http://example.com")]).await;
}

#[tokio::test]
async fn h18_h19_what_nobody_chooses_is_not_mentioned() {
    accepts([
        with_line("Sec-WebSocket-Protocol: soap, wamp"),
        with_line("Sec-WebSocket-Extensions: x-webkit-deflate-frame; client_max_window_bits"),
    ])
    .await;
    refuses(
        [
            with_line("Sec-WebSocket-Protocol: chat, chat"),
            with_line("Sec-WebSocket-Extensions: x; y=\"unterminated"),
        ],
        "400 Bad Request",
    )
    .await;
    let many = (0..10_000).map(|n| format!("x{n}, ")).collect::<String>();
    let many = with_line(format!("Sec-WebSocket-Extensions: {}", &many[..12_000]));
    refuses([many], "431 Request Header Fields Too Large").await;
}

#[tokio::test]
async fn h20_other_protocols_are_refused_at_once() {
    refuses(
        [
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xFC\x03\x03".to_vec(),
            ["PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\r\n", REQUEST]
                .concat()
                .into(),
        ],
        "400 Bad Request",
    )
    .await;
}

#[tokio::test]
async fn h22_targets_are_paths_or_name_this_host() {
    accepts([edited("/chat", "http://example.com/chat")]).await;
    let targets = ["http://evil.example/", "*", "example.com:80"];
    refuses(
        targets.map(|target| edited("/chat", target)),
        "400 Bad Request",
    )
    .await;
}

#[tokio::test]
async fn h23_the_client_sends_no_line_break_that_it_is_given() {
    let (ours, mut theirs) = tokio::io::duplex(1 << 10);
    let client = Client::new().with_header("X", "a\r\nX-Injected: b");
    let error = client
        .connect_over(ours, "ws://example.com/")
        .await
        .unwrap_err();
    assert!(
        matches!(&error, Error::Header { name, .. } if name == "X"),
        "{error}"
    );
    let mut sent = Vec::new();
    theirs.read_to_end(&mut sent).await.unwrap();
    assert_eq!(sent, b"");
}

/// Connects to a server that sends `answer` to every request.
async fn answered(answer: &str) -> Error {
    let (ours, mut theirs) = tokio::io::duplex(1 << 10);
    let client = Client::new();
    let answer = answer.to_owned();
    tokio::spawn(async move {
        theirs.write_all(answer.as_bytes()).await.unwrap();
        let mut request = Vec::new();
        _ = theirs.read_to_end(&mut request).await;
    });
    let connected = client.connect_over(ours, "ws://example.com/").await;
    connected.expect_err("the response is invalid")
}

#[tokio::test]
async fn c03_a_wrong_answer_opens_nothing_and_the_error_says_why() {
    let error = answered(ACCEPTED).await;
    assert!(
        matches!(error, Error::Handshake(HandshakeError::AcceptMismatch)),
        "{error}"
    );
    let error = answered("HTTP/1.1 503 Service Unavailable\r\n\r\n").await;
    let Error::StatusUnexpected(response) = &error else {
        panic!("{error}");
    };
    assert_eq!(response.status, 503);
    assert!(error.to_string().contains("503"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_is_given_up() {
    let (ours, theirs) = tokio::io::duplex(1 << 10);
    let connected = Client::new().connect_over(ours, "ws://example.com/").await;
    let error = connected.expect_err("nobody answers");
    assert!(
        matches!(
            error,
            Error::Dial(DialError::TimedOut {
                phase: Phase::Handshake,
                ..
            })
        ),
        "{error}"
    );
    drop(theirs);
}
