//! Tests of `linerate logs`.

use std::{
    fs::OpenOptions,
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Output, Stdio},
};

use serde_json::{Value, json};

use crate::support::{linerate, made_log, run_with_input};

/// A separate folder for each test; removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("logs-{test}"));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn write(&self, name: &str, content: &[u8]) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // If this fails, the folder remains among the build files, which is harmless.
        _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs `linerate logs` and writes `input` to it.
fn logs(arguments: &[&str], input: &[u8]) -> Output {
    run_with_input(linerate(&["logs"]).args(arguments), input)
}

fn figures(arguments: &[&str], input: &[u8]) -> Value {
    let output = logs(arguments, input);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        output.stderr.is_empty(),
        "no progress bar where there is no terminal"
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

fn error(arguments: &[&str], input: &[u8]) -> String {
    let output = logs(arguments, input);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn compressed_file_that_ends_early_is_shown_up_to_there_and_the_command_fails() {
    let folder = Folder::new("truncated");
    let (log, _) = made_log(9_000);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(log.as_bytes()).unwrap();
    let whole = encoder.finish().unwrap();
    let file = folder.write("cut.log.gz", &whole[..whole.len() / 2]);
    let output = logs(&[&file], b"");
    assert_eq!(output.status.code(), Some(1));
    let (text, errors) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    );
    let place = format!(
        "cut.log.gz ends early, after {} bytes; ",
        grouped(whole.len() / 2)
    );
    assert!(
        text.contains(&place) && errors.contains(&place),
        "{text}{errors}"
    );
    // The made log has one line that is not a request; the line that was cut is not counted.
    assert!(text.contains("\ndid not parse 1\n"), "{text}");

    let output = logs(&[&file, "--json"], b"");
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    let lines = summary["damaged"][0]["lines"].as_u64().unwrap();
    assert_eq!(summary["requests"], lines - 1);
    assert!((1_000..9_000).contains(&lines), "{lines}");
}

/// Formats a number below a million with a comma.
fn grouped(number: usize) -> String {
    match number {
        0..1_000 => number.to_string(),
        _ => format!("{},{:03}", number / 1_000, number % 1_000),
    }
}

#[test]
fn json_holds_the_figures_of_all_files_as_one_log() {
    let folder = Folder::new("json");
    let (log, bytes_sent) = made_log(9_000);
    // The first file ends without a line feed.
    let middle = log[..log.len() / 2].rfind('\n').unwrap();
    let first = folder.write("first.log", &log.as_bytes()[..middle]);
    let second = folder.write("second.log", &log.as_bytes()[middle + 1..]);
    for figures in [
        figures(&[&first, &second, "--json"], b""),
        figures(&[&first, "-", "--json"], &log.as_bytes()[middle + 1..]),
        figures(&["--json", "-"], log.as_bytes()),
    ] {
        assert_eq!(
            (&figures["requests"], &figures["unparsed"]),
            (&9_000.into(), &1.into())
        );
        assert_eq!(figures["bytes_sent"], bytes_sent);
        assert_eq!(figures["unique_addresses"], 64);
        assert_eq!(figures["statuses"], json!({"200": 8_000, "404": 1_000}));
        let paths: Vec<_> = (0..8)
            .map(|path| json!([format!("/page/{path}"), 1_125]))
            .collect();
        assert_eq!(figures["top_paths"], Value::from(paths));
    }
}

#[test]
fn the_real_log_has_the_known_figures() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let Ok(packed) = std::fs::read(data.join("nginx-access-rhit.log.gz")) else {
        return linerate_testkit::skip("the real log is not there");
    };
    let mut log = Vec::new();
    flate2::read::GzDecoder::new(&packed[..])
        .read_to_end(&mut log)
        .unwrap();
    let figures = figures(&["-", "--json"], &log);
    assert_eq!(
        (&figures["requests"], &figures["unparsed"]),
        (&33_468.into(), &1.into())
    );
    assert_eq!(figures["bytes_sent"], 404_908_179);
    assert_eq!(figures["unique_addresses"], 1_085);
}

