//! `linerate connect`: an interactive client.

mod input;
mod network;
mod talk;
mod tls;
mod transcript;

use std::{io, path::PathBuf, time::Duration};

use anyhow::Context;
use clap::Args;
use linerate::{Client, Options, Origin};

use crate::compression::Compression;

const EXAMPLES: &str = "\
Examples:
  linerate connect ws://127.0.0.1:8080/echo
  echo hello | linerate connect ws://127.0.0.1:8080/echo
  linerate connect ws://127.0.0.1:8080/counters --wait 5 --json < /dev/null
  linerate connect wss://example.com/feed -H 'Authorization: Bearer …' --subprotocol feed.v1
  echo 'de ad be ef' | linerate connect ws://127.0.0.1:8080/echo --input hex
  linerate connect ws://127.0.0.1:8080/echo --file picture.png --json < /dev/null
  linerate connect wss://example.com/ --proxy socks5h://127.0.0.1:1080 --cookie session=7
  linerate connect wss://example.com/echo --http3
  linerate connect ws://127.0.0.1:8080/echo --ping 0.5 --wait 10 < /dev/null   # round-trip times

Each line of the input is sent as a message: as text, or decoded from hexadecimal digits or Base64 as
a binary one. Messages that arrive go to standard output, all
else (pongs, how it ended) to standard error. The exit status is 0 if the connection was closed in
order, with whatever code.";

/// The largest message that is shown. Larger than the library's default: people look at what they
/// asked for.
const MESSAGE_BYTES_MAX: u64 = 64 << 20;

/// Opens a WebSocket: type to send, see what arrives.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A ws:// or wss:// address.
    url: String,

    /// Add a header to the request; may be repeated.
    #[arg(long, short = 'H', value_name = "NAME: VALUE", value_parser = header)]
    header: Vec<(String, String)>,

    /// Send a cookie; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = cookie)]
    cookie: Vec<(String, String)>,

    /// Offer a subprotocol; may be repeated.
    #[arg(long, value_name = "NAME")]
    subprotocol: Vec<String>,

    /// Send an Origin, as a page from there would.
    #[arg(long, value_name = "ORIGIN", value_parser = origin)]
    origin: Option<Origin>,

    /// What a line of the input stands for.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    input: input::Format,

    /// Send the content of this file as a binary message, before the input; may be repeated.
    #[arg(long, value_name = "FILE")]
    file: Vec<PathBuf>,

    /// Seconds without a message, after the end of the input, before the connection is closed.
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    wait: Duration,

    /// Seconds of silence before a Ping. Each Pong tells the round-trip time, the end sums them up.
    #[arg(long, value_name = "SECONDS", default_value = "20", value_parser = seconds)]
    ping: Duration,

    /// Offer to compress messages.
    #[arg(long, value_enum, value_name = "HOW", default_value_t = Compression::On)]
    compression: Compression,

    /// Write all that happens to standard output, one JSON object a line.
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    network: network::Network,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    let client = client(&arguments)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    match runtime.block_on(connect(&client, &arguments)) {
        // Whoever reads has seen enough, as `head` has. An error of the socket is none of these.
        Err(error) if is_broken_pipe(&error) => Ok(()),
        result => result,
    }
}

async fn connect(client: &Client, arguments: &Arguments) -> anyhow::Result<()> {
    let connected = client.connect(&arguments.url).await;
    let ws = connected.with_context(|| format!("can't connect to {}", arguments.url))?;
    let transcript = transcript::Transcript::new(arguments.json);
    transcript.opened(&arguments.url, &ws)?;
    let input = input::messages(arguments.input, arguments.file.clone());
    talk::talk(ws, input, &transcript, arguments.wait).await
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

fn client(arguments: &Arguments) -> anyhow::Result<Client> {
    let mut options = Options::default();
    options.config.limits.message_bytes_max = MESSAGE_BYTES_MAX;
    options.config.ping_interval = Some(arguments.ping);
    options.deflate = arguments.compression.deflate();
    let mut client = Client::new().with_options(options);
    for (name, value) in &arguments.header {
        client = client.with_header(name, value);
    }
    for subprotocol in &arguments.subprotocol {
        client = client.with_subprotocol(subprotocol);
    }
    if let Some(origin) = &arguments.origin {
        client = client.with_origin(origin.clone());
    }
    for (name, value) in &arguments.cookie {
        let added = client.with_cookie(name, value);
        client = added.with_context(|| format!("the cookie {name} can't be sent"))?;
    }
    arguments.network.apply(client, &arguments.url)
}

pub(crate) fn header(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once(':').ok_or("a header is NAME: VALUE")?;
    Ok((name.trim().into(), value.trim().into()))
}

fn cookie(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once('=').ok_or("a cookie is NAME=VALUE")?;
    Ok((name.into(), value.into()))
}

fn origin(text: &str) -> Result<Origin, &'static str> {
    text.parse()
        .map_err(|_| "an origin is like https://example.com or http://localhost:8080")
}

/// Parses a number of seconds, at least a millisecond and at most a year.
pub(crate) fn seconds(text: &str) -> Result<Duration, &'static str> {
    const YEAR: f64 = 365.0 * 86_400.0;
    match text.parse::<f64>() {
        Ok(seconds) if (0.001..=YEAR).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("a number of seconds, like 0.5 or 10, of at least 0.001"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{cookie, header, origin, seconds};

    #[test]
    fn cookies_are_split_at_the_first_equals_sign() {
        assert_eq!(cookie("a=b=c"), Ok(("a".into(), "b=c".into())));
        assert!(cookie("a").is_err());
    }

    #[test]
    fn headers_are_split_at_the_first_colon() {
        let parsed = header("Authorization:  Basic a:b ").unwrap();
        assert_eq!(parsed, ("Authorization".into(), "Basic a:b".into()));
        assert!(header("Authorization").is_err());
    }

    #[test]
    fn origins_and_seconds_have_bounds() {
        assert!(origin("http://localhost:8080").is_ok());
        assert!(origin("localhost").is_err());
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for wrong in ["0", "-1", "NaN", "inf", "1e99", "soon"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
