//! What the documentation tells people to type and to configure.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Output,
};

use crate::support::{Server, linerate};

/// Returns the pages for users, with their texts.
fn pages() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = fs::read_dir(root.join("docs")).unwrap();
    let docs = docs.map(|entry| entry.unwrap().path());
    let docs = docs.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let others = ["README.md", "web/client/README.md"].map(|page| root.join(page));
    docs.chain(others)
        .map(|path| (path.clone(), fs::read_to_string(path).unwrap()))
        .collect()
}

/// Returns the blocks of code in a page that are in `language`.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let opening = format!("\n```{language}\n");
    let blocks = page.split(&opening).skip(1);
    blocks
        .map(|rest| rest.split("\n```").next().unwrap())
        .collect()
}

/// Returns the commands of ours in a page: lines of its code, and those within a sentence.
fn commands(page: &str) -> Vec<Vec<&str>> {
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
    let words = |command| {
        let words = str::split_whitespace(command);
        words
            .take_while(|word| !["#", ">", "|", "&"].contains(word))
            .collect()
    };
    lines.chain(spans).map(words).collect()
}

fn said(output: &Output) -> String {
    let text = [&*output.stdout, &*output.stderr].concat();
    String::from_utf8(text).unwrap()
}

#[test]
fn every_configuration_in_the_documentation_passes_the_check() {
    let directory = tempfile::tempdir().unwrap();
    let secret = directory.path().join("secret");
    fs::write(&secret, "a secret of tests only").unwrap();
    let path = directory.path().join("linerate.toml");
    let mut checked = 0;
    for (page, text) in pages() {
        for block in blocks(&text, "toml") {
            let named: Vec<&str> = block
                .split('"')
                .filter(|text| text.starts_with("file:"))
                .collect();
            let ours = format!("file:{}", secret.display());
            let block = named
                .iter()
                .fold(block.to_owned(), |block, file| block.replace(file, &ours));
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
            // Behind what it does not know, no help is given.
            let output = linerate(&words[1..]).arg("--help").output().unwrap();
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

/// From the defaults to a server and a token, as `docs/OPERATIONS.md` has it.
#[tokio::test]
async fn the_first_steps_of_operating_lead_to_a_server() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("linerate.toml");
    let path = path.to_str().unwrap();
    let defaults = linerate(&["config", "default"]).output().unwrap();
    fs::write(path, defaults.stdout).unwrap();
    let check = linerate(&["config", "check", path]).output().unwrap();
    assert!(said(&check).contains("all is well"), "{}", said(&check));
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
