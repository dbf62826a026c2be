//! Values of columns as JSON.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::value::RawValue;

use crate::pgoutput::{Column, Tuple, Value};

/// The OIDs of types that are not texts in JSON (`pg_type.dat` of Postgres, which never change).
mod oid {
    pub(super) const BOOL: u32 = 16;
    pub(super) const BYTEA: u32 = 17;
    pub(super) const INT8: u32 = 20;
    pub(super) const INT2: u32 = 21;
    pub(super) const INT4: u32 = 23;
    pub(super) const OID: u32 = 26;
    pub(super) const JSON: u32 = 114;
    pub(super) const FLOAT4: u32 = 700;
    pub(super) const FLOAT8: u32 = 701;
    pub(super) const NUMERIC: u32 = 1700;
    pub(super) const JSONB: u32 = 3802;
}

/// Appends a text as a JSON string. Bytes that are not UTF-8 are replaced.
pub(crate) fn push_text(text: &[u8], out: &mut Vec<u8>) {
    let text = String::from_utf8_lossy(text);
    serde_json::to_writer(out, &*text).expect("texts can be written to memory");
}

/// Appends the value of a column: numbers, booleans and JSON as such, `bytea` as base64, and all
/// other types as the text that Postgres writes.
pub(crate) fn push_value(column: &Column, text: &[u8], out: &mut Vec<u8>) {
    match column.type_id {
        oid::BOOL => out.extend_from_slice(if text == b"t" { b"true" } else { b"false" }),
        oid::BYTEA => push_text(STANDARD.encode(bytes_of(text)).as_bytes(), out),
        oid::INT2 | oid::INT4 | oid::INT8 | oid::OID | oid::FLOAT4 | oid::FLOAT8 | oid::NUMERIC
            if is_number(text) =>
        {
            out.extend_from_slice(text);
        }
        oid::JSON | oid::JSONB if is_json(text) => push_compact(text, out),
        // Also NaN and the infinities.
        _ => push_text(text, out),
    }
}

/// Appends a row as an object, without the values that an update has not changed and without the
/// columns that a key does not have. Returns the names of the columns that are left out because
/// their large values have not changed.
pub(crate) fn push_row<'a>(
    columns: &'a [Column],
    tuple: &Tuple<'_>,
    out: &mut Vec<u8>,
) -> Vec<&'a str> {
    let mut unchanged = Vec::new();
    out.push(b'{');
    let start = out.len();
    for (column, value) in columns.iter().zip(&tuple.values) {
        if tuple.is_key && !column.is_key {
            continue;
        }
        if *value == Value::Unchanged {
            unchanged.push(&*column.name);
            continue;
        }
        if out.len() > start {
            out.push(b',');
        }
        push_text(column.name.as_bytes(), out);
        out.push(b':');
        match value {
            Value::Text(text) => push_value(column, text, out),
            Value::Null | Value::Unchanged => out.extend_from_slice(b"null"),
        }
    }
    out.push(b'}');
    unchanged
}

/// Returns the payload that a column of an outbox contains: the bytes of `bytea`, compact JSON, or
/// the text.
pub(crate) fn payload(column: &Column, text: &[u8]) -> Vec<u8> {
    match column.type_id {
        oid::BYTEA => bytes_of(text),
        oid::JSON | oid::JSONB if is_json(text) => {
            let mut out = Vec::with_capacity(text.len());
            push_compact(text, &mut out);
            out
        }
        _ => text.to_vec(),
    }
}

/// Reads `bytea` as servers write it since version 9.0 unless `bytea_output` is changed, which the
/// session prevents: `\x` and hexadecimal digits.
fn bytes_of(text: &[u8]) -> Vec<u8> {
    let digits = text.strip_prefix(b"\\x").unwrap_or_default();
    let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or_default() as u8;
    let pairs = digits.chunks_exact(2);
    pairs
        .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
        .collect()
}

/// Returns whether a text is a number in JSON (RFC 8259 §6).
fn is_number(text: &[u8]) -> bool {
    matches!(text.first(), Some(b'-' | b'0'..=b'9')) && is_json(text)
}

fn is_json(text: &[u8]) -> bool {
    serde_json::from_slice::<&RawValue>(text).is_ok()
}

/// Appends JSON without the spaces and line breaks outside of strings.
fn push_compact(json: &[u8], out: &mut Vec<u8>) {
    let (mut is_string, mut is_escaped) = (false, false);
    for &byte in json {
        if is_string || !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
            out.push(byte);
        }
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_string => is_escaped = true,
            b'"' => is_string = !is_string,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{oid, payload, push_row, push_value};
    use crate::pgoutput::{Column, Tuple, Value};

    fn column(type_id: u32) -> Column {
        Column {
            name: "c".into(),
            type_id,
            is_key: false,
        }
    }

    #[test]
    fn values_are_json_by_their_type() {
        for (type_id, text, json) in [
            (oid::BOOL, "t", "true"),
            (oid::BOOL, "f", "false"),
            (oid::BYTEA, "\\x00ff", "\"AP8=\""),
            (oid::INT8, "-9223372036854775808", "-9223372036854775808"),
            (oid::FLOAT8, "1e+20", "1e+20"),
            (oid::FLOAT8, "NaN", "\"NaN\""),
            (oid::FLOAT4, "-Infinity", "\"-Infinity\""),
            (oid::NUMERIC, "1.500", "1.500"),
            (
                oid::JSON,
                "{ \"a\" : \"x y\\\" z\",\n \"b\": [1] }",
                r#"{"a":"x y\" z","b":[1]}"#,
            ),
            (oid::JSONB, "null", "null"),
            (25, "7", "\"7\""),
            (1007, "{1,2}", "\"{1,2}\""),
            (25, "a\"\nü", "\"a\\\"\\nü\""),
        ] {
            let mut out = Vec::new();
            push_value(&column(type_id), text.as_bytes(), &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), json);
        }
    }

    #[test]
    fn rows_leave_out_what_is_unchanged_or_not_in_the_key() {
        let mut columns = vec![column(oid::INT4), column(25), column(25)];
        columns[0].is_key = true;
        columns[1].name = "d".into();
        let row = |is_key| {
            let values = vec![Value::Text(b"1"), Value::Unchanged, Value::Null];
            let mut out = Vec::new();
            let tuple = Tuple { is_key, values };
            let unchanged = push_row(&columns, &tuple, &mut out).join(" ");
            (String::from_utf8(out).unwrap(), unchanged)
        };
        assert_eq!(row(false), ("{\"c\":1,\"c\":null}".into(), "d".into()));
        assert_eq!(row(true), ("{\"c\":1}".into(), String::new()));
    }

    #[test]
    fn payloads_are_bytes_compact_json_or_text() {
        assert_eq!(payload(&column(oid::BYTEA), b"\\x0a0B"), [10, 11]);
        assert_eq!(payload(&column(oid::JSONB), b"{\"a\": 1}"), b"{\"a\":1}");
        assert_eq!(payload(&column(25), b" a "), b" a ");
    }
}
