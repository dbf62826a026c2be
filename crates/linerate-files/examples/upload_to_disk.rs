//! Receives files of any size into a folder; they are resumed after a lost connection, and after a
//! restart of this server:
//!
//! ```text
//! cargo run -p linerate-files --example upload_to_disk -- 127.0.0.1:9001 received
//! node web/client/examples/upload.mjs ws://127.0.0.1:9001/ big.iso
//! ```

use linerate::{Options, Server};
use linerate_files::{Folder, Limits, Uploads};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or("127.0.0.1:9001".into());
    let folder = arguments.next().unwrap_or("received".into());
    let uploads = Uploads::new(Folder::open(folder).await?, Limits::default());
    let listener = TcpListener::bind(address).await?;
    println!("ws://{}/", listener.local_addr()?);
    let handler = move |incoming| {
        let uploads = uploads.clone();
        async move { uploads.accept(incoming).await }
    };
    let stop = async { _ = tokio::signal::ctrl_c().await };
    // Browsers would spend more time on compressing files than it saves.
    let server = Server::new().with_options(Options::default().without_compression());
    server.serve_incoming(listener, handler, stop).await
}
