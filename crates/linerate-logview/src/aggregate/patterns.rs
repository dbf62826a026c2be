//! Patterns of paths: the parts that differ between similar paths are replaced by their kind.
//!
//! | part of a path | pattern |
//! | --- | --- |
//! | a number: `/user/123` | `/user/:id` |
//! | a UUID: `/o/8a6e0804-2bd0-4672-b79d-d97027f9071a` | `/o/:uuid` |
//! | a date: `/log/2021-01-22` | `/log/:date` |
//! | at least 8 hexadecimal digits, one of them a number: `/app.3f2a9c1b.js` | `/app.:hex.js` |

use std::borrow::Cow;

/// The fewest digits of a hexadecimal number that is not decimal: fewer may be a word.
const HEX_DIGITS_MIN: usize = 8;

/// Returns the pattern of a path; the path itself if all of its parts are fixed.
pub(super) fn pattern(path: &[u8]) -> Cow<'_, [u8]> {
    if !path.iter().any(u8::is_ascii_digit) {
        return Cow::Borrowed(path);
    }
    let mut made = Vec::with_capacity(path.len());
    for (at, segment) in path.split(|&byte| byte == b'/').enumerate() {
        if at > 0 {
            made.push(b'/');
        }
        for (at, part) in segment.split(|&byte| byte == b'.').enumerate() {
            if at > 0 {
                made.push(b'.');
            }
            made.extend_from_slice(match kind(part) {
                // The other parts of a name may be a version: /jquery-3.5.1.js.
                Some(":id") if at > 0 => part,
                Some(kind) => kind.as_bytes(),
                None => part,
            });
        }
    }
    Cow::Owned(made)
}

/// Returns what a part of a path is, or `None` if it is fixed.
fn kind(part: &[u8]) -> Option<&'static str> {
    if !part.is_empty() && part.iter().all(u8::is_ascii_digit) {
        return Some(":id");
    }
    if has_groups(part, &[4, 2, 2], u8::is_ascii_digit) {
        return Some(":date");
    }
    if has_groups(part, &[8, 4, 4, 4, 12], u8::is_ascii_hexdigit) {
        return Some(":uuid");
    }
    let is_hex = part.len() >= HEX_DIGITS_MIN
        && part.iter().all(u8::is_ascii_hexdigit)
        && part.iter().any(u8::is_ascii_digit);
    is_hex.then_some(":hex")
}

/// Returns whether a text consists of groups of these lengths, with hyphens between them, and all
/// of their characters pass the test.
fn has_groups(text: &[u8], lengths: &[usize], test: impl Fn(&u8) -> bool) -> bool {
    let groups = text.split(|&byte| byte == b'-');
    text.len() == lengths.iter().sum::<usize>() + lengths.len() - 1
        && groups.clone().map(<[u8]>::len).eq(lengths.iter().copied())
        && groups.flatten().all(test)
}

#[cfg(test)]
mod tests {
    use super::pattern;

    #[test]
    fn variable_parts_of_paths_are_replaced() {
        for (path, expected) in [
            ("/user/123", "/user/:id"),
            ("/user/456/posts/7/", "/user/:id/posts/:id/"),
            ("/item/12.html", "/item/:id.html"),
            ("/o/8a6e0804-2bd0-4672-b79d-d97027f9071a", "/o/:uuid"),
            ("/log/2021-01-22", "/log/:date"),
            ("/log/2021-01-22.txt", "/log/:date.txt"),
            ("/app.3f2a9c1b.js", "/app.:hex.js"),
            ("/commit/DEADBEE5", "/commit/:hex"),
            ("0", ":id"),
        ] {
            assert_eq!(pattern(path.as_bytes()), expected.as_bytes(), "{path}");
        }
    }

    #[test]
    fn fixed_parts_are_kept() {
        for path in [
            "",
            "/",
            "//",
            "/about",
            "/v2/users",
            "/jquery-3.5.1.js",
            "/defaced/effaced",
            "/a1b2c3d",
            "/2021-1-22",
            "/8a6e0804-2bd0-4672-b79d-d97027f9071",
            "/8a6e0804-2bd0-4672-b79d-d97027f9071g",
            "/\u{fffd}1",
            "/.-./1-",
        ] {
            assert_eq!(pattern(path.as_bytes()), path.as_bytes(), "{path}");
        }
    }

    #[test]
    fn a_pattern_is_its_own_pattern() {
        for path in ["/a/1/2021-01-22/3f2a9c1b.css", "/1.2.3", "\u{1}9/\u{ff}"] {
            let once = pattern(path.as_bytes()).into_owned();
            assert_eq!(pattern(&once), once, "{path}");
        }
    }
}
