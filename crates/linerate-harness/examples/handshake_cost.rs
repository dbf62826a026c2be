//! Measures how much CPU time `linerate serve` uses for each connection, from `accept` to the end,
//! compared with a program that does no more than accept, rustls and two system calls: `cargo run
//! --release -p linerate-harness --example handshake_cost target/release/linerate [CONNECTIONS]`.
//!
//! Both servers have one thread. Connections follow one another; each requests a raw WebSocket and
//! ends once the answer has arrived. The bare program answers every request with the same bytes,
//! and keeps nothing.

mod gateway;

use std::{
    env,
    error::Error,
    fs,
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use gateway::UPGRADE;
use linerate_harness::child::ChildProcess;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned,
    client::Resumption,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};

const ANSWER: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\
    Upgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

/// The number of turns that the two servers take.
const TURNS: usize = 10;

/// Files of a self-signed certificate, and a folder that is removed with them.
struct Certificate {
    folder: PathBuf,
    der: CertificateDer<'static>,
}

/// How a client connects.
struct Kind {
    name: &'static str,
    /// `None` without TLS.
    tls: Option<Arc<ClientConfig>>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        None => Err("usage: handshake_cost SERVER [CONNECTIONS]".into()),
        Some("--bare") => serve_bare(arguments.get(1).map(Path::new)),
        Some(program) => {
            let connections = arguments.get(1).map_or(Ok(5_000), |text| text.parse())?;
            measure(program.as_ref(), connections)
        }
    }
}

/// Answers one connection after the other, with the certificate in a folder if there is one.
fn serve_bare(certificate: Option<&Path>) -> Result<(), Box<dyn Error>> {
    let tls = certificate.map(|folder| {
        let chain = CertificateDer::from_pem_file(folder.join("certificate.pem"))?;
        let key = PrivateKeyDer::from_pem_file(folder.join("key.pem"))?;
        let config = ServerConfig::builder_with_provider(ring::default_provider().into())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![chain], key)?;
        Ok::<_, Box<dyn Error>>(Arc::new(config))
    });
    let tls = tls.transpose()?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?);
    loop {
        let (socket, _) = listener.accept()?;
        socket.set_nodelay(true)?;
        // A client that has gone does not end the server.
        _ = match &tls {
            None => answer(socket),
            Some(config) => answer(StreamOwned::new(
                ServerConnection::new(config.clone())?,
                socket,
            )),
        };
    }
}

fn answer(mut stream: impl Read + Write) -> io::Result<()> {
    read_head(&mut stream)?;
    stream.write_all(ANSWER)?;
    let mut rest = [0; 64];
    while stream.read(&mut rest)? > 0 {}
    Ok(())
}

/// Reads until the end of a head.
fn read_head(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let (mut head, mut space) = (Vec::new(), [0; 1_024]);
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut space)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            bytes => head.extend_from_slice(&space[..bytes]),
        }
    }
    Ok(head)
}

fn measure(program: &Path, connections: usize) -> Result<(), Box<dyn Error>> {
    let certificate = Certificate::new()?;
    let config = |resumption: Option<Resumption>| certificate.client(resumption).map(Some);
    let kinds = [
        Kind {
            name: "plain",
            tls: None,
        },
        Kind {
            name: "TLS 1.3",
            tls: config(Some(Resumption::disabled()))?,
        },
        Kind {
            name: "TLS 1.3, resumed",
            tls: config(None)?,
        },
    ];
    println!("{connections} connections each; CPU time of the server for one, in microseconds");
    println!("connections            bare   linerate   ratio");
    for kind in &kinds {
        let folder = kind.tls.as_ref().map(|_| certificate.folder.as_path());
        let mut servers = [start_bare(folder)?, start_linerate(program, folder)?];
        let mut used = [Duration::ZERO; 2];
        for turn in 0..=TURNS {
            for ((server, address), used) in servers.iter_mut().zip(&mut used) {
                let before = server.process().cpu()?;
                for _ in 0..connections / TURNS {
                    kind.connect(*address)?;
                }
                let after = server.process().cpu()?;
                // The first turn fills caches.
                if turn > 0 {
                    *used += after.saturating_sub(before);
                }
            }
        }
        let count = (connections / TURNS * TURNS) as f64;
        let [bare, linerate] = used.map(|used| used.as_secs_f64() * 1e6 / count);
        let (name, ratio) = (kind.name, linerate / bare);
        println!("{name:<18} {bare:>8.1} {linerate:>10.1} {ratio:>7.2}");
    }
    Ok(())
}

fn start_bare(certificate: Option<&Path>) -> Result<(ChildProcess, SocketAddr), Box<dyn Error>> {
    let mut server = Command::new(env::current_exe()?);
    server.arg("--bare").args(certificate);
    let mut server = ChildProcess::spawn(server.stdout(Stdio::piped()))?;
    let address = server.first_line()?.trim().parse()?;
    Ok((server, address))
}

fn start_linerate(
    program: &Path,
    certificate: Option<&Path>,
) -> Result<(ChildProcess, SocketAddr), Box<dyn Error>> {
    let config = certificate.map(|folder| {
        let [certificate, key] = ["certificate.pem", "key.pem"].map(|file| folder.join(file));
        format!("server.tls.certificate = {certificate:?}\nserver.tls.key = {key:?}\n")
    });
    gateway::start(program, &config.unwrap_or_default(), |_| ())
}

impl Kind {
    fn connect(&self, address: SocketAddr) -> Result<(), Box<dyn Error>> {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        let name = ServerName::try_from("localhost")?;
        let head = match &self.tls {
            None => request(socket)?,
            Some(config) => {
                let connection = ClientConnection::new(config.clone(), name)?;
                request(StreamOwned::new(connection, socket))?
            }
        };
        match head.starts_with(b"HTTP/1.1 101 ") {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&head).into_owned().into()),
        }
    }
}

fn request(mut stream: impl Read + Write) -> io::Result<Vec<u8>> {
    let head = "GET /raw?channel=news HTTP/1.1\r\nHost: localhost\r\n";
    stream.write_all(format!("{head}{UPGRADE}\r\n").as_bytes())?;
    read_head(&mut stream)
}

impl Certificate {
    fn new() -> Result<Self, Box<dyn Error>> {
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".into()])?;
        let folder = env::temp_dir().join(format!("handshake-cost-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("certificate.pem"), cert.pem())?;
        fs::write(folder.join("key.pem"), signing_key.serialize_pem())?;
        let der = cert.der().clone();
        Ok(Self { folder, der })
    }

    /// Returns the configuration of a client, which resumes sessions by default.
    fn client(&self, resumption: Option<Resumption>) -> Result<Arc<ClientConfig>, Box<dyn Error>> {
        let mut roots = RootCertStore::empty();
        roots.add(self.der.clone())?;
        let mut config = ClientConfig::builder_with_provider(ring::default_provider().into())
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        if let Some(resumption) = resumption {
            config.resumption = resumption;
        }
        Ok(Arc::new(config))
    }
}

impl Drop for Certificate {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.folder);
    }
}
