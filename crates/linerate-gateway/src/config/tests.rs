//! Tests of the configuration as a whole.

use linerate_hub::ChannelName;

use super::{Config, ConfigError, DEFAULT_TOML, Loader, Namespaces, SlowPolicy};

fn load(text: &str) -> Result<Config, ConfigError> {
    Loader::new().with_text("test.toml", text).load()
}

fn error(text: &str) -> String {
    load(text).unwrap_err().to_string()
}

/// A server that is not open, so that the defaults are those of the structs.
const KEYED: &str = "[auth]\napi_key = \"0123456789abcdef\"\n";

#[test]
fn the_documented_defaults_are_the_defaults() {
    let with_key = DEFAULT_TOML.replace("[auth]\n", KEYED);
    let mut config = load(&with_key).unwrap();
    config.auth.api_key = None;
    // They have their sources.
    config.settings.clear();
    assert_eq!(config, Config::default());
}

#[test]
fn every_key_is_documented() {
    for section in [
        "",
        "[auth]",
        "[auth.token]",
        "[broker]",
        "[channel]",
        "[client]",
        "[filter]",
        "[history]",
        "[log]",
        "[protocols]",
        "[pusher]",
        "[server]",
        "[server.drain]",
        "[server.tls]",
    ] {
        let message = error(&format!("{section}\nqqqqqqqqqqqqqq = 1"));
        let first = message.lines().next().unwrap_or_default();
        let (_, known) = first.split_once("known keys are ").expect(&message);
        let documented = match section {
            "" => DEFAULT_TOML,
            section => DEFAULT_TOML
                .split(&format!("\n{section}\n"))
                .nth(1)
                .or_else(|| DEFAULT_TOML.split(&format!("\n#{section}\n")).nth(1))
                .expect(section),
        };
        let end = documented.find("\n[").unwrap_or(documented.len());
        for key in known.split(", ") {
            let inner = format!("[{}.{key}]", section.trim_matches(['[', ']']));
            let table = if section.is_empty() {
                format!("[{key}]")
            } else {
                inner
            };
            let is_key = |line: &str| {
                let line = line.trim_start_matches('#');
                line.starts_with(&format!("{key} = "))
            };
            assert!(
                DEFAULT_TOML.contains(&table) || documented[..end].lines().any(is_key),
                "{section} {key} is not documented"
            );
        }
    }
}

#[test]
fn every_broker_is_documented() {
    let scaling = include_str!("../../../../docs/gateway/scaling.md");
    for scheme in linerate_broker::BROKERS
        .iter()
        .flat_map(|kind| kind.schemes)
    {
        assert!(DEFAULT_TOML.contains(scheme), "{scheme} in default.toml");
        let name = scheme.trim_end_matches("//");
        assert!(scaling.contains(name), "{scheme} in scaling.md");
    }
}

#[test]
fn what_is_documented_without_a_default_can_be_set() {
    let uncommented: Vec<&str> = DEFAULT_TOML
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(rest) if !rest.starts_with(' ') => rest,
            _ => line,
        })
        .collect();
    let config = load(&uncommented.join("\n")).unwrap();
    assert!(config.auth.token.rsa_public_key.is_some());
    assert!(config.auth.token.jwks_url.is_some());
    assert!(config.server.tls.is_some());
    assert!(config.server.operations_listen.is_some());
    assert!(config.broker.tls_authorities.is_some());
    assert!(config.channel.conflate.is_some());
    assert_eq!(config.namespaces[0].name, "ticks");
}

#[test]
fn an_unknown_key_is_refused_with_its_line_and_the_nearest_one() {
    assert_eq!(
        error("[server]\nworkers = 1\n\nlisen = \"127.0.0.1:1\"\n"),
        "test.toml, line 4: server.lisen: unknown key; did you mean `listen`?"
    );
    assert_eq!(
        error("[server.drain]\nwindow = 1"),
        "test.toml, line 2: server.drain.window: unknown key; did you mean `window_s`?"
    );
    assert_eq!(
        error("[sever]\nworkers = 1"),
        "test.toml, line 1: sever: unknown key; did you mean `server`?"
    );
    let message = error("[[namespace]]\nname = \"a\"\n[[namespace]]\nname = \"b\"\nrecovr = true");
    assert_eq!(
        message,
        "test.toml, line 5: namespace[1].recovr: unknown key; did you mean `recover`?"
    );
}

