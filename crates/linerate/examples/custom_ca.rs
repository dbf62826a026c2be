//! A client that trusts only the certificate authorities in a PEM file:
//! `cargo run -p linerate --example custom_ca -- ca.pem wss://localhost:9443/`.

use std::{error::Error, sync::Arc};

use linerate::{
    Client, CloseCode,
    tls::{
        self,
        rustls::{
            RootCertStore,
            pki_types::{CertificateDer, pem::PemObject},
        },
    },
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(authorities), Some(url)) = (arguments.next(), arguments.next()) else {
        return Err("usage: custom_ca CA.pem URL".into());
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(authorities)? {
        roots.add(certificate?)?;
    }
    let client = Client::new().with_tls(Arc::new(tls::client_config(roots)));

    let mut ws = client.connect(&url).await?;
    ws.send("hello").await?;
    println!("{:?}", ws.recv().await?);
    ws.close(CloseCode::NORMAL, "").await?;
    Ok(())
}
