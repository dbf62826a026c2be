//! Postgres servers.

use std::{
    env, fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use rustix::process::geteuid;

use super::{ServerProcess, free_port};
use crate::skip;

/// A Postgres server with logical decoding, where every user is trusted.
#[derive(Debug)]
pub struct PostgresServer {
    process: ServerProcess,
    programs: PathBuf,
}

impl PostgresServer {
    /// Starts a server. `None` if Postgres is not installed.
    pub fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// Starts a server with TLS, with a certificate and its key in PEM.
    pub fn start_tls(certificate: &str, key: &str) -> Option<Self> {
        Self::start_with(&[("server.crt", certificate), ("server.key", key)])
    }

    /// Starts a server with additional files in its directory: none, or those for TLS.
    fn start_with(files: &[(&str, &str)]) -> Option<Self> {
        let Some(programs) = find_programs() else {
            skip("Postgres is not installed; run scripts/setup");
            return None;
        };
        let port = free_port();
        let server = programs.join("postgres").display().to_string();
        let [program, arguments @ ..] = &*as_postgres(&server) else {
            unreachable!("a command has a program");
        };
        let process = ServerProcess::start(program, port, |directory| {
            let data = prepare(&programs, directory, port, files);
            let own = ["-D".to_owned(), data];
            arguments.iter().cloned().chain(own).collect()
        })?;
        Some(Self { process, programs })
    }

    /// Restarts the server as after a crash.
    pub fn crash(&mut self) {
        self.process.quit();
        self.process.restart();
    }

    /// Ends the server as in a crash.
    pub fn quit(&mut self) {
        self.process.quit();
    }

    /// Starts the server again after [`quit`](Self::quit).
    pub fn restart(&mut self) {
        self.process.restart();
    }

    /// Requires a password (SCRAM) of all users but `postgres`.
    ///
    /// # Panics
    /// The configuration cannot be changed.
    pub fn require_password(&self) {
        let rules = "host all postgres 127.0.0.1/32 trust\n\
                     hostssl all all 127.0.0.1/32 scram-sha-256\n\
                     hostssl replication all 127.0.0.1/32 scram-sha-256\n";
        let file = self.process.directory().join("data/pg_hba.conf");
        fs::write(file, rules).expect("the configuration can be written");
        self.sql("SELECT pg_reload_conf()");
    }

    /// Returns the port that the server listens on.
    pub fn port(&self) -> u16 {
        self.process.port()
    }

    /// Returns the URL of the database `postgres`.
    pub fn url(&self) -> String {
        let address = self.process.address();
        format!("postgres://postgres@{address}/postgres?sslmode=disable")
    }

    /// Runs statements and returns their output.
    ///
    /// # Panics
    /// A statement fails.
    pub fn sql(&self, sql: &str) -> String {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args(["-v", "ON_ERROR_STOP=1", "-At", "-c", sql, &self.url()]);
        let output = run(&mut psql);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}

/// Creates the files of a server and returns their directory.
fn prepare(programs: &Path, directory: &Path, port: u16, files: &[(&str, &str)]) -> String {
    let data = directory.join("data").display().to_string();
    if geteuid().is_root() {
        let owned = run(Command::new("chown").arg("postgres").arg(directory));
        assert!(owned.status.success(), "{owned:?}");
    }
    let initdb = as_postgres(&programs.join("initdb").display().to_string());
    let options = [
        "-D",
        &data,
        "-U",
        "postgres",
        "--auth=trust",
        "--no-sync",
        "-E",
        "UTF8",
        "--locale=C",
    ];
    let mut command = Command::new(&initdb[0]);
    let output = run(command
        .args(&initdb[1..])
        .args(options)
        .current_dir(directory));
    assert!(output.status.success(), "{output:?}");
    let tls = if files.is_empty() { "" } else { "ssl = on\n" };
    for (name, text) in files {
        let file = Path::new(&data).join(name);
        fs::write(&file, text).expect("files can be written");
        let only_owner = fs::Permissions::from_mode(0o600);
        fs::set_permissions(&file, only_owner).expect("files of our own can be changed");
        if geteuid().is_root() {
            let owned = run(Command::new("chown").arg("postgres").arg(&file));
            assert!(owned.status.success(), "{owned:?}");
        }
    }
    let settings = format!(
        "listen_addresses = '127.0.0.1'\nport = {port}\nunix_socket_directories = ''\n\
         wal_level = logical\nfsync = off\n{tls}"
    );
    let file = Path::new(&data).join("postgresql.conf");
    fs::write(file, settings).expect("the configuration can be written");
    data
}

/// Returns a command that runs a program of the server, which refuses to run as root.
fn as_postgres(program: &str) -> Vec<String> {
    let mut command = Vec::new();
    if geteuid().is_root() {
        let other = [
            "setpriv",
            "--reuid=postgres",
            "--regid=postgres",
            "--clear-groups",
        ];
        command.extend(other.map(str::to_owned));
    }
    command.push(program.to_owned());
    command
}

fn run(command: &mut Command) -> Output {
    command.stdin(Stdio::null());
    let output = command.output();
    output.expect("a program that was found can be started")
}

/// Returns the directory of `initdb`, which Debian does not have in the search path.
fn find_programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let debian = versions.flatten().map(|version| version.path().join("bin"));
    let path = env::var_os("PATH").unwrap_or_default();
    let mut all = debian.chain(env::split_paths(&path));
    all.find(|directory| directory.join("initdb").is_file())
}
