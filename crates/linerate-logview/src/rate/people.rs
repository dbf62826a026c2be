//! Which clients look like people with a browser, judged by their requests alone.
//!
//! This cannot be known from a log. The rule errs on the side of people: a program that behaves
//! exactly like a browser counts as people, but an application that fetches only data does not.

/// What a path is, judged by its extension.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    /// What a page consists of: styles, scripts, images, fonts and media.
    Asset,
    /// A path without an extension, or with that of a page.
    Page,
    /// Anything else, such as data and downloads.
    Other,
}

const ASSETS: [&[u8]; 24] = [
    b"avif",
    b"bmp",
    b"css",
    b"eot",
    b"gif",
    b"ico",
    b"jpeg",
    b"jpg",
    b"js",
    b"map",
    b"mjs",
    b"mp3",
    b"mp4",
    b"ogg",
    b"otf",
    b"png",
    b"svg",
    b"ttf",
    b"wasm",
    b"webm",
    b"webmanifest",
    b"webp",
    b"woff",
    b"woff2",
];

const PAGES: [&[u8]; 9] = [
    b"asp", b"aspx", b"cgi", b"do", b"htm", b"html", b"jsp", b"php", b"xhtml",
];

/// The requests of a client, by what they tell about it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Behaviour {
    pub(crate) requests: u64,
    /// Those with a status of 400 to 599.
    pub(crate) errors: u64,
    /// Those whose agent is not a browser.
    pub(crate) programs: u64,
    /// Pages that were fetched successfully, now or before (304).
    pub(crate) pages: u64,
    /// Assets, likewise.
    pub(crate) assets: u64,
}

impl Behaviour {
    /// Counts a request.
    #[inline]
    pub(crate) fn count(&mut self, status: u16, kind: Kind, is_program: bool) {
        self.requests += 1;
        self.errors += u64::from((400..600).contains(&status));
        self.programs += u64::from(is_program);
        if (200..300).contains(&status) || status == 304 {
            self.pages += u64::from(kind == Kind::Page);
            self.assets += u64::from(kind == Kind::Asset);
        }
    }

    /// Returns whether the client looks like people: see
    /// [`RateLimited::looks_like_people`](crate::summary::RateLimited::looks_like_people).
    pub(crate) fn looks_like_people(&self) -> bool {
        /// The share of failures and of programs that is still usual, as a divisor.
        const SHARE: u64 = 10;
        let is_rare = |count: u64| count <= self.requests / SHARE;
        self.pages > 0 && self.assets > 0 && is_rare(self.errors) && is_rare(self.programs)
    }
}

/// Returns what a path is.
pub(crate) fn kind(path: &[u8]) -> Kind {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let Some(dot) = name.iter().rposition(|&byte| byte == b'.') else {
        return match path.first() {
            Some(b'/') => Kind::Page,
            _ => Kind::Other,
        };
    };
    let extension = &name[dot + 1..];
    let is_one_of = |list: &[&[u8]]| list.iter().any(|it| it.eq_ignore_ascii_case(extension));
    match () {
        () if is_one_of(&ASSETS) => Kind::Asset,
        () if is_one_of(&PAGES) => Kind::Page,
        () => Kind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::{Behaviour, Kind, kind};

    #[test]
    fn paths_are_judged_by_their_extensions() {
        for (path, expected) in [
            ("/", Kind::Page),
            ("/a/b", Kind::Page),
            ("/v1.2/about", Kind::Page),
            ("/index.PHP", Kind::Page),
            ("/a.css", Kind::Asset),
            ("/a/b.min.JS", Kind::Asset),
            ("/data.json", Kind::Other),
            ("/a.", Kind::Other),
            ("", Kind::Other),
            ("*", Kind::Other),
        ] {
            assert_eq!(kind(path.as_bytes()), expected, "{path}");
        }
    }

    #[test]
    fn people_fetch_pages_and_assets_and_rarely_fail() {
        let client = |requests: &[(u16, Kind, bool)]| {
            let mut client = Behaviour::default();
            for &(status, kind, is_program) in requests {
                client.count(status, kind, is_program);
            }
            client.looks_like_people()
        };
        let page = (200, Kind::Page, false);
        let asset = (304, Kind::Asset, false);
        assert!(client(&[page, asset]));
        assert!(!client(&[page, page]) && !client(&[asset]) && !client(&[]));
        assert!(!client(&[page, (404, Kind::Asset, false)]));
        // One request in ten may fail or come from a program.
        let nine = [page, asset, asset, asset, asset, asset, asset, asset, asset];
        let with = |last| client(&[&nine[..], &[last]].concat());
        assert!(with((404, Kind::Asset, false)) && with((200, Kind::Page, true)));
        let eight = |last| client(&[&nine[..8], &[last]].concat());
        assert!(!eight((404, Kind::Page, false)) && !eight((200, Kind::Page, true)));
    }
}
