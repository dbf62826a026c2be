//! Programs that identify themselves in the `User-Agent` header.

use memchr::memmem;

use super::agent_names::NAME_BYTES_MAX;

/// Programs by a part of their agents, in lower case, where that part differs from their name.
///
/// A program that is not listed here but contains one of the `WORDS` goes by its own name.
const KNOWN: [(&str, &str); 44] = [
    ("adsbot-google", "AdsBot-Google"),
    ("ahrefsbot", "AhrefsBot"),
    ("amazonbot", "Amazonbot"),
    ("anthropic-ai", "Anthropic"),
    ("apache-httpclient", "Apache-HttpClient"),
    ("apis-google", "APIs-Google"),
    ("applebot", "Applebot"),
    ("archive.org_bot", "Internet Archive"),
    ("baiduspider", "Baiduspider"),
    ("bingpreview", "BingPreview"),
    ("bingbot", "Bingbot"),
    ("bytespider", "Bytespider"),
    ("ccbot", "CCBot"),
    ("censysinspect", "Censys"),
    ("chatgpt-user", "ChatGPT-User"),
    ("claudebot", "ClaudeBot"),
    ("dotbot", "DotBot"),
    ("duckduckbot", "DuckDuckBot"),
    ("expanse", "Expanse"),
    ("facebookexternalhit", "Facebook"),
    ("feedfetcher-google", "Feedfetcher-Google"),
    ("go-http-client", "Go-http-client"),
    ("googlebot", "Googlebot"),
    ("google-inspectiontool", "Google-InspectionTool"),
    ("gptbot", "GPTBot"),
    ("headlesschrome", "HeadlessChrome"),
    ("ia_archiver", "Alexa"),
    ("masscan", "masscan"),
    ("mediapartners-google", "Mediapartners-Google"),
    ("meta-externalagent", "Meta"),
    ("mj12bot", "MJ12bot"),
    ("netcraftsurvey", "Netcraft"),
    ("nmap scripting engine", "Nmap"),
    ("petalbot", "PetalBot"),
    ("pingdom", "Pingdom"),
    ("python-requests", "python-requests"),
    ("semrushbot", "SemrushBot"),
    ("slurp", "Yahoo! Slurp"),
    ("telegrambot", "TelegramBot"),
    ("twitterbot", "Twitterbot"),
    ("uptimerobot", "UptimeRobot"),
    ("whatsapp", "WhatsApp"),
    ("yandex", "Yandex"),
    ("zgrab", "zgrab"),
];

/// Words that most programs have in their names.
const WORDS: [&[u8]; 3] = [b"bot", b"crawl", b"spider"];

/// How many bytes of an agent are searched. Names of programs come early.
const AGENT_BYTES_MAX: usize = 512;

/// Returns the name of the program, or `None` if the agent does not look like a program.
///
/// ```text
/// Mozilla/5.0 (compatible; ExampleBot/2.1; +https://www.example.com/)  →  ExampleBot
/// ```
pub(crate) fn name(agent: &[u8]) -> Option<String> {
    let agent = &agent[..agent.len().min(AGENT_BYTES_MAX)];
    let lower = agent.to_ascii_lowercase();
    let known = KNOWN
        .iter()
        .find(|(part, _)| memmem::find(&lower, part.as_bytes()).is_some());
    if let Some((_, name)) = known {
        return Some((*name).to_string());
    }
    let at = WORDS
        .iter()
        .filter_map(|word| word_at(&lower, word))
        .min()?;
    let address = address_around(agent, at);
    let name = match address {
        None => word_around(agent, at),
        Some(address) => after_compatible(agent)
            .or_else(|| first_product(agent))
            .unwrap_or_else(|| leading_word(address)),
    };
    Some(String::from_utf8_lossy(name).into_owned())
}

/// Returns where a word that indicates a program begins. Skips "Cubot", a maker of phones.
fn word_at(lower: &[u8], word: &[u8]) -> Option<usize> {
    memmem::find_iter(lower, word).find(|&at| !lower[..at].ends_with(b"cu"))
}

/// Returns the word around an offset: letters, digits and `_.-`.
fn word_around(agent: &[u8], at: usize) -> &[u8] {
    let before = agent[..at].iter().rposition(|&byte| !is_part(byte));
    leading_word(&agent[before.map_or(0, |it| it + 1)..])
}

/// Returns the web address around an offset without its scheme, or `None` if there is no address.
fn address_around(agent: &[u8], at: usize) -> Option<&[u8]> {
    let ends = |byte: &u8| b" ;(),\"".contains(byte);
    let start = agent[..at].iter().rposition(ends).map_or(0, |it| it + 1);
    let len = agent[start..].iter().position(ends);
    let text = &agent[start..][..len.unwrap_or(agent.len() - start)];
    match memmem::find(text, b"://") {
        Some(scheme) => Some(&text[scheme + 3..]),
        None => text.starts_with(b"www.").then_some(text),
    }
}

