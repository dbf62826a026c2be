//! Rows about a server of the library `linerate`, which decides about each request.

use std::{future::pending, time::Duration};

use anyhow::Result;
use linerate::{Incoming, Options, Server, room::Room};
use socket2::SockRef;
use tokio::{net::TcpListener, runtime::Builder, sync::oneshot, time::interval};

use crate::{
    Row,
    attack::{Abuse, bomb, undecided},
    audience,
    child::orders,
    cores,
    figures::Effort,
    outcome::{Finding, Outcome},
    reactor::{self, PATIENCE},
};

/// The first argument of a server process.
pub(crate) const SERVE: &str = "serve-by-library";

/// The default of `recv_queue_bytes_max`, `send_queue_bytes_max` and the backlog of a member.
const QUEUE_BYTES_MAX: usize = 64 << 10;

/// The size of the messages of the room, in bytes, and the time between two of them.
const MESSAGE_BYTES: usize = 16 << 10;
const MESSAGE_INTERVAL: Duration = Duration::from_millis(20);

/// The size of the kernel's send buffers in bytes, which it doubles. It is small, so that what
/// members do not read is queued by the server.
const SENT_BYTES: usize = 16 << 10;

/// The default of `message_bytes_max`.
const RECEIVED_BYTES_MAX: usize = 1 << 20;

/// How long a turn of a connection may take whose input is not messages: 255 control frames or
/// fragments, or 64 KiB that are inflated.
const TURN: Duration = Duration::from_micros(50);

/// How long others may wait for a bomb: a turn that inflates, and the buffer of a megabyte, which
/// is copied when it doubles and whose pages return to the system when the connection ends.
const BOMB: Duration = Duration::from_micros(150);

const ABUSES: [(Abuse, usize); 7] = [
    (Abuse::Bombs, 20),
    (Abuse::EmptyFragments, 4),
    (Abuse::Pings, 4),
    (Abuse::SlowReaders, 64),
    (Abuse::Stalled, 64),
    (Abuse::TinyFragments, 4),
    (Abuse::Undecided, 256),
];

pub(crate) fn rows() -> Vec<Row> {
    let rows = ABUSES.into_iter().map(|(abuse, peers)| {
        Row::new(format!("library/{}", abuse.name()), move |effort| {
            run(abuse, peers, effort)
        })
    });
    rows.collect()
}

fn run(abuse: Abuse, peers: usize, effort: &Effort) -> Result<Outcome> {
    let figures = reactor::abused(&[SERVE], abuse, peers, effort)?;
    let mut also = Vec::new();
    if abuse == Abuse::Bombs {
        also.push(Finding::all(&figures, bomb::SENT, bomb::ANSWERED));
    }
    let memory_max = memory_max(abuse, peers);
    Ok(reactor::outcome(
        figures,
        peers,
        turn(abuse),
        memory_max,
        also,
    ))
}

/// Returns how long a live client may wait for each attacker.
const fn turn(abuse: Abuse) -> Duration {
    match abuse {
        Abuse::Bombs => BOMB,
        Abuse::EmptyFragments | Abuse::Pings | Abuse::TinyFragments => TURN,
        // Their input is messages, and most of them do not send at the same time.
        _ => Duration::ZERO,
    }
}

/// Returns how many bytes of memory an abuse may cost the server, according to its options.
const fn memory_max(abuse: Abuse, peers: usize) -> usize {
    match abuse {
        // A message in a buffer that grows by doubling, and a decompressor.
        Abuse::Bombs => (16 << 20) + peers * (2 * RECEIVED_BYTES_MAX + QUEUE_BYTES_MAX),
        // Input, in a buffer that grows by doubling, and the connection.
        Abuse::Undecided => (16 << 20) + peers * (2 * QUEUE_BYTES_MAX + (16 << 10)),
        // A backlog and a send queue, each with one more message, and the connection. Members that
        // have not read the same share their messages only in part.
        Abuse::Stalled => (16 << 20) + peers * (2 * (QUEUE_BYTES_MAX + MESSAGE_BYTES) + (16 << 10)),
        _ => reactor::memory_max(abuse, peers),
    }
}

/// Prints the address of the server, and serves until standard input ends.
pub(crate) fn serve() -> Result<()> {
    cores::take_first()?;
    cores::go_first();
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        SockRef::from(&listener).set_send_buffer_size(SENT_BYTES)?;
        println!("{}", listener.local_addr()?);
        let room = Room::new();
        tokio::spawn(chatter(room.clone()));
        let handler = move |incoming| attend(incoming, room.clone());
        let mut options = Options::default();
        options.handshake_timeout = PATIENCE;
        let server = Server::new().with_options(options);
        Ok(server.serve_incoming(listener, handler, stopped()).await?)
    })
}

/// Waits until standard input ends.
async fn stopped() {
    let (ended, end) = oneshot::channel::<()>();
    std::thread::spawn(move || {
        let orders = orders();
        while orders.recv().is_ok() {}
        drop(ended);
    });
    _ = end.await;
}

/// Sends messages to the room.
async fn chatter(room: Room) {
    let mut ticks = interval(MESSAGE_INTERVAL);
    loop {
        ticks.tick().await;
        // Each message is another one, so that only members that have read the same share memory.
        room.send(vec![b'x'; MESSAGE_BYTES]);
    }
}

/// Never decides, discards each message, joins the room, or echoes, depending on the path.
async fn attend(incoming: Incoming, room: Room) -> linerate::Result<()> {
    let path = incoming.request().path().to_owned();
    if path == undecided::PATH {
        return pending().await;
    }
    let mut ws = incoming.accept().await?;
    if path == undecided::TWIN_PATH {
        while ws.recv().await?.is_some() {}
        return Ok(());
    }
    if audience::PATH.split('?').next() == Some(&path) {
        let _member = room.join(&ws)?;
        while ws.recv().await?.is_some() {}
        return Ok(());
    }
    ws.for_each(|message, replies| {
        replies.push(message);
        Ok(())
    })
    .await
}
