//! Request targets: paths, and URIs with a host (RFC 9112 §3.2).

/// The parts of a request target.
pub(super) struct TargetParts<'a> {
    pub(super) path: &'a str,
    pub(super) query: Option<&'a str>,
    /// The scheme and authority; present only in absolute-form.
    pub(super) uri: Option<TargetUri<'a>>,
}

/// The part before the path of a target in absolute-form.
pub(super) struct TargetUri<'a> {
    pub(super) authority: &'a str,
    pub(super) port_default: u16,
}

impl<'a> TargetParts<'a> {
    /// Parses origin-form, absolute-form, and `*` for OPTIONS. Rejects the authority-form of
    /// CONNECT, which is for proxies.
    pub(super) fn parse(method: &str, target: &'a str) -> Option<Self> {
        if target.starts_with('/') {
            return Self::split(target, None);
        }
        if target == "*" && method == "OPTIONS" {
            return Some(Self {
                path: target,
                query: None,
                uri: None,
            });
        }
        let (scheme, rest) = target.split_once("://")?;
        let is_either =
            |known: [&str; 2]| known.iter().any(|known| known.eq_ignore_ascii_case(scheme));
        let port_default = if is_either(["http", "ws"]) {
            80
        } else if is_either(["https", "wss"]) {
            443
        } else {
            return None;
        };
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let uri = TargetUri {
            authority,
            port_default,
        };
        Self::split(path, Some(uri))
    }

    fn split(path: &'a str, uri: Option<TargetUri<'a>>) -> Option<Self> {
        if path.bytes().any(|byte| !is_target_byte(byte)) {
            return None;
        }
        let (path, query) = match path.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (path, None),
        };
        Some(Self { path, query, uri })
    }
}

/// Returns the index of the first byte that makes `target` invalid as a path with an optional
/// query; `None` if a client may send it.
pub(super) fn invalid_target_byte(target: &str) -> Option<usize> {
    if !target.starts_with('/') {
        return Some(0);
    }
    target.bytes().position(|byte| !is_target_byte(byte))
}

/// Returns whether a byte is visible ASCII other than `#`.
///
/// RFC 6455 §3: "Fragment identifiers are meaningless in the context of WebSocket URIs and MUST NOT
/// be used on these URIs".
fn is_target_byte(byte: u8) -> bool {
    byte.is_ascii_graphic() && byte != b'#'
}
