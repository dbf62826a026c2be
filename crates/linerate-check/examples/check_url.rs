//! Checks the server at a `ws://` URL. The arguments after the URL select areas and rows.
//!
//! `linerate check` does the same, with TLS, progress output, HTML reports and more.

use std::{env, error::Error, sync::Arc, time::Duration};

use linerate_check::{
    Plan, Target, catalogue, greet, offers_http2,
    report::{Report, text},
    run,
};
use rustls::{ClientConfig, RootCertStore};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let url = arguments
        .next()
        .ok_or("missing argument: URL of the server")?;
    let only: Vec<String> = arguments.collect();
    let provider = rustls::crypto::ring::default_provider();
    let config = ClientConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let plan = Plan {
        target: Target::new(&url, &[], Arc::new(config))?,
        jobs: 8,
        patience: Duration::from_secs(3),
        echoes: true,
        http2: false,
    };
    greet(&plan).await?;
    let mut rows = catalogue::server();
    if offers_http2(&plan).await {
        rows.extend(catalogue::http2(&plan.target.http2_request()));
    }
    if !only.is_empty() {
        rows.iter_mut().for_each(|row| row.retain(&only));
    }
    let findings = run(&plan, &rows, |_| {}).await;
    let report = Report {
        name: &url,
        rows: &rows,
        findings: &findings,
        left_out: &[],
        process: None,
    };
    print!("{}", text(&report));
    Ok(())
}
