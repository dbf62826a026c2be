//! Streaming responses over HTTP/1.1, whose connections become connections of the reactor.

use std::collections::BTreeSet;

use linerate::Client;
use tokio::{io::AsyncWriteExt, net::TcpStream};

use crate::{
    http::{Answer, request},
    pressure::flood,
    support::{Gateway, Json, in_time},
};

/// Sends bytes that need not be one request, and reads the first response.
async fn send(gateway: &Gateway, bytes: &str) -> Answer {
    let mut stream = TcpStream::connect(gateway.address).await.unwrap();
    stream.write_all(bytes.as_bytes()).await.unwrap();
    Answer::read(stream).await
}

/// Returns the data of the next event.
async fn event(answer: &mut Answer) -> String {
    loop {
        let event = answer.until(b"\n\n").await.expect("an event");
        let event = String::from_utf8(event).unwrap();
        if let Some((_, data)) = event.split_once("data: ") {
            return data.to_owned();
        }
    }
}

/// Waits until only `count` clients are left.
async fn left(gateway: &Gateway, count: u64) {
    in_time(async {
        while gateway.info().clients != count {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// Returns the header lines of a response, except for the date.
fn lines(answer: &Answer) -> BTreeSet<String> {
    let lines = answer.head.split("\r\n").skip(1);
    let lines = lines.map(str::to_ascii_lowercase);
    lines.filter(|line| !line.starts_with("date: ")).collect()
}

/// HTTP/1.0 has no chunks, so that the HTTP server streams the response.
#[tokio::test]
async fn the_head_is_that_of_the_http_server() {
    let gateway = Gateway::open("").await;
    let origin = format!("Origin: http://{}\r\n", gateway.address);
    for target in [
        "GET /sse?channel=a",
        "GET /connection/sse?cf_connect=%7B%22id%22:1,%22connect%22:%7B%7D%7D",
    ] {
        let streamed = request(gateway.address, target, &origin, b"").await;
        let old = format!(
            "{target} HTTP/1.0\r\nHost: {}\r\n{origin}\r\n",
            gateway.address
        );
        let served = send(&gateway, &old).await;
        let (mut streamed_lines, served_lines) = (lines(&streamed), lines(&served));
        for line in ["transfer-encoding: chunked", "connection: close"] {
            assert!(streamed_lines.remove(line), "{}", streamed.head);
        }
        assert_eq!(streamed_lines, served_lines, "{target}");
        assert!(streamed_lines.contains("content-type: text/event-stream"));
        assert!(streamed_lines.contains("access-control-allow-credentials: true"));
        assert!(streamed.head.starts_with("HTTP/1.1 200 OK\r\n"));
        for answer in [streamed, served] {
            let date = answer.head.split_once("\r\ndate: ").expect("a date").1;
            assert!(date[..29].ends_with(" GMT"), "{date}");
        }
    }
    left(&gateway, 0).await;
}

#[tokio::test]
async fn a_head_request_has_no_stream() {
    let gateway = Gateway::open("").await;
    let answer = request(gateway.address, "HEAD /sse?channel=a", "", b"").await;
    assert_eq!(answer.status, 200);
    left(&gateway, 0).await;
}

#[tokio::test]
async fn a_stream_follows_earlier_responses_on_its_connection() {
    let gateway = Gateway::open("").await;
    let host = format!("Host: {}\r\n\r\n", gateway.address);
    let refused = format!("GET /sse HTTP/1.1\r\n{host}");
    let stream = format!("GET /sse?channel=a HTTP/1.1\r\n{host}");
    // One after the other.
    let mut first = send(&gateway, &refused).await;
    assert_eq!(first.status, 400);
    first.send(stream.as_bytes()).await;
    let mut second = first.next().await;
    // All at once.
    let many = refused.repeat(20) + &stream;
    let mut last = send(&gateway, &many).await;
    for _ in 0..20 {
        assert_eq!(last.status, 400);
        last = last.next().await;
    }
    for answer in [&mut second, &mut last] {
        assert_eq!(answer.status, 200);
        gateway.publish("a", "one").await;
        assert_eq!(event(answer).await, "one");
    }
}

/// A stream ends only with its connection, so that nothing that follows the request is answered.
#[tokio::test]
async fn what_follows_the_request_is_ignored() {
    let gateway = Gateway::open("").await;
    let host = format!("Host: {}\r\n\r\n", gateway.address);
    let pipelined = format!("GET /sse?channel=a HTTP/1.1\r\n{host}GET / HTTP/1.1\r\n{host}");
    let mut answer = send(&gateway, &pipelined).await;
    assert_eq!(answer.status, 200);
    gateway.publish("a", "one").await;
    assert_eq!(event(&mut answer).await, "one");
    let noise = vec![b'x'; 1 << 20];
    for number in 0..20 {
        answer.send(&noise).await;
        gateway.publish("a", &number.to_string()).await;
        assert_eq!(event(&mut answer).await, number.to_string());
    }
    drop(answer);
    left(&gateway, 0).await;
}

#[tokio::test]
async fn long_publications_arrive_whole() {
    let gateway = Gateway::open("").await;
    let mut answer = request(gateway.address, "GET /sse?channel=a", "", b"").await;
    for bytes in [1, 4_000, 5_000, 70_000, 1_000_000] {
        let payload = "x".repeat(bytes);
        gateway.publish("a", &payload).await;
        assert!(event(&mut answer).await == payload, "{bytes}");
    }
}

#[tokio::test]
async fn a_quiet_stream_is_kept_alive_by_pings() {
    let gateway = Gateway::open("[client]\nping_interval_s = 1").await;
    let mut answer = request(gateway.address, "GET /sse?channel=a", "", b"").await;
    for _ in 0..3 {
        assert_eq!(answer.until(b"\n\n").await.unwrap(), b":");
    }
}

#[tokio::test]
async fn r02_a_reader_that_stalls_loses_the_oldest_and_is_told_how_many() {
    let gateway = Gateway::open("[channel]\nring_messages_max = 100").await;
    let mut slow = request(gateway.address, "GET /sse?channel=a", "", b"").await;
    let mut live = gateway.raw(&Client::new(), "channel=a").await;
    flood(&gateway, &mut live).await;
    let (mut next, mut missed) = (0, 0);
    while next < 1_500 {
        let data = event(&mut slow).await;
        if let Some((_, rest)) = data.split_once("\"missed\":") {
            let gap: u64 = rest.split(',').next().unwrap().parse().unwrap();
            next += gap;
            missed += gap;
        } else {
            let number: u64 = data.split(' ').next().unwrap().parse().unwrap();
            assert_eq!(number, next, "every gap is reported");
            next += 1;
        }
    }
    assert!(missed > 300, "{missed}");
}

#[tokio::test]
async fn r02_a_reader_that_stalls_is_disconnected_where_that_is_the_policy() {
    let toml = "[channel]\nring_messages_max = 100\nslow = \"disconnect\"";
    let gateway = Gateway::open(toml).await;
    let mut slow = request(gateway.address, "GET /sse?channel=a", "", b"").await;
    let mut live = gateway.raw(&Client::new(), "channel=a").await;
    flood(&gateway, &mut live).await;
    let said = slow.rest().await;
    assert!(said.ends_with("\n\n"), "the stream ends between two events");
    let last = said.rsplit("\n\n").nth(1).unwrap();
    assert!(last.contains("\"code\":3008"), "{last}");
    assert_eq!(gateway.info().clients, 1);
}

/// Clients that hang up while the server answers their requests leave nothing behind.
#[tokio::test]
async fn r06_clients_that_hang_up_at_once_are_forgotten() {
    let gateway = Gateway::open("").await;
    let host = format!("Host: {}\r\n\r\n", gateway.address);
    for _ in 0..100 {
        let mut stream = TcpStream::connect(gateway.address).await.unwrap();
        let asks = format!("GET /sse?channel=a HTTP/1.1\r\n{host}");
        stream.write_all(asks.as_bytes()).await.unwrap();
    }
    // A client that is served after them.
    let mut client = Json::connect(&gateway).await;
    client.subscribe("b").await;
    left(&gateway, 1).await;
}