/// Returns the name in `Mozilla/5.0 (compatible; name`.
fn after_compatible(agent: &[u8]) -> Option<&[u8]> {
    const MARK: &[u8] = b"compatible;";
    let rest = &agent[memmem::find(agent, MARK)? + MARK.len()..];
    Some(leading_word(rest.trim_ascii_start())).filter(|name| !name.is_empty())
}

/// Returns the first product, unless it is the `Mozilla` that all browsers begin with.
fn first_product(agent: &[u8]) -> Option<&[u8]> {
    Some(leading_word(agent)).filter(|name| !name.is_empty() && *name != b"Mozilla")
}

fn leading_word(text: &[u8]) -> &[u8] {
    let len = text.iter().position(|&byte| !is_part(byte));
    &text[..len.unwrap_or(text.len()).min(NAME_BYTES_MAX)]
}

fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_.-".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::{KNOWN, name};
    use crate::aggregate::agent_names::AgentNames;
    use crate::aggregate::dictionary::{Dictionary, FIRST};
    use crate::aggregate::ranking::Dimension;
    use crate::aggregate::tally::Tally;

    fn named(agent: &str) -> Option<String> {
        name(agent.as_bytes())
    }

    #[test]
    fn known_programs_have_their_names() {
        let google = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";
        assert_eq!(named(google).as_deref(), Some("Googlebot"));
        let slurp = "Mozilla/5.0 (compatible; Yahoo! Slurp; http://help.yahoo.com/help)";
        assert_eq!(named(slurp).as_deref(), Some("Yahoo! Slurp"));
        let yandex = "Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)";
        assert_eq!(named(yandex).as_deref(), Some("Yandex"));
        for (part, known) in KNOWN {
            assert_eq!(part, part.to_ascii_lowercase());
            assert_eq!(
                named(&format!("x {} y", part.to_uppercase())).as_deref(),
                Some(known)
            );
        }
    }

    #[test]
    fn other_programs_keep_their_own_names() {
        let agent = "Mozilla/5.0 (compatible; examplebot/2.1; +https://www.example.com/bot.html)";
        assert_eq!(named(agent).as_deref(), Some("examplebot"));
        assert_eq!(named("My-Crawler").as_deref(), Some("My-Crawler"));
        assert_eq!(named("x SPIDER_1.0 y").as_deref(), Some("SPIDER_1.0"));
        let long = format!("{}bot", "x".repeat(80));
        assert_eq!(named(&long).map(|it| it.len()), Some(64));
    }

    #[test]
    fn words_in_web_addresses_are_not_names() {
        let cases = [
            (
                "Mozilla/5.0 (compatible; Example; +http://a.example/bot)",
                "Example",
            ),
            ("Example/1.0 (+https://a.example/crawler.html)", "Example"),
            (
                "Mozilla/5.0 (compatible;+https://a.example/bot)",
                "a.example",
            ),
            ("Mozilla/5.0 (www.a.example/robots)", "www.a.example"),
            ("(http://a.example/bot) Example", "a.example"),
        ];
        for (agent, program) in cases {
            assert_eq!(named(agent).as_deref(), Some(program));
        }
    }

    #[test]
    fn agents_of_one_program_are_summed_up() {
        let mut agents = Dictionary::new(99, 9_999);
        let mut names = AgentNames::new(name);
        let mut tallies = vec![Tally::default(); FIRST as usize];
        for (count, agent) in ["Googlebot/1", "Firefox", "Googlebot/2", "xbot"]
            .into_iter()
            .enumerate()
        {
            agents.code(agent.as_bytes());
            names.classify(&agents);
            let mut tally = Tally::default();
            (0..=count).for_each(|_| tally.count(200, 1));
            tallies.push(tally);
        }
        let counted = Dimension {
            dictionary: &agents,
            tallies: &tallies,
            overflow: None,
        };
        let sums: Vec<_> = names
            .tallies(counted)
            .into_iter()
            .map(|(name, tally)| (name, tally.requests))
            .collect();
        let expected = [("(other)", 0), ("Googlebot", 4), ("xbot", 4)];
        assert_eq!(
            sums,
            expected.map(|(name, count)| (name.to_string(), count))
        );
    }

    #[test]
    fn browsers_are_not_programs() {
        for agent in [
            "",
            "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
            "Mozilla/5.0 (Linux; Android 7.0; CUBOT NOTE S) AppleWebKit/537.36",
        ] {
            assert_eq!(named(agent), None);
        }
        assert_eq!(name(b"\xFF\xFEbo"), None);
        assert_eq!(named(&format!("{}bot", "x ".repeat(300))), None);
    }
}
