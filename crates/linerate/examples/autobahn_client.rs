//! The client that the Autobahn test suite drives:
//! `autobahn_client URL --agent NAME [--tls-insecure]`.
//!
//! It asks the suite how many cases there are, runs each as an echo client, and asks for the report.

use std::{env, sync::Arc};

use linerate::{
    Client, Options,
    tls::rustls::{
        ClientConfig, DigitallySignedStruct, Error, SignatureScheme,
        client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        crypto::{CryptoProvider, ring},
        pki_types::{CertificateDer, ServerName, UnixTime},
    },
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = env::args().skip(1);
    let (mut url, mut agent, mut tls_insecure) = (None, "linerate".to_owned(), false);
    while let Some(argument) = arguments.next() {
        match &*argument {
            "--agent" => agent = arguments.next().ok_or("--agent needs a name")?,
            "--tls-insecure" => tls_insecure = true,
            _ => url = Some(argument),
        }
    }
    let url = url.ok_or("usage: autobahn_client URL --agent NAME [--tls-insecure]")?;
    let url = url.trim_end_matches('/');
    let client = client(tls_insecure);

    let mut ws = client.connect(&format!("{url}/getCaseCount")).await?;
    let count = ws.recv().await?.ok_or("the suite sent no count")?;
    let cases: u32 = count.as_text().ok_or("the count is not text")?.parse()?;
    drop(ws);
    for case in 1..=cases {
        let url = format!("{url}/runCase?case={case}&agent={agent}");
        if let Err(error) = echo(&client, &url).await {
            eprintln!("case {case}: {error}");
        }
    }
    let mut ws = client
        .connect(&format!("{url}/updateReports?agent={agent}"))
        .await?;
    while ws.recv().await?.is_some() {}
    Ok(())
}

async fn echo(client: &Client, url: &str) -> linerate::Result<()> {
    let mut ws = client.connect(url).await?;
    while let Some(message) = ws.recv().await? {
        ws.send(message).await?;
    }
    Ok(())
}

fn client(tls_insecure: bool) -> Client {
    let mut options = Options::default();
    options.config.limits.message_bytes_max = 64 << 20;
    let client = Client::new().with_options(options);
    if !tls_insecure {
        return client;
    }
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .expect("the provider supports the default versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        .with_no_client_auth();
    client.with_tls(Arc::new(config))
}

/// Accepts any certificate: the suite's is made for one run.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
