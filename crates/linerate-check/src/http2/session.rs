//! Processes the frames of a server: answers those that need it, and detects those that no server
//! may send.

use std::collections::{BTreeMap, VecDeque};

use super::{
    FRAME_BYTES_MAX, INITIAL_WINDOW_BYTES,
    frame::{self, *},
    hpack,
};
use crate::{connection::End, http::Head};

/// Connection-specific fields, which no HTTP/2 message may have (RFC 9113 §8.2.2).
const OF_CONNECTIONS: [&[u8]; 5] = [
    b"connection",
    b"keep-alive",
    b"proxy-connection",
    b"transfer-encoding",
    b"upgrade",
];

/// The maximum size of a field block, in bytes.
const BLOCK_BYTES_MAX: usize = 1 << 20;

/// The client's view of a connection.
#[derive(Debug)]
pub(crate) struct Session {
    arrived: Vec<u8>,
    /// Acknowledgements and window updates that wait to be sent.
    pub(crate) output: Vec<u8>,
    /// True once the server has sent its SETTINGS.
    pub(crate) is_greeted: bool,
    /// True if the server accepts WebSockets (RFC 8441 §3).
    pub(crate) takes_websockets: bool,
    /// How many bytes we may send on all streams together.
    pub(crate) window: i64,
    peer_window: i64,
    /// The window that our streams begin with. With `None`, every window is replenished at once.
    own_window: Option<i64>,
    pub(crate) streams: BTreeMap<u32, Stream>,
    /// The field block that has begun and is not complete.
    begun: Option<Frame>,
    pub(crate) goaway: Option<u32>,
    pub(crate) pongs: usize,
    /// The first thing received that no server may send.
    pub(crate) fault: Option<String>,
    /// How many frames have arrived that count as an answer.
    pub(crate) events: usize,
}

/// The client's view of a stream.
#[derive(Debug)]
pub(crate) struct Stream {
    /// How many bytes we may send.
    pub(crate) window: i64,
    room: i64,
    pub(crate) head: Option<Head>,
    /// DATA that has arrived and was not read.
    pub(crate) data: VecDeque<u8>,
    pub(crate) end: End,
    pub(crate) reset: Option<u32>,
}

impl Session {
    /// Creates a session for a new connection. With `own_window`, the server may send no more than
    /// that many bytes on a stream until one of our frames enlarges the window.
    pub(crate) fn new(own_window: Option<u32>) -> Self {
        Self {
            arrived: Vec::new(),
            output: Vec::new(),
            is_greeted: false,
            takes_websockets: false,
            window: INITIAL_WINDOW_BYTES,
            peer_window: INITIAL_WINDOW_BYTES,
            own_window: own_window.map(i64::from),
            streams: BTreeMap::new(),
            begun: None,
            goaway: None,
            pongs: 0,
            fault: None,
            events: 0,
        }
    }

    /// Returns the connection preface and our SETTINGS.
    pub(crate) fn greeting(&self) -> Vec<u8> {
        let mut values = vec![(HEADER_TABLE_SIZE, 0), (ENABLE_PUSH, 0)];
        if let Some(window) = self.own_window {
            values.push((INITIAL_WINDOW_SIZE, window as u32));
        }
        [super::PREFACE, &frame::settings(&values)].concat()
    }

