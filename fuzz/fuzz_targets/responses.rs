//! Any bytes as a server's response, with its body, to a client that asks for a WebSocket.
#![no_main]

use std::{
    collections::VecDeque,
    io,
    pin::Pin,
    sync::LazyLock,
    task::{Context, Poll},
    time::Duration,
};

use libfuzzer_sys::fuzz_target;
use linerate::{Backoff, Client, Error, Options, dial::DialError, handshake::Response};
use linerate_testkit::Cuts;
use tokio::{
    io::{AsyncRead, ReadBuf, join, sink},
    runtime::{Builder, Runtime},
};

/// How many bytes of a body clients keep; the first byte of the input chooses.
const BODY_BYTES_MAX: [usize; 4] = [0, 1, 16, 4 << 10];

/// The longest wait that [`Backoff`] may choose: `Retry-After` up to its limit, and a random time.
const DELAY_MAX: Duration = Duration::from_secs(300 + 60);

static CLIENTS: LazyLock<[Client; 4]> = LazyLock::new(|| {
    BODY_BYTES_MAX.map(|bytes_max| {
        let mut options = Options::default();
        options.response_body_bytes_max = bytes_max;
        Client::new().with_options(options)
    })
});

// The clock is paused: a client that waits for more gets its timeout at once.
thread_local! {
    static RUNTIME: Runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without sockets starts");
}

// The first byte also chooses whether the stream ends after the response or stays open.
fuzz_target!(|data: &[u8]| {
    let Some((choice, wire)) = data.split_first() else {
        return;
    };
    let (client, is_ended) = (usize::from(choice & 3), choice & 4 != 0);
    let whole = connect(client, wire, Cuts::Whole, is_ended);
    for cuts in [Cuts::Every(1), Cuts::Random(u64::from(*choice))] {
        assert_eq!(connect(client, wire, cuts, is_ended), whole, "{cuts:?}");
    }
});

/// Returns a description of what the client gets from `wire`.
fn connect(client: usize, wire: &[u8], cuts: Cuts, is_ended: bool) -> String {
    let mut stream = Stream {
        pieces: VecDeque::new(),
        is_ended,
    };
    cuts.for_each_piece(wire, |piece| stream.pieces.push_back(piece.to_vec()));
    // An empty read would be the end.
    stream.pieces.retain(|piece| !piece.is_empty());
    let stream = join(stream, sink());
    let connected = RUNTIME.with(|runtime| {
        runtime.block_on(CLIENTS[client].connect_over(stream, "ws://example.com/"))
    });
    let error = connected.expect_err("the response cannot have the hash of a random key");
    let seen = match &error {
        Error::StatusUnexpected(response) => {
            check_body(response, wire, BODY_BYTES_MAX[client]);
            let Response {
                body, is_truncated, ..
            } = &**response;
            let body = body.escape_ascii();
            format!("{response:?} {body} {is_truncated}")
        }
        // `handshake_response` judges malformed heads in detail.
        Error::Handshake(_) | Error::Dial(DialError::TimedOut { .. } | DialError::TlsRequired) => {
            error.to_string()
        }
        _ => panic!("{error}"),
    };
    if let Ok(delay) = Backoff::new().next_delay_after(Err(error)) {
        let delay = delay.continue_value().expect("nothing was closed");
        assert!(delay <= DELAY_MAX, "{delay:?}");
    }
    seen
}

/// Compares a body without chunks to a naive reading.
fn check_body(response: &Response, wire: &[u8], bytes_max: usize) {
    let body = &response.body;
    assert!(body.len() <= bytes_max);
    if matches!(response.status, 301 | 302 | 303 | 307 | 308) {
        return assert!(body.is_empty(), "redirects have no body");
    }
    if response.headers.first("Transfer-Encoding").is_some() {
        return;
    }
    let lengths: Vec<_> = response.headers.all("Content-Length").collect();
    if let [digits] = lengths[..]
        && let Ok(length) = String::from_utf8_lossy(digits).parse::<u64>()
        && digits[0] != b'+'
    {
        assert!(body.len() as u64 <= length);
        let has_body = !matches!(response.status, ..200 | 204 | 304);
        let is_missing = has_body && (body.len() as u64) < length;
        assert_eq!(response.is_truncated, is_missing);
    }
    // The head contains no body, so that the body is what follows the first empty line.
    let rests = (0..wire.len()).map(|at| &wire[at..]);
    let mut after_lines = rests.filter_map(|rest| {
        let rest = rest.strip_prefix(b"\n")?;
        Some(
            rest.strip_prefix(b"\r")
                .unwrap_or(rest)
                .strip_prefix(b"\n")?,
        )
    });
    let sent = after_lines.next().expect("a head ends with an empty line");
    assert!(sent.starts_with(body), "{:?}", body.escape_ascii());
}

/// A server that sends pieces.
struct Stream {
    pieces: VecDeque<Vec<u8>>,
    is_ended: bool,
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Some(mut piece) = self.pieces.pop_front() else {
            return match self.is_ended {
                true => Poll::Ready(Ok(())),
                false => Poll::Pending,
            };
        };
        let rest = piece.split_off(piece.len().min(buffer.remaining()));
        buffer.put_slice(&piece);
        if !rest.is_empty() {
            self.pieces.push_front(rest);
        }
        Poll::Ready(Ok(()))
    }
}
