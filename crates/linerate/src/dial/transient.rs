//! Which errors of streams another attempt may not meet again.

use std::io;

/// Returns whether a retry may succeed after an error of a stream, which is `false` if it is an
/// error of TLS that another handshake would meet again.
pub(crate) fn is_transient_io(error: &io::Error) -> bool {
    #[cfg(feature = "rustls")]
    if let Some(error) = tls_error(error) {
        return is_transient_tls(error);
    }
    error.kind() != io::ErrorKind::InvalidInput
}

/// Returns the error of TLS that an error of a stream contains.
#[cfg(feature = "rustls")]
pub(super) fn tls_error(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

#[cfg(feature = "rustls")]
fn is_transient_tls(error: &rustls::Error) -> bool {
    use rustls::AlertDescription as Alert;

    match error {
        rustls::Error::AlertReceived(alert) => matches!(
            alert,
            Alert::CloseNotify | Alert::InternalError | Alert::UserCanceled
        ),
        rustls::Error::InvalidCertificate(_)
        | rustls::Error::InvalidMessage(_)
        | rustls::Error::NoApplicationProtocol
        | rustls::Error::NoCertificatesPresented
        | rustls::Error::PeerIncompatible(_)
        | rustls::Error::UnsupportedNameType => false,
        _ => true,
    }
}