#[test]
fn a_value_of_the_wrong_type_is_named() {
    let message = error("[client]\nping_interval_s = \"often\"");
    assert!(
        message.starts_with("test.toml, line 2: client.ping_interval_s: "),
        "{message}"
    );
    assert!(message.contains("often"), "{message}");
    let message = error("[channel]\nslow = \"maybe\"");
    assert!(
        message.contains("channel.slow") && message.contains("drop_oldest"),
        "{message}"
    );
    let message = error("[channel]\nconflate = \"newest\"");
    assert!(message.contains("JSON pointer"), "{message}");
}

#[test]
fn a_value_out_of_range_is_named_with_the_range() {
    assert_eq!(
        error("[client]\nmessage_bytes_max = 3\n[server]\nworkers = 5000"),
        "test.toml, line 2: client.message_bytes_max = 3 must be between 128 and 67108864\n\
         test.toml, line 4: server.workers = 5000 must be between 0 and 1024"
    );
    let message = error("[[namespace]]\nname = \"a\"\nring_messages_max = 0");
    assert!(
        message.contains("line 3: namespace[0].ring_messages_max = 0"),
        "{message}"
    );
}

#[test]
fn what_is_no_toml_is_refused_with_its_line() {
    let message = error("[server]\nlisten = = 1");
    assert!(message.starts_with("test.toml, line 2: "), "{message}");
}

#[test]
fn the_environment_stands_over_the_file_and_flags_over_both() {
    let loader = Loader::new()
        .with_text(
            "test.toml",
            "[server]\nworkers = 1\nrequest_bytes_max = 2000\nconnections_max = 1",
        )
        .with_environment([
            ("LINERATE_SERVER_REQUEST_BYTES_MAX".into(), "3000".into()),
            ("LINERATE_SERVER_CONNECTIONS_MAX".into(), "2".into()),
            ("LINERATE_SERVER_DRAIN_WINDOW_S".into(), "7".into()),
            (
                "LINERATE_SERVER_ORIGINS".into(),
                "https://a.example, https://b.example".into(),
            ),
            (
                "LINERATE_AUTH_TOKEN_HMAC_SECRET_KEY".into(),
                "01234567890123456".into(),
            ),
            ("LINERATE_AUTH_ANONYMOUS".into(), "true".into()),
            ("LINERATE_CHANNEL_SLOW".into(), "disconnect".into()),
            ("LINERATE_LOG".into(), "debug".into()),
            ("LINERATE_BIN".into(), "/bin/linerate".into()),
            ("HOME".into(), "/".into()),
        ])
        .with_flag("--connections-max", "server.connections_max", 3);
    let config = loader.load().unwrap();
    let server = config.server;
    assert_eq!(
        (
            server.workers,
            server.request_bytes_max,
            server.connections_max
        ),
        (1, 3_000, 3)
    );
    assert_eq!(server.drain.window.as_secs(), 7);
    assert_eq!(server.origins, ["https://a.example", "https://b.example"]);
    assert!(config.auth.anonymous);
    // Digits only, but still a text.
    let key = config.auth.token.hmac_secret_key.unwrap();
    assert_eq!(key.expose(), "01234567890123456");
    assert_eq!(config.channel.slow, SlowPolicy::Disconnect);
}

#[test]
fn errors_name_variables_and_flags() {
    let variable = |name: &str, value: &str| {
        let loader = Loader::new().with_environment([(name.to_owned(), value.to_owned())]);
        loader.load().unwrap_err().to_string()
    };
    let message = variable("LINERATE_SERVER_LISEN", "127.0.0.1:1");
    assert_eq!(
        message,
        "environment variable LINERATE_SERVER_LISEN: server.lisen: unknown key; did you mean `listen`?"
    );
    let message = variable("LINERATE_SEVER_LISTEN", "127.0.0.1:1");
    assert!(message.contains("did you mean `server`"), "{message}");
    let message = variable("LINERATE_SERVER_WORKERS", "many");
    assert!(
        message.starts_with("environment variable LINERATE_SERVER_WORKERS: server.workers: "),
        "{message}"
    );
    let loader = Loader::new().with_flag("--workers", "server.workers", 5_000);
    let message = loader.load().unwrap_err().to_string();
    assert_eq!(
        message,
        "flag --workers: server.workers = 5000 must be between 0 and 1024"
    );
}

