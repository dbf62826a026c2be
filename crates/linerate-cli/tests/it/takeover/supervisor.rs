//! What systemd is told, and the background start for its units.

use std::{
    os::unix::net::UnixDatagram,
    process::{Command, Stdio},
};

use super::{Deploys, ask};
use crate::support::{PATIENCE, linerate};

/// The socket on which systemd receives notifications.
struct Supervisor(UnixDatagram);

impl Supervisor {
    fn new(deploys: &Deploys) -> Self {
        let socket = UnixDatagram::bind(deploys.0.path().join("notify.sock")).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(socket)
    }

    fn next(&self) -> String {
        let mut bytes = [0; 100];
        let count = self.0.recv(&mut bytes).expect("a notification");
        String::from_utf8(bytes[..count].to_vec()).unwrap()
    }
}

#[tokio::test]
async fn a_reload_in_the_background_moves_the_main_process_of_the_unit() {
    let deploys = Deploys::new();
    let supervisor = Supervisor::new(&deploys);
    let command = |flags: &[&str]| {
        let mut command = linerate(&["serve", "--listen", "127.0.0.1:0", "--workers", "2"]);
        command.args(deploys.flags(flags));
        command.env("NOTIFY_SOCKET", deploys.0.path().join("notify.sock"));
        command
    };
    // The server in the background keeps the standard error open.
    let reload = || {
        let mut command = command(&["--takeover", "--detach"]);
        command.stderr(Stdio::null()).output().unwrap()
    };
    let started = reload();
    assert!(started.status.success(), "{started:?}");
    let line = String::from_utf8(started.stdout).unwrap();
    let (_, address) = line.trim().split_once("http://").unwrap();
    let address = address.trim_end_matches('/').parse().unwrap();
    assert_eq!(supervisor.next(), "READY=1");
    ask(address).await;

    // A process that cannot start leaves the running one, and the unit's reload fails.
    let failed = command(&["--takeover", "--detach", "--set", "server.lisen=1"]).output();
    let failed = failed.unwrap();
    assert!(!failed.status.success());
    let errors = String::from_utf8_lossy(&failed.stderr);
    assert!(errors.contains("did you mean"), "{errors}");
    ask(address).await;

    let mut pids = Vec::new();
    for _ in 0..2 {
        let reloaded = reload();
        assert!(reloaded.status.success(), "{reloaded:?}");
        let mut told = [supervisor.next(), supervisor.next()];
        // The first is from the old process, the second from the new one.
        told.sort();
        let pid = told[0].strip_prefix("MAINPID=").expect("the new process");
        pids.push(pid.to_owned());
        assert_eq!(told[1], "READY=1");
        ask(address).await;
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let test = format!("PPid:\t{}\n", std::process::id());
        assert!(!status.contains(&test), "it is not a child of this process");
    }
    assert_ne!(pids[0], pids[1]);
    // Only the process that systemd supervises says that it stops, and systemd tells all.
    let killed = Command::new("kill")
        .args(["-TERM", &pids[1]])
        .status()
        .unwrap();
    assert!(killed.success());
    assert_eq!(supervisor.next(), "STOPPING=1");
}
