//! Futures dropped after any number of polls: no byte is lost and no frame is torn. Tests HTTP/2
//! and TLS, with and without compression, with room for only a few bytes. Plain HTTP/1.1 is tested
//! in the module of the link.

mod serving;

use std::sync::Arc;

use linerate::{
    Client, CloseCode, Deflate, Message, MessageKind, Options, Sender, Server, WebSocket,
    tls::rustls::{ClientConfig, pki_types::ServerName},
};
use linerate_testkit::Rng;
use tokio::{
    io::{AsyncRead, AsyncWrite, copy_bidirectional_with_sizes, duplex},
    net::TcpStream,
    task::JoinHandle,
};
use tokio_rustls::TlsConnector;

use crate::{
    polls::{for_all_polls, poll_times},
    raw::in_time,
    support::{Running, echo},
    tls::secure_with_config,
};

/// The number of bytes that an HTTP/2 stream accepts at once.
const STREAM_ROOM: usize = 100;

/// The number of bytes that a pipe under TLS accepts at once.
const PIPE_ROOM: usize = 2_000;

/// The transport of the WebSocket, and whether it compresses.
#[derive(Clone, Copy, Debug)]
enum Way {
    Http1,
    Http2 { compressed: bool },
    Tls { compressed: bool },
}

const WAYS: [Way; 4] = [
    Way::Http2 { compressed: false },
    Way::Http2 { compressed: true },
    Way::Tls { compressed: false },
    Way::Tls { compressed: true },
];

/// The transports for tests of opening handshakes, where compression does not matter.
const WAYS_TO_OPEN: [Way; 3] = [
    Way::Http1,
    Way::Http2 { compressed: true },
    Way::Tls { compressed: true },
];

impl Way {
    /// Returns options that split a message into many small pieces.
    fn options(self) -> Options {
        let compressed = match self {
            Self::Http1 => false,
            Self::Http2 { compressed } | Self::Tls { compressed } => compressed,
        };
        let mut options = Options::default();
        options.deflate = compressed.then(Deflate::default);
        options.http2.stream_window_bytes = STREAM_ROOM as u32;
        options.http2.send_buffer_bytes_max = STREAM_ROOM / 2;
        options.send_queue_bytes_max = 1;
        options
    }

    /// Returns bytes that do not compress and do not fit into the buffers: rustls alone accepts 64
    /// KiB.
    fn bulk(self) -> Vec<u8> {
        Rng::new(1).bytes(match self {
            Self::Http1 | Self::Http2 { .. } => 1_500,
            Self::Tls { .. } => 100_000,
        })
    }

    /// Returns messages, some of which compress and one of which does not.
    fn messages(self) -> Vec<Message> {
        vec![
            "größer €".into(),
            vec![7; 1_500].into(),
            "".into(),
            self.bulk().into(),
            "κόσμε".repeat(50).into(),
        ]
    }
}

/// An echo server, and what is needed to connect to it.
struct Place {
    server: Running,
    client: Client,
    tls: Option<Arc<ClientConfig>>,
}

impl Place {
    async fn start(way: Way) -> Self {
        let client = Client::new().with_options(way.options());
        if let Way::Tls { .. } = way {
            let (server, config) = secure_with_config(way.options()).await;
            return Self {
                server,
                client: client.with_tls(config.clone()),
                tls: Some(config),
            };
        }
        let client = match way {
            Way::Http2 { .. } => client.with_http2_prior_knowledge(),
            _ => client,
        };
        Self {
            server: Running::start(Server::new().with_options(way.options()), echo).await,
            client,
            tls: None,
        }
    }

    fn url(&self) -> String {
        match &self.tls {
            Some(_) => format!("wss://localhost:{}/", self.server.address.port()),
            None => self.server.url(),
        }
    }

    /// Opens a connection with little room: HTTP/2 uses small windows, and TLS runs over a narrow
    /// pipe.
    async fn connect(&self) -> WebSocket {
        if self.tls.is_none() {
            return in_time(self.client.connect(&self.url())).await.unwrap();
        }
        let (stream, _) = self.pipe().await;
        let url = self.url();
        let opening = self.client.connect_over(stream, &url);
        in_time(opening).await.unwrap()
    }

