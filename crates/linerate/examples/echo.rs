//! An echo server: `cargo run -p linerate --example echo`.

use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:9001").await?;
    println!("ws://{}", listener.local_addr()?);
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
