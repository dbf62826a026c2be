//! Encrypted connections, with the rustls client.

mod abuse;
mod adopted;
mod client;
mod handshake;
mod info;
mod overflow;
mod records;

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{Arc, Mutex},
};

use linerate_reactor::{
    Closed, ConnectionId, Context, Handler, Message, Opened, Options, Server,
    handshake::HttpResponse,
    rustls::{
        self, AlertDescription, ClientConfig, ClientConnection, RootCertStore, ServerConfig,
        SignatureAlgorithm, SupportedCipherSuite, SupportedProtocolVersion,
        crypto::{CryptoProvider, ring},
        pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName},
        version::{TLS12, TLS13},
    },
};

use crate::support::{Raw, Running, driver};

/// A certificate and its key, with configurations for servers and for clients that trust it.
struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivatePkcs8KeyDer<'static>,
}

impl Identity {
    fn new() -> Self {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        Self {
            certificate: made.cert.der().clone(),
            key: made.signing_key.serialize_der().into(),
        }
    }

    fn server(&self, provider: CryptoProvider) -> ServerConfig {
        let key = PrivateKeyDer::Pkcs8(self.key.clone_key());
        ServerConfig::builder_with_provider(Arc::new(provider))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], key)
            .unwrap()
    }

    fn client(
        &self,
        provider: CryptoProvider,
        versions: &[&'static SupportedProtocolVersion],
    ) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth()
    }

    /// Returns each cipher suite that can be negotiated, with a client that offers nothing else.
    fn clients(&self) -> impl Iterator<Item = (SupportedCipherSuite, ClientConfig)> {
        let suites = ring::ALL_CIPHER_SUITES.iter().copied();
        // The server's key is not an RSA key, so that RSA suites cannot be negotiated.
        let suites =
            suites.filter(|suite| suite.usable_for_signature_algorithm(SignatureAlgorithm::ECDSA));
        suites.map(|suite| {
            let provider = CryptoProvider {
                cipher_suites: vec![suite],
                ..ring::default_provider()
            };
            let version = match suite {
                SupportedCipherSuite::Tls12(_) => &TLS12,
                SupportedCipherSuite::Tls13(_) => &TLS13,
            };
            (suite, self.client(provider, &[version]))
        })
    }
}

/// The log of a test's handler.
#[derive(Debug, Default)]
struct Log {
    paused: Option<ConnectionId>,
    closed: Vec<Closed>,
}

/// Echoes messages, but executes some as commands. Subscribes each connection to two topics.
#[derive(Clone, Default)]
struct Obedient(Arc<Mutex<Log>>);

impl Handler for Obedient {
    type Data = ();

    fn open(&mut self, cx: &mut Context<'_>, _opened: Opened<'_>) {
        cx.subscribe("one").unwrap();
        cx.subscribe("two").unwrap();
    }

    fn message(&mut self, (): &mut (), cx: &mut Context<'_>, message: Message<'_>) {
        match message {
            Message::Text("pause") => {
                cx.pause();
                self.0.lock().unwrap().paused = Some(cx.id());
            }
            Message::Text("publish") => {
                cx.publish("one", Message::Binary(&[1; 6_000]));
                cx.publish("two", Message::Text("second"));
            }
            Message::Text("publish to one") => cx.publish("one", Message::Binary(&[1; 40_000])),
            message => _ = cx.send(message),
        }
    }

    fn close(&mut self, (): (), _cx: &mut Context<'_>, closed: Closed) {
        self.0.lock().unwrap().closed.push(closed);
    }
}

/// An echo server over TLS, and its identity.
struct Encrypted {
    running: Running,
    identity: Identity,
    log: Arc<Mutex<Log>>,
}

impl Encrypted {
    fn echo() -> Self {
        Self::start(Options::default(), |_| {})
    }

    fn start(options: Options, configure: impl FnOnce(&mut ServerConfig)) -> Self {
        let identity = Identity::new();
        let mut config = identity.server(ring::default_provider());
        configure(&mut config);
        Self::start_as(identity, options, config)
    }

