//! Names and titles of cells, derived from their loads.

use crate::cell::{Deflate, Echo, Load, Payload};

/// Returns a name without spaces that begins with the payload size: `1KiB-64c-1w-tls`.
pub(crate) fn name(load: &Load) -> String {
    match load {
        Load::Echo(echo) => echo_name(echo),
        Load::Fanout(fanout) => {
            format!(
                "{}-{}s",
                compact(fanout.payload_bytes.into()),
                fanout.subscribers
            )
        }
        Load::Idle(idle) => format!("{}c", idle.connections),
        Load::Upload(upload) => compact(upload.payload_bytes.into()),
    }
}

fn echo_name(echo: &Echo) -> String {
    let mut parts = vec![
        compact(echo.payload_bytes.into()),
        format!("{}c", echo.connections),
    ];
    match echo.rate {
        Some(rate) => parts.push(format!("{rate}ps")),
        None => parts.push(format!("{}w", echo.window)),
    }
    parts.extend(echo.messages.map(|messages| format!("{messages}m")));
    match echo.payload {
        Payload::Ascii => {}
        Payload::Binary => parts.push("binary".into()),
        Payload::Json => parts.push("json".into()),
        Payload::Multibyte => parts.push("multibyte".into()),
    }
    if echo.frames > 1 {
        parts.push(format!("{}f", echo.frames));
    }
    parts.extend(echo.write_bytes_max.map(|bytes| format!("{bytes}Bwrites")));
    if echo.tls {
        parts.push("tls".into());
    }
    match echo.deflate {
        Deflate::NoTakeover => parts.push("deflate".into()),
        Deflate::Off => {}
        Deflate::Takeover => parts.push("takeover".into()),
    }
    parts.join("-")
}

/// Returns a title for people: `1 KiB text, 64 connections, 1 in flight, TLS`.
pub(crate) fn title(load: &Load) -> String {
    match load {
        Load::Echo(echo) => echo_title(echo),
        Load::Fanout(fanout) => format!(
            "{} to {}",
            size(fanout.payload_bytes.into()),
            counted(fanout.subscribers, "subscriber")
        ),
        Load::Idle(idle) => format!("{} idle", counted(idle.connections, "connection")),
        Load::Upload(upload) => format!(
            "{} in messages of {}",
            size(upload.total_bytes),
            size(upload.payload_bytes.into())
        ),
    }
}

fn echo_title(echo: &Echo) -> String {
    let payload = match echo.payload {
        Payload::Ascii => "text",
        Payload::Binary => "binary",
        Payload::Json => "JSON",
        Payload::Multibyte => "multi-byte text",
    };
    let mut parts = vec![
        format!("{} {payload}", size(echo.payload_bytes.into())),
        counted(echo.connections, "connection"),
    ];
    match (echo.rate, echo.messages) {
        (Some(rate), _) => parts.push(format!("{rate} messages/s on schedule")),
        (None, Some(messages)) => parts.push(format!("{} each", counted(messages, "message"))),
        (None, None) => parts.push(format!("{} in flight", echo.window)),
    }
    if echo.frames > 1 {
        parts.push(format!("in {} frames", echo.frames));
    }
    parts.extend(
        echo.write_bytes_max
            .map(|bytes| format!("writes of {bytes} B")),
    );
    if echo.tls {
        parts.push("TLS".into());
    }
    match echo.deflate {
        Deflate::NoTakeover => parts.push("deflate".into()),
        Deflate::Off => {}
        Deflate::Takeover => parts.push("deflate with context takeover".into()),
    }
    parts.join(", ")
}

fn counted(count: u32, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// Formats a size with the largest binary unit that divides it.
fn size(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB"];
    let steps = (bytes.trailing_zeros() / 10).min(3);
    format!("{} {}", bytes >> (10 * steps), units[steps as usize])
}

fn compact(bytes: u64) -> String {
    size(bytes).replace(' ', "")
}