#[test]
fn a_namespace_has_the_options_of_channel_where_it_says_nothing() {
    let config = load(
        "[channel]\nbatch_interval_ms = 200\nhistory_size = 5\n\
         [[namespace]]\nname = \"ticks\"\nhistory_size = 7\n",
    );
    let namespaces = Namespaces::new(&config.unwrap());
    let options = |name: &str| namespaces.options(&ChannelName::new(name).unwrap());
    assert_eq!(options("ticks:a").history_size, 7);
    assert_eq!(options("ticks:a").batch_interval.as_millis(), 200);
    for name in ["ticks", "other:a", "a"] {
        assert_eq!(options(name).history_size, 5);
    }
    let label = |name: &str| {
        namespaces
            .label(&ChannelName::new(name).unwrap())
            .to_owned()
    };
    assert_eq!(label("ticks:a"), "ticks");
    assert_eq!(label("other:a"), "");
}

#[test]
fn a_server_without_keys_on_this_machine_stands_open() {
    let config = load("").unwrap();
    assert!(config.is_open() && config.allows_anonymous());
    let namespaces = Namespaces::new(&config);
    let options = |name: &str| namespaces.options(&ChannelName::new(name).unwrap());
    assert!(options("anything").allow_subscribe && !options("anything").allow_publish);
    assert!(options("demo:a").allow_publish && options("demo:a").allow_subscribe);

    // A configuration file overrides the defaults of an open server.
    let config =
        load("[channel]\nallow_subscribe = false\n[[namespace]]\nname = \"ticks\"").unwrap();
    assert!(!config.channel.allow_subscribe);
    let names: Vec<&str> = config
        .namespaces
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    assert_eq!(names, ["ticks", "demo"]);
    let config = load("[channel]\nhistory_size = 0\npresence = false").unwrap();
    assert!(!config.channel.recover && !config.namespaces[0].options.join_leave);
    assert!(load(DEFAULT_TOML).unwrap().is_open());
    let config = load("[[namespace]]\nname = \"demo\"").unwrap();
    assert!(!config.namespaces[0].options.allow_publish);
}

#[test]
fn a_key_closes_the_server() {
    let config = load(KEYED).unwrap();
    assert!(!config.is_open() && !config.allows_anonymous());
    assert!(!config.channel.allow_subscribe && config.namespaces.is_empty());
}

#[test]
fn a_server_for_everybody_without_keys_needs_that_to_be_said() {
    let message = error("[server]\nlisten = \"0.0.0.0:8080\"");
    assert!(
        message.contains("server.listen = 0.0.0.0:8080"),
        "{message}"
    );
    assert!(message.contains("auth.anonymous = true"), "{message}");
    let text = "[server]\nlisten = \"[::]:8080\"\n[auth]\nanonymous = true";
    assert!(load(text).unwrap().is_open());
    let text = format!("[server]\nlisten = \"0.0.0.0:8080\"\n{KEYED}");
    assert!(!load(&text).unwrap().is_open());
}

#[test]
fn contradictions_are_refused() {
    for (text, because) in [
        ("[server]\nproxy_protocol = true", "trusted_proxies"),
        (
            "[auth]\napi_key = \"0123456789abcdef\"\n[channel]\nrecover = true",
            "history_size",
        ),
        (
            "[auth]\napi_key = \"0123456789abcdef\"\n[channel]\nrecovery = \"cache\"",
            "requires history_size",
        ),
        (
            "[auth]\napi_key = \"0123456789abcdef\"\n[channel]\njoin_leave = true",
            "requires presence",
        ),
        ("[broker]\nurl = \"http://example.com\"", "redis://"),
        ("[auth]\napi_key = \"short\"", "5 bytes; at least 16"),
        (
            "[auth.token]\njwks_url = \"ftp://example.com/\"",
            "https://",
        ),
        ("[[namespace]]\nname = \"a:b\"", "colons"),
        (
            "[[namespace]]\nname = \"a\"\n[[namespace]]\nname = \"a\"",
            "two namespaces",
        ),
    ] {
        let message = error(text);
        assert!(message.contains(because), "{text}: {message}");
    }
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let message = error(
        "[server]\nworkerz = 2\nconnections_max = \"many\"\n\
         [broker]\nurl = \"foo://user:password@x\"\n\
         [[namespace]]\nname = \"a\"\nhistory_size = \"ten\"\n\
         [client]\nping_interval_s = \"soon\"\n",
    );
    let lines: Vec<_> = message.lines().collect();
    for (line, expected) in [
        ("line 2: server.workerz: ", "did you mean `workers`?"),
        ("line 3: server.connections_max: ", "\"many\""),
        ("line 5: broker.url = foo://… ", "redis://"),
        ("line 8: namespace[0].history_size: ", "\"ten\""),
        ("line 10: client.ping_interval_s: ", "\"soon\""),
    ] {
        let found = lines.iter().find(|found| found.contains(line));
        let found = found.unwrap_or_else(|| panic!("{line}: {message}"));
        assert!(found.contains(expected), "{found}");
    }
    assert_eq!(lines.len(), 5, "{message}");
    // What follows only from another mistake is not reported.
    let message = error("[[webhook]]\nname = \"a\"\nsecret = \"whsec_AAAA\"\nurl = 5\n");
    assert_eq!(message.matches("webhook[0].url").count(), 1, "{message}");
}

