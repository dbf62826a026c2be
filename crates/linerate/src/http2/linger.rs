//! Requests that are answered before their bodies have come.

use std::{future::poll_fn, time::Duration};

use bytes::Bytes;
use h2::{Reason, RecvStream, server::SendResponse};
use tokio::time::timeout;

use super::guard::Overflows;
use crate::places::Place;

/// How long and how far the rest of a body is read that nobody wants.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES_MAX: usize = 1 << 20;

/// Reads the rest of a body, so that a client in the middle of it is not cut off from its answer, and is
/// told what is wrong with it.
///
/// h2 does not look at the window of a stream that is answered: one that the client opens too far is reset
/// here, and counts as a stream that the client gave up.
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
            // It fails for a stream that is over, whose window nobody needs.
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
    // Whoever takes longer has had the answer all the while.
    if timeout(LINGER, is_overflown).await == Ok(true) {
        // RFC 9113 §6.9.1: "the sender sends a RST_STREAM with an error code of FLOW_CONTROL_ERROR".
        respond.send_reset(Reason::FLOW_CONTROL_ERROR);
        place.note_reset();
    }
}