#[test]
fn the_report_is_for_people() {
    let (log, _) = made_log(9_000);
    let output = logs(&["-"], log.as_bytes());
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("requests      9,000\n"), "{text}");
    assert!(text.contains("/page/7\n") && text.contains('█'), "{text}");
    for heading in [
        "Statuses: 2",
        "Addresses: 64",
        "Agents:",
        "Addresses by errors",
    ] {
        assert!(text.contains(heading), "{heading} is missing in {text}");
    }
    assert!(
        text.contains("line 1: host newsyslog[1]: logfile turned over\n"),
        "{text}"
    );
}

#[test]
fn what_can_not_be_read_is_named() {
    let missing = error(&["/nowhere/access.log"], b"");
    assert!(
        missing.contains("cannot open /nowhere/access.log"),
        "{missing}"
    );
    assert!(missing.contains("No such file"), "{missing}");
    let folder = Folder::new("unreadable");
    let directory = folder.0.to_str().unwrap();
    assert!(error(&[directory], b"").contains(&format!("cannot read {directory}")));
}

#[test]
fn what_is_no_access_log_is_an_error() {
    let message = error(&["-", "--json"], &b"dear diary\n".repeat(100));
    assert!(
        message.contains("no requests in standard input"),
        "{message}"
    );
    assert!(message.contains("none of 100 lines"), "{message}");
    assert!(message.contains("100 bad timestamp"), "{message}");
}

#[test]
fn files_that_can_not_be_decompressed_are_named() {
    let message = error(&["-"], b"\x1F\x8B\x08\0");
    assert!(message.contains("cannot read standard input"), "{message}");
    assert!(
        message.contains("the compressed file ends early"),
        "{message}"
    );
    let message = error(&["-"], b"\xFD7zXZ\0\0");
    assert!(message.contains("compressed with xz"), "{message}");
}

#[test]
fn compressed_files_and_patterns_are_one_log_with_others() {
    let folder = Folder::new("compressed");
    let (log, bytes_sent) = made_log(900);
    let middle = log[..log.len() / 2].rfind('\n').unwrap() + 1;
    let (first, second) = log.as_bytes().split_at(middle);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(first).unwrap();
    folder.write("access.log.2.gz", &gzip.finish().unwrap());
    folder.write("access.log.1", second);
    let pattern = folder.0.join("access.log.*");
    let figures = figures(&[pattern.to_str().unwrap(), "--json"], b"");
    assert_eq!(figures["requests"], 900);
    assert_eq!(figures["bytes_sent"], bytes_sent);
}

#[test]
fn formats_are_detected_or_given() {
    let json = r#"{"ts":1611280025,"status":404,"request":{"method":"GET","uri":"/a?b"}}"#;
    let seen = figures(&["-", "--json"], json.as_bytes());
    assert_eq!(
        (&seen["format"], &seen["top_paths"]),
        (&json!("json"), &json!([["/a", 1]]))
    );

    let line = "1611280025.1 GET /a?b 200";
    let format = "log_format mine '$msec $request_method $request_uri $status';";
    let seen = figures(&["-", "--json", "--format", format], line.as_bytes());
    assert_eq!(
        (&seen["format"], &seen["top_paths"]),
        (&json!("mine"), &json!([["/a", 1]]))
    );
    assert!(error(&["-"], line.as_bytes()).contains("--format"));

    let output = logs(&["-", "--format", "$msec $status$host"], b"");
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(
        message.contains("there is no text between $status and $host"),
        "{message}"
    );
}

