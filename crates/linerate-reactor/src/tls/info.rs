//! What the TLS handshake of a connection has negotiated.

use rustls::{CipherSuite, ProtocolVersion, pki_types::CertificateDer};

/// What the TLS handshake of a connection has negotiated; see
/// [`Context::tls`](crate::Context::tls).
#[derive(Clone, Copy, Debug)]
pub struct TlsInfo<'a> {
    pub(super) version: ProtocolVersion,
    pub(super) cipher_suite: CipherSuite,
    pub(super) details: Option<&'a Details>,
}

/// What is known until the connection has opened.
#[derive(Debug)]
pub(super) struct Details {
    pub(super) alpn: Option<Vec<u8>>,
    pub(super) certificates: Vec<CertificateDer<'static>>,
}

impl<'a> TlsInfo<'a> {
    /// Returns the version of the protocol.
    pub const fn version(self) -> ProtocolVersion {
        self.version
    }

    /// Returns the cipher suite.
    pub const fn cipher_suite(self) -> CipherSuite {
        self.cipher_suite
    }

    /// Returns the application protocol, which can only be `http/1.1`; `None` if none was
    /// negotiated.
    ///
    /// It is known only in [`Handler::open`](crate::Handler::open).
    pub fn alpn(self) -> Option<&'a [u8]> {
        self.details.and_then(|details| details.alpn.as_deref())
    }

    /// Returns the verified certificates of the peer, its own first. There are none if a server did
    /// not request any (`with_client_cert_verifier`).
    ///
    /// They are known only in [`Handler::open`](crate::Handler::open): an idle connection should
    /// not need memory for them. A handler can keep what it needs.
    pub fn peer_certificates(self) -> &'a [CertificateDer<'static>] {
        self.details
            .map_or(&[], |details| details.certificates.as_slice())
    }
}