    /// Returns a narrow pipe to the server, under TLS if the server requires it, and the task that
    /// carries the bytes.
    async fn pipe(&self) -> (Box<dyn Stream>, JoinHandle<()>) {
        let (ours, mut theirs) = duplex(PIPE_ROOM);
        let mut socket = TcpStream::connect(self.server.address).await.unwrap();
        let carrying = tokio::spawn(async move {
            // The two ends of the pipe check how it ends.
            _ = copy_bidirectional_with_sizes(&mut theirs, &mut socket, PIPE_ROOM, PIPE_ROOM).await;
        });
        let Some(config) = self.tls.clone() else {
            return (Box::new(ours), carrying);
        };
        let name = ServerName::try_from("localhost").unwrap();
        let connecting = TlsConnector::from(config).connect(name, ours);
        (Box::new(in_time(connecting).await.unwrap()), carrying)
    }
}

/// A stream over which a WebSocket can be opened.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

#[tokio::test]
async fn k02_recv_dropped_after_any_number_of_polls_loses_nothing() {
    for way in WAYS {
        let place = Place::start(way).await;
        for_all_polls(0, async |polls| {
            let (sender, mut receiver) = place.connect().await.split();
            let sent = tokio::spawn(async move {
                for message in way.messages() {
                    sender.send(message).await.unwrap();
                }
                sender
            });
            let mut cancelled = 0;
            for message in way.messages() {
                let received = match poll_times(receiver.recv(), polls).await {
                    Some(received) => received,
                    None => {
                        cancelled += 1;
                        in_time(receiver.recv()).await
                    }
                };
                let received = received.unwrap();
                assert!(received == Some(message), "{way:?}, {polls} polls");
            }
            drop(in_time(sent).await.unwrap());
            cancelled
        })
        .await;
        place.server.abort();
    }
}

#[tokio::test]
async fn k02_pieces_dropped_after_any_number_of_polls_lose_nothing() {
    for way in WAYS {
        let place = Place::start(way).await;
        for_all_polls(0, async |polls| {
            let (sender, mut receiver) = place.connect().await.split();
            let sent = tokio::spawn(async move {
                for message in way.messages() {
                    sender.send(message).await.unwrap();
                }
                sender
            });
            let mut cancelled = 0;
            for message in way.messages() {
                // A reader that is created and then dropped would skip its message.
                assert!(poll_times(receiver.reader(), 0).await.is_none());
                let reader = in_time(receiver.reader()).await.unwrap();
                let mut reader = reader.expect("a message");
                let mut bytes = Vec::new();
                loop {
                    let piece = match poll_times(reader.chunk(), polls).await {
                        Some(piece) => piece,
                        None => {
                            cancelled += 1;
                            in_time(reader.chunk()).await
                        }
                    };
                    let Some(piece) = piece.unwrap() else { break };
                    bytes.extend_from_slice(piece.as_bytes());
                }
                assert!(bytes == message.as_bytes(), "{way:?}, {polls} polls");
            }
            drop(in_time(sent).await.unwrap());
            cancelled
        })
        .await;
        place.server.abort();
    }
}

/// Sends messages. Each one is sent by a future from `attempt`, which is dropped after any number
/// of polls. Asserts that the echo of all messages that were sent arrives, and nothing of the
/// others.
async fn assert_all_or_nothing(
    attempt: impl AsyncFn(&Sender, Message, usize) -> Option<linerate::Result<()>> + Clone + 'static,
) {
    for way in WAYS {
        let place = Place::start(way).await;
        for_all_polls(0, async |polls| {
            let (sender, mut receiver) = place.connect().await.split();
            let attempt = attempt.clone();
            let sending = async move {
                let (mut sent, mut cancelled) = (Vec::new(), 0);
                for message in way.messages() {
                    match attempt(&sender, message.clone(), polls).await {
                        Some(result) => {
                            result.unwrap();
                            sent.push(message);
                        }
                        None => cancelled += 1,
                    }
                }
                sender.send("last").await.unwrap();
                sent.push("last".into());
                (sent, cancelled, sender)
            };
            let receiving = async {
                let mut received = Vec::new();
                while received.last() != Some(&Message::from("last")) {
                    received.push(in_time(receiver.recv()).await.unwrap().unwrap());
                }
                received
            };
            let ((sent, cancelled, sender), received) = tokio::join!(in_time(sending), receiving);
            assert!(received == sent, "{way:?}, {polls} polls");
            drop(sender);
            cancelled
        })
        .await;
        place.server.abort();
    }
}

#[tokio::test]
async fn k03_send_dropped_after_any_number_of_polls_sends_all_or_nothing() {
    assert_all_or_nothing(async |sender, message, polls| {
        poll_times(sender.send(message), polls).await
    })
    .await;
}

