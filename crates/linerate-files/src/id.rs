//! The identifier by which a client resumes an upload.

use std::fmt;

use uuid::Uuid;

/// The identifier of an upload: a random UUID, written as 32 hexadecimal digits.
///
/// A client that knows it can continue the upload, so it must be shown to the uploader only.
///
/// ```
/// use linerate_files::UploadId;
///
/// let id = UploadId::random();
/// assert_eq!(UploadId::parse(&id.to_string()), Some(id));
/// assert_eq!(UploadId::parse("../../etc/passwd"), None);
/// ```
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct UploadId(Uuid);

impl UploadId {
    /// Draws an identifier from the operating system's random numbers.
    pub fn random() -> Self {
        Self(Uuid::new_v4())
    }

    /// Parses the `Display` form. Returns `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let id = Self(Uuid::try_parse(text).ok()?);
        (id.to_string() == text).then_some(id)
    }
}

impl fmt::Display for UploadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.simple())
    }
}

/// Hides the identifier, because anyone who reads it in a log could continue the upload.
impl fmt::Debug for UploadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UploadId(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::UploadId;

    #[test]
    fn only_32_lower_case_digits_are_an_id() {
        let id = UploadId::parse("0123456789abcdef0123456789abcdef").unwrap();
        for other in [
            String::new(),
            "0123".to_owned(),
            "0123456789ABCDEF0123456789ABCDEF".to_owned(),
            "01234567-89ab-cdef-0123-456789abcdef".to_owned(),
            format!("{id}0"),
            format!("../{id}"),
        ] {
            assert_eq!(UploadId::parse(&other), None, "{other}");
        }
        assert!(!format!("{id:?}").contains("0123"));
    }
}
