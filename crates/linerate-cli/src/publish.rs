//! `linerate publish`: publishes through a server, or directly to its broker.

mod broker;
mod input;
mod server;

use std::{env, time::Duration};

use anyhow::{Context, bail};
use bytes::Bytes;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use linerate_broker::StreamOptions;
use linerate_hub::{ChannelName, StreamPosition};
use serde_json::json;

use broker::BrokerTarget;
use input::Payloads;
use server::ServerTarget;

use crate::terminal::print;

/// The environment variable with the key of the server API. The server reads the same variable.
const KEY_VARIABLE: &str = "LINERATE_AUTH_API_KEY";

const EXAMPLES: &str = "\
Examples:
  linerate publish news '{\"title\":\"hello\"}'
  date | linerate publish clock -
  tail -F app.log | linerate publish logs --lines
  linerate publish news hello --server https://push.example.com --api-key \"$KEY\"
  linerate publish news hello --broker redis://127.0.0.1:6379
  linerate publish news hello --broker nats://127.0.0.1:4222

Payloads are published unchanged and need not be JSON. The key of the server API can also be set in the environment \
variable LINERATE_AUTH_API_KEY. A server in development mode does not require a key.";

/// Publishes to a channel.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The channel to publish to.
    channel: String,

    /// The payload to publish; `-` reads it from standard input.
    #[arg(required_unless_present = "lines", conflicts_with = "lines")]
    data: Option<String>,

    /// Publish each line of standard input as a separate payload.
    #[arg(long)]
    lines: bool,

    /// The server whose API to use.
    #[arg(
        long,
        value_name = "URL",
        default_value = "http://127.0.0.1:8080",
        conflicts_with = "broker"
    )]
    server: String,

    /// The key of the server API.
    #[arg(long, value_name = "KEY", conflicts_with = "broker")]
    api_key: Option<String>,

    /// Publish directly to the broker with this URL, as for `linerate serve --broker`.
    #[arg(long, value_name = "URL")]
    broker: Option<String>,

    /// Prefix of channel names in the broker.
    #[arg(long, value_name = "TEXT", default_value = "", requires = "broker")]
    prefix: String,

    /// Number of publications that the broker keeps, for channels that are `durable` on the server.
    #[arg(long, value_name = "N", requires = "broker",
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    durable: Option<u32>,

    /// How long the broker keeps durable publications, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "300", requires = "durable",
        value_parser = clap::value_parser!(u32).range(1..=31_536_000))]
    history_ttl: u32,

    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

/// The destination of publications.
enum Target {
    Broker(BrokerTarget),
    Server(Box<ServerTarget>),
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(publish(&arguments))
}

async fn publish(arguments: &Arguments) -> anyhow::Result<()> {
    let channel = ChannelName::new(&arguments.channel)?;
    let mut payloads = match arguments.data.as_deref() {
        None => Payloads::lines(),
        Some("-") => Payloads::whole_input()?,
        Some(data) => Payloads::one(data.to_owned().into()),
    };
    let target = Target::new(arguments)?;
    let progress = progress(arguments.lines);
    let (mut count, mut newest) = (0_u64, None);
    while let Some(batch) = payloads.next().await {
        let batch = batch?;
        count += batch.len() as u64;
        let published = target.publish(&channel, batch).await;
        newest = published.with_context(|| format!("cannot publish to {channel}"))?;
        progress.set_position(count);
    }
    progress.finish_and_clear();
    target.close().await;
    report(arguments.json, &channel, count, newest)
}

impl Target {
    fn new(arguments: &Arguments) -> anyhow::Result<Self> {
        if let Some(url) = &arguments.broker {
            let stream = StreamOptions {
                is_durable: arguments.durable.is_some(),
                size_max: arguments.durable.unwrap_or(0) as usize,
                ttl: Duration::from_secs(arguments.history_ttl.into()),
            };
            let target = BrokerTarget::new(url, &arguments.prefix, stream)?;
            return Ok(Self::Broker(target));
        }
        let from_environment = || env::var(KEY_VARIABLE).ok();
        let key = arguments.api_key.clone().or_else(from_environment);
        let target = ServerTarget::new(&arguments.server, key)?;
        Ok(Self::Server(Box::new(target)))
    }

    /// Publishes the payloads in order; returns the stream position of the last one, if known.
    async fn publish(
        &self,
        channel: &ChannelName,
        payloads: Vec<Bytes>,
    ) -> anyhow::Result<Option<StreamPosition>> {
        match self {
            Self::Broker(broker) => broker.publish(channel, payloads).await,
            Self::Server(server) => server.publish(channel, payloads).await,
        }
    }

    async fn close(self) {
        if let Self::Broker(broker) = self {
            broker.close().await;
        }
    }
}

fn progress(is_long: bool) -> ProgressBar {
    if !is_long {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {human_pos} published ({per_sec})");
    let progress = ProgressBar::new_spinner();
    match style {
        Ok(style) => progress.with_style(style),
        Err(_) => progress,
    }
}

fn report(
    is_json: bool,
    channel: &ChannelName,
    count: u64,
    newest: Option<StreamPosition>,
) -> anyhow::Result<()> {
    if count == 0 {
        bail!("nothing to publish: the input is empty");
    }
    let text = if is_json {
        let (offset, epoch) = match &newest {
            Some(newest) => (Some(newest.offset), Some(newest.epoch.as_str())),
            None => (None, None),
        };
        json!({
            "channel": channel.as_str(),
            "published": count,
            "offset": offset,
            "epoch": epoch,
        })
        .to_string()
    } else {
        let offset = newest.map_or(String::new(), |newest| {
            format!(", offset {}", newest.offset)
        });
        let publications = if count == 1 {
            "publication"
        } else {
            "publications"
        };
        format!("{count} {publications} to {channel}{offset}")
    };
    Ok(print(&(text + "\n"))?)
}
