//! WebSockets over HTTP/3 (RFC 9220).

mod cancel;
mod flow;
mod foreign;
mod rules;
mod wire;

use std::{
    net::{SocketAddr, UdpSocket},
    sync::Arc,
    time::Duration,
};

use linerate::{
    Client, CloseCode, Error, Incoming, Message, Options, Request, Result, Server, WebSocket,
    dial::{DialError, Http3Error, Proxy},
    handshake::{HttpVersion, Origin, Refusal},
    tls::{self, rustls::ClientConfig},
};
use tokio::{sync::oneshot, task::JoinHandle};

use crate::{
    raw::in_time,
    support::{echo, echo_on},
    tls::certificate,
};

/// An HTTP/3 server for `localhost` that runs until it is stopped.
struct Running {
    address: SocketAddr,
    trusting: Arc<ClientConfig>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<std::io::Result<()>>,
}

impl Running {
    fn start<H, F>(server: Server, handler: H) -> Self
    where
        H: Fn(WebSocket, Request) -> F + Send + Sync + 'static,
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let (config, roots) = certificate("localhost");
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let server = server.with_tls(Arc::new(config));
        let serving = server.serve_http3(socket, handler, async { _ = stopped.await });
        Self {
            address,
            trusting: Arc::new(tls::client_config(roots)),
            stop,
            task: tokio::spawn(serving),
        }
    }

    fn start_incoming<H, F>(server: Server, handler: H) -> Self
    where
        H: Fn(Incoming) -> F + Send + Sync + 'static,
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let (config, roots) = certificate("localhost");
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let server = server.with_tls(Arc::new(config));
        let shutdown = async { _ = stopped.await };
        let serving = server.serve_incoming_http3(socket, handler, shutdown);
        Self {
            address,
            trusting: Arc::new(tls::client_config(roots)),
            stop,
            task: tokio::spawn(serving),
        }
    }

    fn echo() -> Self {
        Self::start(Server::new(), echo_http3)
    }

    fn url(&self) -> String {
        format!("wss://localhost:{}/", self.address.port())
    }

    fn client(&self) -> Client {
        let client = Client::new().with_tls(self.trusting.clone());
        client.with_http3().without_proxy()
    }

    async fn connect(&self) -> WebSocket {
        in_time(self.client().connect(&self.url())).await.unwrap()
    }

    fn abort(self) {
        self.task.abort();
    }

    async fn stop(self) {
        _ = self.stop.send(());
        in_time(self.task).await.unwrap().unwrap();
    }
}

/// Echoes messages, on HTTP/3 streams only.
async fn echo_http3(ws: WebSocket, request: Request) -> Result<()> {
    assert_eq!(request.version(), HttpVersion::Http3);
    echo(ws, request).await
}

#[tokio::test]
async fn messages_of_any_size_come_back() {
    let server = Running::echo();
    let mut ws = server.connect().await;
    for message in [
        Message::from("größer €"),
        Message::from(b""),
        Message::from(vec![7; 16_384]),
        Message::from(vec![8; 1 << 20]),
    ] {
        ws.send(message.clone()).await.unwrap();
        let echoed = in_time(ws.recv()).await.unwrap();
        assert!(echoed == Some(message));
    }
    let closed = in_time(ws.close(CloseCode::NORMAL, "done")).await.unwrap();
    assert_eq!((closed.code, closed.clean), (1000, true));
    assert_eq!(in_time(ws.recv()).await.unwrap(), None);
    server.stop().await;
}

#[tokio::test]
async fn messages_of_16_mib_come_back() {
    let mut options = Options::default().without_compression();
    options.config.limits.message_bytes_max = 16 << 20;
    let server = Running::start(Server::new().with_options(options.clone()), echo_http3);
    let client = server.client().with_options(options);
    let mut ws = in_time(client.connect(&server.url())).await.unwrap();
    let payload: Vec<u8> = (0..16 << 20).map(|index| (index % 251) as u8).collect();
    // The message does not fit into the windows, so its echo starts to arrive while it is still
    // being sent.
    ws.send(payload.clone()).await.unwrap();
    let echoed = in_time(ws.recv()).await.unwrap().unwrap();
    assert!(echoed.as_bytes() == payload);
    server.abort();
}

