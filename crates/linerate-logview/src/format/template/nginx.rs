//! Formats in nginx's notation: `log_format` of ngx_http_log_module.

use super::super::FormatError;
use super::super::fields::{Slot, Unit};
use super::part::{TemplatePart, TimeText, VariableKind};
use super::source::PlacedChar;

/// Splits a format into its variables and the text between them.
pub(super) fn parts(chars: &[PlacedChar]) -> Result<Vec<TemplatePart>, FormatError> {
    let mut parts = Vec::new();
    let mut rest = chars;
    while let [(char, at), after @ ..] = rest {
        rest = after;
        let name = if *char == '$' {
            name(*at, after)?
        } else {
            None
        };
        let Some((name, after)) = name else {
            TemplatePart::push_char(&mut parts, *char);
            continue;
        };
        parts.push(TemplatePart::Variable {
            kind: kind(&name),
            text: format!("${name}"),
            at: *at,
        });
        rest = after;
    }
    Ok(parts)
}

type Name<'a> = (String, &'a [PlacedChar]);

/// Reads the name after a `$`. Returns `None` if the `$` is only a character.
fn name(at: usize, chars: &[PlacedChar]) -> Result<Option<Name<'_>>, FormatError> {
    let is_braced = matches!(chars, [('{', _), ..]);
    let inside = if is_braced { &chars[1..] } else { chars };
    let is_part = |char: char| char.is_ascii_alphanumeric() || char == '_';
    let len = inside.iter().take_while(|(char, _)| is_part(*char)).count();
    let (name, rest) = inside.split_at(len);
    let rest = match rest {
        [('}', _), rest @ ..] if is_braced => rest,
        _ if is_braced => {
            return Err(FormatError::Unclosed {
                opening: '{',
                at: at + 1,
            });
        }
        rest => rest,
    };
    let name: String = name.iter().map(|(char, _)| char).collect();
    Ok((!name.is_empty()).then_some((name, rest)))
}

/// Returns what a variable means, with its rank among variables of the same meaning: 0 is
/// preferred.
fn kind(name: &str) -> VariableKind {
    let (slot, rank) = match name {
        "time_local" => return VariableKind::Time(TimeText::Common),
        "time_iso8601" => return VariableKind::Time(TimeText::Iso),
        "msec" => return VariableKind::Time(TimeText::Epoch(0)),
        "is_args" | "args" | "query_string" => return VariableKind::Query,
        "remote_user" => return VariableKind::FreeText,
        "remote_addr" => (Slot::Address, 0),
        "realip_remote_addr" => (Slot::Address, 1),
        "proxy_protocol_addr" => (Slot::Address, 2),
        "http_x_real_ip" => (Slot::Address, 3),
        "http_x_forwarded_for" | "proxy_add_x_forwarded_for" => (Slot::Address, 4),
        "request" => (Slot::Request, 0),
        "request_method" => (Slot::Method, 0),
        "request_uri" => (Slot::Target, 0),
        "uri" | "document_uri" => (Slot::Target, 1),
        "status" => (Slot::Status, 0),
        "upstream_status" => (Slot::Status, 1),
        "body_bytes_sent" => (Slot::Bytes, 0),
        "bytes_sent" => (Slot::Bytes, 1),
        "http_referer" => (Slot::Referrer, 0),
        "http_user_agent" => (Slot::Agent, 0),
        "host" => (Slot::Host, 0),
        "http_host" => (Slot::Host, 1),
        "server_name" => (Slot::Host, 2),
        "ssl_server_name" => (Slot::Host, 3),
        "request_time" => (Slot::Duration(Unit::Seconds), 0),
        "upstream_response_time" => (Slot::Duration(Unit::Seconds), 1),
        _ => {
            return if is_list(name) {
                VariableKind::List
            } else {
                VariableKind::Skipped
            };
        }
    };
    if is_list(name) {
        VariableKind::ListField { slot, rank }
    } else {
        VariableKind::Field { slot, rank }
    }
}

/// Returns whether a variable may contain several values, separated by commas and spaces.
fn is_list(name: &str) -> bool {
    name.starts_with("upstream_") || name.ends_with("x_forwarded_for")
}

#[cfg(test)]
mod tests {
    use super::super::part;
    use super::{FormatError, VariableKind, parts};

    fn texts(format: &str) -> Result<Vec<String>, FormatError> {
        part::texts(format, parts)
    }

    #[test]
    fn variables_are_distinguished_from_text() {
        let expected = [
            "$remote_addr@1",
            " - ",
            "$status@16",
            "ms $ $",
            "$a@32",
            "b",
        ];
        assert_eq!(
            texts("$remote_addr - ${status}ms $ $$a{}".trim_end_matches("{}")).unwrap()[..4],
            expected[..4]
        );
        assert_eq!(texts("${a}b$").unwrap(), ["$a@1", "b$"]);
        assert_eq!(
            texts("x${status y").unwrap_err(),
            FormatError::Unclosed {
                opening: '{',
                at: 3
            }
        );
    }

    #[test]
    fn custom_variables_are_skipped() {
        for (name, is_skipped) in [
            ("geoip_country", true),
            ("http_x_request_id", true),
            ("status", false),
        ] {
            let kind = super::kind(name);
            assert_eq!(matches!(kind, VariableKind::Skipped), is_skipped, "{name}");
        }
        assert!(matches!(super::kind("upstream_addr"), VariableKind::List));
    }
}