#[tokio::test]
async fn k03_send_uncompressed_dropped_after_any_number_of_polls_sends_all_or_nothing() {
    assert_all_or_nothing(async |sender, message, polls| {
        poll_times(sender.send_uncompressed(message), polls).await
    })
    .await;
}

#[tokio::test]
async fn k03_writable_dropped_after_any_number_of_polls_loses_nothing() {
    assert_all_or_nothing(async |sender, message, polls| {
        poll_times(sender.writable(), polls).await?.unwrap();
        Some(sender.send(message).await)
    })
    .await;
}

#[tokio::test]
async fn k03_ping_dropped_after_any_number_of_polls_tears_no_message() {
    for way in WAYS {
        let place = Place::start(way).await;
        for_all_polls(0, async |polls| {
            let mut ws = place.connect().await;
            let mut cancelled = 0;
            for message in way.messages() {
                ws.send(message.clone()).await.unwrap();
                let pinged = poll_times(ws.ping(&[7; 125]), polls).await;
                cancelled += usize::from(pinged.is_none());
                pinged.transpose().unwrap();
                let echoed = in_time(ws.recv()).await.unwrap();
                assert!(echoed == Some(message), "{way:?}, {polls} polls");
            }
            cancelled
        })
        .await;
        place.server.abort();
    }
}

#[tokio::test]
async fn k03_write_dropped_after_any_number_of_polls_is_a_whole_fragment_or_nothing() {
    for way in WAYS {
        let place = Place::start(way).await;
        for_all_polls(0, async |polls| {
            let mut ws = place.connect().await;
            let mut writer = ws.writer(MessageKind::Binary);
            let (mut sent, mut cancelled) = (Vec::new(), 0);
            let bulk = way.bulk();
            for piece in [&bulk[..7], &bulk, &bulk[7..], &bulk] {
                match poll_times(writer.write(piece), polls).await {
                    Some(result) => {
                        result.unwrap();
                        sent.extend_from_slice(piece);
                    }
                    None => cancelled += 1,
                }
            }
            in_time(writer.finish()).await.unwrap();
            let echoed = in_time(ws.recv()).await.unwrap();
            assert!(echoed == Some(sent.into()), "{way:?}, {polls} polls");
            cancelled
        })
        .await;
        place.server.abort();
    }
}

#[tokio::test]
async fn flush_and_close_dropped_after_any_number_of_polls_go_on_in_the_background() {
    for way in WAYS {
        let place = Place::start(way).await;
        // A future that is never polled does nothing.
        for_all_polls(1, async |polls| {
            let message = Message::from(way.bulk());
            let mut ws = place.connect().await;
            ws.send(message.clone()).await.unwrap();
            let flushed = poll_times(ws.flush(), polls).await;
            let received = in_time(ws.recv()).await.unwrap();
            assert!(received == Some(message), "{way:?}, {polls} polls");
            let closed = poll_times(ws.close(CloseCode::NORMAL, ""), polls).await;
            while in_time(ws.recv()).await.unwrap().is_some() {}
            let end = in_time(ws.close(CloseCode::NORMAL, "")).await.unwrap();
            assert_eq!((end.code, end.clean), (1000, true), "{way:?}, {polls}");
            usize::from(flushed.is_none()) + usize::from(closed.is_none())
        })
        .await;
        place.server.abort();
    }
}

#[tokio::test]
async fn connect_dropped_after_any_number_of_polls_leaves_the_server_alone() {
    for way in WAYS_TO_OPEN {
        let place = Place::start(way).await;
        for_all_polls(0, async |polls| {
            let connected = poll_times(place.client.connect(&place.url()), polls).await;
            usize::from(connected.is_none())
        })
        .await;
        let mut ws = place.connect().await;
        ws.send("Spam").await.unwrap();
        assert_eq!(in_time(ws.recv()).await.unwrap(), Some("Spam".into()));
        drop(ws);
        place.server.stop().await;
    }
}

#[tokio::test]
async fn connect_over_dropped_after_any_number_of_polls_ends_the_stream() {
    for way in WAYS_TO_OPEN {
        let place = Place::start(way).await;
        for_all_polls(0, async |polls| {
            let (stream, carrying) = place.pipe().await;
            let opened = poll_times(place.client.connect_over(stream, &place.url()), polls).await;
            let cancelled = usize::from(opened.is_none());
            drop(opened);
            // The carrying task ends only if both ends are closed.
            in_time(carrying).await.unwrap();
            cancelled
        })
        .await;
        place.server.stop().await;
    }
}
