//! A single connection.

use std::{cell::RefCell, fmt, future::poll_fn, rc::Rc, time::Duration};

use js_sys::{Array, ArrayBuffer, Uint8Array};
use linerate_proto::{CloseCode, engine::Closed};
use wasm_bindgen::prelude::{Closure, JsCast, JsValue};
use web_sys::{BinaryType, CloseEvent, Event, MessageEvent};

use crate::{Error, Message, Options, Result, state::State, timer};

/// The close code for a full receive queue. 1009 ("too big") is not available to pages, which
/// cannot use codes from 1001 to 2999.
const QUEUE_FULL_CODE: u16 = 4009;

/// The longest reason of a Close frame in bytes (RFC 6455 §5.5).
const REASON_BYTES_MAX: usize = 123;

/// How often to check whether the browser has sent queued data, because it does not notify the
/// page.
const SEND_QUEUE_INTERVAL: Duration = Duration::from_millis(5);

/// An open connection. Dropping it closes the connection.
pub struct WebSocket {
    socket: web_sys::WebSocket,
    state: Rc<RefCell<State>>,
    options: Options,
    /// The event handlers that the browser calls.
    _handlers: Handlers,
}

/// The event handlers that the browser calls. They are removed on drop.
struct Handlers {
    socket: web_sys::WebSocket,
    _open: Closure<dyn FnMut(Event)>,
    _message: Closure<dyn FnMut(MessageEvent)>,
    _close: Closure<dyn FnMut(CloseEvent)>,
}

impl WebSocket {
    pub(crate) async fn open(url: &str, subprotocols: &[String], options: Options) -> Result<Self> {
        let offered: Array = subprotocols
            .iter()
            .map(|name| JsValue::from_str(name))
            .collect();
        let socket = web_sys::WebSocket::new_with_str_sequence(url, &offered).map_err(refused)?;
        socket.set_binary_type(BinaryType::Arraybuffer);
        let state = Rc::new(RefCell::new(State::new(options.recv_queue_bytes_max)));
        let ws = Self {
            _handlers: Handlers::attach(&socket, &state),
            socket,
            state,
            options,
        };
        let budget = ws.options.connect_timeout;
        let opened = poll_fn(|cx| ws.state.borrow_mut().poll_open(cx));
        let opened = timer::timeout(budget, opened).await;
        opened.unwrap_or(Err(Error::ConnectTimeout { budget }))?;
        Ok(ws)
    }

    /// Receives the next message, or `None` after a clean close. Cancel-safe.
    ///
    /// # Errors
    /// Returns an error if the connection ended without a closing handshake, or if too many bytes
    /// were waiting to be received.
    pub async fn recv(&mut self) -> Result<Option<Message>> {
        poll_fn(|cx| self.state.borrow_mut().poll_recv(cx)).await
    }

    /// Sends a message. Waits first while more than [`Options::send_queue_bytes_max`] bytes are
    /// queued in the browser. If the future is dropped before it completes, nothing was sent.
    ///
    /// # Errors
    /// Returns an error if the connection is closing or closed.
    pub async fn send(&mut self, message: impl Into<Message>) -> Result<()> {
        let message = message.into();
        while self.is_open() && self.queued_bytes() > self.options.send_queue_bytes_max {
            timer::sleep(SEND_QUEUE_INTERVAL).await;
        }
        if !self.is_open() {
            return Err(Error::Closed);
        }
        let sent = match &message {
            Message::Binary(bytes) => self.socket.send_with_u8_array(bytes),
            Message::Text(text) => self.socket.send_with_str(text),
        };
        sent.map_err(refused)
    }

