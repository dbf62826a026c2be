//! One handler over HTTP/1.1, HTTP/2 and HTTP/3, on the TCP and UDP ports with the same number,
//! with a self-signed certificate that is created for this run:
//!
//! ```text
//! cargo run -p linerate --example http3 --features http3 -- 127.0.0.1:9443
//! cargo run -p linerate-cli -- connect wss://localhost:9443/ --http3 --tls-insecure
//! ```

use std::{error::Error, net::UdpSocket, sync::Arc};

use linerate::{
    Request, Result, Server, WebSocket,
    tls::{self, rustls::pki_types::PrivateKeyDer},
};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::{net::TcpListener, signal::ctrl_c};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(vec!["localhost".into()])?;
    let key = PrivateKeyDer::try_from(signing_key.serialize_der())?;
    let config = tls::server_config(vec![cert.der().clone()], key)?;
    let server = Server::new().with_tls(Arc::new(config));

    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:9443".into());
    let listener = TcpListener::bind(address).await?;
    let socket = UdpSocket::bind(listener.local_addr()?)?;
    println!("wss://localhost:{}/", socket.local_addr()?.port());
    let stop = || async { _ = ctrl_c().await };
    tokio::try_join!(
        server.clone().serve(listener, echo, stop()),
        server.serve_http3(socket, echo, stop()),
    )?;
    Ok(())
}

/// Sends the HTTP version of the request, then echoes each message.
async fn echo(mut ws: WebSocket, request: Request) -> Result<()> {
    ws.send(format!("hello over {:?}", request.version()))
        .await?;
    while let Some(message) = ws.recv().await? {
        ws.send(message).await?;
    }
    Ok(())
}
