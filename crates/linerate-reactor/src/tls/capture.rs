//! Captures the traffic secrets of a server's handshake (RFC 8446 §7.1).
//!
//! rustls reveals them only to a key log. It does so while it processes input, so a variable of the
//! thread is enough to pass them on.

use std::{cell::RefCell, sync::Arc};

use rustls::{KeyLog, crypto::tls13::OkmBlock};

const CLIENT: &str = "CLIENT_TRAFFIC_SECRET_0";
const SERVER: &str = "SERVER_TRAFFIC_SECRET_0";

thread_local! {
    static CAPTURED: RefCell<Captured> = const { RefCell::new(Captured::new()) };
}

/// The secrets from which the keys of both directions are derived. There are none in TLS 1.2.
pub(super) struct Captured {
    pub(super) client: Option<OkmBlock>,
    pub(super) server: Option<OkmBlock>,
}

impl Captured {
    pub(super) const fn new() -> Self {
        Self {
            client: None,
            server: None,
        }
    }

    /// Adds what was captured on this thread since the last call.
    pub(super) fn update(&mut self) {
        let Self { client, server } = CAPTURED.replace(Self::new());
        self.client = client.or(self.client.take());
        self.server = server.or(self.server.take());
    }
}

/// Returns a key log that captures traffic secrets, and passes everything on to `log`.
pub(super) fn capturing(log: Arc<dyn KeyLog>) -> Arc<dyn KeyLog> {
    Arc::new(Capture(log))
}

#[derive(Debug)]
struct Capture(Arc<dyn KeyLog>);

impl KeyLog for Capture {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        CAPTURED.with_borrow_mut(|captured| match label {
            CLIENT => captured.client = Some(OkmBlock::new(secret)),
            SERVER => captured.server = Some(OkmBlock::new(secret)),
            _ => {}
        });
        if self.0.will_log(label) {
            self.0.log(label, client_random, secret);
        }
    }

    fn will_log(&self, label: &str) -> bool {
        [CLIENT, SERVER].contains(&label) || self.0.will_log(label)
    }
}
