//! Our role in a connection, chosen at run time.

use linerate_proto::{Endpoint, Header, MaskKey, Role};
use linerate_simd::mask;

/// The role of a connection. Masking keys come from the thread's generator (ChaCha, seeded by the
/// kernel, generated in blocks), so that a connection does not need a generator of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RuntimeRole(pub(crate) Role);

impl Endpoint for RuntimeRole {
    #[inline]
    fn role(&self) -> Role {
        self.0
    }

    #[inline]
    fn next_mask_key(&mut self) -> Option<MaskKey> {
        match self.0 {
            Role::Client => Some(mask_key()),
            Role::Server => None,
        }
    }
}

/// Returns a new key. Not inlined, to keep the server's code short.
#[inline(never)]
fn mask_key() -> MaskKey {
    MaskKey(rand::random::<u32>().to_ne_bytes())
}

/// Appends `frames`, which are whole unmasked frames from a server, to `out`, masked as a client
/// must send them.
pub(crate) fn append_masked(mut frames: &[u8], out: &mut Vec<u8>) {
    while let Ok(Some((header, prefix_bytes))) = Header::decode(frames) {
        let end = prefix_bytes + header.payload_bytes as usize;
        let key = mask_key();
        let masked = Header {
            mask: Some(key),
            ..header
        };
        let mut prefix = [0; Header::BYTES_MAX];
        let bytes = masked.encode(&mut prefix);
        out.extend_from_slice(&prefix[..bytes]);
        mask::append(key.0, 0, &frames[prefix_bytes..end], out);
        frames = &frames[end..];
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, sync::Arc, time::Duration};

    use linerate_proto::{
        Engine,
        engine::{Event, MessageKind},
    };

    use super::*;

    #[test]
    fn only_clients_mask_and_never_twice_with_the_same_key() {
        assert_eq!(RuntimeRole(Role::Server).next_mask_key(), None);
        let mut client = RuntimeRole(Role::Client);
        let keys: BTreeSet<_> = (0..1_000)
            .filter_map(|_| client.next_mask_key().map(|MaskKey(key)| key))
            .collect();
        // Among a thousand keys, two are equal once in 8,000 runs; twenty never are.
        assert!(keys.len() > 980, "{}", keys.len());
    }

    #[test]
    fn masked_frames_say_the_same() {
        let mut server = Engine::new(RuntimeRole(Role::Server), Arc::default(), Duration::ZERO);
        let payloads = [vec![], vec![1; 5], vec![2; 126], vec![3; 70_000]];
        let mut frames = Vec::new();
        for payload in &payloads {
            server
                .send(&mut frames, MessageKind::Binary, payload)
                .unwrap();
        }
        let mut masked = Vec::new();
        append_masked(&frames, &mut masked);
        assert_eq!(masked.len(), frames.len() + 4 * payloads.len());
        let mut events = server.handle_input(&mut masked, Duration::ZERO);
        for payload in &payloads {
            // The limit on a frame's payload is larger than any of these.
            assert_eq!(events.next(), Some(Ok(Event::Binary(payload))));
        }
        assert_eq!(events.next(), None);
    }
}
