//! Tests of `linerate bench`.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Output,
};

use serde_json::Value;

use crate::support::{Server, linerate};

/// A folder with contenders and a scenario of two small cells; removed on drop.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        fs::create_dir(folder.path("scenarios")).unwrap();
        let scenario = "title = 'Small'\nabout = 'For tests.'\nquick = ['8B-2c-1w', '8B-2c-2w']\n\
            [[cells]]\nkind = 'echo'\nconnections = 2\nwindow = [1, 2, 3]\npayload-bytes = 8\n";
        fs::write(folder.path("scenarios/small.toml"), scenario).unwrap();
        fs::create_dir(folder.path("contenders")).unwrap();
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Adds a contender whose server is a shell script; `$2` is the port, `$4` the number of
    /// threads.
    fn add_contender(&self, name: &str, script: &str) {
        let folder = self.path("contenders").join(name);
        fs::create_dir(&folder).unwrap();
        let manifest =
            format!("title = '{name}'\nlanguage = 'Shell'\nversion = '1'\nnotes = 'A test.'\n");
        fs::write(folder.join("contender.toml"), manifest).unwrap();
        let server = folder.join("server");
        fs::write(&server, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(server, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Adds a contender whose server is `linerate echo`.
    fn add_echo(&self, name: &str) {
        let linerate = env!("CARGO_BIN_EXE_linerate");
        self.add_contender(
            name,
            &format!("exec {linerate} echo --listen 127.0.0.1:$2 --workers $4"),
        );
    }

    /// Runs `linerate bench` in this folder, with its contenders and scenarios.
    fn bench(&self, arguments: &[&str]) -> Output {
        let places = [
            "--contenders-dir",
            "contenders",
            "--scenarios-dir",
            "scenarios",
        ];
        self.bench_with(&[arguments, &places].concat())
    }

    /// Runs `linerate bench` in this folder.
    fn bench_with(&self, arguments: &[&str]) -> Output {
        linerate(&["bench"])
            .args(arguments)
            .current_dir(self.0.path())
            .output()
            .unwrap()
    }
}

/// As short as possible, because the figures do not matter.
const SHORT: [&str; 4] = ["--measured-ms", "20", "--rounds", "2"];

fn succeeds(output: Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn fails(output: Output) -> String {
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

/// Returns the lines of one kind in a record.
fn lines(record: &Path, kind: &str) -> Vec<Value> {
    let text = fs::read_to_string(record).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.filter(|line: &Value| line["line"] == kind).collect()
}

/// Returns cell, contender and outcome of each measurement, sorted.
fn outcomes(record: &Path) -> Vec<[String; 3]> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let measurements = lines(record, "measurement");
    let mut outcomes: Vec<[String; 3]> = measurements
        .iter()
        .map(|line| ["cell", "contender", "outcome"].map(|field| text(&line[field])))
        .collect();
    outcomes.sort();
    outcomes
}

#[test]
fn a_right_server_is_measured_and_wrong_ones_are_reported() {
    let folder = Folder::new();
    folder.add_echo("right");
    folder.add_contender("crashing", "echo 'no such port' >&2; exit 3");
    // This one accepts connections, but does not answer the handshake with status 101.
    folder.add_contender(
        "wrong",
        "exec python3 -u -c '
import socket, sys
listener = socket.create_server((\"127.0.0.1\", int(sys.argv[2])))
while True:
    connection, _ = listener.accept()
    connection.sendall(b\"HTTP/1.1 200 OK\\r\\n\\r\\n\")
    connection.close()
' \"$@\"",
    );
    let record = folder.path("out/record.jsonl");
    let table = succeeds(folder.bench(&[&SHORT[..], &["--record", "out/record.jsonl"]].concat()));
    assert!(
        table.contains("right") && table.contains("out/record.html"),
        "{table}"
    );

    let run = &lines(&record, "run")[0];
    assert_eq!(
        (&run["rounds"], &run["measured_ms"]),
        (&2.into(), &20.into())
    );
    assert!(
        run["command"]
            .as_str()
            .unwrap()
            .starts_with("linerate bench --measured-ms 20")
    );
    let cells = ["small/8B-2c-1w", "small/8B-2c-2w"];
    assert_eq!(lines(&record, "cell").len(), cells.len());
    let mut expected = Vec::new();
    for cell in cells {
        for (contender, outcome) in [
            ("crashing", "failed"),
            ("right", "measured"),
            ("wrong", "failed"),
        ] {
            let line = [cell, contender, outcome].map(String::from);
            expected.extend([line.clone(), line]);
        }
    }
    // On a busy machine the load generator may be too slow, which is not what is tested here.
    let found = outcomes(&record)
        .into_iter()
        .map(|[cell, contender, outcome]| {
            [cell, contender, outcome.replace("load-bound", "measured")]
        });
    assert_eq!(found.collect::<Vec<_>>(), expected);
    for line in lines(&record, "measurement") {
        match line["contender"].as_str().unwrap() {
            "right" => {
                assert!(line["messages"].as_f64().unwrap() > 0.0);
                assert!(line["server"]["cpu_s"].as_f64().unwrap() > 0.0);
            }
            "crashing" => assert_eq!(
                line["reason"],
                "the server exited with status 3: no such port"
            ),
            _ => assert!(line["messages"].is_null()),
        }
    }
    let page = fs::read_to_string(folder.path("out/record.html")).unwrap();
    assert!(page.contains("right") && page.contains("no such port"));
    assert!(folder.path("out/record.md").exists());
    let again = succeeds(folder.bench_with(&["report", "out/record.jsonl", "--out", "elsewhere"]));
    assert!(again.contains("elsewhere/record.md") && folder.path("elsewhere/record.html").exists());
}

#[test]
fn a_record_that_was_cut_off_is_completed() {
    let folder = Folder::new();
    folder.add_echo("a");
    folder.add_echo("b");
    let record = folder.path("record.jsonl");
    succeeds(folder.bench(&[&SHORT[..], &["--record", "record.jsonl"]].concat()));
    let whole = fs::read_to_string(&record).unwrap();
    let measurements = lines(&record, "measurement").len();
    assert_eq!(measurements, 8);
    // This is in the middle of the third line from the end.
    let end = whole.trim_end().rmatch_indices('\n').nth(1).unwrap().0 - 9;
    fs::write(&record, &whole[..end]).unwrap();

    let resume = ["--resume", "record.jsonl", "--contenders-dir", "contenders"];
    succeeds(folder.bench_with(&resume));
    let completed = fs::read_to_string(&record).unwrap();
    let kept = whole[..end].rfind('\n').unwrap();
    assert!(completed.starts_with(&whole[..kept]));
    let keys = |lines: Vec<Value>| -> Vec<String> {
        let key =
            |line: &Value| format!("{} {} {}", line["cell"], line["contender"], line["round"]);
        let mut keys: Vec<String> = lines.iter().map(key).collect();
        keys.sort();
        keys.dedup();
        keys
    };
    assert_eq!(lines(&record, "measurement").len(), measurements);
    assert_eq!(keys(lines(&record, "measurement")).len(), measurements);

    let same = succeeds(folder.bench_with(&["compare", "record.jsonl", "record.jsonl", "--json"]));
    let same: Value = serde_json::from_str(&same).unwrap();
    assert_eq!(
        (&same["totals"]["better"], &same["totals"]["worse"]),
        (&0.into(), &0.into())
    );

    let moved = completed.replacen("\"cpu\":\"", "\"cpu\":\"Another ", 1);
    fs::write(&record, moved).unwrap();
    let error = fails(folder.bench_with(&resume));
    assert!(error.contains("processor: was \"Another "), "{error}");
}

#[test]
fn a_server_that_runs_already_is_measured() {
    let server = Server::start_verb("echo", &[]);
    let (url, pid) = (server.url("/"), server.child.id().to_string());
    let folder = Folder::new();
    let run = |record: &str, more: &[&str]| {
        let fixed = [
            "--url",
            &url,
            "--scenarios-dir",
            "scenarios",
            "--record",
            record,
        ];
        let output = folder.bench_with(&[&SHORT[..], &fixed, more].concat());
        (succeeds(output), lines(&folder.path(record), "measurement"))
    };
    let (table, measurements) = run("blind.jsonl", &[]);
    assert!(
        table.contains("messages/s") && table.contains("small/8B-2c-2w"),
        "{table}"
    );
    assert_eq!(measurements.len(), 4);
    for measurement in measurements {
        assert!(measurement["messages"].as_f64().unwrap() > 0.0);
        assert!(measurement["server"].is_null());
    }
    let (_, measurements) = run("seeing.jsonl", &["--pid", &pid]);
    assert_eq!(measurements.len(), 4);
    for measurement in measurements {
        assert!(
            measurement["server"]["resident_bytes_peak"]
                .as_f64()
                .unwrap()
                > 0.0
        );
    }
}

#[test]
fn a_server_over_tls_is_measured_if_its_certificate_is_accepted() {
    let server = Server::start_verb("echo", &["--tls-self-signed"]);
    let url = format!("wss://{}/", server.address);
    let folder = Folder::new();
    let run = |record: &str, more: &[&str]| {
        let fixed = [
            "--url",
            &url,
            "--scenarios-dir",
            "scenarios",
            "--record",
            record,
        ];
        succeeds(folder.bench_with(&[&SHORT[..], &fixed, more].concat()));
        outcomes(&folder.path(record))
    };
    let trusting = run("trusting.jsonl", &["--tls-insecure"]);
    assert!(
        trusting
            .iter()
            .all(|[cell, _, outcome]| cell.ends_with("-tls") && outcome != "failed")
    );
    let refusing = run("refusing.jsonl", &[]);
    assert!(refusing.iter().all(|[_, _, outcome]| outcome == "failed"));
}

#[test]
fn the_list_has_cells_and_contenders() {
    let folder = Folder::new();
    folder.add_echo("a");
    fs::create_dir(folder.path("contenders/b")).unwrap();
    let manifest = "title = 'b'\nlanguage = 'Go'\nversion = '2'\nnotes = ''\n";
    fs::write(folder.path("contenders/b/contender.toml"), manifest).unwrap();
    let places = [
        "--contenders-dir",
        "contenders",
        "--scenarios-dir",
        "scenarios",
    ];
    let list = succeeds(folder.bench_with(&[&["list"][..], &places].concat()));
    for line in [
        "* 8B-2c-1w  8 B text, 2 connections, 1 in flight\n",
        "  8B-2c-3w  8 B text, 2 connections, 3 in flight\n",
        "  a  1  Shell  built\n",
        "  b  2  Go     absent: not built; run `make contenders`\n",
    ] {
        assert!(list.contains(line), "{line}{list}");
    }
    let bundled = succeeds(folder.bench_with(&["list"]));
    assert!(bundled.contains("pipeline: ") && !bundled.contains("Contenders"));
}

#[test]
fn what_is_asked_for_and_not_there_is_named() {
    let folder = Folder::new();
    folder.add_echo("a");
    for (arguments, message) in [
        (
            ["--contender", "c"],
            "unknown contender \"c\"; available: a",
        ),
        (
            ["--scenario", "large"],
            "unknown scenario \"large\"; available: small",
        ),
        (["--cell", "9B"], "no cell matches \"9B\""),
        (["--rounds", "0"], "0 is not in 1..=1000"),
        (
            ["--server-cores", "1023"],
            "core 1023 is not available; available cores: ",
        ),
        (["--effort", "huge"], "use quick, standard or thorough"),
    ] {
        let error = fails(folder.bench(&arguments));
        assert!(error.contains(message), "{error}");
    }
    fs::write(folder.path("mine.jsonl"), "hours of work").unwrap();
    let error = fails(folder.bench(&["--record", "mine.jsonl"]));
    assert!(error.contains("mine.jsonl already exists"), "{error}");
    let alone = fails(folder.bench_with(&[]));
    assert!(
        alone.contains("measure a running server with --url"),
        "{alone}"
    );
}
