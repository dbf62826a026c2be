//! Functions for a web page. The browser tests in `web/tests/browser` call them in Chromium:
//!
//! ```sh
//! make wasm
//! ```
//!
//! This writes `browser.js` and `browser_bg.wasm` to `.cache/wasm`; a page imports the former.

mod cancel;

use linerate_web::{Client, CloseCode, Error, Message, Options, WebSocket, connect};
use wasm_bindgen::prelude::{JsError, wasm_bindgen};

/// Sends a text message and a binary message, and returns what comes back.
#[wasm_bindgen]
pub async fn echo(url: String, text: String) -> Result<String, JsError> {
    let mut ws = connect(&url).await?;
    ws.send(text).await?;
    let Some(Message::Text(text)) = ws.recv().await? else {
        return Err(JsError::new("no text message came back"));
    };
    let bytes: Vec<u8> = (0..100_000).map(|index| index as u8).collect();
    ws.send(bytes.clone()).await?;
    if ws.recv().await? != Some(Message::Binary(bytes)) {
        return Err(JsError::new("different bytes came back"));
    }
    let closed = ws.close(CloseCode::NORMAL, "done").await?;
    Ok(format!("{text}, {}, {}", closed.code, closed.clean))
}

/// Sends far more numbers than fit into the send queue, then receives them. Returns how many came
/// back in order.
#[wasm_bindgen]
pub async fn count(url: String, messages: u32) -> Result<u32, JsError> {
    let mut options = Options::default();
    options.send_queue_bytes_max = 1_000;
    let mut ws = Client::new().with_options(options).connect(&url).await?;
    for number in 0..messages {
        ws.send(number.to_string()).await?;
    }
    for number in 0..messages {
        if ws.recv().await? != Some(number.to_string().into()) {
            return Ok(number);
        }
    }
    Ok(messages)
}

/// Connects, sends, receives and closes with futures that are dropped after 0 polls, then after 1,
/// and so on, until each one completes before that. Returns how many were dropped.
#[wasm_bindgen]
pub async fn cancel(url: String) -> Result<u32, JsError> {
    cancel::run(&url).await
}

/// Offers subprotocols and returns the one that the server chose.
#[wasm_bindgen]
pub async fn subprotocol(url: String, offered: Vec<String>) -> Result<Option<String>, JsError> {
    let client = offered
        .into_iter()
        .fold(Client::new(), Client::with_subprotocol);
    let ws = client.connect(&url).await?;
    Ok(ws.subprotocol())
}

/// Receives until the end. Returns how many messages there were, and how the connection ended.
#[wasm_bindgen]
pub async fn drain(url: String, queue_bytes_max: usize) -> String {
    let mut options = Options::default();
    options.recv_queue_bytes_max = queue_bytes_max;
    let mut ws = match Client::new().with_options(options).connect(&url).await {
        Ok(ws) => ws,
        Err(error) => return error.to_string(),
    };
    let mut messages = 0;
    let end = loop {
        match ws.recv().await {
            Ok(Some(_)) => messages += 1,
            Ok(None) => break "clean".to_owned(),
            Err(error) => break error.to_string(),
        }
    };
    let told = closed(&ws);
    format!("{messages}: {end}{told}")
}

/// Opens a connection without receiving until it is closed. Returns what is received afterwards.
#[wasm_bindgen]
pub async fn stall(url: String, queue_bytes_max: usize) -> Result<String, JsError> {
    let mut options = Options::default();
    options.recv_queue_bytes_max = queue_bytes_max;
    let mut ws = Client::new().with_options(options).connect(&url).await?;
    let closed = loop {
        // The first send after the connection was closed fails.
        match ws.send("go on").await {
            Ok(()) => yield_now().await,
            Err(Error::Closed) => break "closed",
            Err(error) => return Err(error.into()),
        }
    };
    let mut bytes = 0;
    loop {
        match ws.recv().await {
            Ok(Some(message)) => bytes += message.len(),
            Ok(None) => return Ok("clean".into()),
            Err(error) => return Ok(format!("{closed}, {bytes}, {error}")),
        }
    }
}

/// Closes with a code and a reason. Returns how the connection ended, or why it cannot be closed
/// so.
#[wasm_bindgen]
pub async fn close(url: String, code: u16, reason: String) -> Result<String, JsError> {
    let mut ws = connect(&url).await?;
    let code = CloseCode::new(code).ok_or_else(|| JsError::new("not a valid close code"))?;
    let closed = ws.close(code, &reason).await?;
    let told = self::closed(&ws);
    Ok(format!("{}{told}", closed.code))
}

fn closed(ws: &WebSocket) -> String {
    let closed = ws.closed();
    closed.map_or_else(String::new, |(closed, reason)| {
        format!(", {}, {reason}, {}", closed.code, closed.clean)
    })
}

/// Yields to the browser's event loop.
async fn yield_now() {
    let resolved = js_sys::Promise::new(&mut |resolve, _| {
        set_timeout(&resolve, 1);
    });
    _ = wasm_bindgen_futures::JsFuture::from(resolved).await;
}

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_name = setTimeout)]
    fn set_timeout(callback: &js_sys::Function, milliseconds: i32);
}
