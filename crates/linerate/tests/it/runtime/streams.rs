//! The adapter for streams of futures-io.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use linerate::runtime::FuturesIo;
use smol::io::{AsyncRead, AsyncWrite};
use tokio::io::AsyncReadExt;

use super::*;

/// A stream that counts vectored writes and claims to have read more than there was room for.
#[derive(Clone, Debug, Default)]
struct Odd(Arc<AtomicUsize>);

impl AsyncRead for Odd {
    fn poll_read(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        buffer.fill(0x55);
        Poll::Ready(Ok(buffer.len() + 1))
    }
}

impl AsyncWrite for Odd {
    fn poll_write(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Poll::Ready(Ok(slices.iter().map(|slice| slice.len()).sum()))
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[test]
fn streams_are_read_up_to_the_room_and_written_vectored() {
    run(async {
        let odd = Odd::default();
        let mut stream = FuturesIo::new(odd.clone());
        let mut buffer = [0; 4];
        assert_eq!(stream.read(&mut buffer).await.unwrap(), 4);
        assert_eq!(buffer, [0x55; 4]);

        let slices = [IoSlice::new(b"Spam"), IoSlice::new(b"Eggs")];
        let written = tokio::io::AsyncWriteExt::write_vectored(&mut stream, &slices).await;
        assert_eq!((written.unwrap(), odd.0.load(Ordering::Relaxed)), (8, 1));
        let inner = stream.into_inner();
        assert_eq!(inner.0.load(Ordering::Relaxed), 1);
    });
}
