//! The settings in force, for people to read: secrets are hidden.

use serde_json::{Value as Json, json};

use super::{
    error::Source,
    layer::{Table, Value},
    mistakes::locate,
    source::Layer,
};

/// Shown instead of a secret.
const HIDDEN: &str = "(secret)";
/// Prefix of the path of a file that contains a secret. The path is not a secret.
const FILE: &str = "file:";
/// Keys whose names look like those of secrets, but that every client or user of the machine may
/// know: paths, and names.
const KNOWN: [&str; 5] = [
    "pusher.key",
    "server.tls.key",
    "socketio.redis.key",
    "tls_key",
    "webhook.key",
];

/// A setting in force.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Setting {
    /// The path of its key, such as `server.drain.window_s` or `namespace[0].name`.
    pub(crate) key: String,
    /// The value as JSON, without secrets.
    pub(crate) value: String,
    /// The default in the same form; `None` if the key has none.
    pub(crate) default: Option<String>,
    /// Where the value was set.
    pub(crate) source: Source,
}

/// Returns every setting in `values`, in the order of their keys. `layers` are their sources in
/// increasing precedence.
pub(super) fn in_force(values: &Table, defaults: &Table, layers: &[&Layer]) -> Vec<Setting> {
    let mut settings = Vec::new();
    let defaults = Value::Table(defaults.clone());
    for (key, value) in values {
        add(&mut settings, key.clone(), value, &defaults, layers);
    }
    settings
}

fn add(
    settings: &mut Vec<Setting>,
    key: String,
    value: &Value,
    defaults: &Value,
    layers: &[&Layer],
) {
    match value {
        Value::Table(table) => {
            for (name, value) in table {
                add(settings, format!("{key}.{name}"), value, defaults, layers);
            }
        }
        Value::List(list) if list.iter().any(|item| matches!(item, Value::Table(_))) => {
            for (index, item) in list.iter().enumerate() {
                add(settings, format!("{key}[{index}]"), item, defaults, layers);
            }
        }
        _ => {
            let default = defaults.at(&key);
            settings.push(Setting {
                value: shown(&key, value, default),
                default: default.map(|default| shown(&key, default, None)),
                source: locate(&key, layers.iter().copied()),
                key,
            });
        }
    }
}

/// Returns a value as JSON. A text from the environment or a flag has the type of the
/// default.
fn shown(key: &str, value: &Value, default: Option<&Value>) -> String {
    let text = match value {
        Value::Text(text) | Value::Scalar(toml::Value::String(text)) => text.trim(),
        _ if is_secret(key) => return HIDDEN.to_owned(),
        _ => return json_of(value).to_string(),
    };
    if is_secret(key) && !text.starts_with(FILE) {
        return without_secrets(key, text);
    }
    match (value, default) {
        (Value::Text(text), Some(Value::List(_))) => {
            let items = text.split(',').map(str::trim);
            let items = items.filter(|item| !item.is_empty());
            json!(items.collect::<Vec<_>>()).to_string()
        }
        (Value::Text(_), Some(Value::Scalar(scalar))) if !scalar.is_str() => text.to_owned(),
        _ => json!(text).to_string(),
    }
}

/// Returns whether the value of a key may be or contain a secret. The name of the key decides, so
/// that a new one is hidden before anyone thinks of it.
fn is_secret(key: &str) -> bool {
    let known = KNOWN.iter();
    let mut is_known = known.map(|known| key == *known || key.ends_with(&format!(".{known}")));
    if is_known.any(|is_known| is_known) {
        return false;
    }
    let name = key.rsplit('.').next().unwrap_or(key);
    let suspicious = ["key", "password", "secret", "token", "url"];
    let is_suspicious = |part: &str| suspicious.contains(&part);
    name.split('_').any(is_suspicious) || key.contains(".headers.")
}

/// Returns the scheme of a URL, and its host if the URL cannot have a password.
fn without_secrets(key: &str, text: &str) -> String {
    let is_of_scheme = |char: char| char.is_ascii_alphanumeric() || "+-.".contains(char);
    let is_of_host = |char: char| char.is_ascii_alphanumeric() || "-.:[],".contains(char);
    let Some((scheme, rest)) = text.split_once(':').filter(|_| key.ends_with("url")) else {
        return HIDDEN.to_owned();
    };
    if scheme.is_empty() || !scheme.chars().all(is_of_scheme) {
        return HIDDEN.to_owned();
    }
    if rest.is_empty() {
        return json!(text).to_string();
    }
    let Some(rest) = rest.strip_prefix("//") else {
        return HIDDEN.to_owned();
    };
    let (host, end) = match rest.find(['/', '?', '#']) {
        Some(end) => (&rest[..end], "/…"),
        None => (rest, ""),
    };
    let is_harmless = !text.contains('@') && host.chars().all(is_of_host);
    let shown = match is_harmless {
        true => format!("{scheme}://{host}{end}"),
        false => format!("{scheme}://…"),
    };
    json!(shown).to_string()
}

