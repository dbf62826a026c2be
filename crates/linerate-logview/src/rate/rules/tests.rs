//! The rules, read by the programs that they are for.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use linerate_testkit::server::find;

use super::{AGENT_BYTES_MAX, Agent, RuleSet, rules};
use crate::query::{RateKey, RateLimit, RuleFormat};

const FORMATS: [RuleFormat; 4] = [
    RuleFormat::Caddy,
    RuleFormat::Haproxy,
    RuleFormat::Nftables,
    RuleFormat::Nginx,
];

const KEYS: [RateKey; 4] = [
    RateKey::Address,
    RateKey::Agent,
    RateKey::Asn,
    RateKey::Network,
];

/// Agents that try to end a string, a line or a block, or to be a variable, a comment, an option,
/// a pattern or a name with a special meaning.
const HOSTILE: [&str; 14] = [
    "\"; } deny all; {",
    "' ; return 200; '",
    "` } respond 200 `",
    "x\\\" 1; include /etc/passwd; #",
    "$http_cookie ${x} {$HOME} {env.HOME} %[src] %{+Q}o",
    "# comment",
    "-f /etc/passwd",
    "--",
    "~^.*$",
    "default",
    "include",
    "\\",
    "a|b)(c[d]*+?.^$",
    "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
];

fn set(by: RateKey, limit: (u64, u32)) -> RuleSet {
    let network = |text: &str| text.parse().unwrap();
    RuleSet {
        limit: RateLimit::new(limit.0, limit.1).unwrap(),
        by,
        networks: match by {
            RateKey::Agent => Vec::new(),
            _ => vec![
                network("192.0.2.7/32"),
                network("198.51.100.0/24"),
                network("2001:db8::/48"),
                network("2001:db8:0:1::7/128"),
            ],
        },
        agents: match by {
            RateKey::Agent => {
                let long = "%".repeat(AGENT_BYTES_MAX);
                let agents = HOSTILE.into_iter().chain([&*long]);
                agents
                    .map(|it| Agent::new(it.as_bytes()).unwrap())
                    .collect()
            }
            _ => Vec::new(),
        },
        systems: match by {
            RateKey::Asn => vec![
                (network("192.0.2.0/24"), 64_496),
                (network("2001:db8::/32"), 64_500),
            ],
            _ => Vec::new(),
        },
        spared: 1,
        omitted: 2,
    }
}

/// Returns rules of all kinds, also empty ones and those of the lowest and highest limits.
fn all(format: RuleFormat) -> Vec<(RateKey, String)> {
    let mut all = Vec::new();
    for by in KEYS {
        for limit in [(60, 60), (1, 1), (1, 86_400), (10_000_000, 1), (7, 13)] {
            let mut set = set(by, limit);
            all.extend(rules(format, &set).map(|text| (by, text)));
            (set.networks, set.agents, set.systems) = Default::default();
            all.extend(rules(format, &set).map(|text| (by, text)));
        }
    }
    all
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn accept(output: &Output, text: &str) {
    let said = [&output.stdout[..], &output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success(), "{said}\n{text}");
}

#[test]
fn agents_contain_nothing_but_plain_characters_and_escapes() {
    let control = ["a\nb", "a\0", "\r", "a\x7f", "ä", ""];
    assert!(control.iter().all(|it| Agent::new(it.as_bytes()).is_none()));
    assert!(Agent::new(b"\xFF").is_none());
    let longest = "x".repeat(AGENT_BYTES_MAX);
    assert!(Agent::new(longest.as_bytes()).is_some());
    assert!(Agent::new(format!("{longest}x").as_bytes()).is_none());
    for byte in 0x20..0x7F_u8 {
        let escaped = Agent::new(&[byte]).unwrap().escaped(true);
        let is_plain = byte.is_ascii_alphanumeric() || b" /_-".contains(&byte);
        match is_plain {
            true => assert_eq!(escaped, char::from(byte).to_string()),
            false => assert_eq!(escaped, format!("\\x{byte:02x}")),
        }
    }
    assert_eq!(Agent::new(b"a b").unwrap().escaped(false), "a\\x20b");
}

#[test]
fn hostile_agents_add_neither_lines_nor_words() {
    for format in FORMATS {
        let Some(hostile) = rules(format, &set(RateKey::Agent, (60, 60))) else {
            continue;
        };
        let mut harmless = set(RateKey::Agent, (60, 60));
        for agent in &mut harmless.agents {
            *agent = Agent::new(b"x").unwrap();
        }
        let harmless = rules(format, &harmless).unwrap();
        let shape = |text: &str| {
            let special = |it: &char| !it.is_ascii_alphanumeric() && !" /_-\\".contains(*it);
            text.chars().filter(special).collect::<String>()
        };
        assert_eq!(shape(&hostile), shape(&harmless), "{hostile}");
    }
}

#[test]
fn every_program_but_nftables_has_rules_for_every_key() {
    for format in FORMATS {
        let expected = match format {
            RuleFormat::Nftables => 30,
            _ => 40,
        };
        assert_eq!(all(format).len(), expected, "{format:?}");
    }
}

#[test]
fn nginx_accepts_the_rules() {
    let Some(nginx) = find("nginx") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (_, text) in all(RuleFormat::Nginx) {
        let rules = write(folder, "rules.conf", &text);
        let lines = text.lines().filter_map(|line| line.strip_prefix("#     "));
        let lines: String = lines.map(|line| format!("    {line}\n")).collect();
        let place = folder.display();
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|name| format!("  {name}_temp_path {place}/temporary;\n"))
            .concat();
        let configuration = format!(
            "error_log stderr;\npid {place}/pid;\nevents {{}}\nhttp {{\n{temporary}  \
             access_log off;\n  include {rules};\n  server {{\n    listen unix:{place}/socket;\n\
             {lines}  }}\n}}\n"
        );
        let path = write(folder, "nginx.conf", &configuration);
        let mut command = Command::new(&nginx);
        let arguments = ["-t", "-q", "-e", "stderr", "-c", &path];
        let output = command.args(arguments).arg("-p").arg(folder).output();
        accept(&output.unwrap(), &configuration);
    }
}

#[test]
fn haproxy_accepts_the_rules() {
    let Some(haproxy) = find("haproxy") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    for (_, text) in all(RuleFormat::Haproxy) {
        let socket = folder.path().join("socket");
        let configuration = format!(
            "defaults\n    mode http\n    timeout client 1s\n    timeout server 1s\n    \
             timeout connect 1s\nfrontend web\n    bind unix@{}\n{text}",
            socket.display()
        );
        let path = write(folder.path(), "haproxy.cfg", &configuration);
        let output = Command::new(&haproxy).args(["-c", "-f", &path]).output();
        accept(&output.unwrap(), &configuration);
    }
}

#[test]
fn nftables_accepts_the_rules() {
    let Some(nft) = find("nft") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    for (_, text) in all(RuleFormat::Nftables) {
        let path = write(folder.path(), "rules.nft", &text);
        let output = Command::new(&nft).args(["-c", "-f", &path]).output();
        let output = output.unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        // Without privileges, it reports only what is wrong with the syntax.
        let is_denied = said.contains("Operation not permitted") && !said.contains("syntax error");
        if !is_denied {
            accept(&output, &text);
        }
    }
}
