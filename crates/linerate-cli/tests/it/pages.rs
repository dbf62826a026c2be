//! Tests of pages and files over plain HTTP.

use linerate::{Client, CloseCode};

use crate::support::{Response, Server, routes};

#[tokio::test]
async fn the_pages_and_all_that_they_load_are_there() {
    let server = Server::start();
    for (path, title) in [
        ("/", "<title>linerate"),
        ("/channel?name=news", "<title>Channel"),
        ("/logs", "<title>"),
    ] {
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
async fn the_documentation_is_there_and_its_links_lead_to_its_pages() {
    let server = Server::start();
    let moved = server.get("/docs").await;
    assert_eq!(
        (moved.status, moved.header("location")),
        (308, Some("/docs/"))
    );
    let contents = server.get("/docs/").await;
    assert_eq!(contents.status, 200);
    let links = contents.text().split("href=\"").skip(1);
    let links = links.filter_map(|rest| rest.split('"').next());
    let pages: Vec<_> = links.filter(|link| link.ends_with(".html")).collect();
    assert!(pages.len() > 20, "{pages:?}");
    for page in pages {
        let page = server.get(&format!("/docs/{page}")).await;
        assert_eq!(page.status, 200);
        assert_eq!(
            page.header("content-type"),
            Some("text/html; charset=utf-8")
        );
        assert!(page.text().contains("<article"), "{}", page.text());
    }
}

#[tokio::test]
async fn the_channel_page_is_told_how_clients_connect_and_no_secret() {
    const SECRET: &str = "0123456789abcdef-secret";
    let flags = [
        "protocols.pusher=true",
        "protocols.raw=false",
        "pusher.app_id=1",
        "pusher.key=app-key",
        &format!("pusher.secret={SECRET}"),
        &format!("auth.token.hmac_secret_key={SECRET}"),
    ];
    let flags: Vec<&str> = flags.iter().flat_map(|flag| ["--set", flag]).collect();
    for (flags, expected) in [
        (
            &[][..],
            r#"{"is_open":true,"needs_token":false,"protocols":["native","centrifuge","raw","sse"],"pusher_key":null}"#,
        ),
        (
            &flags,
            r#"{"is_open":false,"needs_token":true,"protocols":["native","centrifuge","pusher","sse"],"pusher_key":"app-key"}"#,
        ),
    ] {
        let answer = Server::start_with(flags).get("/channel/clients").await;
        assert_eq!(answer.text(), expected);
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
    }
}

#[tokio::test]
async fn files_have_their_type() {
    let server = Server::start();
    for (path, content_type) in [
        ("/assets/overview.css", "text/css; charset=utf-8"),
        ("/assets/overview.js", "text/javascript; charset=utf-8"),
        ("/assets/favicon.svg", "image/svg+xml"),
        ("/favicon.ico", "image/svg+xml"),
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
async fn files_are_compressed_for_clients_that_understand_it() {
    let server = Server::start();
    let plain = server.get("/assets/logs.js").await;
    assert_eq!(plain.header("content-encoding"), None);
    let mut tags = vec![plain.header("etag").unwrap().to_owned()];
    for (accepted, coding) in [("gzip, deflate", "gzip"), ("gzip, br;q=0.5", "br")] {
        let accepted = format!("Accept-Encoding: {accepted}");
        let compressed = server.request("GET", "/assets/logs.js", &[&accepted]).await;
        assert_eq!(compressed.header("content-encoding"), Some(coding));
        assert_eq!(
            compressed.header("content-type"),
            plain.header("content-type")
        );
        assert_eq!(compressed.header("vary"), Some("accept-encoding"));
        assert!(compressed.body.len() * 2 < plain.body.len(), "{coding}");
        tags.push(compressed.header("etag").unwrap().to_owned());
    }
    tags.sort();
    tags.dedup();
    assert_eq!(tags.len(), 3, "a cache must not mix up the copies");

    // A font is compressed already.
    let font = "/assets/inter-latin-wght-normal.woff2";
    let font = server.request("GET", font, &["Accept-Encoding: br"]).await;
    assert_eq!((font.status, font.header("content-encoding")), (200, None));
}

#[tokio::test]
async fn a_browser_shows_an_error_as_a_page_that_leads_on() {
    let server = Server::start();
    let browser = "Accept: text/html,application/xhtml+xml,*/*;q=0.8";
    for (path, status, message) in [
        ("/nothing", 404, "Nothing is at this address"),
        ("/echo", 400, "Upgrade"),
        ("/raw?channel=demo:a", 400, "Upgrade"),
    ] {
        let page = server.request("GET", path, &[browser]).await;
        assert_eq!(page.status, status, "{path}");
        assert_eq!(
            page.header("content-type"),
            Some("text/html; charset=utf-8"),
            "{path}"
        );
        assert!(page.text().contains(message), "{}", page.text());
        assert!(page.text().contains("<a href=\"/docs/\">"), "{path}");

        let program = server.request("GET", path, &["Accept: */*"]).await;
        assert_eq!(program.status, status, "{path}");
        assert!(!program.text().contains('<'), "{path}");
    }
}

#[tokio::test]
async fn every_response_restricts_what_a_page_may_do() {
    let server = Server::start();
    for path in [
        "/",
        "/logs",
        "/docs/",
        "/docs/gateway/filters.html",
        "/assets/logs.js",
        "/nothing",
        "/echo",
    ] {
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
        "/docs/nothing.html",
        "/docs/..%2findex.html",
        "/docs/../index.html",
        "/index.html",
    ] {
        let response = server.get(path).await;
        assert_eq!(response.status, 404, "{path}");
        assert!(response.text().ends_with('\n'), "{path}");
    }
    let page = "GET,HEAD";
    // Over HTTP/2, a WebSocket is requested with CONNECT.
    let websocket = "GET,HEAD,CONNECT";
    for (path, allowed) in [
        ("/", page),
        ("/logs", page),
        ("/docs/", page),
        ("/assets/logs.js", page),
        ("/echo", websocket),
    ] {
        let response = server.request("POST", path, &["Content-Length: 0"]).await;
        assert_eq!(response.status, 405, "{path}");
        assert_eq!(response.header("allow"), Some(allowed), "{path}");
    }
}

/// Sends a request with one, several or no Host headers.
async fn named(server: &Server, method: &str, target: &str, hosts: &str) -> Response {
    let origin = hosts.strip_prefix("Host: ").unwrap_or("localhost\r\n");
    let head = format!(
        "{method} {target} HTTP/1.1\r\n{hosts}Origin: http://{origin}Connection: close\r\n\
         Content-Length: 0\r\n\r\n"
    );
    server.request_raw(&head).await
}

#[tokio::test]
async fn a_name_that_leads_here_by_dns_rebinding_reaches_no_route() {
    let server = Server::start();
    let port = server.address.port();
    let routes = routes();
    assert!(routes.len() >= 33, "{routes:?}");
    for route in routes.iter().map(String::as_str).chain(["/nothing"]) {
        for method in ["GET", "POST", "OPTIONS", "HEAD", "CONNECT"] {
            // The target of CONNECT is an authority.
            let target = match method {
                "CONNECT" => format!("evil.example:{port}"),
                _ => route.to_owned(),
            };
            let hosts = format!("Host: evil.example:{port}\r\n");
            let foreign = named(&server, method, &target, &hosts).await;
            assert_eq!(foreign.status, 403, "{method} {route}");
            if method != "HEAD" {
                assert!(foreign.text().contains("server.hosts"), "{method} {route}");
            }
        }
        for (target, hosts) in [
            (route.to_owned(), String::new()),
            (
                route.to_owned(),
                format!("Host: localhost:{port}\r\nHost: evil.example\r\n"),
            ),
            (
                format!("http://evil.example{route}"),
                format!("Host: localhost:{port}\r\n"),
            ),
        ] {
            let answer = named(&server, "GET", &target, &hosts).await;
            assert_eq!(answer.status, 400, "{target} {hosts}");
        }
    }
    for host in [
        "127.0.0.1",
        "localhost",
        "app.localhost",
        "[::1]",
        "192.0.2.1",
    ] {
        let head = format!("GET / HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n");
        assert_eq!(server.request_raw(&head).await.status, 200, "{host}");
    }
}

#[tokio::test]
async fn names_that_are_listed_are_served_and_keys_make_the_list_optional() {
    for (flags, name, status) in [
        (
            &["--set", "server.hosts=linerate,*.example.com"][..],
            "a.example.com",
            200,
        ),
        (
            &["--set", "server.hosts=linerate,*.example.com"],
            "evil.example",
            403,
        ),
        (&["--set", "server.hosts=*"], "evil.example", 200),
        (
            &["--set", "auth.api_key=0123456789abcdef"],
            "a.example.com",
            200,
        ),
    ] {
        let server = Server::start_with(flags);
        let head = format!("GET / HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n");
        assert_eq!(server.request_raw(&head).await.status, status, "{flags:?}");
    }
}

#[tokio::test]
async fn echo_and_counters_of_a_server_with_keys_ask_for_the_admin_key() {
    let key = ["--set", "auth.admin_key=0123456789abcdef"];
    let server = Server::start_with(&key);
    let shown = Client::new().with_header("X-Admin-Key", "0123456789abcdef");
    for path in ["/echo", "/counters"] {
        let refused = server.get(path).await;
        assert_eq!(refused.status, 403, "{path}");
        assert!(
            refused.text().contains("server.diagnostics"),
            "{}",
            refused.text()
        );
        assert!(
            linerate::connect(&server.url(path)).await.is_err(),
            "{path}"
        );
        let http2 = Client::new().with_http2_prior_knowledge();
        assert!(http2.connect(&server.url(path)).await.is_err(), "{path}");
        let mut ws = shown.connect(&server.url(path)).await.unwrap();
        ws.close(CloseCode::NORMAL, "").await.unwrap();
    }
    let server = Server::start_with(&[&key[..], &["--set", "server.diagnostics=true"]].concat());
    for path in ["/echo", "/counters"] {
        server
            .connect(path)
            .await
            .close(CloseCode::NORMAL, "")
            .await
            .unwrap();
    }
}
