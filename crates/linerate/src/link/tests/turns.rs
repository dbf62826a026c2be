//! Input that must not keep other connections waiting.

use super::*;

/// Returns frames, of which all but the last have this opcode; the last completes a message.
fn frames(opcode: u8, count: usize) -> Vec<Frame> {
    let is_control = opcode >= 0x8;
    let mut frames = vec![Frame::new(opcode, b"x").with_fin(is_control); count];
    frames.push(match is_control {
        true => Frame::new(0x2, b"Spam"),
        false => Frame::new(0x0, b"end"),
    });
    if !is_control {
        frames[0] = Frame::new(0x2, b"x").with_fin(false);
    }
    frames
}

#[tokio::test(start_paused = true)]
async fn a_receiver_yields_among_frames_that_are_not_messages() {
    for place in PLACES {
        for (opcode, count, turns) in [(0x0, 4_096, 4), (0x9, 2_048, 8), (0xA, 2_048, 8)] {
            for is_batched in [false, true] {
                let polls = Polls::default();
                let application = {
                    let polls = polls.clone();
                    |mut ws: WebSocket| {
                        polls.count(async move {
                            let received = match is_batched {
                                true => ws.recv_batch().await.map(|batch| batch.is_some()),
                                false => ws.recv().await.map(|message| message.is_some()),
                            };
                            assert!(received.expect("the peer is honest"));
                        })
                    }
                };
                let (mut peer, running) = place.start(64 << 10, quiet(), application);
                let wire = peer.writer.wire(frames(opcode, count));
                peer.writer.send_bytes(&wire).await;
                in_time(running).await.expect("a message arrives");
                let polls = polls.so_far();
                assert!(polls >= turns, "{place:?}, {opcode:#x}: {polls} polls");
            }
        }
    }
}
