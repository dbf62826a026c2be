//! Clients that connect over Unix sockets.

use std::path::PathBuf;

use linerate::{Client, Error, dial::DialError};
use tokio::{
    io::{AsyncReadExt, copy_bidirectional},
    net::{TcpStream, UnixListener},
    task::JoinHandle,
};

use crate::{
    polls::{for_all_polls, poll_times},
    raw::in_time,
    support::Running,
};

/// A socket in a directory of its own, which is removed in the end.
struct Socket(PathBuf);

impl Socket {
    fn new(name: &str) -> Self {
        let directory = format!("linerate-{}-{name}", std::process::id());
        let directory = std::env::temp_dir().join(directory);
        std::fs::create_dir_all(&directory).unwrap();
        Self(directory.join("socket"))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(self.0.parent().unwrap());
    }
}

/// Accepts one connection and forwards it to a server.
fn forward(listener: UnixListener, server: &Running) -> JoinHandle<()> {
    let address = server.address;
    tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        let mut server = TcpStream::connect(address).await.unwrap();
        _ = copy_bidirectional(&mut client, &mut server).await;
    })
}

#[tokio::test]
async fn a_client_opens_a_websocket_over_a_unix_socket() {
    let (socket, client) = (Socket::new("open"), Client::new());
    let server = Running::echo().await;
    let forwarding = forward(UnixListener::bind(&socket.0).unwrap(), &server);
    let connected = client.connect_unix(&socket.0, "ws://localhost/");
    let mut ws = in_time(connected).await.unwrap();
    ws.send("Spam").await.unwrap();
    assert_eq!(in_time(ws.recv()).await.unwrap(), Some("Spam".into()));
    drop(ws);
    in_time(forwarding).await.unwrap();
    server.stop().await;
}

#[tokio::test]
async fn an_error_names_the_socket_and_may_be_retried() {
    let (socket, client) = (Socket::new("missing"), Client::new());
    let connected = client.connect_unix(&socket.0, "ws://localhost/");
    let error = in_time(connected).await.unwrap_err();
    assert!(
        matches!(&error, Error::Dial(DialError::UnixConnectFailed { path, .. }) if *path == socket.0),
        "{error}"
    );
    assert!(error.to_string().contains(socket.0.to_str().unwrap()));
    assert!(error.is_transient());

    let connected = client.connect_unix(&socket.0, "http://localhost/");
    let error = in_time(connected).await.unwrap_err();
    assert!(matches!(error, Error::Url(_)), "{error}");
}

#[tokio::test]
async fn connecting_dropped_after_any_number_of_polls_ends_the_stream() {
    let socket = Socket::new("dropped");
    let listener = UnixListener::bind(&socket.0).unwrap();
    let client = Client::new();
    for_all_polls(1, async |polls| {
        let connecting = client.connect_unix(&socket.0, "ws://localhost/");
        let serving = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            // This is not a response, so that connecting fails at the latest then.
            tokio::io::AsyncWriteExt::write_all(&mut stream, b"no\r\n\r\n")
                .await
                .unwrap();
            // The stream ends, with an error if not all of the response was read.
            _ = stream.read_to_end(&mut Vec::new()).await;
        };
        let (connected, ()) =
            in_time(async { tokio::join!(poll_times(connecting, polls), serving) }).await;
        assert!(!matches!(connected, Some(Ok(_))));
        usize::from(connected.is_none())
    })
    .await;
}