    /// Processes bytes that have arrived.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        self.arrived.extend(bytes);
        while self.fault.is_none() {
            match Frame::take(&mut self.arrived, FRAME_BYTES_MAX) {
                Ok(Some(frame)) => self.fault = self.take_frame(frame).err(),
                Ok(None) => return,
                Err(bytes) => self.fault = Some(format!("a frame of {bytes} bytes")),
            }
        }
    }

    /// Applies the window changes in frames that we have sent.
    pub(crate) fn note_sent(&mut self, bytes: &[u8]) {
        if self.own_window.is_none() {
            return;
        }
        let mut bytes = bytes.to_vec();
        while let Ok(Some(frame)) = Frame::take(&mut bytes, usize::MAX) {
            let increment = i64::from(frame.number_at(0).unwrap_or(0));
            match frame.kind {
                WINDOW_UPDATE => self.stream(frame.stream).room += increment,
                SETTINGS => self.note_own_window(&frame.payload),
                _ => {}
            }
        }
    }

    fn note_own_window(&mut self, settings: &[u8]) {
        for (name, value) in pairs(settings) {
            if let (INITIAL_WINDOW_SIZE, Some(before)) = (name, self.own_window) {
                let more = i64::from(value) - before;
                self.streams
                    .values_mut()
                    .for_each(|stream| stream.room += more);
                self.own_window = Some(i64::from(value));
            }
        }
    }

    /// Returns the stream with this number, which is created if it does not exist.
    pub(crate) fn stream(&mut self, id: u32) -> &mut Stream {
        let (window, room) = (self.peer_window, self.own_window.unwrap_or(0));
        self.streams.entry(id).or_insert_with(|| Stream {
            window,
            room,
            head: None,
            data: VecDeque::new(),
            end: End::Open,
            reset: None,
        })
    }

    fn take_frame(&mut self, frame: Frame) -> Result<(), String> {
        if !self.is_greeted && (frame.kind, frame.flags & ACK) != (SETTINGS, 0) {
            // RFC 9113 §3.4.
            return Err(format!("a frame of type {} before SETTINGS", frame.kind));
        }
        if self.begun.is_some() && frame.kind != CONTINUATION {
            return Err("a frame inside a field block".into());
        }
        match frame.kind {
            DATA => self.take_data(&frame),
            HEADERS => self.take_headers(frame),
            CONTINUATION => self.take_continuation(frame),
            RST_STREAM => self.take_reset(&frame),
            SETTINGS => self.take_settings(&frame),
            PUSH_PROMISE => Err("a PUSH_PROMISE, although pushes are disabled".into()),
            PING => self.take_ping(&frame),
            GOAWAY => self.take_goaway(&frame),
            WINDOW_UPDATE => self.take_window(&frame),
            _ => Ok(()),
        }
    }

    fn take_data(&mut self, frame: &Frame) -> Result<(), String> {
        let content = frame
            .content()
            .ok_or("padding that is longer than its frame")?;
        let length = frame.payload.len() as i64;
        let lets_in = self.own_window.is_none();
        let stream = self.stream(frame.stream);
        if stream.head.is_none() {
            return Err("DATA before a response".into());
        }
        if stream.end != End::Open {
            return Err("DATA on a stream that has ended".into());
        }
        stream.data.extend(content);
        if frame.has(END_STREAM) {
            stream.end = End::Fin;
        }
        if !lets_in {
            stream.room -= length;
            if stream.room < 0 {
                return Err("more DATA than its window allows".into());
            }
        }
        self.events += 1;
        if lets_in && length > 0 {
            let increment = (length as u32).to_be_bytes();
            let updates = [0, frame.stream].map(|id| frame::frame(WINDOW_UPDATE, 0, id, increment));
            self.output.extend(updates.concat());
        }
        Ok(())
    }

    fn take_headers(&mut self, frame: Frame) -> Result<(), String> {
        let content = frame
            .content()
            .ok_or("padding that is longer than its frame")?
            .to_vec();
        let first = Frame {
            payload: content,
            flags: frame.flags & !(PADDED | PRIORITIZED),
            ..frame
        };
        if first.has(END_HEADERS) {
            return self.take_fields(&first);
        }
        self.begun = Some(first);
        Ok(())
    }

    fn take_continuation(&mut self, frame: Frame) -> Result<(), String> {
        let Some(mut begun) = self.begun.take() else {
            return Err("CONTINUATION without a field block to continue".into());
        };
        if begun.stream != frame.stream {
            return Err("CONTINUATION on another stream".into());
        }
        begun.payload.extend(&frame.payload);
        if begun.payload.len() > BLOCK_BYTES_MAX {
            return Err(format!(
                "a field block of more than {BLOCK_BYTES_MAX} bytes"
            ));
        }
        if frame.has(END_HEADERS) {
            return self.take_fields(&begun);
        }
        self.begun = Some(begun);
        Ok(())
    }

    fn take_fields(&mut self, frame: &Frame) -> Result<(), String> {
        let mut status = None;
        let mut fields = Vec::new();
        for (name, value) in hpack::fields(&frame.payload)? {
            if name.iter().any(u8::is_ascii_uppercase) || OF_CONNECTIONS.contains(&&*name) {
                let name = String::from_utf8_lossy(&name).into_owned();
                return Err(format!("a field {name:?}, which HTTP/2 forbids"));
            }
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            match &*name {
                b":status" => status = text(&value).parse::<u16>().ok(),
                _ => fields.push((text(&name), text(&value))),
            }
        }
        let stream = self.stream(frame.stream);
        if stream.end != End::Open {
            return Err("HEADERS on a stream that has ended".into());
        }
        match (status, &stream.head) {
            (Some(100..=199), None) => return Ok(()),
            (Some(status), None) => {
                let line = format!("HTTP/2 {status}");
                stream.head = Some(Head { line, fields });
            }
            // Trailers.
            (None, Some(_)) if frame.has(END_STREAM) => {}
            _ => return Err("HEADERS that are not a response".into()),
        }
        if frame.has(END_STREAM) {
            stream.end = End::Fin;
        }
        self.events += 1;
        Ok(())
    }

    fn take_reset(&mut self, frame: &Frame) -> Result<(), String> {
        let code = frame.number_at(0).ok_or("RST_STREAM without a code")?;
        let stream = self.stream(frame.stream);
        // Resetting a stream that has ended changes nothing.
        if stream.end == End::Open {
            stream.end = End::Reset;
        }
        stream.reset = Some(code);
        self.events += 1;
        Ok(())
    }

    fn take_settings(&mut self, frame: &Frame) -> Result<(), String> {
        if frame.has(ACK) {
            return Ok(());
        }
        if frame.stream != 0 || !frame.payload.len().is_multiple_of(6) {
            return Err("SETTINGS on a stream, or with an incomplete setting".into());
        }
        self.is_greeted = true;
        for (name, value) in pairs(&frame.payload) {
            match name {
                ENABLE_CONNECT_PROTOCOL => self.takes_websockets = value == 1,
                INITIAL_WINDOW_SIZE => self.move_windows(i64::from(value)),
                _ => {}
            }
        }
        self.output.extend(frame::frame(SETTINGS, ACK, 0, b""));
        self.events += 1;
        Ok(())
    }

    /// Applies the server's initial window. RFC 9113 §6.9.2: the windows of existing streams change
    /// by the difference.
    fn move_windows(&mut self, bytes: i64) {
        let more = bytes - self.peer_window;
        self.streams
            .values_mut()
            .for_each(|stream| stream.window += more);
        self.peer_window = bytes;
    }

    fn take_ping(&mut self, frame: &Frame) -> Result<(), String> {
        if frame.has(ACK) {
            self.pongs += 1;
            self.events += 1;
        } else {
            let answer = frame::frame(PING, ACK, 0, &frame.payload);
            self.output.extend(answer);
        }
        Ok(())
    }

    fn take_goaway(&mut self, frame: &Frame) -> Result<(), String> {
        self.goaway = Some(frame.number_at(4).ok_or("GOAWAY without a code")?);
        self.events += 1;
        Ok(())
    }

    fn take_window(&mut self, frame: &Frame) -> Result<(), String> {
        let increment = frame.number_at(0).unwrap_or(0) & 0x7FFF_FFFF;
        if increment == 0 {
            return Err("WINDOW_UPDATE with an increment of 0".into());
        }
        match frame.stream {
            0 => self.window += i64::from(increment),
            id => self.stream(id).window += i64::from(increment),
        }
        Ok(())
    }
}

