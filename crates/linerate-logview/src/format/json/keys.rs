//! The names under which servers write the fields of a request.

use super::super::fields::{Slot, Unit};

/// The meaning of a member of an object, determined by its name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Key {
    /// An object that contains more of the request.
    Container,
    /// A field. If several members fill the same slot, the one with the lowest rank is used.
    Field(Slot, u8),
    Other,
}

/// Returns the meaning of the member `name`.
#[inline]
pub(super) fn key(name: &[u8]) -> Key {
    /// The length of the longest name below.
    const LEN_MAX: usize = 22;
    // The units differ: Traefik uses nanoseconds, Caddy and most others use seconds.
    match name {
        b"Duration" => return Key::Field(Slot::Duration(Unit::Nanoseconds), 0),
        b"duration" => return Key::Field(Slot::Duration(Unit::Seconds), 0),
        _ => {}
    }
    let mut lower = [0; LEN_MAX];
    let Some(lower) = lower.get_mut(..name.len()) else {
        return Key::Other;
    };
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    by_lower_case(lower)
}

fn by_lower_case(name: &[u8]) -> Key {
    let duration = |unit, rank| (Slot::Duration(unit), rank);
    let (slot, rank) = match name {
        b"headers" | b"http" | b"httprequest" | b"properties" => return Key::Container,
        // Caddy: client_ip is the client as reported by trusted proxies, remote_ip is the peer.
        b"client_ip" | b"clientip" | b"client_addr" => (Slot::Address, 0),
        b"remote_addr" | b"remote_ip" | b"remoteip" | b"remote_address" | b"clienthost" => {
            (Slot::Address, 1)
        }
        b"client" | b"ip" | b"addr" | b"address" | b"remote_host" | b"clientaddr" => {
            (Slot::Address, 2)
        }
        b"x-forwarded-for" | b"http_x_forwarded_for" | b"x_forwarded_for" => (Slot::Address, 3),
        b"http_user_agent"
        | b"user_agent"
        | b"user-agent"
        | b"useragent"
        | b"request_user-agent"
        | b"agent" => (Slot::Agent, 0),
        b"body_bytes_sent" | b"downstreamcontentsize" | b"size" => (Slot::Bytes, 0),
        b"bytes_sent" | b"bytes" | b"bytes_out" | b"response_size" | b"resp_size"
        | b"body_bytes" | b"responsesize" | b"sentbytes" | b"responsebytes" => (Slot::Bytes, 1),
        b"request_time" | b"response_time" | b"request_duration" | b"elapsed" | b"latency"
        | b"timetaken" => duration(Unit::Seconds, 1),
        b"duration_ms" | b"latency_ms" | b"elapsed_ms" | b"request_time_ms"
        | b"response_time_ms" => duration(Unit::Milliseconds, 0),
        b"duration_us" | b"latency_us" => duration(Unit::Microseconds, 0),
        b"duration_ns" | b"latency_ns" => duration(Unit::Nanoseconds, 0),
        b"upstream_response_time" => duration(Unit::Seconds, 2),
        b"host" | b"http_host" | b"requesthost" => (Slot::Host, 0),
        b"vhost" | b"virtual_host" | b"server_name" | b"domain" | b"hostname" => (Slot::Host, 1),
        b"requestaddr" => (Slot::Host, 2),
        b"request_method" | b"requestmethod" | b"method" | b"verb" | b"http_method"
        | b"httpmethod" => (Slot::Method, 0),
        b"http_referer" | b"http_referrer" | b"referer" | b"referrer" | b"request_referer" => {
            (Slot::Referrer, 0)
        }
        b"request" | b"request_line" => (Slot::Request, 0),
        b"status" | b"downstreamstatus" | b"status_code" | b"statuscode" | b"response_code"
        | b"httpstatus" | b"httpstatuscode" => (Slot::Status, 0),
        b"code" | b"response_status" | b"response" | b"http_status" => (Slot::Status, 1),
        b"originstatus" | b"upstream_status" => (Slot::Status, 2),
        b"request_uri" | b"requesturi" | b"requesturl" | b"requestpath" | b"uri" | b"url" => {
            (Slot::Target, 0)
        }
        b"path" | b"request_path" | b"document_uri" | b"http_path" => (Slot::Target, 1),
        b"ts" | b"startutc" | b"time_iso8601" | b"time_local" | b"@timestamp" | b"timestamp"
        | b"msec" => (Slot::Time, 0),
        b"time" | b"date" | b"datetime" | b"startlocal" | b"@time" => (Slot::Time, 1),
        _ => return Key::Other,
    };
    Key::Field(slot, rank)
}

#[cfg(test)]
mod tests {
    use super::{Key, Slot, Unit, key};

    #[test]
    fn names_are_case_insensitive_except_units_of_durations() {
        assert_eq!(key(b"User-Agent"), Key::Field(Slot::Agent, 0));
        assert_eq!(key(b"DownstreamContentSize"), Key::Field(Slot::Bytes, 0));
        assert_eq!(
            key(b"upstream_response_time"),
            Key::Field(Slot::Duration(Unit::Seconds), 2)
        );
        assert_eq!(
            key(b"Duration"),
            Key::Field(Slot::Duration(Unit::Nanoseconds), 0)
        );
        assert_eq!(
            key(b"duration"),
            Key::Field(Slot::Duration(Unit::Seconds), 0)
        );
        assert_eq!(key(b"headers"), Key::Container);
        for name in [&b""[..], b"level", b"upstream_response_times", &[b'x'; 999]] {
            assert_eq!(key(name), Key::Other);
        }
    }
}
