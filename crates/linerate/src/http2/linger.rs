//! Requests that are answered before their bodies have come.

use std::{future::poll_fn, time::Duration};

use h2::RecvStream;
use tokio::time::timeout;

/// How long and how far the rest of a body is read that nobody wants.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES_MAX: usize = 1 << 20;

/// Reads the rest of a body, so that a client in the middle of it is not cut off from its answer, and is
/// told what is wrong with it.
pub(crate) async fn linger(mut body: RecvStream) {
    let read = async {
        let mut bytes = 0;
        while bytes < LINGER_BYTES_MAX {
            let Some(Ok(data)) = poll_fn(|cx| body.poll_data(cx)).await else {
                return;
            };
            bytes += data.len();
            // It fails for a stream that is over, whose window nobody needs.
            _ = body.flow_control().release_capacity(data.len());
        }
    };
    // Whoever takes longer has had the answer all the while.
    _ = timeout(LINGER, read).await;
}