    /// Closes the connection and waits until it is closed. Messages that arrive meanwhile can still
    /// be received. Returns how the connection ended, even if it had ended before.
    ///
    /// # Errors
    /// Returns an error if a page may not close with the code, if the reason is too long, or if the
    /// closing handshake takes too long.
    pub async fn close(&mut self, code: CloseCode, reason: &str) -> Result<Closed> {
        let code = code.as_u16();
        if code != 1000 && !(3000..=4999).contains(&code) {
            return Err(Error::CloseCode { code });
        }
        if reason.len() > REASON_BYTES_MAX {
            return Err(Error::ReasonTooLong {
                bytes: reason.len(),
                bytes_max: REASON_BYTES_MAX,
            });
        }
        // This does nothing if closing has already begun.
        self.socket
            .close_with_code_and_reason(code, reason)
            .map_err(refused)?;
        let budget = self.options.close_timeout;
        let closed = poll_fn(|cx| self.state.borrow_mut().poll_closed(cx));
        let closed = timer::timeout(budget, closed).await;
        closed.ok_or(Error::CloseTimeout { budget })
    }

    /// Returns the subprotocol that was negotiated in the opening handshake.
    pub fn subprotocol(&self) -> Option<String> {
        Some(self.socket.protocol()).filter(|protocol| !protocol.is_empty())
    }

    /// Returns how the connection ended and the peer's reason, or `None` while it is open.
    pub fn closed(&self) -> Option<(Closed, String)> {
        self.state.borrow().closed().cloned()
    }

    /// Returns how many bytes are waiting in the browser to be sent.
    pub fn queued_bytes(&self) -> usize {
        self.socket.buffered_amount() as usize
    }

    fn is_open(&self) -> bool {
        self.socket.ready_state() == web_sys::WebSocket::OPEN
    }
}

impl Handlers {
    fn attach(socket: &web_sys::WebSocket, state: &Rc<RefCell<State>>) -> Self {
        let told = state.clone();
        let open = Closure::new(move |_: Event| tell(&told, State::handle_open));
        let (told, full) = (state.clone(), socket.clone());
        let message = Closure::new(move |event: MessageEvent| {
            let Some(message) = message_of(&event.data()) else {
                return;
            };
            if tell(&told, |state| state.handle_message(message)).is_err() {
                // This cannot fail: a page may close with this code.
                _ = full.close_with_code_and_reason(QUEUE_FULL_CODE, "receive queue full");
            }
        });
        let told = state.clone();
        let close = Closure::new(move |event: CloseEvent| {
            let closed = Closed {
                code: event.code(),
                clean: event.was_clean(),
            };
            tell(&told, |state| state.handle_close(closed, event.reason()));
        });
        socket.set_onopen(Some(open.as_ref().unchecked_ref()));
        socket.set_onmessage(Some(message.as_ref().unchecked_ref()));
        socket.set_onclose(Some(close.as_ref().unchecked_ref()));
        Self {
            socket: socket.clone(),
            _open: open,
            _message: message,
            _close: close,
        }
    }
}

impl Drop for Handlers {
    fn drop(&mut self) {
        self.socket.set_onopen(None);
        self.socket.set_onmessage(None);
        self.socket.set_onclose(None);
        // This cannot fail without a code.
        _ = self.socket.close();
    }
}

impl fmt::Debug for WebSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebSocket")
            .field("url", &self.socket.url())
            .finish_non_exhaustive()
    }
}

/// Changes the state, then wakes the tasks that wait for it. They may access the state immediately.
fn tell<T>(state: &RefCell<State>, change: impl FnOnce(&mut State) -> T) -> T {
    let (changed, wakers) = {
        let mut state = state.borrow_mut();
        (change(&mut state), state.take_wakers())
    };
    for waker in wakers {
        waker.wake();
    }
    changed
}

/// Returns the message in an event: a string, or an `ArrayBuffer` as set in `binaryType`.
fn message_of(data: &JsValue) -> Option<Message> {
    if let Some(text) = data.as_string() {
        return Some(Message::Text(text));
    }
    let buffer = data.dyn_ref::<ArrayBuffer>()?;
    Some(Message::Binary(Uint8Array::new(buffer).to_vec()))
}

fn refused(error: JsValue) -> Error {
    let error = error.dyn_into::<js_sys::Error>();
    Error::Refused {
        message: error.map_or_else(|_| "no reason given".into(), |error| error.message().into()),
    }
}
