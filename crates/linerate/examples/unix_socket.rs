//! A client of a server on a Unix socket:
//! `cargo run -p linerate --example unix_socket -- /run/app.sock`.

#[cfg(unix)]
#[tokio::main]
async fn main() -> linerate::Result<()> {
    let path = std::env::args().nth(1);
    let path = path.unwrap_or_else(|| "/run/app.sock".into());
    let client = linerate::Client::new();
    // The URL is for the request only; no name is resolved.
    let mut ws = client.connect_unix(path, "ws://localhost/").await?;
    ws.send("Spam").await?;
    println!("{:?}", ws.recv().await?);
    ws.close(linerate::CloseCode::NORMAL, "").await?;
    Ok(())
}

#[cfg(not(unix))]
fn main() {
    eprintln!("this system has no Unix sockets");
}
