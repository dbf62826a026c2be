//! Tests of the commands and configurations in the documentation.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Output,
};

use crate::support::{Server, linerate};

/// Returns the documentation pages for users, with their texts.
fn pages() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut paths = vec![root.join("README.md"), root.join("web/client/README.md")];
    files(&root.join("docs"), "md", &mut paths);
    let read = |path: PathBuf| (path.clone(), fs::read_to_string(path).unwrap());
    paths.into_iter().map(read).collect()
}

/// Returns the code blocks of a page that are in `language`.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let opening = format!("\n```{language}\n");
    let blocks = page.split(&opening).skip(1);
    blocks
        .map(|rest| rest.split("\n```").next().unwrap())
        .collect()
}

/// Returns the `linerate` commands in a page, from code blocks and from inline code.
fn commands(page: &str) -> Vec<Vec<String>> {
    let mut is_code = false;
    let lines = page.lines().filter_map(|line| {
        is_code ^= line.starts_with("```");
        let indented = line.strip_prefix("    ");
        let line = if is_code { Some(line) } else { indented };
        line.filter(|line| line.starts_with("linerate "))
    });
    let spans = page.split('`').filter(|span| {
        let is_one = !span.contains('\n') && !span.contains('…');
        is_one && span.starts_with("linerate ")
    });
    lines.chain(spans).map(words).collect()
}

/// Splits a command into words as a shell does, up to a comment, a pipe or a redirection.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for char in command.chars() {
        match char {
            '\'' | '"' if quote.is_none() => quote = Some(char),
            _ if quote == Some(char) => quote = None,
            ' ' if quote.is_none() => words.push(String::new()),
            _ => words.last_mut().unwrap().push(char),
        }
    }
    words.retain(|word| !word.is_empty());
    let is_part = |word: &String| !["#", ">", "|", "&"].contains(&word.as_str());
    words.into_iter().take_while(is_part).collect()
}

fn said(output: &Output) -> String {
    let text = [&*output.stdout, &*output.stderr].concat();
    String::from_utf8(text).unwrap()
}

#[test]
fn reference_of_the_configuration_is_what_the_program_prints() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/gateway/configuration.md"
    );
    let page = fs::read_to_string(path).unwrap();
    let printed = said(&linerate(&["config", "default"]).output().unwrap());
    assert!(page.ends_with(&format!("```toml\n{printed}```\n")));
}

#[test]
fn every_configuration_in_the_documentation_passes_the_check() {
    let directory = tempfile::tempdir().unwrap();
    let secret = directory.path().join("secret");
    // Also valid as the secret of a webhook.
    let text = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
    fs::write(&secret, text).unwrap();
    let url = directory.path().join("url");
    fs::write(&url, "postgres://linerate:secret@localhost/shop").unwrap();
    let path = directory.path().join("linerate.toml");
    let mut checked = 0;
    for (page, text) in pages() {
        for block in blocks(&text, "toml") {
            if block.contains("[[kafka]]") && !cfg!(feature = "kafka") {
                continue;
            }
            let named: Vec<&str> = block
                .split('"')
                .filter(|text| text.starts_with("file:"))
                .collect();
            let ours = |name: &str| match name.ends_with("-url") {
                true => format!("file:{}", url.display()),
                false => format!("file:{}", secret.display()),
            };
            let block = named.iter().fold(block.to_owned(), |block, file| {
                block.replace(file, &ours(file))
            });
            fs::write(&path, block).unwrap();
            let output = linerate(&["config", "check", path.to_str().unwrap()]).output();
            let output = output.unwrap();
            let said = said(&output);
            assert!(output.status.success(), "{}: {said}", page.display());
            checked += 1;
        }
    }
    assert!(checked >= 2, "{checked} configurations");
}

#[test]
fn every_command_in_the_documentation_is_taken() {
    let mut tried = 0;
    for (page, text) in pages() {
        for words in commands(&text) {
            // After an unknown argument, `--help` shows an error instead of the help.
            let mut command = linerate(&[]);
            let output = command.args(&words[1..]).arg("--help").output().unwrap();
            let said = said(&output);
            assert!(
                output.status.success(),
                "{}: {words:?}: {said}",
                page.display()
            );
            tried += 1;
        }
    }
    assert!(tried > 10, "{tried} commands");
    let unknown = linerate(&["serve", "--wrokers", "2", "--help"]).output();
    assert!(!unknown.unwrap().status.success());
}

