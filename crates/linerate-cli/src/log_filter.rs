//! Which messages are logged: those of libraries about what a peer does are for debugging only.

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::{EnvFilter, filter::ParseError};

/// Libraries that warn of what a peer does, once for each connection that does it: any client could fill the log.
const OF_PEERS: [&str; 8] = [
    "h2",
    "hyper",
    "hyper_util",
    "quinn",
    "quinn_proto",
    "quinn_udp",
    "rustls",
    "tokio_rustls",
];

/// Reads a list of directives. Below the level `debug`, libraries that speak with peers are silent unless the list
/// names them.
///
/// # Errors
/// It is not a list of directives.
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
    // Of two directives for a target, the later one holds.
    EnvFilter::builder().parse(format!("{silent}{directives}"))
}

#[cfg(test)]
mod tests {
    use std::{
        io::{self, Write},
        sync::{Arc, Mutex},
    };

    use super::parse;

    /// Returns what comes through of a warning of h2 and one of ours.
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
