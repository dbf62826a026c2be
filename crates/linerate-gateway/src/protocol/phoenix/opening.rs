//! What the request for the connection says: `/socket/websocket?vsn=2.0.0&token=…`, or the request
//! that opens a session on `/socket/longpoll`.

use base64::{
    Engine,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use http::header::SEC_WEBSOCKET_PROTOCOL;
use serde_json::{Map, Value};

use crate::{
    config::Config,
    protocol::{codes::Disconnect, command::Connect, dialect::Opening},
};

/// The version of the serializer.
const VSN: &str = "2.0.0";

/// What the subprotocol with a token begins with. The package sends standard base64 after it.
const AUTH_TOKEN: &str = "base64url.bearer.phx.";

/// The header field with a token of clients that poll, which offer no subprotocols.
const AUTH_TOKEN_FIELD: &str = "x-phoenix-authtoken";

/// Standard base64, with or without padding.
pub(super) const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Returns the command that connects the client. Its data are the parameters of the URL.
///
/// # Errors
/// The version of the serializer is not supported, or the token is not base64.
pub(super) fn read(opening: &Opening<'_>, _: &Config) -> Result<Connect, Disconnect> {
    let mut params = Map::new();
    for (name, value) in url::form_urlencoded::parse(opening.query.as_bytes()) {
        params.insert(name.into_owned(), Value::String(value.into_owned()));
    }
    match params.get("vsn").and_then(Value::as_str) {
        Some(VSN) => {}
        Some(other) => {
            return Err(refused(format!(
                "vsn {other:?} is not supported, only {VSN}"
            )));
        }
        None => return Err(refused(format!("vsn is missing, and must be {VSN}"))),
    }
    let token = match auth_token(opening)? {
        Some(token) => token,
        None => match params.get("token") {
            Some(Value::String(token)) => token.clone(),
            _ => String::new(),
        },
    };
    Ok(Connect {
        token,
        data: Some(Value::Object(params).to_string().into()),
        name: "phoenix".to_owned(),
        version: VSN.to_owned(),
        ..Connect::default()
    })
}

/// Returns the token among the subprotocols, or in the header field for it.
fn auth_token(opening: &Opening<'_>) -> Result<Option<String>, Disconnect> {
    let fields = opening.headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    let mut offered = fields
        .filter_map(|field| field.to_str().ok())
        .flat_map(|field| field.split(','));
    let Some(encoded) = offered.find_map(|one| one.trim().strip_prefix(AUTH_TOKEN)) else {
        let field = opening.headers.get(AUTH_TOKEN_FIELD);
        let token = field.map(|field| field.to_str().map(str::to_owned));
        let refuse = |_| refused("X-Phoenix-AuthToken is not ASCII text".to_owned());
        return token.transpose().map_err(refuse);
    };
    let token = BASE64.decode(encoded).ok();
    let token = token.and_then(|token| String::from_utf8(token).ok());
    token
        .map(Some)
        .ok_or_else(|| refused("authToken is not base64 of a text".to_owned()))
}

fn refused(reason: String) -> Disconnect {
    Disconnect::BAD_REQUEST.with_reason(reason)
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};

    use super::read;
    use crate::{
        config::Config,
        protocol::{codes::Disconnect, command::Connect, dialect::Opening},
    };

    fn opened(query: &str, subprotocols: Option<&str>) -> Result<Connect, Disconnect> {
        let mut headers = HeaderMap::new();
        if let Some(subprotocols) = subprotocols {
            let value = HeaderValue::from_str(subprotocols).unwrap();
            headers.insert("sec-websocket-protocol", value);
        }
        let opening = Opening {
            path: "/socket/websocket",
            query,
            headers: &headers,
            subprotocol: None,
        };
        read(&opening, &Config::default())
    }

    #[test]
    fn only_version_2_0_0_is_supported() {
        assert!(opened("vsn=2.0.0", None).is_ok());
        for (query, reason) in [
            ("", "vsn is missing, and must be 2.0.0"),
            ("vsn=1.0.0", "vsn \"1.0.0\" is not supported, only 2.0.0"),
        ] {
            assert_eq!(opened(query, None).unwrap_err().reason, reason);
        }
    }

    #[test]
    fn parameters_are_data_and_tokens_are_found() {
        let connect = opened("vsn=2.0.0&token=t&room=a%20b", None).unwrap();
        assert_eq!(connect.token, "t");
        let data = connect.data.unwrap();
        assert_eq!(&data[..], br#"{"room":"a b","token":"t","vsn":"2.0.0"}"#);
        let offered = "phoenix, base64url.bearer.phx.YS5iLmM";
        assert_eq!(opened("vsn=2.0.0", Some(offered)).unwrap().token, "a.b.c");
        let malformed = "phoenix, base64url.bearer.phx.!";
        assert!(opened("vsn=2.0.0", Some(malformed)).is_err());
    }

    #[test]
    fn the_token_of_a_client_that_polls_is_in_a_field() {
        let with = |bytes: &'static [u8]| {
            let value = HeaderValue::from_bytes(bytes).unwrap();
            let headers = HeaderMap::from_iter([("x-phoenix-authtoken".parse().unwrap(), value)]);
            let opening = Opening {
                path: "/socket/longpoll",
                query: "vsn=2.0.0&token=t",
                headers: &headers,
                subprotocol: None,
            };
            read(&opening, &Config::default())
        };
        assert_eq!(with(b"a.b.c").unwrap().token, "a.b.c");
        let refused = with(b"\xff").unwrap_err();
        assert_eq!(refused.reason, "X-Phoenix-AuthToken is not ASCII text");
    }
}
