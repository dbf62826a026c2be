//! linerate's reactor as a contender, on either of its drivers.
#![forbid(unsafe_code)]

use kit::{Arguments, MESSAGE_BYTES_MAX, Service};
pub use linerate_reactor::DriverKind;
use linerate_reactor::{
    Chunk, Context, Deflate, Handler, Message, Opened, Options, Server, handshake::OriginPolicy,
};

/// The topic that all connections subscribe to.
const ALL: &str = "all";

/// Serves as specified on the command line.
///
/// # Errors
/// The command line is invalid, the driver or the port is unavailable, or the server failed.
pub fn run(driver: DriverKind) -> kit::Result {
    let arguments = Arguments::from_command_line()?;
    let mut options = Options::default();
    options.driver = driver;
    options.deflate = arguments.deflate.map(deflate);
    options.config.limits.message_bytes_max = MESSAGE_BYTES_MAX as u64;
    options.origins = OriginPolicy::DangerAny;
    let mut server = Server::new()
        .with_workers(arguments.threads.into())
        .with_options(options);
    if let Some(tls) = kit::server_config(&arguments)? {
        server = server.with_tls(tls);
    }
    let server = match arguments.service {
        Service::Acknowledge => server.with_fallback(Acknowledge),
        Service::Echo => server.with_fallback(Echo),
        Service::Fanout => server.with_fallback(Fanout),
    };
    let address = ([127, 0, 0, 1], arguments.port).into();
    Ok(server.listen(address)?.run()?)
}

/// The defaults, except for context takeover. A client that does not offer a smaller window keeps
/// its context only with 15 bits.
fn deflate(wanted: kit::Deflate) -> Deflate {
    let takeover = wanted == kit::Deflate::Takeover;
    let mut deflate = Deflate::default();
    deflate.takeover = takeover;
    deflate.peer_takeover = takeover;
    deflate.peer_window_bits = 15;
    deflate
}

/// Messages of this size or more are counted in pieces as they arrive.
const COUNTED_BYTES_MIN: u64 = 64 << 10;

/// Messages that are longer than a core's cache are sent back in pieces as they arrive; shorter
/// ones are cheaper as one frame.
const ECHOED_BYTES_MIN: u64 = 4 << 20;

/// Answers with the number of payload bytes.
#[derive(Clone)]
struct Acknowledge;

impl Handler for Acknowledge {
    /// Number of bytes received of the message that arrives in pieces.
    type Data = usize;

    const STREAMED_BYTES_MIN: u64 = COUNTED_BYTES_MIN;

    fn open(&mut self, _cx: &mut Context<'_>, _opened: Opened<'_>) -> usize {
        0
    }

    fn message(&mut self, _bytes: &mut usize, cx: &mut Context<'_>, message: Message<'_>) {
        // A send fails only if the connection is closing, and then nothing waits for the message.
        _ = cx.send_text(&message.as_bytes().len().to_string());
    }

    fn chunk(&mut self, bytes: &mut usize, cx: &mut Context<'_>, chunk: Chunk<'_>) {
        *bytes += chunk.bytes.len();
        if chunk.ends {
            _ = cx.send_text(&std::mem::take(bytes).to_string());
        }
    }
}

/// Echoes each message.
#[derive(Clone)]
struct Echo;

impl Handler for Echo {
    type Data = ();

    const STREAMED_BYTES_MIN: u64 = ECHOED_BYTES_MIN;

    fn open(&mut self, _cx: &mut Context<'_>, _opened: Opened<'_>) {}

    #[inline]
    fn message(&mut self, (): &mut (), cx: &mut Context<'_>, message: Message<'_>) {
        _ = cx.send(message);
    }

    fn chunk(&mut self, (): &mut (), cx: &mut Context<'_>, chunk: Chunk<'_>) {
        _ = cx.send_chunk(chunk.kind, chunk.bytes, chunk.ends);
    }
}

/// Sends each message to all connections.
#[derive(Clone)]
struct Fanout;

impl Handler for Fanout {
    type Data = ();

    fn open(&mut self, cx: &mut Context<'_>, _opened: Opened<'_>) {
        _ = cx.subscribe(ALL);
    }

    fn message(&mut self, (): &mut (), cx: &mut Context<'_>, message: Message<'_>) {
        cx.publish(ALL, message);
    }
}
