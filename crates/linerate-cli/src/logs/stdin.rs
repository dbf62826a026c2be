//! Standard input, read by a thread, so that others need not wait for it.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use anyhow::Context;

use super::source::{READ_BYTES, read_some};

/// How many pieces are read ahead.
const PIECES_AHEAD: usize = 4;

/// Data from a thread that reads standard input, because such a read may block.
#[derive(Debug)]
pub(super) struct Stdin(Receiver<io::Result<Vec<u8>>>);

impl Stdin {
    /// Starts the thread.
    ///
    /// # Errors
    /// Returns an error if the system cannot start a thread.
    pub(super) fn start() -> anyhow::Result<Self> {
        let (sender, receiver) = sync_channel(PIECES_AHEAD);
        thread::Builder::new()
            .name("stdin".into())
            .spawn(move || {
                let mut stdin = io::stdin().lock();
                let mut buffer = vec![0; READ_BYTES];
                loop {
                    let read = read_some(&mut stdin, &mut buffer);
                    let is_last = !matches!(read, Ok(1..));
                    let sent = sender.send(read.map(|len| buffer[..len].to_vec()));
                    if is_last || sent.is_err() {
                        return;
                    }
                }
            })
            .context("cannot start a thread")?;
        Ok(Self(receiver))
    }

    /// Reads into a buffer of at least [`READ_BYTES`] bytes; returns 0 at the end, and `None` if
    /// nothing arrives within `patience`.
    ///
    /// # Errors
    /// Returns an error if standard input cannot be read.
    pub(super) fn read(&self, buffer: &mut [u8], patience: Duration) -> io::Result<Option<usize>> {
        match self.0.recv_timeout(patience) {
            Ok(read) => {
                let read = read?;
                buffer[..read.len()].copy_from_slice(&read);
                Ok(Some(read.len()))
            }
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Ok(Some(0)),
        }
    }
}
