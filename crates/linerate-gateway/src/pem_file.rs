//! PEM files with certificates and keys.

use std::{fs, io, path::Path};

use rustls::pki_types::{CertificateDer, pem::PemObject};

/// Maximum size of a file, in bytes.
const BYTES_MAX: u64 = 1 << 20;

/// Reads a file of limited size.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let bytes = fs::metadata(path)?.len();
    if bytes > BYTES_MAX {
        let message = format!("file has {bytes} bytes; at most {BYTES_MAX} are allowed");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    fs::read(path)
}

/// Parses certificates, of which there must be at least one.
pub(crate) fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let all = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    match all {
        Ok(all) if all.is_empty() => Err("file contains no certificate".into()),
        Ok(all) => Ok(all),
        Err(error) => Err(error.to_string()),
    }
}
