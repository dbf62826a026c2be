//! Pages and files over plain HTTP.

use crate::support::Server;

#[tokio::test]
async fn the_pages_and_all_that_they_load_are_there() {
    let server = Server::start();
    for (path, title) in [("/", "<title>linerate"), ("/logs", "<title>")] {
        let page = server.get(path).await;
        assert_eq!(page.status, 200, "{path}");
        assert_eq!(
            page.header("content-type"),
            Some("text/html; charset=utf-8")
        );
        assert!(page.text().contains(title), "{path}");
        let parts = page
            .text()
            .split('"')
            .filter(|part| part.starts_with("/assets/"));
        let mut assets = 0;
        for asset in parts {
            assert_eq!(server.get(asset).await.status, 200, "{asset}");
            assets += 1;
        }
        assert!(
            assets >= 3,
            "{path} loads an icon, a style sheet and a script"
        );
    }
}

#[tokio::test]
async fn files_have_their_type() {
    let server = Server::start();
    for (path, content_type) in [
        ("/assets/overview.css", "text/css; charset=utf-8"),
        ("/assets/overview.js", "text/javascript; charset=utf-8"),
        ("/assets/favicon.svg", "image/svg+xml"),
        ("/assets/inter-latin-wght-normal.woff2", "font/woff2"),
    ] {
        let file = server.get(path).await;
        assert_eq!(
            (file.status, file.header("content-type")),
            (200, Some(content_type)),
            "{path}"
        );
    }
}

#[tokio::test]
async fn every_response_restricts_what_a_page_may_do() {
    let server = Server::start();
    for path in ["/", "/logs", "/assets/logs.js", "/nothing", "/echo"] {
        let response = server.get(path).await;
        let policy = response.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'self';"), "{path}");
        assert!(policy.contains("connect-src 'self'"), "{path}");
        assert!(!policy.contains("unsafe"), "{path}");
        assert_eq!(
            response.header("x-content-type-options"),
            Some("nosniff"),
            "{path}"
        );
        assert_eq!(
            response.header("referrer-policy"),
            Some("no-referrer"),
            "{path}"
        );
    }
}

#[tokio::test]
async fn a_known_file_is_not_sent_again() {
    let server = Server::start();
    let first = server.get("/logs").await;
    assert_eq!(first.header("cache-control"), Some("no-cache"));
    let tag = first.header("etag").unwrap();

    let again = server
        .request("GET", "/logs", &[&format!("If-None-Match: {tag}")])
        .await;
    assert_eq!((again.status, again.body.len()), (304, 0));
    assert_eq!(again.header("etag"), Some(tag));

    let other = server
        .request("GET", "/", &[&format!("If-None-Match: {tag}")])
        .await;
    assert_eq!(other.status, 200);
}

#[tokio::test]
async fn head_is_answered_like_get_without_the_body() {
    let server = Server::start();
    let page = server.get("/").await;
    let head = server.request("HEAD", "/", &[]).await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(
        head.header("content-length"),
        Some(&*page.body.len().to_string())
    );
    assert_eq!(head.header("etag"), page.header("etag"));
}

#[tokio::test]
async fn what_is_not_there_is_404_and_what_is_not_meant_is_405() {
    let server = Server::start();
    for path in [
        "/nothing",
        "/assets/nothing.js",
        "/assets/..%2findex.html",
        "/index.html",
    ] {
        let response = server.get(path).await;
        assert_eq!(response.status, 404, "{path}");
        assert!(response.text().ends_with('\n'), "{path}");
    }
    let page = "GET,HEAD";
    // Over HTTP/2 a WebSocket is asked for by CONNECT.
    let websocket = "GET,HEAD,CONNECT";
    for (path, allowed) in [
        ("/", page),
        ("/logs", page),
        ("/assets/logs.js", page),
        ("/echo", websocket),
    ] {
        let response = server.request("POST", path, &["Content-Length: 0"]).await;
        assert_eq!(response.status, 405, "{path}");
        assert_eq!(response.header("allow"), Some(allowed), "{path}");
    }
}
