//! An echo server on a Unix socket that accepts only its own user: `cargo run -p linerate --example
//! unix_socket -- /tmp/echo.socket`.

#[cfg(unix)]
#[tokio::main]
async fn main() -> std::io::Result<()> {
    use linerate::{Server, handshake::Refusal};
    use std::os::unix::fs::MetadataExt;

    let path = std::env::args().nth(1);
    let path = path.unwrap_or_else(|| "/tmp/echo.socket".into());
    _ = std::fs::remove_file(&path);
    let listener = tokio::net::UnixListener::bind(&path)?;
    println!("{path}");
    let ours = std::fs::metadata(&path)?.uid();
    let stop = async { _ = tokio::signal::ctrl_c().await };
    let handler = move |incoming: linerate::Incoming| async move {
        let peer = incoming.info().peer_credentials;
        if peer.is_none_or(|peer| peer.uid() != ours) {
            return incoming.refuse(Refusal::new(403, "other user")?).await;
        }
        let mut ws = incoming.accept().await?;
        while let Some(message) = ws.recv().await? {
            ws.send(message).await?;
        }
        Ok(())
    };
    Server::new().serve_incoming(listener, handler, stop).await
}

#[cfg(not(unix))]
fn main() {}
