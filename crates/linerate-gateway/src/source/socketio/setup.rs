//! What the configuration says about Redis, ready to be used.

use linerate_broker::{
    BrokerOptions,
    redis::{FeedServer, literal},
};

use crate::{
    config::{Config, Secret, SocketIoRedisOptions},
    endpoint_error::{EndpointError, EndpointProblem},
    pem_file,
};

/// The Redis in which an application publishes.
#[derive(Debug)]
pub(crate) struct RedisSetup {
    options: SocketIoRedisOptions,
    namespaces: Vec<String>,
    url: String,
    server: FeedServer,
}

/// What a channel of Redis carries.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ChannelKind<'a> {
    /// Events for a room, or for any rooms if the name of the channel does not tell.
    Events { room: Option<&'a str> },
    /// Requests.
    Requests,
}

impl RedisSetup {
    /// Reads the URL and the certificates. Returns `None` if the protocol or the feature is off.
    ///
    /// # Errors
    /// A file cannot be read, or what it contains cannot be used.
    pub(crate) fn new(config: &Config) -> Result<Option<Self>, EndpointError> {
        let options = &config.socketio.redis;
        let url = options.url.as_ref().filter(|_| config.protocols.socketio);
        let setup = url.map(|url| Self::read(config, url)).transpose();
        setup.map_err(|problem| problem.of("socketio", "redis"))
    }

    fn read(config: &Config, url: &Secret) -> Result<Self, EndpointProblem> {
        let (options, broker) = (&config.socketio.redis, &config.broker);
        let url = url.read();
        let url = url.map_err(|error| EndpointProblem::invalid("url", error))?;
        let authorities = options.tls_authorities.as_ref().map(|path| {
            pem_file::read(path).map_err(|source| EndpointProblem::File {
                path: path.clone(),
                source,
            })
        });
        let server = FeedServer::new(
            &url,
            BrokerOptions {
                command_timeout: broker.request_timeout,
                payload_bytes_max: options.packet_bytes_max,
                reconnect_delay_max: broker.reconnect_wait_max,
                tls_authorities: authorities.transpose()?,
                ..BrokerOptions::default()
            },
        );
        Ok(Self {
            server: server.map_err(|error| EndpointProblem::invalid("url", describe(&error)))?,
            options: options.clone(),
            namespaces: config.socketio.namespaces.clone(),
            url,
        })
    }

    pub(super) const fn server(&self) -> &FeedServer {
        &self.server
    }

    pub(super) fn streams(&self) -> &[String] {
        &self.options.streams
    }

    pub(super) fn namespaces(&self) -> &[String] {
        &self.namespaces
    }

    pub(super) const fn rooms_max(&self) -> usize {
        self.options.rooms_max
    }

    pub(super) const fn packet_bytes_max(&self) -> usize {
        self.options.packet_bytes_max
    }

    /// Returns the patterns of the channels to subscribe to. Each namespace has its own, so that
    /// what is meant for others does not arrive. Requests have one as well: the adapter waits for
    /// an answer of each subscriber that is not one to a pattern.
    pub(super) fn patterns(&self) -> Vec<String> {
        let namespaces = self.namespaces.iter();
        let patterns = namespaces.flat_map(|namespace| {
            let [events, requests] = self.channels(namespace).map(|name| literal(&name));
            [format!("{events}*"), requests]
        });
        patterns.collect()
    }

    /// Returns the namespace that a channel of Redis is for, and what it carries.
    pub(super) fn route<'a>(&'a self, channel: &'a str) -> Option<(&'a str, ChannelKind<'a>)> {
        self.namespaces.iter().find_map(|namespace| {
            let [events, requests] = self.channels(namespace);
            if channel == requests {
                return Some((namespace.as_str(), ChannelKind::Requests));
            }
            let rest = channel.strip_prefix(&events)?;
            let room = rest.strip_suffix('#');
            Some((namespace.as_str(), ChannelKind::Events { room }))
        })
    }

    /// Returns the prefix of the channels with events, and the channel with requests.
    fn channels(&self, namespace: &str) -> [String; 2] {
        let key = &self.options.key;
        [
            format!("{key}#{namespace}#"),
            format!("{key}-request#{namespace}#"),
        ]
    }

    /// Returns whether feeds can continue with this setup. If there is a file, it may have changed.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.options.tls_authorities.is_none()
            && self.options == other.options
            && self.namespaces == other.namespaces
            && self.url == other.url
    }
}

/// Returns an error with its causes.
fn describe(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", describe(source)),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::{ChannelKind, RedisSetup};
    use crate::config::Loader;

    fn setup(toml: &str) -> Option<RedisSetup> {
        let config = Loader::new().with_text("test.toml", toml).load().unwrap();
        RedisSetup::new(&config).unwrap()
    }

    #[test]
    fn channels_are_those_of_the_adapter() {
        let setup = setup(
            "[protocols]\nsocketio = true\n[socketio]\nnamespaces = [\"/\", \"/chat\"]\n\
             [socketio.redis]\nurl = \"redis://127.0.0.1\"\nkey = \"my[app]\"",
        );
        let setup = setup.unwrap();
        assert_eq!(
            setup.patterns(),
            [
                r"my\[app\]#/#*",
                r"my\[app\]-request#/#",
                r"my\[app\]#/chat#*",
                r"my\[app\]-request#/chat#",
            ]
        );
        let events = |room| ChannelKind::Events { room };
        for (channel, route) in [
            ("my[app]#/#", Some(("/", events(None)))),
            ("my[app]#/#a#", Some(("/", events(Some("a"))))),
            ("my[app]#/#a#b#", Some(("/", events(Some("a#b"))))),
            ("my[app]#/chat#a#", Some(("/chat", events(Some("a"))))),
            (
                "my[app]-request#/chat#",
                Some(("/chat", ChannelKind::Requests)),
            ),
            ("my[app]#/other#", None),
            ("my[app]-response#/#", None),
        ] {
            assert_eq!(setup.route(channel), route, "{channel}");
        }
    }

    #[test]
    fn nothing_is_read_while_the_protocol_or_the_feature_is_off() {
        assert!(setup("[socketio.redis]\nurl = \"redis://127.0.0.1\"").is_none());
        assert!(setup("[protocols]\nsocketio = true").is_none());
    }

    #[test]
    fn a_url_that_cannot_be_used_is_refused() {
        let toml = "[protocols]\nsocketio = true\n[socketio.redis]\nurl = \"nats://a\"";
        let config = Loader::new().with_text("test.toml", toml).load().unwrap();
        let error = RedisSetup::new(&config).unwrap_err().to_string();
        assert!(
            error.starts_with("socketio redis: url: invalid Redis URL: "),
            "{error}"
        );
    }
}
