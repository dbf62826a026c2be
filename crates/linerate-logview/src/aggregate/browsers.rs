//! Browsers and operating systems, as their `User-Agent` headers name them.

use woothee::parser::Parser;

use super::agent_names::NAME_BYTES_MAX;
use super::bots;

/// How many bytes of an agent are examined; those of browsers are shorter.
const AGENT_BYTES_MAX: usize = 512;
/// The kinds of devices that people browse with; the others are programs.
const DEVICES: [&str; 4] = ["appliance", "mobilephone", "pc", "smartphone"];
/// What the library calls a value that it does not know.
const UNKNOWN: &str = "UNKNOWN";

/// Returns the name of the browser, or `None` for programs and for agents that are unknown.
///
/// ```text
/// Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:84.0) Gecko/20100101 Firefox/84.0  →  Firefox
/// ```
pub(super) fn browser(agent: &[u8]) -> Option<String> {
    names(agent).0
}

/// Returns the name of the operating system of a browser, in the same way.
pub(super) fn system(agent: &[u8]) -> Option<String> {
    names(agent).1
}

/// Returns the names of the browser and of its operating system.
pub(super) fn names(agent: &[u8]) -> (Option<String>, Option<String>) {
    if bots::name(agent).is_some() {
        return (None, None);
    }
    let agent = String::from_utf8_lossy(&agent[..agent.len().min(AGENT_BYTES_MAX)]);
    let result = Parser::new().parse(&agent);
    match result.filter(|result| DEVICES.contains(&result.category)) {
        Some(result) => (known(result.name), known(result.os)),
        None => (None, None),
    }
}

fn known(name: &str) -> Option<String> {
    let name = &name[..name.floor_char_boundary(NAME_BYTES_MAX)];
    (!name.is_empty() && name != UNKNOWN).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{browser, names, system};

    #[test]
    fn browsers_and_their_systems_are_named() {
        let cases = [
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:84.0) Gecko/20100101 Firefox/84.0",
                ("Firefox", "Windows 10"),
            ),
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) \
                 Chrome/87.0.4280.141 Safari/537.36",
                ("Chrome", "Windows 10"),
            ),
            (
                "Mozilla/5.0 (Linux; Android 10; SM-G960F) AppleWebKit/537.36 (KHTML, like Gecko) \
                 Chrome/87.0.4280.141 Mobile Safari/537.36",
                ("Chrome", "Android"),
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 14_3 like Mac OS X) AppleWebKit/605.1.15 \
                 (KHTML, like Gecko) Version/14.0.2 Mobile/15E148 Safari/604.1",
                ("Safari", "iPhone"),
            ),
        ];
        for (agent, (browser, system)) in cases {
            let expected = (Some(browser.to_owned()), Some(system.to_owned()));
            assert_eq!(names(agent.as_bytes()), expected, "{agent}");
        }
    }

    #[test]
    fn programs_and_unknown_agents_have_neither() {
        for agent in [
            "",
            "-",
            "curl/8.5",
            "python-requests/2.21.0",
            "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
            "Mozilla/5.0 (Linux; Android 6.0.1) Chrome/87.0 Mobile Safari/537.36 (compatible; xbot/1)",
            "\u{202e}x",
        ] {
            assert_eq!(names(agent.as_bytes()), (None, None), "{agent}");
        }
        assert_eq!(browser(b"\xFF\xFE(Windows NT"), None);
        assert_eq!(system(&[b'('; 10_000]), None);
    }
}
