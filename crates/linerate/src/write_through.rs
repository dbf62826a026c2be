//! Stream wrappers that inspect only what is read.

/// Implements `AsyncWrite` for a wrapper by forwarding to its field `io`. The optional second
/// argument names a field and its method to call with the number of bytes written.
macro_rules! write_through {
    ($wrapper:ident $(, $field:ident . $note:ident)?) => {
        impl<T: tokio::io::AsyncWrite + Unpin> tokio::io::AsyncWrite for $wrapper<T> {
            fn poll_write(
                mut self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                bytes: &[u8],
            ) -> std::task::Poll<std::io::Result<usize>> {
                let written = std::pin::Pin::new(&mut self.io).poll_write(cx, bytes);
                let written = std::task::ready!(written)?;
                $(self.$field.$note(written);)?
                std::task::Poll::Ready(Ok(written))
            }

            fn poll_write_vectored(
                mut self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                slices: &[std::io::IoSlice<'_>],
            ) -> std::task::Poll<std::io::Result<usize>> {
                let written = std::pin::Pin::new(&mut self.io).poll_write_vectored(cx, slices);
                let written = std::task::ready!(written)?;
                $(self.$field.$note(written);)?
                std::task::Poll::Ready(Ok(written))
            }

            fn is_write_vectored(&self) -> bool {
                self.io.is_write_vectored()
            }

            fn poll_flush(
                mut self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                std::pin::Pin::new(&mut self.io).poll_flush(cx)
            }

            fn poll_shutdown(
                mut self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                std::pin::Pin::new(&mut self.io).poll_shutdown(cx)
            }
        }
    };
}

pub(crate) use write_through;
