//! The streams of one connection, from the server's side.

use std::{
    future::Future,
    io,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use linerate_http::Places;
use linerate_proto::Role;
use quinn::{Connection, RecvStream, SendStream, VarInt};
use tokio::{
    sync::oneshot,
    time::{Instant, Sleep, sleep, timeout},
};

use crate::{
    fault::Code,
    incoming::Incoming,
    limits::Http3Limits,
    peer::{self, CloseOnDrop},
    settings::Settings,
};

/// How long a connection is kept after its streams have ended, so that their last bytes arrive.
const LINGER: Duration = Duration::from_secs(1);

/// Serves the streams of one connection until it ends. `start` is called for each request and must
/// not block.
///
/// Once `goodbye` is ready, no more streams are accepted, and the connection ends when the open
/// ones have ended.
///
/// # Errors
/// Returns an error if the connection is lost or is not established in time.
pub async fn serve_connection(
    connection: Connection,
    limits: &Http3Limits,
    handshake_timeout: Duration,
    goodbye: impl Future<Output = ()>,
    start: impl FnMut(Incoming),
) -> io::Result<()> {
    let closing = CloseOnDrop(connection.clone());
    let (settings, _) = oneshot::channel();
    tokio::spawn(peer::listen(
        connection.clone(),
        Role::Server,
        limits.ignored(),
        settings,
    ));
    let settings = Settings {
        is_connect_protocol_enabled: true,
        field_section_bytes_max: Some(limits.header_list_bytes_max.into()),
    };
    let control = timeout(handshake_timeout, peer::open_control(&connection, settings))
        .await
        .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    let serving = ServedConnection {
        connection,
        places: Places::new(limits.resets_max, limits.resets_per_second),
        header_list_bytes_max: limits.header_list_bytes_max,
        idle_timeout: limits.idle_timeout,
        control,
        is_leaving: false,
        next_stream: 0,
    };
    let served = serving.run(goodbye, start).await;
    drop(closing);
    served
}

struct ServedConnection {
    connection: Connection,
    places: Arc<Places>,
    header_list_bytes_max: u32,
    idle_timeout: Duration,
    control: SendStream,
    /// True if the client was told that no more streams are accepted.
    is_leaving: bool,
    /// The ID of the next stream to be accepted.
    next_stream: u64,
}

impl ServedConnection {
    async fn run(
        mut self,
        goodbye: impl Future<Output = ()>,
        mut start: impl FnMut(Incoming),
    ) -> io::Result<()> {
        let places = self.places.clone();
        let connection = self.connection.clone();
        let mut goodbye = pin!(goodbye);
        let mut deadline = pin!(sleep(self.idle_timeout));
        loop {
            tokio::select! {
                biased;
                () = places.changed() => {
                    if places.is_calm_wanted() {
                        self.connection.close(Code::EXCESSIVE_LOAD.into(), b"too many streams given up");
                        return Err(io::ErrorKind::ConnectionAborted.into());
                    }
                    self.restart_timeout(deadline.as_mut());
                }
                () = &mut goodbye, if !self.is_leaving => self.leave(deadline.as_mut()).await?,
                () = &mut deadline, if places.is_idle() => match self.is_leaving {
                    true => return Ok(()),
                    false => self.leave(deadline.as_mut()).await?,
                },
                accepted = connection.accept_bi() => match accepted {
                    Ok(stream) => self.accept(stream, &mut start),
                    // Clients close connections that they no longer need.
                    Err(quinn::ConnectionError::ApplicationClosed(_)) => return Ok(()),
                    Err(error) => return Err(error.into()),
                },
            }
        }
    }

    fn accept(
        &mut self,
        (mut send, mut recv): (SendStream, RecvStream),
        start: &mut impl FnMut(Incoming),
    ) {
        if self.is_leaving {
            // These fail if the stream has already ended.
            _ = send.reset(Code::REQUEST_REJECTED.into());
            _ = recv.stop(Code::REQUEST_REJECTED.into());
            return;
        }
        self.next_stream = VarInt::from(recv.id()).into_inner() + 4;
        start(Incoming {
            connection: self.connection.clone(),
            send,
            recv,
            place: self.places.take(),
            header_list_bytes_max: self.header_list_bytes_max,
        });
    }

    /// Restarts the idle timeout of the connection, because a stream has ended.
    fn restart_timeout(&self, deadline: Pin<&mut Sleep>) {
        let time = match self.is_leaving {
            true => LINGER,
            false => self.idle_timeout,
        };
        deadline.reset(Instant::now() + time);
    }

    /// Tells the client to open no more streams.
    async fn leave(&mut self, deadline: Pin<&mut Sleep>) -> io::Result<()> {
        self.is_leaving = true;
        let sent = peer::send_goaway(&mut self.control, self.next_stream);
        // A client that blocks the control stream learns it when the connection is closed.
        timeout(LINGER, sent).await.unwrap_or(Ok(()))?;
        self.restart_timeout(deadline);
        Ok(())
    }
}
