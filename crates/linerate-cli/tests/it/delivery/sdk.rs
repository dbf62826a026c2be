//! Official SDKs in separate programs, which print one line of JSON per event.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread::{self, JoinHandle},
};

use linerate_testkit::{server::find, skip};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;
use tempfile::TempDir;

use super::{
    ledger::Seen,
    subscriber::{Journal, Protocol},
};

/// A program with a client and a subscription to each of several channels. Killed when dropped.
pub(crate) struct Sdk {
    protocol: Protocol,
    child: Child,
    directory: TempDir,
    told: Arc<Mutex<Vec<String>>>,
    listener: Option<JoinHandle<()>>,
}

/// Translates the events of one subscription for the ledger.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    was_subscribed: bool,
}

impl Sdk {
    /// Starts a program that subscribes to these channels. Returns `None`, and reports the skipped
    /// test, if the program's requirements are not installed.
    ///
    /// # Panics
    /// Panics if they are not installed and `CI` is set.
    pub(crate) fn start(
        protocol: Protocol,
        endpoint: &str,
        authority: Option<&Path>,
        journals: Vec<(String, Arc<Journal>)>,
    ) -> Option<Self> {
        let [program, script] = program(protocol)?;
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new(program);
        if protocol == Protocol::Python {
            command.arg("-B");
        }
        command.arg(script).arg(endpoint);
        command.args(journals.iter().map(|(channel, _)| channel));
        for variable in ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"] {
            authority.map(|file| command.env(variable, file));
        }
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(directory.path().join("log")).unwrap())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let told = Arc::new(Mutex::new(Vec::new()));
        let keep = Arc::clone(&told);
        let listener = thread::spawn(move || {
            let mut channels: Vec<_> = journals
                .into_iter()
                .map(|(channel, journal)| (channel, journal, Reading::default()))
                .collect();
            for line in lines.map_while(Result::ok) {
                let event: Value = serde_json::from_str(&line).unwrap();
                if event["event"] != "publication" {
                    keep.lock().unwrap().push(line);
                }
                let of_channel = channels
                    .iter_mut()
                    .find(|(channel, ..)| event["channel"] == **channel);
                let (_, journal, reading) = of_channel.expect("a channel that it was given");
                if let Some(seen) = reading.read(&event) {
                    journal.see(seen);
                }
            }
        });
        Some(Self {
            protocol,
            child,
            directory,
            told,
            listener: Some(listener),
        })
    }

    /// Pauses the program with all its connections, or resumes it.
    pub(crate) fn read(&self, is_reading: bool) {
        let signal = if is_reading {
            Signal::SIGCONT
        } else {
            Signal::SIGSTOP
        };
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    /// Checks that the program is still running and that all its events were understood.
    pub(crate) fn check(&mut self) {
        let ended = self.child.try_wait().unwrap();
        let is_listening = self
            .listener
            .as_ref()
            .is_some_and(|listener| !listener.is_finished());
        let log = fs::read_to_string(self.directory.path().join("log")).unwrap_or_default();
        assert!(
            ended.is_none() && is_listening,
            "{:?} has ended: {ended:?}\n{log}",
            self.protocol
        );
    }

    /// Returns all events that are not publications.
    pub(crate) fn told(&self) -> Vec<String> {
        self.told.lock().unwrap().clone()
    }
}

impl Drop for Sdk {
    fn drop(&mut self) {
        // It may have exited already.
        _ = self.child.kill();
        _ = self.child.wait();
        if let Some(listener) = self.listener.take() {
            _ = listener.join();
        }
    }
}

impl Reading {
    /// Returns the meaning of an event, or `None` if it does not concern publications.
    ///
    /// An interruption alone is not a notice of a gap, because the SDK may recover from it, and
    /// then nothing may be missing. It becomes one when the subscription is restored and the SDK
    /// does not report that everything was recovered.
    pub(crate) fn read(&mut self, event: &Value) -> Option<Seen> {
        match event["event"].as_str().expect("every line has an event") {
            "publication" => Some(Seen::Number(event["number"].as_u64().expect("a number"))),
            "subscribed" => {
                let is_again = std::mem::replace(&mut self.was_subscribed, true);
                let is_recovered = event["recovered"] == true;
                (is_again && !is_recovered).then_some(Seen::Gap)
            }
            "connected" | "connecting" | "disconnected" | "error" | "subscribing"
            | "unsubscribed" => None,
            other => panic!("unknown event: {other}"),
        }
    }
}

