//! The tower service on a hyper server and as a route of axum.

use std::net::SocketAddr;

use hyper::server::conn::http1;
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use linerate::{
    Client, CloseCode, Request, Result, WebSocket, axum::WebSocketService, handshake::OriginPolicy,
};
use tokio::net::TcpListener;

use crate::raw::{Raw, edited, in_time, with_line};

/// Sends the path of the request, and then echoes each message.
async fn named_echo(mut ws: WebSocket, request: Request) -> Result<()> {
    ws.send(request.path()).await?;
    while let Some(message) = ws.recv().await? {
        ws.send(message).await?;
    }
    Ok(())
}

/// Serves a linerate service with hyper, without a router.
async fn on_hyper() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = WebSocketService::new(named_echo)
        .with_subprotocol("a")
        .with_subprotocol("b")
        .with_origin_policy(OriginPolicy::SameOrigin);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let service = TowerToHyperService::new(service.clone());
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            tokio::spawn(connection.with_upgrades());
        }
    });
    address
}

async fn on_axum() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = WebSocketService::new(named_echo).with_subprotocol("a");
    let app = axum::Router::new().route_service("/{*path}", service);
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

#[tokio::test]
async fn a_service_opens_websockets_wherever_services_are_taken() {
    for address in [on_hyper().await, on_axum().await] {
        let client = Client::new().with_subprotocol("b").with_subprotocol("a");
        let url = format!("ws://{address}/some/where?x");
        let mut ws = in_time(client.connect(&url)).await.unwrap();
        assert_eq!(ws.subprotocol().as_deref(), Some("a"));
        assert_eq!(
            in_time(ws.recv()).await.unwrap(),
            Some("/some/where".into())
        );
        let message = vec![7; 200_000];
        ws.send(message.clone()).await.unwrap();
        assert_eq!(in_time(ws.recv()).await.unwrap(), Some(message.into()));
        let closed = ws.close(CloseCode::NORMAL, "").await.unwrap();
        assert!(closed.clean);
    }
}

#[tokio::test]
async fn what_asks_for_no_websocket_or_may_not_have_one_is_refused() {
    let refused = [
        (b"GET /chat HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(), "400"),
        (edited("Version: 13", "Version: 12").into_bytes(), "426"),
        (with_line("Origin: https://evil.example"), "403"),
    ];
    for address in [on_hyper().await, on_axum().await] {
        for (request, status) in &refused {
            let mut raw = Raw::connect(address).await;
            raw.send(request).await;
            let head = in_time(raw.head()).await;
            assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
        }
    }
}
