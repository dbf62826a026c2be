//! The echo server on the reactor.

use std::{sync::Arc, thread};

use anyhow::Context as _;
use clap::builder::{PossibleValuesParser, TypedValueParser};
pub(super) use linerate_reactor::DriverKind;
use linerate_reactor::{
    Chunk, Context, Handler, Message, Opened, Options, Server, handshake::OriginPolicy,
};
use tokio::sync::Notify;

use super::MESSAGE_BYTES_MAX;
use crate::{
    certificate,
    compression::Compression,
    workers::{self, StopSignal},
};

#[derive(Clone)]
struct Echo;

impl Handler for Echo {
    type Data = ();

    /// Messages larger than a core's cache are echoed as they arrive. For shorter ones it is
    /// cheaper to wait for the whole message.
    const STREAMED_BYTES_MIN: u64 = 4 << 20;

    fn open(&mut self, _cx: &mut Context<'_>, _opened: Opened<'_>) {}

    #[inline]
    fn message(&mut self, (): &mut (), cx: &mut Context<'_>, message: Message<'_>) {
        // Sending fails only if the connection is closing, and then the client expects no reply.
        _ = cx.send(message);
    }

    fn chunk(&mut self, (): &mut (), cx: &mut Context<'_>, chunk: Chunk<'_>) {
        _ = cx.send_chunk(chunk.kind, chunk.bytes, chunk.ends);
    }
}

/// Parses the name of a driver.
pub(super) fn driver() -> impl TypedValueParser<Value = DriverKind> {
    let names = DriverKind::ALL.map(DriverKind::as_str);
    PossibleValuesParser::new(names).try_map(|name| name.parse::<DriverKind>())
}

/// Serves until ctrl-c, SIGTERM or the failure of a worker, then waits until all connections are
/// closed.
pub(super) fn run(
    arguments: &workers::Arguments,
    driver: DriverKind,
    compression: Compression,
    tls_self_signed: bool,
) -> anyhow::Result<()> {
    driver
        .check()
        .with_context(|| format!("driver {driver} is not available"))?;
    let mut options = Options::default();
    options.driver = driver;
    options.deflate = compression.deflate();
    options.config.limits.message_bytes_max = MESSAGE_BYTES_MAX;
    options.origins = OriginPolicy::DangerAny;
    let mut server = Server::new()
        .with_workers(arguments.workers())
        .with_options(options)
        .with_fallback(Echo);
    let mut scheme = "ws";
    if tls_self_signed {
        server = server.with_tls(certificate::self_signed()?);
        scheme = "wss";
    }
    let server = server
        .listen(arguments.listen)
        .with_context(|| format!("cannot listen on {}", arguments.listen))?;
    let remote = server.remote();
    // Signals are handled from here on: once the address is printed, a signal must stop the server
    // gracefully.
    let stop = StopSignal::new()?;
    println!("{scheme}://{}", server.local_addr());
    let ended = Arc::new(Notify::new());
    let serving = thread::spawn({
        let ended = ended.clone();
        move || {
            let served = server.run();
            ended.notify_one();
            served
        }
    });
    stop.wait(&ended);
    remote.shut_down();
    let served = serving.join();
    served.map_err(|_| anyhow::anyhow!("the server panicked"))??;
    Ok(())
}
