//! Client protocols that are switched off.

use linerate::Client;
use serde_json::json;

use crate::{
    http::request,
    support::{Gateway, Json, config, in_time},
};

/// Requests a WebSocket, and returns the status and the body of the response.
async fn refused(gateway: &Gateway, path: &str, headers: &str) -> (u16, String) {
    let headers = format!(
        "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{headers}"
    );
    let answer = request(gateway.address, &format!("GET {path}"), &headers, b"").await;
    (answer.status, answer.text().await)
}

#[tokio::test]
async fn a_protocol_that_is_switched_off_is_refused_with_the_setting() {
    let toml = "[protocols]\ncentrifuge = false\nnative = false\nraw = false\nsse = false";
    let gateway = Gateway::open(toml).await;
    let native = "Sec-WebSocket-Protocol: linerate.v1\r\n";
    for (path, headers, key) in [
        ("/raw?channel=a", "", "raw"),
        ("/connection/websocket", "", "centrifuge"),
        ("/connection/websocket", native, "native"),
    ] {
        let (status, text) = refused(&gateway, path, headers).await;
        assert_eq!(status, 404, "{text}");
        let setting = format!("(protocols.{key} = false)");
        assert!(text.contains(&setting), "{text}");
    }
    for (target, key) in [
        ("GET /sse?channel=a", "sse"),
        ("GET /connection/sse?cf_connect={}", "centrifuge"),
        ("POST /connection/http_stream", "centrifuge"),
        ("POST /emulation", "centrifuge"),
    ] {
        let answer = request(gateway.address, target, "", b"{}").await;
        assert_eq!(answer.status, 404, "{target}");
        let text = answer.text().await;
        assert!(text.contains(&format!("protocols.{key} = false")), "{text}");
    }
}

#[tokio::test]
async fn a_client_gets_the_protocol_that_is_available_among_those_it_offers() {
    let gateway = Gateway::open("[protocols]\nnative = false").await;
    let offer = "Sec-WebSocket-Protocol: linerate.v1, centrifuge-json\r\n";
    let (status, text) = refused(&gateway, "/connection/websocket", offer).await;
    assert_eq!(status, 101, "{text}");
}

#[tokio::test]
async fn a_reload_switches_protocols_for_new_clients() {
    let gateway = Gateway::open("").await;
    let mut client = Json::connect(&gateway).await;
    gateway.reload(config("[protocols]\ncentrifuge = false"));
    let url = gateway.url("/connection/websocket");
    assert!(in_time(Client::new().connect(&url)).await.is_err());
    client.subscribe("news").await;
    gateway.publish("news", "1").await;
    assert_eq!(client.next().await["push"]["pub"]["data"], json!(1));
}