#[tokio::test]
async fn many_messages_in_flight_keep_their_order() {
    let server = Running::echo();
    let (sender, mut receiver) = server.connect().await.split();
    let send = tokio::spawn(async move {
        for number in 0..20_000 {
            sender.send(number.to_string()).await.unwrap();
        }
        sender
    });
    for number in 0..20_000 {
        let message = in_time(receiver.recv()).await.unwrap().unwrap();
        assert_eq!(message.as_text(), Some(&*number.to_string()));
    }
    drop(send.await.unwrap());
    drop(receiver);
    server.stop().await;
}

#[tokio::test]
async fn many_clients_are_served_beside_each_other() {
    let server = Running::echo();
    let clients: Vec<_> = (0..50)
        .map(|number| {
            let (client, url) = (server.client(), server.url());
            tokio::spawn(async move {
                let mut ws = in_time(client.connect(&url)).await.unwrap();
                for round in 0..10 {
                    let message = format!("{number}.{round}");
                    ws.send(message.clone()).await.unwrap();
                    let echoed = in_time(ws.recv()).await.unwrap().unwrap();
                    assert_eq!(echoed.as_text(), Some(&*message));
                }
                let closed = in_time(ws.close(CloseCode::NORMAL, "")).await.unwrap();
                assert!(closed.clean);
            })
        })
        .collect();
    for client in clients {
        client.await.unwrap();
    }
    server.stop().await;
}

