//! Kafka servers.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::{ServerProcess, find, free_port};
use crate::skip;

/// The user of the listener with TLS, and its password.
pub const KAFKA_LOGIN: [&str; 2] = ["linerate", "secret"];

/// What makes the JVM start fast and small.
const JVM: [&str; 4] = [
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xmx384m",
    "-Xshare:auto",
];

/// A Kafka server of its own (KRaft), which is its own controller. Topics are created by clients.
#[derive(Debug)]
pub struct KafkaServer {
    process: ServerProcess,
    /// The port of the listener with TLS and passwords.
    secure: Option<u16>,
}

impl KafkaServer {
    /// Starts a server. `None` if Java is not installed, or Kafka is not in `.cache`.
    pub fn start() -> Option<Self> {
        Self::start_with(None)
    }

    /// Starts a server that has another listener, for `localhost`, with TLS (a certificate and its
    /// key in PEM) and with SCRAM-SHA-256 and PLAIN for the user in [`KAFKA_LOGIN`].
    pub fn start_tls(certificate: &str, key: &str) -> Option<Self> {
        Self::start_with(Some(format!("{key}{certificate}")))
    }

    fn start_with(identity: Option<String>) -> Option<Self> {
        let java = find("java")?;
        let Some(libraries) = libraries() else {
            skip("Kafka is not in .cache/kafka; run scripts/kafka");
            return None;
        };
        let port = free_port();
        let secure = identity.is_some().then(free_port);
        let process = ServerProcess::start("java", port, |directory| {
            let properties = directory.join("server.properties");
            let file = directory.join("identity.pem");
            if let Some(identity) = &identity {
                fs::write(&file, identity).expect("files can be written");
            }
            let text = settings(directory, port, secure.map(|port| (&*file, port)));
            fs::write(&properties, text).expect("files can be written");
            format(&java, &libraries, &properties);
            arguments(&libraries, "kafka.Kafka", &properties)
        })?;
        Some(Self { process, secure })
    }

    /// Returns the host and the port of the server.
    pub fn address(&self) -> String {
        self.process.address()
    }

    /// Returns the host and the port of the listener with TLS.
    ///
    /// # Panics
    /// The server has none.
    pub fn secure_address(&self) -> String {
        let port = self.secure.expect("a listener with TLS");
        format!("localhost:{port}")
    }

    /// Kills the server, and starts it again on its files.
    pub fn crash(&mut self) {
        self.process.restart();
    }

    /// Kills the server.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Ends the server in good order.
    pub fn terminate(&mut self) {
        self.process.terminate();
    }

    /// Starts the server again on its files.
    pub fn restart(&mut self) {
        self.process.restart();
    }
}

/// Returns the directory of Kafka's libraries, which `scripts/kafka` downloads.
fn libraries() -> Option<PathBuf> {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let libraries = project.join(".cache/kafka/lib");
    libraries.is_dir().then_some(libraries)
}

fn arguments(libraries: &Path, class: &str, properties: &Path) -> Vec<String> {
    let path = format!("{}/*", libraries.display());
    let rest = [
        "-cp".to_owned(),
        path,
        class.to_owned(),
        properties.display().to_string(),
    ];
    JVM.map(str::to_owned).into_iter().chain(rest).collect()
}

/// Creates the files of the server.
fn format(java: &Path, libraries: &Path, properties: &Path) {
    let path = format!("{}/*", libraries.display());
    let [user, password] = KAFKA_LOGIN;
    let login = format!("SCRAM-SHA-256=[name={user},password={password}]");
    let mut format = Command::new(java);
    format
        .args(JVM)
        .args(["-cp", &path, "kafka.tools.StorageTool", "format"])
        .args([
            "--cluster-id",
            "bGluZXJhdGUtdGVzdHMtMQ",
            "--add-scram",
            &login,
        ])
        .arg("--config")
        .arg(properties)
        .stdin(Stdio::null());
    let output = format
        .output()
        .expect("a program that was found can be started");
    assert!(output.status.success(), "{output:?}");
}

fn settings(directory: &Path, port: u16, secure: Option<(&Path, u16)>) -> String {
    let (controller, data) = (free_port(), directory.join("data"));
    let (mut listeners, mut advertised) = (String::new(), String::new());
    let mut rest = String::new();
    if let Some((identity, secure)) = secure {
        listeners = format!(",SECURE://127.0.0.1:{secure}");
        advertised = format!(",SECURE://localhost:{secure}");
        rest = secure_settings(identity);
    }
    format!(
        "process.roles=broker,controller\n\
         node.id=1\n\
         controller.quorum.voters=1@127.0.0.1:{controller}\n\
         controller.listener.names=CONTROLLER\n\
         inter.broker.listener.name=CLIENT\n\
         listeners=CLIENT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}{listeners}\n\
         advertised.listeners=CLIENT://127.0.0.1:{port}{advertised}\n\
         listener.security.protocol.map=CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_SSL\n\
         log.dirs={}\n\
         auto.create.topics.enable=false\n\
         group.initial.rebalance.delay.ms=0\n\
         offsets.topic.num.partitions=1\n\
         offsets.topic.replication.factor=1\n\
         transaction.state.log.replication.factor=1\n\
         transaction.state.log.min.isr=1\n{rest}",
        data.display()
    )
}

/// Returns the settings of the listener with TLS, whose certificate and key are in one file.
fn secure_settings(identity: &Path) -> String {
    let [user, password] = KAFKA_LOGIN;
    let identity = identity.display();
    let modules = "org.apache.kafka.common.security";
    format!(
        "sasl.enabled.mechanisms=SCRAM-SHA-256,PLAIN\n\
         listener.name.secure.ssl.keystore.type=PEM\n\
         listener.name.secure.ssl.keystore.location={identity}\n\
         listener.name.secure.scram-sha-256.sasl.jaas.config={modules}.scram.ScramLoginModule required;\n\
         listener.name.secure.plain.sasl.jaas.config={modules}.plain.PlainLoginModule required \
         user_{user}=\"{password}\";\n"
    )
}
