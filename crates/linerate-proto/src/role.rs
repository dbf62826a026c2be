//! The two roles of a connection and the masking keys of clients (RFC 6455 §1.3, §5.1, §5.3).

/// Which side of the connection an endpoint is.
///
/// This enum is exhaustive: the protocol has only these two roles.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a connection has two ends")]
pub enum Role {
    /// The side that opened the connection; it masks every frame that it sends.
    Client,
    /// The side that accepted the connection; it never masks.
    Server,
}

impl Role {
    /// Returns whether the frames that this role receives must be masked (RFC 6455 §5.1).
    pub const fn expects_masked(self) -> bool {
        matches!(self, Self::Server)
    }
}

/// The key with which a client masks one frame (RFC 6455 §5.3).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "RFC 6455 §5.3: a key is four bytes"
)]
pub struct MaskKey(pub [u8; 4]);

/// A role together with the source of its masking keys.
///
/// [`Server`] and [`Client`] fix the role at compile time. Another implementation may choose the
/// role at run time, as long as the result of [`role`](Self::role) never changes.
pub trait Endpoint {
    /// Returns the role, which must be the same on every call.
    fn role(&self) -> Role;

    /// Returns the masking key for the next frame: `Some` for clients, `None` for servers.
    ///
    /// §5.3: "The masking key needs to be unpredictable; thus, the masking key MUST be derived
    /// from a strong source of entropy".
    fn next_mask_key(&mut self) -> Option<MaskKey>;
}

/// The server side of a connection.
#[derive(Clone, Copy, Debug, Default)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a unit struct is its own constructor"
)]
pub struct Server;

impl Endpoint for Server {
    #[inline]
    fn role(&self) -> Role {
        Role::Server
    }

    #[inline]
    fn next_mask_key(&mut self) -> Option<MaskKey> {
        None
    }
}

/// The client side of a connection, with the function that generates its masking keys.
#[derive(Clone, Copy, Debug)]
pub struct Client<K> {
    keys: K,
}

impl<K: FnMut() -> MaskKey> Client<K> {
    /// Creates a client that calls `keys` once per frame to get its masking key.
    ///
    /// Outside tests, `keys` must be a cryptographically strong generator (RFC 6455 §10.3).
    pub const fn new(keys: K) -> Self {
        Self { keys }
    }
}

impl<K: FnMut() -> MaskKey> Endpoint for Client<K> {
    #[inline]
    fn role(&self) -> Role {
        Role::Client
    }

    #[inline]
    fn next_mask_key(&mut self) -> Option<MaskKey> {
        Some((self.keys)())
    }
}