/// Follows the first steps in `docs/gateway/configuration.md`, from the defaults to a server and a
/// token.
#[tokio::test]
async fn the_first_steps_of_operating_lead_to_a_server() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("linerate.toml");
    let path = path.to_str().unwrap();
    let defaults = linerate(&["config", "default"]).output().unwrap();
    fs::write(path, defaults.stdout).unwrap();
    let check = linerate(&["config", "check", path]).output().unwrap();
    assert!(
        said(&check).contains("configuration is valid"),
        "{}",
        said(&check)
    );
    let flags = ["--config", path, "--set", "channel.batch_interval_ms=200"];
    let server = Server::start_with(&flags);
    assert_eq!(server.get("/live").await.status, 200);

    let key = "[auth.token]\nhmac_secret_key = \"a secret of tests only\"\n";
    fs::write(path, key).unwrap();
    for rest in [["--expire-in", "1h"], ["--channel", "news:private"]] {
        let command = ["token", "--config", path, "--user", "ann"];
        let token = linerate(&command).args(rest).output().unwrap();
        let parts = said(&token).trim().split('.').count();
        assert!(token.status.success() && parts == 3, "{}", said(&token));
    }
}

/// Returns the names of tests that a page cites for its guarantees: those of four words or more.
fn tests_named_in(page: &str) -> Vec<&str> {
    let spans = page.split('`').skip(1).step_by(2);
    let is_name = |span: &&str| {
        let is_of_it = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
        span.bytes().all(is_of_it) && span.matches('_').count() >= 3
    };
    spans.filter(is_name).collect()
}

/// Appends all files with an extension under a directory to `found`.
fn files(directory: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, extension, found);
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
}

#[test]
fn every_test_behind_a_promise_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut sources = Vec::new();
    files(&root.join("crates"), "rs", &mut sources);
    let sources = sources.iter().map(|path| fs::read_to_string(path).unwrap());
    let code: String = sources.collect();
    // The tests that run for every broker are listed by name in this file.
    let contract = root.join("crates/linerate-broker/tests/it/contract.rs");
    let contract = fs::read_to_string(contract).unwrap();
    let is_test = |name: &str| {
        if contract.contains(&format!(": {name},\n")) {
            return true;
        }
        let place = code.find(&format!("fn {name}("));
        place.is_some_and(|at| {
            let before = code[..at].rsplit(['}', ';']).next();
            before.is_some_and(|attributes| attributes.contains("test"))
        })
    };
    let mut promises = 0;
    for page in ["docs/start/guarantees.md", "SECURITY.md"] {
        let text = fs::read_to_string(root.join(page)).unwrap();
        for line in text.lines().filter(|line| line.starts_with("| ")) {
            let tests = tests_named_in(line);
            let missing: Vec<_> = tests.iter().filter(|name| !is_test(name)).collect();
            assert!(missing.is_empty(), "{page}: {missing:?}");
            promises += usize::from(!tests.is_empty());
        }
    }
    assert!(promises > 40, "{promises} promises with a test");
}

/// Minimum versions of dependencies with fixes for vulnerabilities that concern us: unbounded
/// memory over HTTP/2 (hyper, h2), an overflow of a capacity (bytes), certificates that are
/// verified incorrectly (rustls-webpki).
const VERSIONS_MIN: [(&str, [u64; 3]); 4] = [
    ("bytes", [1, 11, 1]),
    ("h2", [0, 4, 18]),
    ("hyper", [1, 11, 0]),
    ("rustls-webpki", [0, 103, 13]),
];

#[test]
fn no_dependency_is_of_a_version_with_a_weakness_that_concerns_us() {
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
    let lock = fs::read_to_string(lock).unwrap();
    for (name, version_min) in VERSIONS_MIN {
        let opening = format!("name = \"{name}\"\nversion = \"");
        let versions: Vec<[u64; 3]> = lock
            .split(&opening)
            .skip(1)
            .map(|rest| {
                let version = rest.split('"').next().unwrap();
                let mut numbers = version.split('.').map(|number| number.parse().unwrap());
                [(); 3].map(|()| numbers.next().unwrap())
            })
            .collect();
        assert!(!versions.is_empty(), "{name} is no longer a dependency");
        for version in versions {
            assert!(version >= version_min, "{name} {version:?}");
        }
    }
}
