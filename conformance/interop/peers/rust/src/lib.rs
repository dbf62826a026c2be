//! The code that the peers share: the command line, and the two roles.

use std::{collections::HashMap, env, error::Error, future::Future};

use tokio::net::{TcpListener, TcpStream};

/// The result of a connection; the error is for people to read.
pub type Result<T = ()> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// The command line: `serve` or `connect URL`, then `NAME=VALUE…`.
pub struct Arguments {
    url: Option<String>,
    options: HashMap<String, String>,
}

impl Arguments {
    /// Parses the command line.
    pub fn read() -> Result<Self> {
        let mut words = env::args().skip(1);
        let url = match words.next().as_deref() {
            Some("connect") => Some(words.next().ok_or("connect requires a URL")?),
            Some("serve") => None,
            _ => return Err("usage: serve | connect URL, then NAME=VALUE…".into()),
        };
        let options = words
            .filter_map(|word| {
                let (name, value) = word.split_once('=')?;
                Some((name.to_owned(), value.to_owned()))
            })
            .collect();
        Ok(Self { url, options })
    }

    /// Returns the length of fragments; `None` to send messages whole.
    pub fn fragment(&self) -> Result<Option<usize>> {
        let length = self.options.get("fragment");
        Ok(length.map(|length| length.parse()).transpose()?)
    }

    /// Serves connections one after the other, or opens one; exits if one fails.
    pub async fn run<S, C>(
        self,
        mut serve: impl FnMut(TcpStream) -> S,
        connect: impl FnOnce(TcpStream, String) -> C,
    ) -> Result
    where
        S: Future<Output = Result>,
        C: Future<Output = Result>,
    {
        if let Some(url) = self.url {
            let address = url.trim_start_matches("ws://").trim_end_matches('/');
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            return connect(stream, url).await;
        }
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("ws://{}", listener.local_addr()?);
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            serve(stream).await?;
        }
    }
}
