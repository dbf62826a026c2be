//! Opens many connections, several at a time, so that none waits for the round trips of another.

use std::time::{Duration, Instant};

use linerate_harness::process::raise_file_limit;
use linerate_harness::socket::Socket;
use linerate_proto::Opcode;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use super::error::system;
use super::link::Link;
use super::opening::{OpenConnection, Opening, connect};
use super::{LoadError, Target};
use crate::cell::Deflate;

/// Number of opening handshakes in progress at a time. A server's queue of connections that wait to
/// be accepted is longer than this.
const OPENING_MAX: usize = 64;

/// Number of descriptors that a load needs in addition to its connections.
const SPARE_FILES: u64 = 64;

/// Opens `connections` connections without compression, whose answers all have this opcode.
///
/// # Errors
///
/// Returns an error if a connection cannot be opened, if none makes progress for `silence_max`, or
/// if the server has already sent a message.
pub(crate) fn open_all(
    target: &Target,
    connections: u32,
    opcode: Opcode,
    silence_max: Duration,
) -> Result<Vec<Link>, LoadError> {
    let files_max = raise_file_limit().map_err(system("cannot raise the limit of open files"))?;
    check_file_limit(connections, files_max)?;
    let connections = connections as usize;
    let mut opened = Vec::with_capacity(connections);
    let mut under_way: Vec<(Socket, Opening)> = Vec::new();
    while opened.len() < connections {
        while under_way.len() < OPENING_MAX && opened.len() + under_way.len() < connections {
            let opening = Opening::new(target, Deflate::Off)?;
            under_way.push((connect(target)?, opening));
        }
        let mut is_ready = wait(&under_way, silence_max)?.into_iter();
        for (mut socket, mut opening) in std::mem::take(&mut under_way) {
            let leftover = match is_ready.next() {
                Some(true) => opening.drive(&mut socket)?,
                _ => None,
            };
            match leftover {
                Some(leftover) => opened.push(Link::new(
                    OpenConnection { socket, leftover },
                    target.wire,
                    opcode,
                )?),
                None => under_way.push((socket, opening)),
            }
        }
    }
    Ok(opened)
}

/// Waits until at least one connection can make progress. Returns for each connection whether it
/// can.
fn wait(under_way: &[(Socket, Opening)], silence_max: Duration) -> Result<Vec<bool>, LoadError> {
    let mut fds: Vec<PollFd<'_>> = under_way
        .iter()
        .map(|(socket, opening)| {
            let mut wanted = PollFlags::IN;
            if opening.wants_write(socket) {
                wanted |= PollFlags::OUT;
            }
            PollFd::new(socket, wanted)
        })
        .collect();
    let deadline = Instant::now() + silence_max;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match poll(&mut fds, Timespec::try_from(left).ok().as_ref()) {
            Ok(0) => {
                return Err(LoadError::Silent(silence_max));
            }
            Ok(_) => return Ok(fds.iter().map(|fd| !fd.revents().is_empty()).collect()),
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(system("poll failed")(errno)),
        }
    }
}

/// Checks that the process may have enough files open. A `limit` of `None` means no limit.
fn check_file_limit(connections: u32, limit: Option<u64>) -> Result<(), LoadError> {
    let files = u64::from(connections) + SPARE_FILES;
    match limit {
        Some(files_max) if files > files_max => Err(LoadError::TooManyFiles { files, files_max }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::testing::{BUDGET, IMPATIENT, serve_raw, serve_websocket};

    #[test]
    fn more_connections_are_opened_than_are_under_way_at_a_time() {
        let target = serve_websocket(|peer, _| peer.read().map(|_| ()));
        let opened = open_all(&target, 150, Opcode::Text, BUDGET.silence_max).unwrap();
        assert_eq!(opened.len(), 150);
    }

    #[test]
    fn one_handshake_that_is_not_answered_is_noticed() {
        let target = serve_raw(|_stream, _| {
            std::thread::sleep(BUDGET.silence_max);
            Ok(())
        });
        let target = Target {
            wire: crate::load::Wire::WebSocket,
            ..target
        };
        let error = open_all(&target, 1, Opcode::Text, IMPATIENT.silence_max).unwrap_err();
        assert!(matches!(error, LoadError::Silent { .. }), "{error}");
    }

    #[test]
    fn the_file_limit_has_to_hold_connections_and_what_else_is_open() {
        let files_max = 100 + SPARE_FILES;
        check_file_limit(100, Some(files_max)).unwrap();
        check_file_limit(u32::MAX, None).unwrap();
        let error = check_file_limit(101, Some(files_max)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the cell needs 165 open files, more than the hard limit of 164"
        );
    }
}
