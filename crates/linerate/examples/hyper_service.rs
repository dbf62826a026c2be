//! WebSockets on a hyper server, which reads the requests and performs the upgrades: `cargo run -p
//! linerate --example hyper_service -- 127.0.0.1:9001`.

use hyper::http::{self, Request, Response};
use hyper::{body::Incoming, server::conn::http1, service::service_fn, upgrade};
use hyper_util::rt::TokioIo;
use linerate::handshake::{self, HandshakeError, HandshakeLimits, OriginPolicy, Scheme};
use linerate::{Options, Role, WebSocket, parts::Parts};

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:9001".into());
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("ws://{}/", listener.local_addr()?);
    loop {
        let stream = TokioIo::new(listener.accept().await?.0);
        let connection = http1::Builder::new().serve_connection(stream, service_fn(answer));
        tokio::spawn(connection.with_upgrades());
    }
}

async fn answer(request: Request<Incoming>) -> http::Result<Response<String>> {
    let (parts, _body) = request.into_parts();
    let (status, text) = match check(&parts) {
        Err(error) => (error.status(), error.to_string()),
        Ok(response) => {
            tokio::spawn(echo(Request::from_parts(parts, ())));
            return Ok(response.map(|()| String::new()));
        }
    };
    Response::builder().status(status).body(text)
}

/// Returns the response that opens a WebSocket.
fn check(request: &http::request::Parts) -> Result<Response<()>, HandshakeError> {
    let request = handshake::request(request, None, HandshakeLimits::default())?;
    OriginPolicy::default().check(&request, Scheme::Http)?;
    handshake::response(&request.websocket()?.accept())
}

async fn echo(request: Request<()>) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let parts = Parts::new(TokioIo::new(upgrade::on(request).await?), Role::Server);
    let mut ws = WebSocket::from_parts(parts, Options::default());
    while let Some(message) = ws.recv().await? {
        ws.send(message).await?;
    }
    Ok(())
}
