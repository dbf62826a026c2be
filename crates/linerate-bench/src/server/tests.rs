//! Tests of servers that are shell scripts, started by a shell instead of this binary.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Instant;

use super::*;

/// Creates a server's program from lines of shell, and a launcher that ignores cores and parent.
fn script(lines: &str) -> (tempfile::TempDir, Launcher, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("server");
    fs::write(&program, format!("#!/bin/sh\n{lines}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let launcher = Launcher {
        program: "/bin/sh".into(),
        arguments: ["-c", "shift 4; exec \"$@\"", "sh"].map(Into::into).into(),
    };
    (folder, launcher, program)
}

fn start(lines: &str) -> Result<Server, ServerError> {
    let (_folder, launcher, program) = script(lines);
    Server::start(&StartOptions {
        launcher: &launcher,
        program: &program,
        mode: Mode::plain(Service::Echo),
        cores: &[0],
        certificate: &Certificate::new().unwrap(),
    })
}

/// A server that accepts connections, has a child process, and does nothing else.
const LISTENS: &str = r#"exec python3 -c '
import socket, subprocess, sys
subprocess.Popen(["sleep", "60"])
listener = socket.create_server(("127.0.0.1", int(sys.argv[2])))
while True: listener.accept()
' "$@""#;

#[test]
fn a_server_that_ends_at_once_is_told_with_its_status_and_last_words() {
    let error = start("echo 'no such module' >&2; exit 3").unwrap_err();
    assert_eq!(
        error.to_string(),
        "the server exited with status 3: no such module"
    );
    let error = start("kill -9 $$").unwrap_err();
    assert_eq!(error.to_string(), "the server was killed by signal 9");
}

#[test]
fn a_server_and_its_children_end_with_the_value() {
    let mut server = start(LISTENS).unwrap();
    let group = Pid::from_raw(server.child.id() as i32).unwrap();
    assert!(server.end().is_none());
    assert!(server.usage().unwrap().unwrap().resident_bytes > 0);
    server.wait_until_idle();
    assert!(rustix::process::test_kill_process_group(group).is_ok());
    drop(server);
    // The process that adopts the remaining child has to reap it first.
    let deadline = Instant::now() + Duration::from_secs(120);
    while rustix::process::test_kill_process_group(group).is_ok() {
        assert!(Instant::now() < deadline, "the child is still running");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn the_arguments_say_what_the_mode_is() {
    let certificate = Certificate::new().unwrap();
    let mut start = StartOptions {
        launcher: &Launcher {
            program: "/bin/sh".into(),
            arguments: Vec::new(),
        },
        program: &"server".into(),
        mode: Mode::plain(Service::Acknowledge),
        cores: &[4, 5],
        certificate: &certificate,
    };
    assert_eq!(
        arguments(&start, 20_001).join(" "),
        "--port 20001 --threads 2 --service acknowledge"
    );
    start.mode = Mode {
        tls: true,
        deflate: Deflate::NoTakeover,
        ..Mode::plain(Service::Echo)
    };
    let chain = certificate.chain_file().display().to_string();
    let key = certificate.key_file().display().to_string();
    assert_eq!(
        arguments(&start, 20_001).join(" "),
        format!(
            "--port 20001 --threads 2 --service echo --tls {chain} {key} --deflate no-takeover"
        )
    );
}

#[test]
fn a_launcher_is_told_of_us_the_cores_and_the_program() {
    let (_folder, launcher, program) = script("");
    let command = launcher.command(&[2, 3], &program);
    let arguments: Vec<_> = command.get_args().skip(3).collect();
    let pid = std::process::id().to_string();
    let program = program.to_str().unwrap();
    assert_eq!(arguments, ["--parent", &pid, "--cores", "2,3", program]);
}
