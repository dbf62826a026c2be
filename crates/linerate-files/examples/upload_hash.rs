//! Receives files without storing them, and answers with their SHA-256 digests:
//!
//! ```text
//! cargo run -p linerate-files --example upload_hash -- 127.0.0.1:9001
//! node web/client/examples/upload.mjs ws://127.0.0.1:9001/ big.iso
//! ```

use linerate::{Options, Server};
use linerate_files::{Announced, Limits, Store, StoredFile, UploadError, UploadId, Uploads};
use ring::digest::{Context, SHA256};
use serde_json::{Value, json};

struct Hashes;

struct Hash(Context);

impl Store for Hashes {
    type File = Hash;

    async fn create(&self, _id: UploadId, _announced: &Announced) -> Result<Hash, UploadError> {
        Ok(Hash(Context::new(&SHA256)))
    }
}

impl StoredFile for Hash {
    async fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.0.update(bytes);
        Ok(())
    }

    async fn finish(self) -> Result<Value, UploadError> {
        let digest = self.0.finish();
        let digits: String = digest
            .as_ref()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Ok(json!({ "sha256": digits }))
    }
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:9001".into());
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("ws://{}/", listener.local_addr()?);
    let uploads = Uploads::new(Hashes, Limits::default());
    let handler = move |incoming| {
        let uploads = uploads.clone();
        async move { uploads.accept(incoming).await }
    };
    let stop = async { _ = tokio::signal::ctrl_c().await };
    // Browsers would spend more time on compressing files than it saves.
    let server = Server::new().with_options(Options::default().without_compression());
    server.serve_incoming(listener, handler, stop).await
}
