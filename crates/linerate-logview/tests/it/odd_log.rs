//! Logs of odd lines, many of which are not requests.

use crate::generator::{Random, Recipe, address};

const USERS: [&[u8]; 7] = [
    b" - - ",
    b" - - ",
    b" - John Doe ",
    b" - [01/Jan/1999:00:00:00 +0000] \\\" ",
    b" ",
    b" 192.0.2.9 - - ",
    b"\0 - - ",
];
const ZONES: [&str; 6] = [" +0000", " +0000", " +0545", " -1100", " 0000", " +00"];
const STATUSES: [&str; 8] = ["000", "101", "200", "304", "404", "999", "20", "2000"];
const REQUESTS: [&[u8]; 8] = [
    b"",
    b"-",
    b"\\x16\\x03\\x01 ",
    b"\x16\x03\0\xEE",
    b"POST /a b?c HTTP/1.0",
    b"PROPFIND /\\\"\\x22\xFF HTTP/2",
    b"GET /old",
    b"CONNECT a.example:443 HTTP/1.1",
];
const ENDS: [&[u8]; 11] = [
    b"5\n",
    b"-\r\n",
    b"17 \"-\" \"curl\"\n",
    b"0 \"\\\"\" \"\\\\\" 0.005\n\n",
    b"1 0.005\n\r\n",
    b"2 \"-\" \"cut\n",
    b"2 \"-\"\n",
    b"2x\n",
    b"99999999999999999999\n",
    b"\n\0\n",
    b"3 \"\xFF\xFE\" \"\"\n \n",
];

/// Assembles random lines from ordinary and odd parts. The same seed gives the same log.
pub(crate) fn odd(recipe: Recipe) -> Vec<u8> {
    let mut random = Random(recipe.seed);
    let mut log = Vec::new();
    for line in 0..recipe.lines {
        let address = address(random.below(recipe.addresses));
        let path = random.below(recipe.paths);
        let second = line % 60;
        let stamp = format!(
            "22/Jan/2021:{:02}:{:02}:{second:02}",
            random.below(24),
            random.below(60)
        );
        let status = random.of(&STATUSES);
        log.extend_from_slice(address.as_bytes());
        log.extend_from_slice(random.of(&USERS));
        log.extend_from_slice(format!("[{stamp}{}] \"", random.of(&ZONES)).as_bytes());
        log.extend_from_slice(random.of(&REQUESTS));
        if random.below(2) == 0 {
            log.truncate(log.len() - random.below(3) as usize);
            log.extend_from_slice(format!("GET /{path}?{line} HTTP/1.1").as_bytes());
        }
        log.extend_from_slice(format!("\" {status} ").as_bytes());
        log.extend_from_slice(random.of(&ENDS));
    }
    log
}
