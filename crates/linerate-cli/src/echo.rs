//! `linerate echo`: sends each message back, on any path.

mod reactor;

use std::{
    net::UdpSocket,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::Context;
use clap::{
    Args, ValueEnum,
    builder::{PossibleValuesParser, TypedValueParser},
};
use linerate::{Options, OriginPolicy, Server, WebSocket};
use linerate_reactor::DriverKind;

use crate::{certificate, compression::Compression, workers};

/// The largest message that comes back. Larger than the library's default, because conformance
/// tests and benchmarks send large messages.
const MESSAGE_BYTES_MAX: u64 = 64 << 20;

const EXAMPLES: &str = "\
Examples:
  linerate echo
  linerate echo --listen 127.0.0.1:9001 --workers 1
  linerate echo --engine reactor
  linerate echo --engine reactor --driver io-uring
  linerate echo --compression on
  linerate echo --listen 127.0.0.1:0 --tls-self-signed
  linerate echo --listen 127.0.0.1:4433 --tls-self-signed --http3";

/// Sends each message back: for conformance tests and benchmarks.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    workers: workers::Arguments,

    /// What serves: the library on tokio, or the callbacks of the reactor.
    #[arg(long, value_enum, default_value_t = Engine::Tokio)]
    engine: Engine,

    /// How the reactor talks to the kernel: epoll, io-uring, or auto for what is best for most.
    #[arg(long, value_name = "DRIVER", value_parser = driver())]
    driver: Option<DriverKind>,

    /// Compress messages.
    #[arg(long, value_enum, value_name = "HOW", default_value_t = Compression::Off)]
    compression: Compression,

    /// Serve wss:// with a self-signed certificate made for this run.
    #[arg(long)]
    tls_self_signed: bool,

    /// Serve HTTP/3 too, on the UDP port of the same number, by one of the workers.
    #[arg(long, requires = "tls_self_signed")]
    http3: bool,

    /// Nanoseconds to be busy for each message, so that a benchmark has a difference to find.
    #[cfg(feature = "bench-control")]
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        hide = true,
        conflicts_with = "engine"
    )]
    delay_ns: u64,
}

/// The shells around the one protocol engine.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Engine {
    Reactor,
    Tokio,
}

/// Parses the name of a driver.
fn driver() -> impl TypedValueParser<Value = DriverKind> {
    let names = DriverKind::ALL.map(DriverKind::as_str);
    PossibleValuesParser::new(names).try_map(|name| name.parse::<DriverKind>())
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    if arguments.engine == Engine::Reactor {
        anyhow::ensure!(
            !arguments.http3,
            "the reactor speaks HTTP/1.1; for `--http3` use `--engine tokio`"
        );
        let driver = arguments.driver.unwrap_or_default();
        let compression = arguments.compression;
        return reactor::run(
            &arguments.workers,
            driver,
            compression,
            arguments.tls_self_signed,
        );
    }
    anyhow::ensure!(
        arguments.driver.is_none(),
        "tokio has its own way to talk to the kernel; for `--driver` use `--engine reactor`"
    );
    let workers = workers::Workers::bind(&arguments.workers)?;
    let mut options = Options::default();
    options.config.limits.message_bytes_max = MESSAGE_BYTES_MAX;
    options.deflate = arguments.compression.deflate();
    // An echo tells a page nothing that the page did not know.
    let mut server = Server::new()
        .with_options(options)
        .with_origins(OriginPolicy::DangerAny);
    let mut scheme = "ws";
    if arguments.tls_self_signed {
        server = server.with_tls(certificate::self_signed()?);
        scheme = "wss";
    }
    #[cfg(feature = "bench-control")]
    let delay = std::time::Duration::from_nanos(arguments.delay_ns);
    let echo = move |mut ws: WebSocket, _request| async move {
        while let Some(message) = ws.recv().await? {
            #[cfg(feature = "bench-control")]
            busy_wait(delay);
            ws.send(message).await?;
        }
        Ok(())
    };
    let address = workers.address();
    let bind = || {
        let bound = UdpSocket::bind(address);
        bound.with_context(|| format!("can't listen on UDP {address}"))
    };
    let socket = arguments.http3.then(bind).transpose()?;
    // The first worker that comes takes it: packets of a connection must not come to another.
    let socket = Arc::new(Mutex::new(socket));
    println!("{scheme}://{address}");
    workers.run(move |listener, shutdown| {
        let server = server.clone();
        let socket = socket.lock().unwrap_or_else(PoisonError::into_inner).take();
        async move {
            let http3 = async {
                let Some(socket) = socket else { return Ok(()) };
                let server = server.clone();
                let stopped = shutdown.clone().wait();
                server.serve_http3(socket, echo, stopped).await
            };
            let http1_and_2 = server
                .clone()
                .serve(listener, echo, shutdown.clone().wait());
            tokio::try_join!(http1_and_2, http3)?;
            Ok(())
        }
    })
}

/// Uses the processor for a time.
#[cfg(feature = "bench-control")]
fn busy_wait(time: std::time::Duration) {
    let started = std::time::Instant::now();
    while started.elapsed() < time {
        std::hint::spin_loop();
    }
}