/// Returns the program of an SDK and its argument. Returns `None`, and reports the skipped test, if
/// one is not installed.
fn program(protocol: Protocol) -> Option<[PathBuf; 2]> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let tests = root.join("sdk-tests");
    let (program, script, package) = match protocol {
        Protocol::JavaScript => (
            find("node")?,
            tests.join("chaos/subscriber.mjs"),
            tests.join("node_modules/centrifuge"),
        ),
        Protocol::Python => (
            root.join(".cache/sdk-python/bin/python"),
            tests.join("python/subscriber.py"),
            root.join(".cache/sdk-python/.stamp"),
        ),
        Protocol::EventStream | Protocol::Raw => unreachable!("runs within this program"),
    };
    if package.exists() && program.exists() {
        return Some([program, script]);
    }
    skip(format_args!(
        "{} is not installed; run `make sdks`",
        protocol.name()
    ));
    None
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use serde_json::{Value, json};

    use super::Reading;
    use crate::delivery::ledger::{Published, Verdict};

    const FIRST: &str = r#"{"event":"subscribed","was_recovering":false,"recovered":false}"#;
    const RECOVERED: &str = r#"{"event":"subscribed","was_recovering":true,"recovered":true}"#;
    const LOST: &str = r#"{"event":"subscribed","was_recovering":true,"recovered":false}"#;
    const INTERRUPTED: &str = r#"{"event":"subscribing","code":2500}"#;
    const CUT: &str = r#"{"event":"connecting","code":1}"#;

    /// Judges the events of an SDK for publications 1 to 9. One second passes between two events.
    fn judge(events: &[Value]) -> Verdict {
        let mut published = Published::default();
        (1..=9).for_each(|number| published.acknowledge(number));
        let start = Instant::now();
        let mut reading = Reading::default();
        let seen = events.iter().zip(0..).filter_map(|(event, second)| {
            let seen = reading.read(event)?;
            Some((start + Duration::from_secs(second), seen))
        });
        published.judge(&seen.collect::<Vec<_>>())
    }

    fn publications(numbers: impl IntoIterator<Item = u64>) -> Vec<Value> {
        let numbers = numbers.into_iter();
        numbers
            .map(|number| json!({"event": "publication", "number": number}))
            .collect()
    }

    fn events(lines: &[&str]) -> Vec<Value> {
        let lines = lines.iter();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    #[test]
    fn an_sdk_that_recovers_misses_nothing() {
        let recovering = events(&[INTERRUPTED, CUT, RECOVERED]);
        let seen = [
            events(&[FIRST]),
            publications(1..4),
            recovering,
            publications(4..=9),
        ];
        let verdict = judge(&seen.concat());
        let received = 9;
        let expected = Verdict {
            received,
            ..Verdict::default()
        };
        assert_eq!(verdict, expected);
    }

    #[test]
    fn what_an_sdk_misses_is_lost_unless_it_subscribed_anew_without_recovery() {
        let (before, after) = (publications(1..4), publications(7..=9));
        let judge_between = |between: &[&str]| {
            let seen = [
                events(&[FIRST]),
                before.clone(),
                events(between),
                after.clone(),
            ];
            let verdict = judge(&seen.concat());
            (verdict.lost, verdict.announced, verdict.gaps)
        };
        assert_eq!(judge_between(&[INTERRUPTED, LOST]), (0, 3, 1));
        assert_eq!(judge_between(&[CUT, FIRST]), (0, 3, 1));
        // The SDK reported nothing, or a full recovery, or only an interruption.
        assert_eq!(judge_between(&[]), (3, 0, 0));
        assert_eq!(judge_between(&[INTERRUPTED, RECOVERED]), (3, 0, 0));
        assert_eq!(judge_between(&[INTERRUPTED, CUT]), (3, 0, 0));
    }

    #[test]
    fn an_sdk_that_never_comes_back_has_lost_the_rest() {
        let seen = [
            events(&[FIRST]),
            publications(1..4),
            events(&[INTERRUPTED, CUT]),
        ];
        assert_eq!(judge(&seen.concat()).lost, 6);
    }

    #[test]
    fn duplicates_and_disorder_of_an_sdk_are_found() {
        let twice = [events(&[FIRST]), publications(1..=5), events(&[RECOVERED])].concat();
        let verdict = judge(&[twice, publications(4..=9)].concat());
        assert_eq!((verdict.duplicated, verdict.reordered), (2, 0));
        let verdict = judge(&publications([1, 2, 4, 3, 5, 6, 7, 8, 9]));
        assert_eq!((verdict.duplicated, verdict.reordered), (0, 1));
    }
}
