//! Streams a file of any size as one message, in constant memory at both ends:
//!
//! ```text
//! cargo run -p linerate --example stream_file -- serve big.iso
//! cargo run -p linerate --example stream_file -- fetch ws://127.0.0.1:9001/ > copy.iso
//! ```

use linerate::{Client, CloseCode, MessageKind, Options, Result, WebSocket};
use tokio::{
    fs::File,
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next()) {
        (Some("fetch"), Some(url)) => fetch(&url).await,
        (Some("serve"), Some(path)) => serve(path).await,
        _ => {
            eprintln!("usage: stream_file serve FILE | stream_file fetch URL");
            std::process::exit(2);
        }
    }
}

async fn serve(path: String) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:9001").await?;
    let stop = async { _ = tokio::signal::ctrl_c().await };
    linerate::serve(listener, move |ws, _request| send(ws, path.clone()), stop).await?;
    Ok(())
}

async fn send(mut ws: WebSocket, path: String) -> Result<()> {
    let mut file = File::open(path).await?;
    let mut buffer = vec![0; 64 << 10];
    let mut writer = ws.writer(MessageKind::Binary);
    loop {
        match file.read(&mut buffer).await? {
            0 => break,
            // Waits while the client reads more slowly than the disk.
            length => writer.write(&buffer[..length]).await?,
        }
    }
    writer.finish().await?;
    ws.close(CloseCode::NORMAL, "").await?;
    Ok(())
}

async fn fetch(url: &str) -> Result<()> {
    let mut options = Options::default();
    // The limits protect memory, and a message that is read in pieces needs little of it.
    options.config.limits.message_bytes_max = u64::MAX;
    options.config.limits.fragments_max = u32::MAX;
    let mut ws = Client::new().with_options(options).connect(url).await?;
    let mut output = tokio::io::stdout();
    while let Some(mut message) = ws.reader().await? {
        while let Some(piece) = message.chunk().await? {
            output.write_all(piece.as_bytes()).await?;
        }
    }
    output.flush().await?;
    Ok(())
}