    fn start_as(identity: Identity, mut options: Options, config: ServerConfig) -> Self {
        options.driver = driver();
        let server = Server::new().with_workers(1).with_options(options);
        let handler = Obedient::default();
        let log = handler.0.clone();
        let running = Running::serve(
            server
                .with_tls(Arc::new(config))
                .with_route("/chat", handler)
                .with_http("/live", |_| Ok(HttpResponse::text("ok"))),
        );
        Self {
            running,
            identity,
            log,
        }
    }

    fn config(&self) -> ClientConfig {
        self.identity
            .client(ring::default_provider(), &[&TLS13, &TLS12])
    }

    fn address(&self) -> SocketAddr {
        self.running.address
    }

    /// Opens a WebSocket.
    fn open(&self) -> Client {
        self.connect(self.config()).opened()
    }

    fn connect(&self, config: ClientConfig) -> Client {
        Client::new(Tls::new(self.address(), config))
    }
}

type Client = Raw<Tls>;

impl Client {
    fn new(stream: Tls) -> Self {
        Self { stream }
    }
}

/// The client's end of a TLS connection.
struct Tls {
    tls: ClientConnection,
    tcp: Narrow,
}

/// A socket that writes at most `write_bytes_max` bytes at once.
struct Narrow {
    stream: TcpStream,
    write_bytes_max: usize,
}

impl Tls {
    fn new(address: SocketAddr, config: ClientConfig) -> Self {
        let name = ServerName::try_from("localhost").unwrap();
        Self {
            tls: ClientConnection::new(Arc::new(config), name).unwrap(),
            tcp: Narrow {
                stream: Raw::connect(address).stream,
                write_bytes_max: usize::MAX,
            },
        }
    }

    /// Returns the records that contain `bytes`, without sending them.
    fn encrypt(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.tls.writer().write_all(bytes).unwrap();
        let mut wire = Vec::new();
        while self.tls.wants_write() {
            self.tls.write_tls(&mut wire).unwrap();
        }
        wire
    }

    /// Like [`encrypt`](Self::encrypt), for more bytes than rustls buffers.
    fn encrypt_all(&mut self, bytes: &[u8]) -> Vec<u8> {
        bytes
            .chunks(1 << 14)
            .flat_map(|bytes| self.encrypt(bytes))
            .collect()
    }

    /// Reads at least `bytes` bytes of plaintext; returns them and the number of records.
    fn read_records(&mut self, bytes: usize) -> (Vec<u8>, usize) {
        let (mut all, mut records) = (Vec::new(), 0);
        while all.len() < bytes {
            let mut record = vec![0; 5];
            self.tcp.stream.read_exact(&mut record).unwrap();
            record.resize(
                5 + usize::from(u16::from_be_bytes([record[3], record[4]])),
                0,
            );
            self.tcp.stream.read_exact(&mut record[5..]).unwrap();
            let mut rest = &record[..];
            while !rest.is_empty() {
                self.tls.read_tls(&mut rest).unwrap();
            }
            let state = self.tls.process_new_packets().unwrap();
            let at = all.len();
            all.resize(at + state.plaintext_bytes_to_read(), 0);
            self.tls.reader().read_exact(&mut all[at..]).unwrap();
            records += 1;
        }
        (all, records)
    }
}

impl Read for Tls {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        rustls::Stream::new(&mut self.tls, &mut self.tcp).read(bytes)
    }
}

impl Write for Tls {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        rustls::Stream::new(&mut self.tls, &mut self.tcp).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        rustls::Stream::new(&mut self.tls, &mut self.tcp).flush()
    }
}

impl Read for Narrow {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.stream.read(bytes)
    }
}

impl Write for Narrow {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let bytes_max = self.write_bytes_max.min(bytes.len());
        self.stream.write(&bytes[..bytes_max])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Returns the alert with which the server ends the connection.
fn alert(client: &mut Client) -> AlertDescription {
    let error = client
        .stream
        .flush()
        .and_then(|()| client.stream.read(&mut [0]).map(|_| ()));
    let error = error.unwrap_err();
    let error = error.into_inner().expect("an error of TLS");
    match *error.downcast::<rustls::Error>().unwrap() {
        rustls::Error::AlertReceived(alert) => alert,
        other => panic!("{other}"),
    }
}
