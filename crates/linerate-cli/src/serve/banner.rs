//! What `linerate serve` prints when it serves.

use std::{fmt::Write as _, io::Write as _};

use linerate_gateway::{Gateway, config::Config};

/// The pages, with what they show.
const PAGES: [(&str, &str); 4] = [
    ("/", "overview, with channels to try out"),
    ("/admin", "clients, channels, the link to the broker"),
    ("/logs", "drop an access log to see its statistics"),
    ("/docs", "documentation"),
];

/// The lines below the address: the broker, who may connect, where clients connect, and the pages.
#[derive(Debug)]
pub(super) struct Banner(String);

impl Banner {
    pub(super) fn new(config: &Config) -> Self {
        let broker = config.broker.scheme();
        let broker = match broker.as_deref() {
            Some("memory") => "memory, for this node only",
            Some(scheme) => scheme,
            None => "unknown",
        };
        let access = match config.is_open() {
            true => "open: every client that can connect may do everything",
            false => "restricted by [auth] or a backend",
        };
        let paths = Gateway::client_paths(config);
        let paths = paths
            .into_iter()
            .map(|(name, paths)| (name, paths.join("  ")));
        let mut text = format!("  broker    {broker}\n  access    {access}\n");
        append(&mut text, "clients", paths);
        append(
            &mut text,
            "pages",
            PAGES.map(|(path, what)| (path, what.to_owned())),
        );
        text += "press ctrl-c to stop\n";
        Self(text)
    }

    /// Prints the address of the server, and the rest.
    pub(super) fn print(&self, url: &str) {
        let text = format!("linerate serve: {url}/\n{}", self.0);
        // Standard output may be closed, which must not keep the server from running.
        let mut stdout = std::io::stdout().lock();
        _ = stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush());
    }
}

/// Appends rows, the first of which has a title.
fn append<'a>(text: &mut String, title: &str, rows: impl IntoIterator<Item = (&'a str, String)>) {
    let mut title = title;
    for (name, what) in rows {
        // Writing to a string cannot fail.
        _ = writeln!(text, "  {title:<8}  {name:<10}  {what}");
        title = "";
    }
}

#[cfg(test)]
mod tests {
    use linerate_gateway::config::Loader;

    use super::Banner;

    #[test]
    fn the_banner_names_the_broker_the_access_the_paths_and_the_pages() {
        let text = "broker.url = \"redis://user:password@127.0.0.1:6379\"\n\
                    protocols.socketio = true\nauth.api_key = \"0123456789abcdef\"";
        let config = Loader::new().with_text("test.toml", text).load().unwrap();
        let Banner(text) = Banner::new(&config);
        let lines: Vec<_> = text.lines().map(str::trim).collect();
        for line in [
            "broker    redis",
            "access    restricted by [auth] or a backend",
            "raw         /raw",
            "socketio    /socket.io/",
            "/docs       documentation",
        ] {
            assert!(lines.contains(&line), "{line}: {text}");
        }
        assert!(
            !text.contains("pusher") && !text.contains("password"),
            "{text}"
        );
    }

    #[test]
    fn an_open_server_says_so() {
        let Banner(text) = Banner::new(&Loader::new().load().unwrap());
        assert!(text.contains("broker    memory") && text.contains("access    open:"));
    }
}
