//! Answers to requests that are not for a WebSocket, such as health checks.

use std::collections::HashMap;

use linerate_proto::handshake::{BuildError, HttpResponse, Request, RequestBody};

/// A function of the application that answers requests.
pub(crate) type AnswerPage = dyn FnMut(&Request) -> Result<HttpResponse, BuildError> + Send;

/// The functions that answer plain HTTP requests, by path, as cloned for one worker.
#[derive(Default)]
pub(crate) struct Pages(pub(crate) HashMap<String, Box<AnswerPage>>);

impl Pages {
    /// Answers a request that is not for a WebSocket; `None` if its path has no function.
    pub(crate) fn answer(
        &mut self,
        request: &Request,
        body_bytes_max: usize,
    ) -> Option<Result<HttpResponse, BuildError>> {
        if self.0.is_empty() || request.asks_for_websocket() {
            return None;
        }
        let answer = self.0.get_mut(request.path())?;
        Some(match (request.method(), request.body()) {
            ("GET" | "HEAD", RequestBody::None | RequestBody::Length(0)) => {
                finish(answer(request), request, body_bytes_max)
            }
            ("GET" | "HEAD", _) => plain(413, "requests for this path must not have a body"),
            // RFC 9110 §15.5.6: "The origin server MUST generate an Allow header field in a 405
            // response".
            _ => plain(405, "this path supports only GET and HEAD")
                .and_then(|refusal| refusal.with_header("Allow", "GET, HEAD")),
        })
    }
}

/// Applies what the request and the limit demand to a response of the application.
fn finish(
    response: Result<HttpResponse, BuildError>,
    request: &Request,
    body_bytes_max: usize,
) -> Result<HttpResponse, BuildError> {
    let response = match response {
        Ok(response) if response.body().len() <= body_bytes_max => response,
        Ok(response) => {
            let bytes = response.body().len();
            let text = format!(
                "response body of {bytes} bytes exceeds the limit of {body_bytes_max}: raise \
                 `Options::http_body_bytes_max`"
            );
            plain(500, &text)?
        }
        Err(error) => plain(500, &error.to_string())?,
    };
    Ok(match request.method() {
        "HEAD" => response.without_body(),
        _ => response,
    })
}

/// Returns a response with a line of text.
fn plain(status: u16, text: &str) -> Result<HttpResponse, BuildError> {
    HttpResponse::text(format!("{text}\n")).with_status(status)
}
