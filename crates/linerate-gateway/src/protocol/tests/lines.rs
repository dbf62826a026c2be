//! The protocol of the guide (`protocol::lines`), served by a gateway.

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use futures_util::StreamExt;
use http::StatusCode;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use linerate_hub::{Gap, GapCause};
use tokio::time::timeout;

use super::channel;
use crate::{Gateway, config::Loader, protocol::lines::append_gap};

/// The body of a response, line by line.
struct Lines {
    stream: BodyDataStream,
    unread: Vec<u8>,
}

impl Lines {
    /// Returns the next line; `None` at the end of the response.
    async fn next(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                return Some(String::from_utf8(line).unwrap());
            }
            let piece = timeout(Duration::from_secs(10), self.stream.next());
            self.unread.extend(piece.await.expect("in time")?.unwrap());
        }
    }

    /// Returns the next line that contains `text`.
    async fn find(&mut self, text: &str) -> Option<String> {
        loop {
            let line = self.next().await?;
            if line.contains(text) {
                return Some(line);
            }
        }
    }
}

async fn get(url: &str) -> (StatusCode, Lines) {
    let client = Client::builder(TokioExecutor::new()).build_http::<Body>();
    let response = client.get(url.parse().unwrap()).await.unwrap();
    let (head, body) = response.into_parts();
    let stream = Body::new(body).into_data_stream();
    let unread = Vec::new();
    (head.status, Lines { stream, unread })
}

#[tokio::test]
async fn a_protocol_of_one_module_and_one_line_is_served() {
    let text = "[server]\nlisten = \"127.0.0.1:0\"\nworkers = 1";
    let config = Loader::new().with_text("test.toml", text).load().unwrap();
    let gateway = Gateway::bind(config).unwrap();
    let url = gateway.url();
    let running = gateway.start().unwrap();

    let (status, mut refusal) = get(&format!("{url}/lines?chanel=ticks")).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(
        refusal
            .next()
            .await
            .unwrap()
            .starts_with("unknown or repeated parameter")
    );

    let (status, mut lines) = get(&format!("{url}/lines?channel=ticks")).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(lines.next().await.unwrap(), "\n");
    running
        .publish(&channel("ticks"), "{\"price\":190}")
        .await
        .unwrap();
    assert_eq!(lines.next().await.unwrap(), "{\"price\":190}\n");

    let (_, mut metrics) = get(&format!("{url}/metrics")).await;
    let series = metrics
        .find("protocol=\"lines\",transport=\"http_stream\"")
        .await;
    assert!(series.is_some());

    running
        .publish(&channel("ticks"), "not JSON")
        .await
        .unwrap();
    assert_eq!(lines.next().await.unwrap(), "{\"disconnect\":3506}\n");
    assert_eq!(lines.next().await, None);
}

#[test]
fn a_gap_is_a_line() {
    let gap = Gap {
        missed: Some(3),
        cause: GapCause::RingEvicted,
    };
    let mut out = Vec::new();
    append_gap(&channel("ticks"), gap, &mut out);
    let expected = "{\"gap\":{\"channel\":\"ticks\",\"missed\":3,\"cause\":\"ring_evicted\"}}\n";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn the_guide_shows_this_protocol() {
    let guide = include_str!("../../../../../docs/internals/adding-a-protocol.md");
    let code = include_str!("../lines.rs");
    let (_, code) = code.split_once("\n\n").unwrap();
    assert!(guide.contains(code));
}
