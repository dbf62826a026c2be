//! The library's traits for all tokio sockets: it implements them only for some.

use std::io::IoSlice;

use kit::Socket;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use wtx::{
    Error,
    stream::{StreamReader, StreamWriter},
};

/// Maximum number of slices that the library may write at a time.
const SLICES_MAX: usize = 8;

/// A socket.
pub(crate) struct Transport<S>(pub(crate) S);

impl<S: Socket> StreamReader for Transport<S> {
    async fn read(&mut self, bytes: &mut [u8]) -> wtx::Result<usize> {
        Ok(self.0.read(bytes).await?)
    }
}

impl<S: Socket> StreamWriter for Transport<S> {
    async fn write_all(&mut self, bytes: &[u8]) -> wtx::Result<()> {
        Ok(self.0.write_all(bytes).await?)
    }

    async fn write_all_vectored(&mut self, bytes: &[&[u8]]) -> wtx::Result<()> {
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        for (slice, bytes) in slices.iter_mut().zip(bytes) {
            *slice = IoSlice::new(bytes);
        }
        let mut slices = &mut slices[..bytes.len()];
        while !slices.is_empty() {
            match self.0.write_vectored(slices).await? {
                0 => return Err(Error::UnexpectedStreamWriteEOF),
                written => IoSlice::advance_slices(&mut slices, written),
            }
        }
        Ok(())
    }
}
