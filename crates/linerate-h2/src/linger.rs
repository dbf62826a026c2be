//! Requests that are answered before their bodies have arrived.

use std::{future::poll_fn, time::Duration};

use bytes::Bytes;
use h2::{Reason, RecvStream, server::SendResponse};
use linerate_http::Place;
use tokio::time::timeout;

use crate::guard::Overflows;

/// The time and the number of bytes for which an unwanted body is read on.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES_MAX: usize = 1 << 20;

/// Reads the rest of a body, so that a client that is still sending it can receive its response and
/// learns of its own errors.
///
/// h2 does not check the window of a stream that has been answered. If the client opens that window
/// too far, the stream is reset here and counts as one that the client has reset.
pub(crate) async fn linger(
    mut body: RecvStream,
    respond: &mut SendResponse<Bytes>,
    overflows: &Overflows,
    place: &mut Place,
) {
    let overflow = overflows.watch(respond.stream_id().into());
    let read = async {
        let mut bytes = 0;
        while bytes < LINGER_BYTES_MAX {
            let Some(Ok(data)) = poll_fn(|cx| body.poll_data(cx)).await else {
                return;
            };
            bytes += data.len();
            // This fails if the stream has ended; its window no longer matters then.
            _ = body.flow_control().release_capacity(data.len());
        }
    };
    let is_overflown = async {
        tokio::select! {
            biased;
            Ok(()) = overflow => true,
            () = read => false,
        }
    };
    // A client that takes longer has had its response all along.
    if timeout(LINGER, is_overflown).await == Ok(true) {
        // RFC 9113 §6.9.1: "the sender sends a RST_STREAM with an error code of
        // FLOW_CONTROL_ERROR".
        respond.send_reset(Reason::FLOW_CONTROL_ERROR);
        place.note_reset();
    }
}