#[tokio::test]
async fn a_request_is_judged_as_over_http1() {
    let server = Running::start_incoming(Server::new(), |incoming| async move {
        assert_eq!(incoming.request().version(), HttpVersion::Http3);
        tokio::task::yield_now().await;
        match incoming.request().path() {
            "/secret" => incoming.refuse(Refusal::new(401, "who are you")?).await,
            "/dropped" => Ok(()),
            _ => echo_on(incoming.with_subprotocols(&["wamp"]).accept().await?).await,
        }
    });
    let offering = server
        .client()
        .with_subprotocol("soap")
        .with_subprotocol("wamp");
    let ws = in_time(offering.connect(&server.url())).await.unwrap();
    assert_eq!(ws.subprotocol().as_deref(), Some("wamp"));

    let status = |error| match error {
        Error::StatusUnexpected(response) => {
            assert!(!response.text().is_empty());
            response.status
        }
        error => panic!("{error}"),
    };
    let secret = format!("{}secret", server.url());
    let refused = in_time(server.client().connect(&secret)).await;
    assert_eq!(status(refused.unwrap_err()), 401);
    let dropped = format!("{}dropped", server.url());
    let refused = in_time(server.client().connect(&dropped)).await;
    assert_eq!(status(refused.unwrap_err()), 500);
    let page = "https://evil.example".parse::<Origin>().unwrap();
    let evil = server.client().with_origin(page);
    let refused = in_time(evil.connect(&server.url())).await;
    assert_eq!(status(refused.unwrap_err()), 403);
    drop(ws);
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_is_gone_drops_the_decision_and_so_does_shutdown() {
    let (sender, mut started) = tokio::sync::mpsc::unbounded_channel();
    let server = Running::start_incoming(Server::new(), move |incoming| {
        let (alive, dropped) = oneshot::channel::<()>();
        _ = sender.send(dropped);
        async move {
            let _dropped_with_it = (alive, incoming);
            std::future::pending().await
        }
    });
    let (client, url) = (server.client(), server.url());
    let connecting = tokio::spawn(async move { client.connect(&url).await });
    let dropped = in_time(started.recv()).await.unwrap();
    connecting.abort();
    assert!(in_time(dropped).await.is_err());

    let (client, url) = (server.client(), server.url());
    let connecting = tokio::spawn(async move { client.connect(&url).await });
    let dropped = in_time(started.recv()).await.unwrap();
    in_time(server.stop()).await;
    assert!(in_time(dropped).await.is_err());
    let error = in_time(connecting).await.unwrap().unwrap_err();
    assert!(
        matches!(&error, Error::StatusUnexpected(response) if response.status == 503),
        "{error}"
    );
}

#[tokio::test]
async fn the_end_of_a_handler_closes_the_websocket_with_its_code() {
    let server = Running::start(Server::new(), |mut ws, request| async move {
        let started = ws.recv().await?;
        match request.path() {
            "/ends" => Ok(()),
            "/fails" => Err(Error::Abnormal),
            "/panics" => panic!("on purpose"),
            "/closes" => {
                let code = CloseCode::new(4_321).expect("the close code is valid");
                ws.close(code, "bye").await.map(drop)
            }
            _ => {
                drop((ws, started));
                std::future::pending().await
            }
        }
    });
    for (path, code, reason) in [
        ("ends", 1000, ""),
        ("fails", 1011, ""),
        ("panics", 1011, ""),
        ("drops", 1001, ""),
        ("closes", 4_321, "bye"),
    ] {
        let url = format!("{}{path}", server.url());
        let mut ws = in_time(server.client().connect(&url)).await.unwrap();
        ws.send("start").await.unwrap();
        assert_eq!(in_time(ws.recv()).await.unwrap(), None, "{path}");
        let closed = in_time(ws.close(CloseCode::NORMAL, "")).await.unwrap();
        assert_eq!((closed.code, closed.clean), (code, true), "{path}");
        assert_eq!(ws.closed().unwrap().reason(), reason);
    }
    server.abort();
}

#[tokio::test]
async fn shutdown_closes_what_is_open() {
    let server = Running::echo();
    let mut ws = server.connect().await;
    ws.send("Spam").await.unwrap();
    in_time(ws.recv()).await.unwrap();
    let stop = tokio::spawn(server.stop());
    assert_eq!(in_time(ws.recv()).await.unwrap(), None);
    let closed = in_time(ws.close(CloseCode::NORMAL, "")).await.unwrap();
    assert_eq!(closed.code, 1001);
    in_time(stop).await.unwrap();
}

#[tokio::test]
async fn s09_a_client_that_is_gone_without_a_word_is_an_abnormal_end() {
    let (ended, end) = oneshot::channel();
    let ended = std::sync::Mutex::new(Some(ended));
    let server = Running::start(Server::new(), move |mut ws, _| {
        let ended = ended.lock().unwrap().take();
        async move {
            let error = ws.recv().await.unwrap_err();
            _ = ended.expect("there is only one connection").send(error);
            Ok(())
        }
    });
    let client = server
        .client()
        .with_options(Options::default().without_compression());
    let ws = in_time(client.connect(&server.url())).await.unwrap();
    drop(ws.into_parts().unwrap());
    let error = in_time(end).await.unwrap();
    assert!(matches!(error, Error::Io(_)), "{error}");
    server.stop().await;
}

#[tokio::test]
async fn what_can_not_be_reached_over_http3_is_said() {
    let server = Running::echo();
    let client = server.client();
    let error = |result: Result<WebSocket>| match result.unwrap_err() {
        Error::Dial(DialError::Http3(error)) => error,
        error => panic!("{error}"),
    };
    let insecure = format!("ws://localhost:{}/", server.address.port());
    let refused = client.connect(&insecure).await;
    assert_eq!(error(refused), Http3Error::Insecure);
    let proxy: Proxy = "http://127.0.0.1:1".parse().unwrap();
    let proxied = client
        .clone()
        .with_proxy(proxy)
        .connect(&server.url())
        .await;
    assert_eq!(error(proxied), Http3Error::Proxied);

    let stranger = Client::new().with_http3().without_proxy();
    let distrusted = in_time(stranger.connect(&server.url())).await.unwrap_err();
    assert!(
        distrusted.to_string().contains("certificate"),
        "{distrusted}"
    );
    server.stop().await;
}

#[tokio::test]
async fn a_server_without_a_certificate_says_so() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let served = Server::new().serve_http3(socket, echo, std::future::pending());
    let error = in_time(served).await.unwrap_err();
    assert_eq!(error.to_string(), "HTTP/3 requires a TLS configuration");
}

#[tokio::test]
async fn connections_beyond_the_limit_are_refused() {
    // One place for the connection and one for its stream.
    let server = Running::start(Server::new().with_connections_max(2), echo_http3);
    let ws = server.connect().await;
    let refused = in_time(server.client().connect(&server.url())).await;
    let error = refused.unwrap_err();
    assert!(
        matches!(error, Error::Dial(DialError::ConnectFailed { .. })),
        "{error}"
    );
    drop(ws);
    server.stop().await;
}

#[tokio::test]
async fn a_quiet_websocket_outlives_the_idle_time() {
    let mut options = Options::default();
    options.config.ping_interval = None;
    options.http3.idle_timeout = Duration::from_secs(1);
    let server = Running::start(Server::new().with_options(options.clone()), echo_http3);
    let client = server.client().with_options(options);
    let mut ws = in_time(client.connect(&server.url())).await.unwrap();
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    ws.send("Spam").await.unwrap();
    assert_eq!(in_time(ws.recv()).await.unwrap(), Some("Spam".into()));
    server.abort();
}
