//! `linerate echo`: sends each message back, on any path.

mod reactor;

use std::{
    net::UdpSocket,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::Context;
use clap::{Args, ValueEnum};
use linerate::{Options, Server, WebSocket, handshake::OriginPolicy};

use crate::{certificate, compression::Compression, workers};
use reactor::DriverKind;

/// The largest message that is accepted. It is larger than the library's default, because
/// conformance tests and benchmarks send large messages.
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

/// Runs a server that echoes each message, for conformance tests and benchmarks.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    workers: workers::Arguments,

    /// The server engine: the library on tokio, or the callback-based reactor.
    #[arg(long, value_enum, default_value_t = Engine::Tokio)]
    engine: Engine,

    /// The kernel interface of the reactor. The default, epoll on Linux and portable on other
    /// systems, is the best choice in most cases.
    #[arg(long, value_name = "DRIVER", value_parser = reactor::driver())]
    driver: Option<DriverKind>,

    /// Which message compression to accept.
    #[arg(long, value_enum, value_name = "HOW", default_value_t = Compression::Off)]
    compression: Compression,

    /// Serve wss:// with a self-signed certificate generated for this run.
    #[arg(long)]
    tls_self_signed: bool,

    /// Also serve HTTP/3, on the UDP port with the same number, with one of the workers.
    #[arg(long, requires = "tls_self_signed")]
    http3: bool,

    /// Nanoseconds of busy waiting for each message, so that a benchmark has a difference to
    /// detect.
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

/// The I/O layers around the protocol engine, which is the same in both.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Engine {
    Reactor,
    Tokio,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    if arguments.engine == Engine::Reactor {
        anyhow::ensure!(
            !arguments.http3,
            "the reactor supports only HTTP/1.1; use `--engine tokio` with `--http3`"
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
        "`--driver` applies only to the reactor; add `--engine reactor`"
    );
    let workers = workers::Workers::bind(&arguments.workers)?;
    let mut options = Options::default();
    options.config.limits.message_bytes_max = MESSAGE_BYTES_MAX;
    options.deflate = arguments.compression.deflate();
    // Any origin is safe here, because an echo tells a page nothing that it did not know.
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
        bound.with_context(|| format!("cannot listen on UDP {address}"))
    };
    let socket = arguments.http3.then(bind).transpose()?;
    // Only the first worker gets the UDP socket, because all packets of a connection must arrive at
    // the same worker.
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

/// Keeps the CPU busy for `time`.
#[cfg(feature = "bench-control")]
fn busy_wait(time: std::time::Duration) {
    let started = std::time::Instant::now();
    while started.elapsed() < time {
        std::hint::spin_loop();
    }
}
