//! The log filter. Messages of libraries about the behaviour of peers are shown only for debugging.

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::{EnvFilter, filter::ParseError};

/// Libraries that log a warning about a peer's behaviour for each connection, so that any client
/// could fill the log.
const OF_PEERS: [&str; 9] = [
    "h2",
    "hyper",
    "hyper_util",
    "quinn",
    "quinn_proto",
    "quinn_udp",
    "rustls",
    "rustls_platform_verifier",
    "tokio_rustls",
];

/// Parses a list of directives. Unless a directive enables `debug` or `trace`, the libraries in
/// [`OF_PEERS`] are silent, except those that the list names.
pub(crate) fn parse(directives: &str) -> Result<EnvFilter, ParseError> {
    let asked = EnvFilter::builder().parse(directives)?;
    if asked
        .max_level_hint()
        .is_none_or(|level| level > LevelFilter::INFO)
    {
        return Ok(asked);
    }
    let silent: String = OF_PEERS
        .iter()
        .map(|target| format!("{target}=off,"))
        .collect();
    // If there are two directives for a target, the later one applies.
    EnvFilter::builder().parse(format!("{silent}{directives}"))
}

#[cfg(test)]
mod tests {
    use std::{
        io::{self, Write},
        sync::{Arc, Mutex},
    };

    use super::parse;

    /// Logs one warning of h2 and one of linerate; returns what passes the filter.
    fn logged(directives: &str) -> String {
        #[derive(Clone, Default)]
        struct Memory(Arc<Mutex<Vec<u8>>>);
        impl Write for Memory {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.lock().unwrap().write(bytes)
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let memory = Memory::default();
        let writer = memory.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_env_filter(parse(directives).unwrap())
            .with_writer(move || writer.clone())
            .without_time()
            .with_target(false)
            .with_ansi(false)
            .with_level(false)
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            tracing::warn!(target: "h2::proto::ping_pong", "theirs");
            tracing::warn!(target: "linerate_gateway::server", "ours");
        });
        let bytes = memory.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn what_peers_do_is_logged_for_those_who_debug_or_ask_for_it() {
        for directives in ["info", "warn", "warn,linerate_gateway=info"] {
            assert_eq!(logged(directives), "ours\n", "{directives}");
        }
        for directives in [
            "debug",
            "trace",
            "info,h2=warn",
            "warn,linerate_gateway=debug",
        ] {
            assert_eq!(logged(directives), "theirs\nours\n", "{directives}");
        }
        assert_eq!(logged("error"), "");
        assert!(parse("loud").is_ok() && parse("a=b=c").is_err());
    }
}
