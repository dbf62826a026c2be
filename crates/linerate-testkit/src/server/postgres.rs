//! Postgres servers.

use std::{
    env, fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::geteuid;

use super::{START_MAX, ServerProcess, free_port};
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
        Self::start_in(|programs, directory, port| prepare(programs, directory, port, files))
    }

    /// Starts a server on the files in the directory that `prepare` returns.
    fn start_in(prepare: impl FnOnce(&Path, &Path, u16) -> String) -> Option<Self> {
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
            let data = prepare(&programs, directory, port);
            let own = ["-D".to_owned(), data];
            arguments.iter().cloned().chain(own).collect()
        })?;
        let server = Self { process, programs };
        server.wait_until_answering();
        Some(server)
    }

    /// Waits until the server has recovered, before which it refuses connections.
    fn wait_until_answering(&self) {
        let since = Instant::now();
        while !self.psql("SELECT 1").status.success() {
            assert!(since.elapsed() < START_MAX, "Postgres does not answer");
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn psql(&self, sql: &str) -> Output {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args(["-v", "ON_ERROR_STOP=1", "-At", "-c", sql, &self.url()]);
        run(&mut psql)
    }

    /// Starts a replica, which from then on has each commit before it is acknowledged. `None` if
    /// Postgres is not installed.
    ///
    /// # Panics
    /// The replica does not start.
    pub fn replicate(&self) -> Option<Self> {
        let replica = Self::start_in(|programs, directory, port| {
            let data = directory.join("data").display().to_string();
            own(directory);
            let source = format!("{}&application_name=replica", self.url());
            let backup = programs.join("pg_basebackup").display().to_string();
            let options = [
                "-D", &data, "-d", &source, "-R", "-X", "stream", "-c", "fast",
            ];
            run_as_postgres(&backup, &options, directory);
            // The last setting of a name counts.
            let file = Path::new(&data).join("postgresql.conf");
            let settings = fs::read_to_string(&file).expect("the configuration can be read");
            fs::write(&file, format!("{settings}port = {port}\n"))
                .expect("the configuration can be written");
            data
        })?;
        self.sql("ALTER SYSTEM SET synchronous_standby_names = 'replica'");
        self.sql("SELECT pg_reload_conf()");
        Some(replica)
    }

    /// Makes a replica a server of its own.
    ///
    /// # Panics
    /// It is not a replica.
    pub fn promote(&self) {
        self.sql("SELECT pg_promote()");
    }

    /// Restarts the server as after a crash.
    pub fn crash(&mut self) {
        self.quit();
        self.restart();
    }

    /// Ends the server as in a crash.
    pub fn quit(&mut self) {
        self.process.quit();
    }

    /// Starts the server again after [`quit`](Self::quit).
    pub fn restart(&mut self) {
        self.process.restart();
        self.wait_until_answering();
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
        let output = self.psql(sql);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}

/// Creates the files of a server and returns their directory.
fn prepare(programs: &Path, directory: &Path, port: u16, files: &[(&str, &str)]) -> String {
    let data = directory.join("data").display().to_string();
    own(directory);
    let initdb = programs.join("initdb").display().to_string();
    let encoding = ["-E", "UTF8", "--locale=C"];
    let options = ["-D", &data, "-U", "postgres", "--auth=trust", "--no-sync"];
    run_as_postgres(&initdb, &[&options[..], &encoding].concat(), directory);
    let tls = if files.is_empty() { "" } else { "ssl = on\n" };
    for (name, text) in files {
        let file = Path::new(&data).join(name);
        fs::write(&file, text).expect("files can be written");
        let only_owner = fs::Permissions::from_mode(0o600);
        fs::set_permissions(&file, only_owner).expect("files of our own can be changed");
        own(&file);
    }
    let settings = format!(
        "listen_addresses = '127.0.0.1'\nport = {port}\nunix_socket_directories = ''\n\
         wal_level = logical\nfsync = off\n{tls}"
    );
    let file = Path::new(&data).join("postgresql.conf");
    fs::write(file, settings).expect("the configuration can be written");
    data
}

/// Gives a file or directory to the user that runs the server, if we are root.
fn own(path: &Path) {
    if geteuid().is_root() {
        let owned = run(Command::new("chown").arg("postgres").arg(path));
        assert!(owned.status.success(), "{owned:?}");
    }
}

fn run_as_postgres(program: &str, arguments: &[&str], directory: &Path) {
    let command = as_postgres(program);
    let mut process = Command::new(&command[0]);
    process.args(&command[1..]).args(arguments);
    let output = run(process.current_dir(directory));
    assert!(output.status.success(), "{output:?}");
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
