//! Generated logs for tests and benchmarks. The same seed gives the same log.

/// The size of a generated log's population, and its seed.
#[derive(Clone, Copy)]
pub(crate) struct Recipe {
    pub(crate) lines: u64,
    pub(crate) addresses: u64,
    pub(crate) paths: u64,
    pub(crate) seed: u64,
}

/// A generated log, with totals counted while it was made.
pub(crate) struct Generated {
    pub(crate) text: Vec<u8>,
    pub(crate) bytes_sent: u64,
}

const AGENTS: [&str; 4] = [
    "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36",
    "curl/8.5.0",
    "Mozilla/5.0 (compatible; examplebot/2.1; +https://www.example.com/bot.html)",
];
const STATUSES: [u16; 8] = [200, 200, 200, 200, 304, 301, 404, 502];
const METHODS: [&str; 4] = ["GET", "GET", "GET", "POST"];

/// Generates a log of `combined` lines, all of them requests.
///
/// Like real logs it has bursts: two of three lines have the address of the line before. Paths with
/// low numbers are more frequent.
pub(crate) fn combined(recipe: Recipe) -> Generated {
    let mut random = Random(recipe.seed);
    let mut text = Vec::new();
    let mut bytes_sent = 0;
    let mut address = String::new();
    for line in 0..recipe.lines {
        if line == 0 || random.below(3) == 0 {
            address = self::address(random.below(recipe.addresses));
        }
        let path = random.below(recipe.paths).min(random.below(recipe.paths));
        let query = if random.below(4) == 0 {
            "?page=2&sort=asc"
        } else {
            ""
        };
        let bytes = random.below(20_000);
        bytes_sent += bytes;
        let seconds = line / 4 % 86_400;
        let request = format!(
            "{address} - - [22/Jan/2021:{:02}:{:02}:{:02} +0000] \"{} /shop/items/{path}.html{query} HTTP/1.1\" {} {bytes} \"https://www.example.com/shop/\" \"{}\"\n",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60,
            random.of(&METHODS),
            random.of(&STATUSES),
            random.of(&AGENTS),
        );
        text.extend_from_slice(request.as_bytes());
    }
    Generated { text, bytes_sent }
}

/// Returns the text of address number `n`. Every fourth is an IPv6 address.
pub(crate) fn address(n: u64) -> String {
    if n.is_multiple_of(4) {
        format!(
            "2001:db8:{:x}:{:x}::{:x}",
            n >> 16 & 0xFFFF,
            n & 0xFFFF,
            n % 251
        )
    } else {
        format!("10.{}.{}.{}", n >> 16 & 0xFF, n >> 8 & 0xFF, n & 0xFF)
    }
}

/// A small random number generator: SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub(crate) fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}
