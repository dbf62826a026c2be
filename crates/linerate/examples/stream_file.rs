//! Streams a file of any size as one message, in constant memory at both ends:
//!
//! ```text
//! cargo run -p linerate --example stream_file -- serve big.iso 127.0.0.1:9001
//! cargo run -p linerate --example stream_file -- fetch ws://127.0.0.1:9001/ > copy.iso
//! ```

use linerate::{MessageKind, Result, WebSocket};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next()) {
        (Some("fetch"), Some(url)) => fetch(linerate::connect(&url).await?).await,
        (Some("serve"), Some(path)) => {
            let address = arguments.next().unwrap_or("127.0.0.1:9001".into());
            let listener = tokio::net::TcpListener::bind(address).await?;
            println!("ws://{}/", listener.local_addr()?);
            let stop = async { _ = tokio::signal::ctrl_c().await };
            linerate::serve(listener, move |ws, _| send(ws, path.clone()), stop).await?;
            Ok(())
        }
        _ => {
            eprintln!("usage: stream_file serve FILE [ADDRESS] | stream_file fetch URL");
            std::process::exit(2);
        }
    }
}

async fn send(mut ws: WebSocket, path: String) -> Result<()> {
    let mut file = tokio::fs::File::open(path).await?;
    let mut buffer = vec![0; 64 << 10];
    let mut writer = ws.writer(MessageKind::Binary);
    while let length @ 1.. = file.read(&mut buffer).await? {
        // Waits while the client reads more slowly than the disk.
        writer.write(&buffer[..length]).await?;
    }
    writer.finish().await
}

async fn fetch(mut ws: WebSocket) -> Result<()> {
    let mut output = tokio::io::stdout();
    // Without a limit, because each piece is written and forgotten.
    while let Some(mut message) = ws.reader_with_limit(None).await? {
        while let Some(piece) = message.chunk().await? {
            output.write_all(piece.as_bytes()).await?;
        }
    }
    Ok(output.flush().await?)
}
