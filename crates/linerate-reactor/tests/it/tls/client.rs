//! Encrypted outbound connections.

use std::{
    error::Error as _,
    io::{Read, Write},
    net::TcpListener,
    sync::mpsc::{Receiver, Sender, channel},
    thread::{self, JoinHandle},
    time::Duration,
};

use linerate_reactor::{
    Closed, ConnectError, Connector, Context, Destination, DestinationError, Handler, Message,
    Opened, Options, Remote, UrlError, WorkerContext,
    rustls::{
        RootCertStore, SupportedProtocolVersion,
        crypto::ring,
        version::{TLS12, TLS13},
    },
};

use super::{Encrypted, Identity};
use crate::support::{PATIENCE, driver};

/// The length of a message that spans many records.
const LARGE_BYTES: usize = 300_000;

/// The events that a handler has seen.
#[derive(Debug)]
enum Seen {
    Message(usize),
    Failed(ConnectError),
    Closed(Closed),
}

/// Sends a short and a long message, reports the replies, and then closes.
#[derive(Clone)]
struct Exchange(Sender<Seen>);

impl Handler for Exchange {
    type Data = ();

    fn open(&mut self, cx: &mut Context<'_>, _opened: Opened<'_>) {
        cx.send_text("short").unwrap();
        cx.send_binary(&vec![7; LARGE_BYTES]).unwrap();
    }

    fn message(&mut self, (): &mut (), cx: &mut Context<'_>, message: Message<'_>) {
        let bytes = message.as_bytes().len();
        _ = self.0.send(Seen::Message(bytes));
        if bytes == LARGE_BYTES {
            cx.close(linerate_reactor::CloseCode::NORMAL, "").unwrap();
        }
    }

    fn failed(
        &mut self,
        _worker: &mut WorkerContext<'_>,
        _destination: &Destination,
        error: ConnectError,
    ) {
        _ = self.0.send(Seen::Failed(error));
    }

    fn close(&mut self, (): (), _cx: &mut Context<'_>, closed: Closed) {
        _ = self.0.send(Seen::Closed(closed));
    }
}

/// A connector on its own thread, which is shut down on drop.
struct Connecting {
    remote: Remote,
    seen: Receiver<Seen>,
    thread: Option<JoinHandle<()>>,
}

impl Connecting {
    fn start() -> Self {
        let mut options = Options::default();
        options.driver = driver();
        options.handshake.time_max = Duration::from_millis(500);
        let (sender, seen) = channel();
        let connector = Connector::new().with_workers(1).with_options(options);
        let connector = connector.prepare(Exchange(sender)).unwrap();
        let remote = connector.remote();
        Self {
            remote,
            seen,
            thread: Some(thread::spawn(move || connector.run().unwrap())),
        }
    }

    fn next(&self) -> Seen {
        self.seen.recv_timeout(PATIENCE).unwrap()
    }

    /// Starts an attempt that must fail; returns the error.
    fn fail(&self, destination: Destination) -> ConnectError {
        self.remote.connect(destination).unwrap();
        match self.next() {
            Seen::Failed(error) => error,
            other => panic!("{other:?}"),
        }
    }
}

impl Drop for Connecting {
    fn drop(&mut self) {
        self.remote.shut_down();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(thread::panicking() || ended.is_ok());
        }
    }
}

/// Returns a destination with the host name of the certificate.
fn destination(server: &Encrypted, versions: &[&'static SupportedProtocolVersion]) -> Destination {
    let config = server.identity.client(ring::default_provider(), versions);
    let url = format!("wss://localhost:{}/chat", server.address().port());
    let destination = Destination::parse_wss(&url, &config).unwrap();
    destination.with_addresses(&[server.address()])
}

#[test]
fn messages_go_both_ways_and_the_end_is_clean() {
    let server = Encrypted::echo();
    let connecting = Connecting::start();
    for version in [&TLS12, &TLS13] {
        let destination = destination(&server, &[version]);
        connecting.remote.connect(destination).unwrap();
        assert!(matches!(connecting.next(), Seen::Message(5)));
        assert!(matches!(connecting.next(), Seen::Message(LARGE_BYTES)));
        let Seen::Closed(closed) = connecting.next() else {
            panic!("the close was not reported");
        };
        assert_eq!((closed.code, closed.clean), (1000, true));
    }
}

#[test]
fn a_certificate_that_nobody_trusts_is_refused() {
    let server = Encrypted::echo();
    let mut config = server.config();
    config.dangerous().set_certificate_verifier({
        // The certificate of another server with the same name.
        let mut roots = RootCertStore::empty();
        roots.add(Identity::new().certificate).unwrap();
        let provider = ring::default_provider().into();
        let verifier =
            linerate_reactor::rustls::client::WebPkiServerVerifier::builder_with_provider;
        verifier(roots.into(), provider).build().unwrap()
    });
    let url = format!("wss://localhost:{}/chat", server.address().port());
    let stranger = Destination::parse_wss(&url, &config).unwrap();
    let connecting = Connecting::start();
    let error = connecting.fail(stranger.with_addresses(&[server.address()]));
    assert!(matches!(error, ConnectError::Tls(_)));
    let cause = error.source().unwrap().to_string();
    assert!(cause.contains("certificate"), "{cause}");

    // The certificate is for the name, not for the address.
    let url = format!("wss://{}/chat", server.address());
    let elsewhere = Destination::parse_wss(&url, &server.config()).unwrap();
    assert!(matches!(connecting.fail(elsewhere), ConnectError::Tls(_)));
}

#[test]
fn a_server_without_tls_is_no_server() {
    let identity = Identity::new();
    let config = identity.client(ring::default_provider(), &[&TLS13]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("wss://{}/", listener.local_addr().unwrap());
    let destination = Destination::parse_wss(&url, &config).unwrap();
    let connecting = Connecting::start();
    let plain = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        assert_eq!(stream.read(&mut [0; 1]).unwrap(), 1);
        stream
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .unwrap();
        // The second connection is accepted but never answered.
        listener.accept().unwrap()
    });
    let error = connecting.fail(destination.clone());
    assert!(matches!(error, ConnectError::Tls(_)), "{error:?}");
    let error = connecting.fail(destination);
    assert!(matches!(error, ConnectError::TimedOut { .. }), "{error:?}");
    drop(plain.join().unwrap());
}

#[test]
fn a_url_says_whether_it_is_encrypted() {
    let config = Identity::new().client(ring::default_provider(), &[&TLS13]);
    let parse = |url| Destination::parse_wss(url, &config).unwrap_err();
    assert_eq!(parse("ws://example.com/"), DestinationError::Scheme);
    assert_eq!(
        parse("wss://example.com/#x"),
        DestinationError::Url(UrlError::Fragment)
    );
    let plain = Destination::parse("wss://example.com/").unwrap_err();
    assert_eq!(plain, DestinationError::Scheme);
}
