//! Which names of files are safe on all operating systems.

use crate::UploadError;

/// The longest name of common file systems, in bytes.
const NAME_BYTES_MAX: usize = 255;
/// Names that Windows reserves for devices, with any extension.
const DEVICES: [&str; 6] = ["AUX", "CON", "CONIN$", "CONOUT$", "NUL", "PRN"];

/// Checks that a name refers to a file in its folder, which is neither hidden nor a device, on
/// every operating system.
pub(crate) fn check(name: &str) -> Result<(), UploadError> {
    let reason = if name.is_empty() {
        "it is empty"
    } else if name.len() > NAME_BYTES_MAX {
        "it is longer than 255 bytes"
    } else if name.starts_with('.') {
        "it begins with a dot"
    } else if name.ends_with(['.', ' ']) || name.starts_with(' ') {
        "it begins or ends with a space, or ends with a dot"
    } else if name.contains(['/', '\\', ':', '*', '?', '"', '<', '>', '|']) {
        "it contains one of / \\ : * ? \" < > |"
    } else if name.chars().any(char::is_control) {
        "it contains a control character"
    } else if is_device(name) {
        "it is the name of a device on Windows"
    } else {
        return Ok(());
    };
    Err(UploadError::BadName { reason })
}

fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default();
    let stem = stem.trim_end().to_ascii_uppercase();
    let numbered = stem.strip_prefix("COM").or(stem.strip_prefix("LPT"));
    DEVICES.contains(&stem.as_str())
        || numbered.is_some_and(|rest| {
            let mut rest = rest.chars();
            let digit = rest.next();
            matches!(digit, Some('0'..='9' | '¹' | '²' | '³')) && rest.next().is_none()
        })
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn usual_names_are_accepted() {
        let longest = "x".repeat(255);
        for name in [
            "a",
            "access.log.1.gz",
            "Urlaub – Fotos (1).zip",
            "日本語.txt",
            "console.log",
            "COM10",
            "-rf",
            "a..b",
            &longest,
        ] {
            assert!(check(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn names_of_other_places_are_refused() {
        let too_long = "x".repeat(256);
        for name in [
            "",
            ".",
            "..",
            "../a",
            "..\\a",
            "/etc/passwd",
            "a/b",
            "a\\b",
            "C:a",
            "a\0",
            "a\nb",
            ".htaccess",
            ".partial",
            "a.",
            "a ",
            " a",
            "a?",
            "nul",
            "NUL.txt",
            "con .log",
            "COM1",
            "lpt9.tar.gz",
            "COM¹",
            &too_long,
        ] {
            assert!(check(name).is_err(), "{name:?}");
        }
    }
}
