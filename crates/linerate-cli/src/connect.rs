//! `linerate connect`: an interactive client.

mod action;
mod command;
mod history;
mod input;
mod network;
mod pretty;
mod prompt;
mod talk;
mod tls;
mod transcript;
mod view;

use std::{
    io::{self, IsTerminal},
    path::PathBuf,
    time::Duration,
};

use anyhow::Context;
use clap::Args;
use futures_util::stream;
use linerate::{Client, Options, handshake::Origin};

use crate::{compression::Compression, platform::StopSignals};
use prompt::{Prompt, Settings};
use transcript::{Output, Transcript};
use view::View;

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

Each line of standard input is sent as one message: as text, or decoded from hexadecimal digits or \
Base64 as binary. Messages that arrive are written to standard output; everything else (pongs, how \
the connection ended) goes to standard error. The exit status is 0 if the connection ended with a \
closing handshake, whatever the close code.

On a terminal, JSON is shown with one value per line, and there is a prompt with a history, which \
is stored in linerate/connect-history in $XDG_STATE_HOME or ~/.local/state. Empty lines are not \
sent, lines that begin with a space are not stored, and lines that begin with / are commands:
  /ping hello              # send a Ping and show the round-trip time
  /close 1001 bye          # close the connection, with code 1000 by default
  /binary de ad be ef      # send a binary message: hexadecimal digits or Base64
  /file picture.png        # send a file as a binary message, with --text as a text
  /help                    # show all commands and keys
  //etc                    # send the text /etc";

/// The largest message that is accepted, in bytes. It is larger than the library's default, because
/// the user has asked for these messages.
const MESSAGE_BYTES_MAX: u64 = 64 << 20;

/// Opens a WebSocket, sends the lines of standard input, and shows the messages that arrive.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The ws:// or wss:// URL to connect to.
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

    /// Send this Origin header, as a browser does for a page of that origin.
    #[arg(long, value_name = "ORIGIN", value_parser = origin)]
    origin: Option<Origin>,

    /// How to interpret each line of standard input.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    input: input::Format,

    /// Send the content of this file as a binary message, before standard input; may be repeated.
    #[arg(long, value_name = "FILE")]
    file: Vec<PathBuf>,

    /// After the end of standard input, close the connection once no message has arrived for this
    /// many seconds.
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    wait: Duration,

    /// Send a Ping after this many seconds of silence. Each Pong shows the round-trip time; a
    /// summary follows at the end.
    #[arg(long, value_name = "SECONDS", default_value = "20", value_parser = seconds)]
    ping: Duration,

    /// Which message compression to offer to the server.
    #[arg(long, value_enum, value_name = "HOW", default_value_t = Compression::On)]
    compression: Compression,

    /// Write all events to standard output, one JSON object per line.
    #[arg(long)]
    json: bool,

    /// On a terminal, show JSON messages as they arrive instead of with one value per line.
    #[arg(long)]
    no_pretty: bool,

    /// On a terminal, show the time (UTC) at which messages arrive.
    #[arg(long)]
    timestamps: bool,

    /// Neither read nor store the history of the prompt.
    #[arg(long)]
    no_history: bool,

    #[command(flatten)]
    network: network::Network,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    let client = client(&arguments)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    match runtime.block_on(connect(&client, &arguments)) {
        // The reader of standard output closed the pipe early, as `head` does. Socket errors have
        // another type, so they are not matched here.
        Err(error) if is_broken_pipe(&error) => Ok(()),
        result => result,
    }
}

async fn connect(client: &Client, arguments: &Arguments) -> anyhow::Result<()> {
    let connected = client.connect(&arguments.url).await;
    let ws = connected.with_context(|| format!("cannot connect to {}", arguments.url))?;
    let output = arguments.output();
    let mut transcript = Transcript::new(output);
    transcript.opened(&arguments.url, &ws).await?;
    let prompt = match output {
        Output::Terminal(view) if io::stdin().is_terminal() => arguments.prompt(view),
        _ => None,
    };
    let Some(mut prompt) = prompt else {
        let mut actions = input::actions(arguments.input, arguments.file.clone());
        let actions = stream::poll_fn(|cx| actions.poll_recv(cx));
        let interrupted = async { _ = tokio::signal::ctrl_c().await };
        return talk::talk(ws, actions, interrupted, &mut transcript, arguments.wait).await;
    };
    let mut signals = StopSignals::new()?;
    let interrupted = async {
        tokio::select! {
            () = signals.recv() => {}
            Ok(()) = prompt.interrupted => {}
        }
    };
    let actions = stream::poll_fn(|cx| prompt.actions.poll_recv(cx));
    let mut transcript = transcript.with_screen(prompt.screen);
    talk::talk(ws, actions, interrupted, &mut transcript, arguments.wait).await
}

impl Arguments {
    fn output(&self) -> Output {
        if self.json {
            Output::Json
        } else if io::stdout().is_terminal() {
            Output::Terminal(View::new(self.timestamps, !self.no_pretty))
        } else {
            Output::Lines
        }
    }

    /// Starts a prompt, if the terminal can have one.
    fn prompt(&self, view: View) -> Option<Prompt> {
        Prompt::start(Settings {
            format: self.input,
            files: self.file.clone(),
            history: history::path().filter(|_| !self.no_history),
            view,
        })
    }
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
        client = added.with_context(|| format!("cannot send cookie {name}"))?;
    }
    arguments.network.apply(client, &arguments.url)
}

pub(crate) fn header(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once(':').ok_or("expected NAME: VALUE")?;
    Ok((name.trim().into(), value.trim().into()))
}

fn cookie(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.into(), value.into()))
}

fn origin(text: &str) -> Result<Origin, &'static str> {
    text.parse()
        .map_err(|_| "expected an origin such as https://example.com or http://localhost:8080")
}

/// Parses a number of seconds between 0.001 and one year.
pub(crate) fn seconds(text: &str) -> Result<Duration, &'static str> {
    const YEAR: f64 = 365.0 * 86_400.0;
    match text.parse::<f64>() {
        Ok(seconds) if (0.001..=YEAR).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("expected a number of seconds between 0.001 and 31536000, such as 0.5 or 10"),
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