#[test]
fn filters_choose_requests() {
    let (log, _) = made_log(900);
    let requests = |filters: &[&str]| {
        let arguments = [&["-", "--json"], filters].concat();
        let figures = figures(&arguments, log.as_bytes());
        figures["requests"].as_u64().unwrap()
    };
    let chosen = |filter: &str| requests(&["--filter", filter]);
    assert_eq!(chosen(r#"path.startsWith("/page/")"#), 900);
    assert_eq!(chosen("status >= 400 && status < 500"), 100);
    assert_eq!(chosen(r#"status != 404 && status_class != "5xx""#), 800);
    let one = chosen(r#"path == "/page/3""#);
    assert!((1..900).contains(&one));
    assert_eq!(
        chosen(r#"path in ["/page/3", "/page/4"]"#),
        one + chosen(r#"path == "/page/4""#)
    );
    assert_eq!(chosen(r#"path != "/page/3""#), 900 - one);
    assert_eq!(
        requests(&["--filter", r#"path == "/page/3""#, "--filter", "false"]),
        0
    );
    assert_eq!(requests(&["--from", "2031-01-01"]), 0);
    assert_eq!(requests(&["--until", "2031-01-01"]), 900);
    let wrong = error(&["-", "--filter", "status == \"4xx\""], b"");
    assert!(wrong.contains("column 1: status is a number"), "{wrong}");
}

#[test]
fn what_has_changed_is_answered_as_text_and_as_json() {
    let line = |minute: u64, path: &str| {
        format!(
            "192.0.2.1 - - [22/Jan/2021:02:{minute:02}:00 +0000] \"GET {path} HTTP/1.1\" 200 1\n"
        )
    };
    let usual = (0..20).map(|minute| line(minute, "/"));
    let rise = (0..50).map(|_| line(15, "/new"));
    let log: String = usual.chain(rise).collect();
    let arguments = [
        "-",
        "--what-changed",
        "2021-01-22T02:10..2021-01-22T02:20",
        "--json",
    ];
    let changes = figures(&arguments, log.as_bytes());
    assert_eq!(changes["before"]["requests"], 10);
    assert_eq!(changes["after"]["requests"], 60);
    let expected = json!([
        {"field": "path", "value": "/new", "before": 0, "after": 50, "share": 1.0},
    ]);
    assert_eq!(changes["values"], expected);
    let output = logs(&arguments[..3], log.as_bytes());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("50 requests more than at the rate before.\n"));
    assert!(text.contains("100.0 %  path      /new\n"), "{text}");
}

#[test]
fn watch_reads_standard_input_to_its_end() {
    let (log, bytes_sent) = made_log(900);
    let output = logs(&["-", "--watch", "--json"], log.as_bytes());
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&last["requests"], &last["bytes_sent"]),
        (&json!(900), &json!(bytes_sent))
    );
}

#[test]
fn watch_shows_what_a_file_grows_by() {
    let folder = Folder::new("watch");
    let (log, _) = made_log(100);
    let file = folder.write("access.log", log.as_bytes());
    let mut child = linerate(&["logs", &file, "--watch", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut requests = || -> u64 {
        let line = lines.next().unwrap().unwrap();
        serde_json::from_str::<Value>(&line).unwrap()["requests"]
            .as_u64()
            .unwrap()
    };
    assert_eq!(requests(), 100);
    let mut grown = OpenOptions::new().append(true).open(&file).unwrap();
    grown.write_all(log.as_bytes()).unwrap();
    assert_eq!(requests(), 200);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn an_empty_log_is_no_error() {
    let figures = figures(&["-", "--json"], b"");
    assert_eq!(
        (&figures["requests"], &figures["lines"]),
        (&0.into(), &0.into())
    );
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let (log, _) = made_log(100);
    let folder = Folder::new("pipe");
    let file = folder.write("access.log", log.as_bytes());
    let mut child = linerate(&["logs", &file, "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut errors = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut errors)
        .unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(errors, "");
}

/// A log with addresses in Germany, in France, and in no country.
const ABROAD: &str = "\
192.0.2.7 - - [22/Jan/2021:01:47:05 +0000] \"GET /a HTTP/1.1\" 200 5 \"-\" \"t\"
192.0.2.8 - - [22/Jan/2021:01:47:05 +0000] \"GET /b HTTP/1.1\" 200 5 \"-\" \"t\"
198.51.100.7 - - [22/Jan/2021:01:47:05 +0000] \"GET /c HTTP/1.1\" 200 5 \"-\" \"t\"
10.0.0.1 - - [22/Jan/2021:01:47:05 +0000] \"GET /d HTTP/1.1\" 200 5 \"-\" \"t\"
";

fn countries() -> &'static str {
    concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../linerate-logview/tests/data/countries.mmdb"
    )
}

#[test]
fn countries_are_shown_and_chosen_by_a_database() {
    let arguments = ["-", "--geoip", countries()];
    let output = logs(&arguments, ABROAD.as_bytes());
    let text = String::from_utf8(output.stdout).unwrap();
    let heading = "\nCountries: 2, 1 request from unknown countries\n";
    assert!(
        text.contains(heading) && text.contains("  DE Germany\n"),
        "{text}"
    );
    for (filter, requests) in [
        (r#"country == "DE""#, 2),
        (r#"country != "DE""#, 2),
        (r#"country == """#, 1),
        (r#"country in ["FR", "XX"]"#, 1),
        (r#"country == "XX""#, 0),
    ] {
        let arguments = [&arguments[..], &["--json", "--filter", filter]].concat();
        assert_eq!(figures(&arguments, ABROAD.as_bytes())["requests"], requests);
    }
    let without = figures(&["-", "--json"], ABROAD.as_bytes());
    assert!(without.get("country_names").is_none() && without["panels"].get("country").is_none());
}

#[test]
fn a_database_of_countries_that_is_none_is_named() {
    let folder = Folder::new("countries");
    let other = folder.write("other.mmdb", b"no database");
    let missing = format!("{other}.none");
    for (path, says) in [
        (&other, "not a MaxMind database"),
        (&missing, "cannot read the database"),
    ] {
        let error = error(&["-", "--geoip", path], ABROAD.as_bytes());
        assert!(
            error.contains(path.as_str()) && error.contains(says),
            "{error}"
        );
        let served = linerate(&["serve", "--listen", "127.0.0.1:0", "--geoip", path]).output();
        let served = served.unwrap();
        let error = String::from_utf8(served.stderr).unwrap();
        assert!(!served.status.success());
        assert!(
            error.contains(path.as_str()) && error.contains(says),
            "{error}"
        );
    }
    let message = error(&["-", "--filter", "country == \"DE\""], ABROAD.as_bytes());
    assert!(message.contains("--geoip FILE"), "{message}");
}

/// Returns a log whose requests do not fit into 400,000 bytes.
fn large_log() -> Vec<u8> {
    let line = |n: usize| {
        format!(
            "10.{}.0.{} - - [22/Jan/2021:01:47:05 +0000] \"GET /a/{}.js HTTP/1.1\" {} {}\n",
            n % 7,
            n % 251,
            n % 500,
            [200, 404][n % 2],
            n * 7_919 % 65_536
        )
    };
    (0..120_000).map(line).collect::<String>().into_bytes()
}

const LITTLE_MEMORY: [&str; 3] = ["-", "--json", "--columns-bytes-max=400000"];

#[test]
fn a_log_that_is_larger_than_memory_is_filtered_from_a_temporary_file() {
    let log = large_log();
    for (filter, requests) in [
        ("status == 404", 60_000),
        (
            "address == \"10.3.0.0/16\"",
            (0..120_000).filter(|n| n % 7 == 3).count(),
        ),
        (
            "path == \"/a/*7.js\" && path != \"/a/4*\"",
            120_000 / 500 * 39,
        ),
    ] {
        let arguments = [&LITTLE_MEMORY[..], &["--filter", filter]].concat();
        assert_eq!(figures(&arguments, &log)["requests"], requests, "{filter}");
    }
}

#[test]
fn too_little_disk_space_is_an_error_that_names_the_limit() {
    let folder = Folder::new("spill");
    let log = large_log();
    let filter = [&LITTLE_MEMORY[..], &["--filter", "status == 404"]].concat();
    let limit = [&filter[..], &["--spill-bytes-max=100000"]].concat();
    let message = error(&limit, &log);
    assert!(
        message.contains("the log cannot be filtered: it needs more")
            && message.contains("100000 bytes that may be used (--spill-bytes-max)"),
        "{message}"
    );
    let missing = folder.0.join("missing");
    let directory = format!("--spill-directory={}", missing.display());
    let message = error(&[&filter[..], &[&directory]].concat(), &log);
    assert!(
        message.contains("cannot use a temporary file in"),
        "{message}"
    );
}
