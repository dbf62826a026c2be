//! Any bytes before and in a request: proxy headers, hosts, addresses, event IDs.

use http::{HeaderMap, HeaderValue, header};

use crate::{
    protocol::{position, query},
    server,
};

/// Reads `data` as one of these; its first byte says which.
pub fn requests(data: &[u8]) {
    let Some((choice, data)) = data.split_first() else {
        return;
    };
    match choice % 4 {
        0 => proxy_header(data),
        1 => {
            server::fuzzing::forwarded_for(data.split(|byte| *byte == b'\n'));
        }
        2 => host(data),
        _ => address(data),
    }
}

/// Exactly the header is read, whatever length it claims.
fn proxy_header(data: &[u8]) {
    if let Some((address, bytes)) = server::fuzzing::proxy_header(data) {
        assert!((16..=16 + 4_096).contains(&bytes));
        let again = server::fuzzing::proxy_header(&data[..bytes]);
        assert_eq!(
            again,
            Some((address, bytes)),
            "bytes that follow have no effect"
        );
        assert_eq!(server::fuzzing::proxy_header(&data[..bytes - 1]), None);
    }
}

/// The first line is a target, the others are hosts. A foreign name is not answered, with any
/// prefix.
fn host(data: &[u8]) {
    let mut lines = data.split(|byte| *byte == b'\n');
    let target = lines.next().unwrap_or_default();
    let hosts: Vec<&[u8]> = lines.collect();
    if server::fuzzing::answers(target, hosts.iter().copied()) == Some(true) {
        assert!(hosts.len() < 2 && hosts.len() + usize::from(target.contains(&b':')) > 0);
    }
    for host in hosts {
        for end in [".evil.example", ".evil.example:80", "evil.example"] {
            let foreign = [host, end.as_bytes()].concat();
            let answered = server::fuzzing::answers(b"/", [foreign.as_slice()]);
            assert_ne!(answered, Some(true), "{}", foreign.escape_ascii());
        }
    }
}

/// The first line is a query, the second a `Last-Event-ID`, the third an `Authorization`.
fn address(data: &[u8]) {
    let mut lines = data.splitn(3, |byte| *byte == b'\n');
    let mut line = || lines.next().unwrap_or_default();
    let (query, id, authorization) = (line(), line(), line());
    let query = String::from_utf8_lossy(query);
    let last_event_id = header::HeaderName::from_static("last-event-id");
    let mut headers = HeaderMap::new();
    for (name, value) in [(last_event_id, id), (header::AUTHORIZATION, authorization)] {
        if let Ok(value) = HeaderValue::from_bytes(value) {
            headers.insert(name, value);
        }
    }
    if let Ok(request) = query::read(&query, &headers) {
        assert!(request.subscriptions.len() <= query.split('&').count());
    }
    if let Some(position) = std::str::from_utf8(id).ok().and_then(position::parse) {
        let again = format!("{}:{}", position.epoch.as_str(), position.offset);
        assert_eq!(position::parse(&again), Some(position));
    }
}
