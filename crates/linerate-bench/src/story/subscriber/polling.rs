//! A client that polls, as `engine.io-client` does in a browser: one `GET` at a time on a
//! connection that is kept until the server closes it, the next one as soon as the packets of the
//! last one are read, and a `POST` for each packet of its own on another connection.

use std::io::{self, ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

use serde::Deserialize;

use super::{SubscriptionRequest, configure, read, read_available};
use crate::story::Dialect;

/// What separates the packets in a body.
const SEPARATOR: u8 = 0x1e;

/// The packet with which the server ends a session.
const CLOSE: &[u8] = b"1";

/// The maximum number of fields in the head of a response.
const FIELDS_MAX: usize = 32;

/// A subscribed client.
#[derive(Debug)]
pub(in crate::story) struct PollingSubscriber {
    stream: TcpStream,
    /// True if the stream is not watched yet.
    is_moved: bool,
    /// True once the stream has had a response. The server may then close it between two requests.
    is_used: bool,
    address: SocketAddr,
    dialect: Dialect,
    sid: String,
    /// Number of requests so far, which makes their URLs different.
    requests: u64,
    /// Input that is not a whole response yet.
    unparsed: Vec<u8>,
    /// The connection of the last `POST`. Servers end a session if it is closed too early.
    post: Option<TcpStream>,
}

/// The packet that describes a session.
#[derive(Deserialize)]
struct Session {
    sid: String,
}

impl PollingSubscriber {
    /// Opens a session, and waits until the server confirms the subscription. Then polls.
    pub(super) fn subscribe(stream: TcpStream, request: SubscriptionRequest) -> io::Result<Self> {
        let mut subscriber = Self {
            stream,
            is_moved: false,
            is_used: false,
            address: request.address,
            dialect: request.dialect,
            sid: String::new(),
            requests: 0,
            unparsed: Vec::new(),
            post: None,
        };
        subscriber.greet(request)?;
        subscriber.poll()?;
        subscriber.stream.set_nonblocking(true)?;
        Ok(subscriber)
    }

    /// Sends the messages that subscribe the client, and polls until each is answered.
    fn greet(&mut self, request: SubscriptionRequest) -> io::Result<()> {
        let greeting = self.dialect.greeting(request.source, request.batch_ms);
        for (says, hears) in greeting.says.iter().zip(greeting.hears) {
            if !says.is_empty() {
                self.say(says)?;
                let mut post = self.post.take().ok_or(ErrorKind::NotConnected)?;
                next_response(&mut post, &mut Vec::new())?;
            }
            self.wait_for(hears)?;
        }
        Ok(())
    }

    fn wait_for(&mut self, part: &str) -> io::Result<()> {
        loop {
            self.poll()?;
            let body = next_response(&mut self.stream, &mut self.unparsed)?;
            let mut heard = Vec::new();
            self.take_packets(&body, &mut |packet| heard.push(packet.to_vec()))?;
            for packet in heard {
                if self.sid.is_empty()
                    && let Some(session) = packet.strip_prefix(b"0")
                {
                    self.sid = serde_json::from_slice::<Session>(session)?.sid;
                }
                if memchr::memmem::find(&packet, part.as_bytes()).is_some() {
                    return Ok(());
                }
            }
        }
    }

    /// Reads everything that has arrived, `buffer` at a time, passes the packets of each whole
    /// response to `on_payload`, and polls again.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection or the session has ended, or a request is refused.
    pub(super) fn receive(
        &mut self,
        buffer: &mut [u8],
        on_payload: &mut impl FnMut(&[u8]),
    ) -> io::Result<()> {
        loop {
            let bytes = match read_available(&mut self.stream, buffer) {
                Ok(None) => return Ok(()),
                Ok(Some(bytes)) => bytes,
                Err(error) => match error.kind() {
                    // Browsers repeat such a request.
                    ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof
                        if self.is_used && self.unparsed.is_empty() =>
                    {
                        self.reconnect()?;
                        return self.poll();
                    }
                    _ => return Err(error),
                },
            };
            self.unparsed.extend_from_slice(&buffer[..bytes]);
            // Nothing follows it, because only one request is under way.
            if let Some(found) = response(&self.unparsed)? {
                let response = std::mem::take(&mut self.unparsed);
                self.take_packets(&response[found.body], on_payload)?;
                self.is_used = true;
                if found.is_last {
                    self.reconnect()?;
                    return self.poll();
                }
                self.poll()?;
            }
            if bytes < buffer.len() {
                return Ok(());
            }
        }
    }

    /// Returns whether the stream is another one since the last call.
    pub(super) fn has_moved(&mut self) -> bool {
        std::mem::take(&mut self.is_moved)
    }

    fn reconnect(&mut self) -> io::Result<()> {
        self.stream = TcpStream::connect(self.address)?;
        self.stream.set_nodelay(true)?;
        self.stream.set_nonblocking(true)?;
        (self.is_moved, self.is_used) = (true, false);
        Ok(())
    }

    /// Handles the packets of a body.
    fn take_packets(&mut self, body: &[u8], on_payload: &mut impl FnMut(&[u8])) -> io::Result<()> {
        let ends = memchr::memchr_iter(SEPARATOR, body).chain([body.len()]);
        let mut start = 0;
        for end in ends {
            let packet = &body[start..end];
            start = end + 1;
            match self.dialect.pong(packet) {
                Some(pong) => self.say(pong)?,
                None if packet == CLOSE => return Err(io::Error::other("session closed")),
                None => on_payload(packet),
            }
        }
        Ok(())
    }

    /// Asks for packets. The request always fits into the socket's buffer.
    fn poll(&mut self) -> io::Result<()> {
        let head = self.head("GET");
        self.stream.write_all(format!("{head}\r\n").as_bytes())
    }

    /// Sends a packet, on a new connection because servers close the last one before a client sends
    /// its next pong.
    fn say(&mut self, packet: &str) -> io::Result<()> {
        let mut stream = TcpStream::connect(self.address)?;
        configure(&stream)?;
        let (head, bytes) = (self.head("POST"), packet.len());
        let fields = "Content-type: text/plain;charset=UTF-8";
        let request = format!("{head}{fields}\r\nContent-Length: {bytes}\r\n\r\n{packet}");
        stream.write_all(request.as_bytes())?;
        self.post = Some(stream);
        Ok(())
    }

    /// Returns the head of the next request, without the empty line at its end.
    fn head(&mut self, method: &str) -> String {
        self.requests += 1;
        let sid = match self.sid.as_str() {
            "" => String::new(),
            sid => format!("&sid={sid}"),
        };
        format!(
            "{method} /socket.io/?EIO=4&transport=polling&t={:x}{sid} HTTP/1.1\r\n\
             Host: {}\r\nAccept: */*\r\nConnection: keep-alive\r\n",
            self.requests, self.address
        )
    }
}

impl AsFd for PollingSubscriber {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// A whole response.
#[derive(Debug, Eq, PartialEq)]
struct Response {
    /// Where its body is.
    body: Range<usize>,
    /// True if the server closes the connection.
    is_last: bool,
}

/// Waits for the next response of a stream that blocks, and returns its body.
fn next_response(stream: &mut TcpStream, unparsed: &mut Vec<u8>) -> io::Result<Vec<u8>> {
    let mut buffer = [0; 4 << 10];
    loop {
        if let Some(found) = response(unparsed)? {
            return Ok(std::mem::take(unparsed)[found.body].to_vec());
        }
        let bytes = read(stream, &mut buffer)?;
        unparsed.extend_from_slice(&buffer[..bytes]);
    }
}

/// Returns the response at the beginning of `bytes`, once all of it has arrived.
///
/// # Errors
///
/// Returns an error unless the status is 200 and the length of the body is known.
fn response(bytes: &[u8]) -> io::Result<Option<Response>> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut head = httparse::Response::new(&mut fields);
    let parsed = head.parse(bytes);
    let parsed = parsed.map_err(|error| io::Error::other(error.to_string()));
    let httparse::Status::Complete(start) = parsed? else {
        return Ok(None);
    };
    let field = |name: &str| {
        let mut fields = head.headers.iter();
        let field = fields.find(|field| field.name.eq_ignore_ascii_case(name));
        field.and_then(|field| std::str::from_utf8(field.value).ok())
    };
    let length = field("content-length").and_then(|value| value.parse().ok());
    let Some(length) = length.filter(|_| head.code == Some(200)) else {
        let text = String::from_utf8_lossy(bytes);
        return Err(io::Error::other(format!(
            "not a response with packets: {text}"
        )));
    };
    let end = start.saturating_add(length);
    let is_last = field("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
    Ok((bytes.len() >= end).then_some(Response {
        body: start..end,
        is_last,
    }))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::thread;
    use std::time::Duration;

    use super::{PollingSubscriber, SubscriptionRequest, response};
    use crate::story::{Dialect, Transport};

    /// Reads a request. Returns its first line without what makes URLs different, and its body.
    fn request(stream: &mut BufReader<TcpStream>) -> (String, String) {
        let (mut first, mut length) = (String::new(), 0);
        stream.read_line(&mut first).unwrap();
        let at = first.find("&t=").unwrap();
        let rest = first[at + 3..].trim_start_matches(|digit: char| digit.is_ascii_hexdigit());
        let line = format!("{}{}", &first[..at], rest.trim_end());
        loop {
            let mut field = String::new();
            stream.read_line(&mut field).unwrap();
            match field.trim_end().split_once(": ") {
                Some(("Content-Length", value)) => length = value.parse().unwrap(),
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).unwrap();
        (line, String::from_utf8(body).unwrap())
    }

    fn answer(stream: &mut BufReader<TcpStream>, body: &str) {
        let bytes = body.len();
        let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n{body}");
        stream.get_mut().write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn a_client_polls_and_posts_as_engine_io_does() {
        const POLL: &str = "GET /socket.io/?EIO=4&transport=polling&sid=a HTTP/1.1";
        const POST: &str = "POST /socket.io/?EIO=4&transport=polling&sid=a HTTP/1.1";
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let accept = || BufReader::new(listener.accept().unwrap().0);
            let mut polls = accept();
            let opening = request(&mut polls).0;
            assert_eq!(opening, "GET /socket.io/?EIO=4&transport=polling HTTP/1.1");
            answer(&mut polls, "0{\"sid\":\"a\",\"upgrades\":[]}");
            for (says, answers) in [
                ("40", "40{\"sid\":\"b\"}"),
                (
                    "420[\"subscribe\",\"s03\"]",
                    "42[\"story\",0]\x1e430[\"subscribed\"]",
                ),
            ] {
                let mut post = accept();
                assert_eq!(request(&mut post), (POST.to_owned(), says.to_owned()));
                answer(&mut post, "ok");
                assert_eq!(request(&mut polls).0, POLL);
                answer(&mut polls, answers);
            }
            assert_eq!(request(&mut polls).0, POLL);
            answer(&mut polls, "42[\"story\",1]\x1e2\x1e42[\"story\",2]");
            let mut post = accept();
            assert_eq!(request(&mut post), (POST.to_owned(), "3".to_owned()));
            answer(&mut post, "ok");
            // The server may close the connection after a response, or between two of them.
            assert_eq!(request(&mut polls).0, POLL);
            let last = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n43";
            polls.get_mut().write_all(last.as_bytes()).unwrap();
            let mut polls = accept();
            assert_eq!(request(&mut polls).0, POLL);
            answer(&mut polls, "44");
            assert_eq!(request(&mut polls).0, POLL);
            drop(polls);
            let mut polls = accept();
            assert_eq!(request(&mut polls).0, POLL);
            answer(&mut polls, "1");
        });
        let asked = SubscriptionRequest {
            address,
            dialect: Dialect::SocketIo,
            transport: Transport::Polling,
            source: 3,
            batch_ms: 0,
        };
        let stream = TcpStream::connect(address).unwrap();
        let mut subscriber = PollingSubscriber::subscribe(stream, asked).unwrap();
        let (mut received, mut buffer) = (Vec::new(), [0; 7]);
        let mut take = |packet: &[u8]| received.push(String::from_utf8(packet.to_vec()).unwrap());
        let error = loop {
            match subscriber.receive(&mut buffer, &mut take) {
                Ok(()) => thread::sleep(Duration::from_millis(1)),
                Err(error) => break error,
            }
        };
        assert_eq!(error.to_string(), "session closed");
        assert_eq!(received, ["42[\"story\",1]", "42[\"story\",2]", "43", "44"]);
        assert!(subscriber.has_moved() && !subscriber.has_moved());
        server.join().unwrap();
    }

    #[test]
    fn a_response_is_whole_or_an_error() {
        let whole = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n42x";
        for end in 0..whole.len() {
            assert_eq!(response(&whole[..end]).unwrap(), None, "{end}");
        }
        let found = response(whole).unwrap().unwrap();
        assert_eq!(&whole[found.body], b"42x");
        assert!(!found.is_last);
        let last = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
        assert!(response(last).unwrap().unwrap().is_last);
        for refused in [
            &b"HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\n{}"[..],
            b"HTTP/1.1 200 OK\r\n\r\n",
            b"RESP/1 200 OK\r\n\r\n",
        ] {
            assert!(response(refused).is_err());
        }
    }
}
