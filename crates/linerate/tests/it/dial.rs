//! Dialing a server: names, addresses, and deadlines whose errors name the phase that took too
//! long.

use std::{
    collections::VecDeque,
    future::pending,
    io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex},
    time::Duration,
};

use linerate::{
    Client, Error, Options,
    dial::{DialError, Phase, Resolve, ResolveFuture, Timeouts},
};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::{raw::in_time, support::Running};

/// Resolves every name to the given addresses, for any port.
pub(crate) struct Fixed(pub(crate) Vec<SocketAddr>);

impl Resolve for Fixed {
    fn resolve<'a>(&'a self, _host: &'a str, _port: u16) -> ResolveFuture<'a> {
        Box::pin(async { Ok(self.0.clone()) })
    }
}

/// Never answers.
struct Silent;

impl Resolve for Silent {
    fn resolve<'a>(&'a self, _host: &'a str, _port: u16) -> ResolveFuture<'a> {
        Box::pin(pending())
    }
}

/// Returns a different answer each time.
struct Changing(Mutex<VecDeque<Vec<SocketAddr>>>);

impl Resolve for Changing {
    fn resolve<'a>(&'a self, _host: &'a str, _port: u16) -> ResolveFuture<'a> {
        let next = self.0.lock().unwrap().pop_front();
        Box::pin(async { next.ok_or(io::ErrorKind::NotFound.into()) })
    }
}

/// Returns an address of this machine that refuses connections.
async fn refusing(host: &str) -> SocketAddr {
    let listener = TcpListener::bind((host, 0)).await.unwrap();
    listener.local_addr().unwrap()
}

/// Returns a listener whose queue is full, so that the kernel answers no connection attempts, and
/// the connections that fill it.
async fn unanswering() -> (SocketAddr, TcpListener, Vec<TcpStream>) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut queue = Vec::new();
    loop {
        let connecting = TcpStream::connect(address);
        match tokio::time::timeout(Duration::from_millis(200), connecting).await {
            Ok(stream) => queue.push(stream.unwrap()),
            Err(_) => return (address, listener, queue),
        }
    }
}

fn impatient(change: impl FnOnce(&mut Timeouts)) -> Client {
    let mut timeouts = Timeouts::default();
    change(&mut timeouts);
    Client::new().with_timeouts(timeouts)
}

const LIMIT: Duration = Duration::from_millis(50);

async fn phase_that_takes_too_long(client: Client, url: &str) -> Phase {
    let error = in_time(client.connect(url)).await.unwrap_err();
    let Error::Dial(DialError::TimedOut {
        phase,
        elapsed,
        limit,
        attempts,
    }) = error
    else {
        panic!("{error}");
    };
    assert_eq!(limit, LIMIT);
    assert_eq!(attempts.is_empty(), phase != Phase::Connect);
    assert!(elapsed >= LIMIT, "{elapsed:?}");
    phase
}

#[tokio::test]
async fn each_phase_that_takes_too_long_is_named() {
    let client = impatient(|timeouts| timeouts.resolve = LIMIT).with_resolver(Silent);
    let phase = phase_that_takes_too_long(client, "ws://linerate.test/").await;
    assert_eq!(phase, Phase::Resolve);

    let (address, _listener, _queue) = unanswering().await;
    let client = impatient(|timeouts| timeouts.connect = LIMIT);
    let phase = phase_that_takes_too_long(client, &format!("ws://{address}/")).await;
    assert_eq!(phase, Phase::Connect);

    // The kernel accepts the connection, but nothing is ever sent on it.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let client = impatient(|timeouts| timeouts.tls = LIMIT);
    let phase = phase_that_takes_too_long(client, &format!("wss://{address}/")).await;
    assert_eq!(phase, Phase::Tls);

    let mut options = Options::default();
    options.handshake_timeout = LIMIT;
    let client = Client::new().with_options(options);
    let phase = phase_that_takes_too_long(client, &format!("ws://{address}/")).await;
    assert_eq!(phase, Phase::Handshake);

    let client = impatient(|timeouts| timeouts.total = LIMIT);
    let phase = phase_that_takes_too_long(client, &format!("ws://{address}/")).await;
    assert_eq!(
        phase,
        Phase::Handshake,
        "the overall limit ends the last attempt"
    );
}

#[tokio::test]
async fn an_address_that_refuses_does_not_hide_one_that_answers() {
    let server = Running::echo().await;
    let addresses = vec![
        refusing("127.0.0.2").await,
        refusing("127.0.0.3").await,
        server.address,
    ];
    let client = Client::new().with_resolver(Fixed(addresses));
    let mut ws = in_time(client.connect("ws://linerate.test/"))
        .await
        .unwrap();
    ws.send("Spam").await.unwrap();
    assert_eq!(in_time(ws.recv()).await.unwrap(), Some("Spam".into()));
    drop(ws);
    server.stop().await;
}

#[tokio::test]
async fn an_address_that_does_not_answer_does_not_hide_one_that_does() {
    let server = Running::echo().await;
    let (silent, _listener, _queue) = unanswering().await;
    let client = Client::new().with_resolver(Fixed(vec![silent, server.address]));
    drop(
        in_time(client.connect("ws://linerate.test/"))
            .await
            .unwrap(),
    );
    server.stop().await;
}

#[tokio::test]
async fn names_without_addresses_are_errors_that_say_so() {
    let client = Client::new().with_resolver(Fixed(Vec::new()));
    let error = client.connect("ws://linerate.test/").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot resolve linerate.test: no addresses found"
    );
    // This name is reserved for the purpose (RFC 6761 §6.4).
    let error = linerate::connect("ws://linerate.invalid/")
        .await
        .unwrap_err();
    assert!(
        matches!(error, Error::Dial(DialError::ResolveFailed { .. })),
        "{error}"
    );
}

#[tokio::test]
async fn c06_a_name_that_leads_to_a_denied_address_is_not_connected_to() {
    let server = Running::echo().await;
    let loopback = |address: IpAddr| address.is_loopback();
    let denies = Client::new().with_address_check(move |address| !loopback(address));
    let error = denies.connect(&server.url()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "address check allows none of the server's addresses (1 resolved)"
    );
    let elsewhere = refusing("127.0.0.2").await;
    let denies = denies.with_resolver(Fixed(vec![elsewhere, server.address]));
    let error = denies.connect("ws://linerate.test/").await.unwrap_err();
    assert!(
        matches!(
            error,
            Error::Dial(DialError::AddressesDenied { addresses: 2 })
        ),
        "{error}"
    );
    server.stop().await;
}

#[tokio::test]
async fn c06_addresses_are_checked_each_time_a_name_is_resolved() {
    let server = Running::echo().await;
    let asked = Arc::new(Mutex::new(Vec::new()));
    let check = {
        let (asked, allowed) = (asked.clone(), server.address.ip());
        move |address| {
            asked.lock().unwrap().push(address);
            address == allowed
        }
    };
    // The name changes to another address between two connections, as in DNS rebinding.
    let moved = refusing("127.0.0.2").await;
    let answers = [vec![server.address], vec![moved]];
    let client = Client::new()
        .with_resolver(Changing(Mutex::new(answers.into())))
        .with_address_check(check);
    drop(client.connect("ws://linerate.test/").await.unwrap());
    let error = client.connect("ws://linerate.test/").await.unwrap_err();
    assert!(
        matches!(error, Error::Dial(DialError::AddressesDenied { .. })),
        "{error}"
    );
    assert_eq!(*asked.lock().unwrap(), [server.address.ip(), moved.ip()]);
    server.stop().await;
}