fn json_of(value: &Value) -> Json {
    match value {
        Value::List(list) => list.iter().map(json_of).collect(),
        Value::Scalar(scalar) => json!(scalar),
        Value::Table(table) => table
            .iter()
            .map(|(key, value)| (key, json_of(value)))
            .collect(),
        Value::Text(text) => json!(text),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::{Setting, Source};
    use crate::config::{DEFAULT_TOML, Loader};

    fn settings(loader: &Loader) -> BTreeMap<String, Setting> {
        let config = loader.load().unwrap();
        let settings = config.settings().iter().cloned();
        settings
            .map(|setting| (setting.key.clone(), setting))
            .collect()
    }

    fn with(text: &str) -> BTreeMap<String, Setting> {
        settings(&Loader::new().with_text("test.toml", text))
    }

    #[test]
    fn each_setting_has_its_value_its_default_and_its_source() {
        let loader = Loader::new()
            .with_text(
                "test.toml",
                "[client]\nchannels_max = 5\n[[namespace]]\nname = \"ticks\"",
            )
            .with_environment([
                ("LINERATE_CLIENT_QUEUE_BYTES_MAX".into(), " 6000 ".into()),
                (
                    "LINERATE_SERVER_ORIGINS".into(),
                    "https://a, https://b".into(),
                ),
                ("LINERATE_AUTH_ADMIN_KEY".into(), "0123456789abcdef".into()),
            ])
            .with_flag("--listen", "server.listen", "127.0.0.1:0");
        let settings = settings(&loader);
        let of = |key: &str| {
            let Setting {
                value,
                default,
                source,
                ..
            } = &settings[key];
            let default = default.clone().unwrap_or_default();
            (value.clone(), default, source.to_string())
        };
        let expected = |value: &str, default: &str, source: &str| {
            (value.to_owned(), default.to_owned(), source.to_owned())
        };
        assert_eq!(
            of("client.channels_max"),
            expected("5", "128", "test.toml, line 2")
        );
        let variable = "environment variable LINERATE_CLIENT_QUEUE_BYTES_MAX";
        assert_eq!(
            of("client.queue_bytes_max"),
            expected("6000", "262144", variable)
        );
        assert_eq!(of("server.origins").0, "[\"https://a\",\"https://b\"]");
        assert_eq!(of("server.origins").1, "[]");
        assert_eq!(of("auth.admin_key").0, "(secret)");
        assert_eq!(
            of("server.listen"),
            expected("\"127.0.0.1:0\"", "\"127.0.0.1:8080\"", "flag --listen")
        );
        assert_eq!(of("namespace[0].name").0, "\"ticks\"");
        assert_eq!(of("server.drain.window_s"), expected("20", "20", "default"));
        assert_eq!(
            settings["filter.client_filters_max"].source,
            Source::Default
        );
    }

    #[test]
    fn defaults_of_an_open_server_differ_from_the_documented_ones() {
        let settings = with("");
        let history = &settings["channel.history_size"];
        assert_eq!(
            (&*history.value, history.default.as_deref()),
            ("100", Some("0"))
        );
        assert_eq!(history.source.to_string(), "defaults of an open server");
    }

    #[test]
    fn urls_are_shown_without_passwords_paths_and_queries() {
        for (url, shown) in [
            ("redis://localhost:6379", "redis://localhost:6379"),
            ("redis://user:pa/ss@host", "redis://…"),
            ("nats://a:4222,b:4222/x?token=t", "nats://a:4222,b:4222/…"),
            ("nats://token%40@host", "nats://…"),
            ("memory:", "memory:"),
            ("file:/run/secrets/url", "file:/run/secrets/url"),
        ] {
            let shown = json!(shown).to_string();
            assert_eq!(super::shown("broker.url", &url_value(url), None), shown);
        }
        for url in ["host=a password=b", "password:secret", "://secret"] {
            assert_eq!(
                super::shown("postgres[0].url", &url_value(url), None),
                "(secret)"
            );
        }
    }

    fn url_value(url: &str) -> super::Value {
        super::Value::Text(url.to_owned())
    }

    /// The types know which texts are secrets: their `Debug` hides them. Each text of a
    /// configuration with all keys must be hidden here as well.
    #[test]
    fn no_setting_shows_what_the_types_hide() {
        let text: String = DEFAULT_TOML
            .lines()
            .map(|line| match line.strip_prefix('#') {
                // Each key that has no default, with its example.
                Some(rest) if !rest.starts_with(' ') => format!("{rest}\n"),
                _ => format!("{line}\n"),
            })
            .collect();
        // Examples of secrets name files; a text in their place must not be shown.
        let text = text.replace("file:/run/secrets/", "sesame-0123456789-");
        let table: toml::Table = text.parse().unwrap();
        let values = crate::config::layer::from_toml(table);
        let settings = super::in_force(&values, &values, &[]);
        let hidden = settings.iter().filter(|it| it.value == super::HIDDEN);
        assert!(hidden.count() > 10, "{settings:#?}");
        for setting in &settings {
            assert!(!setting.value.contains("sesame"), "{setting:?}");
            assert!(!setting.default.as_deref().unwrap_or("").contains("sesame"));
        }
    }

    #[test]
    fn every_secret_of_the_types_is_taken_for_one() {
        let sources = [
            include_str!("auth.rs"),
            include_str!("backend.rs"),
            include_str!("broker.rs"),
            include_str!("kafka.rs"),
            include_str!("postgres.rs"),
            include_str!("pusher.rs"),
            include_str!("socketio/redis.rs"),
            include_str!("webhook.rs"),
        ];
        let mut found = 0;
        let fields = sources.iter().flat_map(|source| source.lines());
        for line in fields.filter(|line| line.trim().starts_with("pub ") && line.contains("Secret"))
        {
            let Some((name, _)) = line.trim().trim_start_matches("pub ").split_once(": ") else {
                continue;
            };
            let key = match line.contains("BTreeMap") {
                true => format!("section.{name}.X-Header"),
                false => format!("section.{name}"),
            };
            assert!(super::is_secret(&key), "{key}");
            found += 1;
        }
        assert!(found >= 14, "{found}");
    }
}
