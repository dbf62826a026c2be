//! The compressed copies that `make web` puts beside files (RFC 9110 §8.4).

use axum::http::{HeaderMap, header};

use super::elements;

/// A content coding, and the extension of files that have it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Coding {
    pub(super) name: &'static str,
    pub(super) extension: &'static str,
}

/// The codings that files may have, the smallest first.
const CODINGS: [Coding; 2] = [
    Coding {
        name: "br",
        extension: ".br",
    },
    Coding {
        name: "gzip",
        extension: ".gz",
    },
];

/// Returns the codings that a client accepts by name (RFC 9110 §12.5.3), the best first.
pub(super) fn accepted(request: &HeaderMap) -> impl Iterator<Item = Coding> {
    CODINGS
        .into_iter()
        .filter(|coding| accepts(request, coding.name))
}

fn accepts(request: &HeaderMap, name: &str) -> bool {
    elements(request, header::ACCEPT_ENCODING).any(|element| {
        let (coding, parameters) = element.split_once(';').unwrap_or((element, ""));
        coding.trim().eq_ignore_ascii_case(name) && !is_refused(parameters)
    })
}

/// Returns whether the weight of a coding is zero.
fn is_refused(parameters: &str) -> bool {
    let weight = parameters.trim().strip_prefix("q=");
    weight.and_then(|weight| weight.trim().parse::<f32>().ok()) == Some(0.0)
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderValue, header};

    use super::accepted;

    #[test]
    fn codings_are_accepted_unless_their_weight_is_zero() {
        for (list, expected) in [
            ("gzip, deflate, br, zstd", &["br", "gzip"][..]),
            ("gzip", &["gzip"]),
            ("GZIP;q=0.5 , br; q=0.001", &["br", "gzip"]),
            ("br;q=0, gzip;q=0.000", &[]),
            ("identity, x-gzip, brotli, *", &[]),
            ("", &[]),
        ] {
            let list = HeaderValue::from_static(list);
            let request = HeaderMap::from_iter([(header::ACCEPT_ENCODING, list.clone())]);
            let names: Vec<_> = accepted(&request).map(|coding| coding.name).collect();
            assert_eq!(names, expected, "{list:?}");
        }
        assert_eq!(accepted(&HeaderMap::new()).count(), 0);
    }
}
