//! An endpoint whose role is chosen at run time, so that one test serves both.

use linerate_proto::{Endpoint, MaskKey, Role};

/// The key with which a [`TestEndpoint`] masks each frame, from the examples of RFC 6455 §5.7.
pub const KEY: [u8; 4] = [0x37, 0xFA, 0x21, 0x3D];

/// An endpoint of either role. A client masks with [`KEY`].
#[derive(Clone, Copy, Debug)]
pub struct TestEndpoint(pub Role);

impl Endpoint for TestEndpoint {
    fn role(&self) -> Role {
        self.0
    }

    fn next_mask_key(&mut self) -> Option<MaskKey> {
        (self.0 == Role::Client).then_some(MaskKey(KEY))
    }
}