#[test]
fn secrets_are_not_shown() {
    let config =
        load("[auth]\napi_key = \"0123456789abcdef\"\nadmin_key=\"file:/run/admin\"").unwrap();
    let shown = format!("{config:?}");
    assert!(
        !shown.contains("0123456789abcdef") && shown.contains("(secret)"),
        "{shown}"
    );
    let message = error("[auth]\napi_key = \"tooshort\"");
    assert!(!message.contains("tooshort"), "{message}");
}

#[test]
fn a_secret_is_read_from_the_file_that_it_names() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("key");
    std::fs::write(&path, "0123456789abcdef\n").unwrap();
    let text = format!("[auth]\napi_key = \"file:{}\"", path.display());
    let secret = load(&text).unwrap().auth.api_key.unwrap();
    assert_eq!(secret.read().unwrap(), "0123456789abcdef");
    std::fs::remove_file(&path).unwrap();
    assert!(secret.read().is_err());
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let loader = Loader::new().with_file("/nowhere/linerate.toml");
    let message = loader.load().unwrap_err().to_string();
    assert!(message.starts_with("/nowhere/linerate.toml: "), "{message}");
}

#[test]
fn a_history_that_this_node_would_not_keep_is_refused_with_both_numbers() {
    for text in [
        "[channel]\nhistory_size = 10_001\n",
        "[[namespace]]\nname = \"a\"\nhistory_size = 10_001\n",
    ] {
        let message = error(text);
        assert!(message.contains("history_size"), "{message}");
        assert!(message.contains("10001"), "{message}");
        assert!(
            message.contains("history.channel_messages_max = 10000"),
            "{message}"
        );
    }
    let raised = "[history]\nchannel_messages_max = 10_001\n[channel]\nhistory_size = 10_001\n";
    assert_eq!(load(raised).unwrap().history.channel_messages_max, 10_001);
    let kept_by_the_broker = "[channel]\nhistory_size = 10_001\ndurable = true\n";
    assert!(load(kept_by_the_broker).is_ok());
    let message = error("[history]\nchannel_bytes_max = 2048\ntotal_bytes_max = 2047\n");
    assert!(
        message.contains("2047") && message.contains("2048"),
        "{message}"
    );
}

#[test]
fn a_namespace_whose_gaps_are_silent_cannot_be_positioned() {
    let message = error("[channel]\npositioned = true\ngaps = \"silent\"\n");
    assert!(
        message.contains("positioned") && message.contains("silent"),
        "{message}"
    );
    let is_silent = |text: &str| {
        load(&format!("{KEYED}[channel]\n{text}"))
            .unwrap()
            .channel
            .is_silent()
    };
    assert!(is_silent("gaps = \"silent\"\n"));
    let text = format!("{KEYED}[[namespace]]\nname = \"ticks\"\ngaps = \"silent\"\n");
    let warnings = load(&text).unwrap().warnings();
    assert_eq!(warnings.len(), 1);
    assert!(
        warnings[0].contains("silent in namespace ticks"),
        "{warnings:?}"
    );
    assert!(!is_silent(
        "gaps = \"silent\"\nhistory_size = 5\nrecover = true\n"
    ));
    assert!(!is_silent(""));
}

#[test]
fn paths_of_takeovers_are_absolute_and_fit_a_unix_socket() {
    let socket = |path: &str| format!("[server]\ntakeover_socket = {path:?}\n");
    let longest = format!("/{}", "a".repeat(102));
    let config = load(&socket(&longest)).unwrap();
    assert_eq!(
        config.server.takeover_socket.as_deref(),
        Some(longest.as_ref())
    );
    let message = error(&socket(&format!("{longest}a")));
    assert!(message.contains("has 104 bytes"), "{message}");
    assert!(message.contains("at most 103"), "{message}");
    let message = error(&socket("run/takeover.sock"));
    assert!(message.contains("absolute path"), "{message}");
    let executable = "takeover_executable = \"/usr/bin/linerate\"\n";
    let message = error(&format!("[server]\n{executable}"));
    assert!(message.contains("no effect without"), "{message}");
    load(&format!("{}{executable}", socket("/run/t.sock"))).unwrap();
}
