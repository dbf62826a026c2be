//! The client for the Autobahn test suite: `autobahn_client URL --agent NAME [--tls-insecure]`.
//!
//! It asks the suite for the number of cases, runs each of them as an echo client, and asks for the
//! report.

use std::{env, sync::Arc};

use linerate::{Client, Options};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = env::args().skip(1);
    let (mut url, mut agent, mut tls_insecure) = (None, "linerate".to_owned(), false);
    while let Some(argument) = arguments.next() {
        match &*argument {
            "--agent" => agent = arguments.next().ok_or("--agent requires a name")?,
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
    // The suite's certificate is self-signed and created for one run.
    let config = linerate::tls::danger_client_config_trusting_anybody();
    client.with_tls(Arc::new(config))
}