/// Returns the names and values in the payload of a SETTINGS frame.
fn pairs(payload: &[u8]) -> impl Iterator<Item = (u16, u32)> {
    payload.chunks_exact(6).map(|setting| {
        let [a, b, value @ ..] = setting else {
            return (0, 0);
        };
        let value = value.first_chunk().copied().unwrap_or_default();
        (u16::from_be_bytes([*a, *b]), u32::from_be_bytes(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greeted() -> Session {
        let mut session = Session::new(None);
        session.take(&settings(&[(ENABLE_CONNECT_PROTOCOL, 1)]));
        assert!(session.takes_websockets);
        assert_eq!(session.output, frame(SETTINGS, ACK, 0, b""));
        session.output.clear();
        session
    }

    fn ok(stream: u32) -> Vec<u8> {
        frame(HEADERS, END_HEADERS, stream, b"\x88")
    }

    #[test]
    fn data_of_a_stream_is_taken_and_its_window_given_back() {
        let mut session = greeted();
        session.take(&[ok(1), frame(DATA, END_STREAM, 1, b"Spam")].concat());
        assert_eq!(session.fault, None);
        let stream = &session.streams[&1];
        assert_eq!(stream.head.as_ref().unwrap().status(), Some(200));
        assert_eq!((stream.data.len(), stream.end), (4, End::Fin));
        let updates = [0, 1].map(|id| frame(WINDOW_UPDATE, 0, id, b"\0\0\0\x04"));
        assert_eq!(session.output, updates.concat());
    }

    #[test]
    fn what_no_server_may_say_is_named() {
        for (said, fault) in [
            (frame(DATA, 0, 1, b"Spam"), "before a response"),
            (frame(PUSH_PROMISE, 0, 1, b""), "push"),
            (frame(CONTINUATION, 0, 1, b""), "without a field block"),
            (frame(WINDOW_UPDATE, 0, 1, [0; 4]), "increment of 0"),
            ([ok(1), ok(1)].concat(), "not a response"),
            (frame(DATA, 0, 1, vec![0; 16_385]), "16385 bytes"),
            (frame(HEADERS, END_HEADERS, 1, b"\x88\xbe"), "table"),
            (
                frame(HEADERS, END_HEADERS, 1, hpack::block(&[("upgrade", "a")])),
                "upgrade",
            ),
        ] {
            let mut session = greeted();
            session.take(&said);
            let found = session.fault.expect(fault);
            assert!(found.contains(fault), "{found}");
        }
        let mut session = Session::new(None);
        session.take(&ok(1));
        assert!(session.fault.unwrap().contains("before SETTINGS"));
    }

    #[test]
    fn more_than_the_window_allows_is_a_fault() {
        let mut session = Session::new(Some(2));
        session.take(&[settings(&[]), ok(1), frame(DATA, 0, 1, b"ab")].concat());
        assert_eq!(session.fault, None);
        session.note_sent(&frame(WINDOW_UPDATE, 0, 1, 1_u32.to_be_bytes()));
        session.take(&frame(DATA, 0, 1, b"c"));
        assert_eq!(session.fault, None);
        session.take(&frame(DATA, 0, 1, b"d"));
        assert!(session.fault.unwrap().contains("window"));
    }
}
