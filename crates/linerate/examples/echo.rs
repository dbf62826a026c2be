//! An echo server: `cargo run -p linerate --example echo -- 127.0.0.1:9001`.

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:9001".into());
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("ws://{}/", listener.local_addr()?);
    let stop = async { _ = tokio::signal::ctrl_c().await };
    linerate::serve(
        listener,
        |mut ws, _request| async move {
            while let Some(message) = ws.recv().await? {
                ws.send(message).await?;
            }
            Ok(())
        },
        stop,
    )
    .await
}
