//! SOCKS5 (RFC 1928) with user and password authentication (RFC 1929).

use std::io;

use linerate_proto::url::{Credentials, Host};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::{Destination, ProxyError};

const VERSION: u8 = 5;
const METHOD_NONE: u8 = 0x00;
const METHOD_PASSWORD: u8 = 0x02;
const METHOD_UNACCEPTABLE: u8 = 0xFF;
const PASSWORD_VERSION: u8 = 1;
const CONNECT: u8 = 1;
const ADDRESS_IPV4: u8 = 1;
const ADDRESS_NAME: u8 = 3;
const ADDRESS_IPV6: u8 = 4;

/// The maximum length of a host name in a request, in bytes (RFC 1928 §5).
const NAME_BYTES_MAX: usize = 255;

/// Asks the proxy at the other end of `stream` to connect to `destination`.
///
/// Reads nothing beyond the proxy's reply.
///
/// # Errors
/// The proxy refuses, or does not speak SOCKS5.
pub(super) async fn connect<S>(
    stream: &mut S,
    destination: &Destination,
    credentials: Option<&Credentials>,
) -> Result<(), ProxyError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let request = request(destination)?;
    let methods: &[u8] = match credentials {
        Some(_) => &[VERSION, 2, METHOD_NONE, METHOD_PASSWORD],
        None => &[VERSION, 1, METHOD_NONE],
    };
    send(stream, methods).await?;
    match (read::<2>(stream).await?, credentials) {
        ([VERSION, METHOD_NONE], _) => {}
        ([VERSION, METHOD_PASSWORD], Some(credentials)) => {
            authenticate(stream, credentials).await?;
        }
        ([VERSION, METHOD_UNACCEPTABLE], _) => return Err(ProxyError::CredentialsWanted),
        _ => return Err(ProxyError::SocksMalformed),
    }
    send(stream, &request).await?;
    read_reply(stream).await
}

/// Sends the user and the password (RFC 1929 §2).
async fn authenticate<S>(stream: &mut S, credentials: &Credentials) -> Result<(), ProxyError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let Credentials { user, password } = credentials;
    let mut request = vec![PASSWORD_VERSION];
    for text in [user, password] {
        // The length is at most 255, which was checked when the URL was parsed.
        request.push(text.len() as u8);
        request.extend_from_slice(text);
    }
    send(stream, &request).await?;
    match read::<2>(stream).await? {
        [PASSWORD_VERSION, 0] => Ok(()),
        [PASSWORD_VERSION, _] => Err(ProxyError::CredentialsRefused),
        _ => Err(ProxyError::SocksMalformed),
    }
}

/// Returns the request to connect (RFC 1928 §4).
fn request(destination: &Destination) -> Result<Vec<u8>, ProxyError> {
    let mut request = vec![VERSION, CONNECT, 0];
    match &destination.host {
        Host::Name(name) => {
            let bytes = name.len();
            let length = u8::try_from(bytes).map_err(|_| ProxyError::NameTooLong {
                bytes,
                bytes_max: NAME_BYTES_MAX,
            })?;
            request.extend_from_slice(&[ADDRESS_NAME, length]);
            request.extend_from_slice(name.as_bytes());
        }
        Host::Ipv4(address) => {
            request.push(ADDRESS_IPV4);
            request.extend_from_slice(&address.octets());
        }
        Host::Ipv6(address) => {
            request.push(ADDRESS_IPV6);
            request.extend_from_slice(&address.octets());
        }
    }
    request.extend_from_slice(&destination.port.to_be_bytes());
    Ok(request)
}

/// Reads the reply, including the address from which the proxy connects, which is ignored.
async fn read_reply<S>(stream: &mut S) -> Result<(), ProxyError>
where
    S: AsyncRead + Unpin,
{
    let [version, reply, _, kind] = read::<4>(stream).await?;
    if version != VERSION {
        return Err(ProxyError::SocksMalformed);
    }
    if reply != 0 {
        return Err(ProxyError::SocksRefused { reply });
    }
    let address_bytes = match kind {
        ADDRESS_IPV4 => 4,
        ADDRESS_IPV6 => 16,
        ADDRESS_NAME => read::<1>(stream).await?[0].into(),
        _ => return Err(ProxyError::SocksMalformed),
    };
    let mut address_and_port = [0; NAME_BYTES_MAX + 2];
    let address_and_port = &mut address_and_port[..address_bytes + 2];
    stream.read_exact(address_and_port).await?;
    Ok(())
}

async fn send<S: AsyncWrite + Unpin>(stream: &mut S, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes).await?;
    stream.flush().await
}

async fn read<const BYTES: usize>(
    stream: &mut (impl AsyncRead + Unpin),
) -> io::Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    /// Connects through a proxy that sends `answers` regardless of the requests; returns the
    /// result, the requests, and the unread part of the answers.
    async fn spoken(
        destination: &Destination,
        credentials: Option<&Credentials>,
        answers: &[u8],
    ) -> (Result<(), ProxyError>, Vec<u8>, Vec<u8>) {
        let (mut ours, mut theirs) = tokio::io::duplex(1 << 10);
        theirs.write_all(answers).await.unwrap();
        theirs.shutdown().await.unwrap();
        let result = connect(&mut ours, destination, credentials).await;
        let mut left = Vec::new();
        ours.read_to_end(&mut left).await.unwrap();
        drop(ours);
        let mut asked = Vec::new();
        theirs.read_to_end(&mut asked).await.unwrap();
        (result, asked, left)
    }

    fn somewhere() -> Destination {
        Destination::new(Host::Name("example.com".into()), 443)
    }

    fn somebody() -> Credentials {
        Credentials {
            user: b"us".to_vec(),
            password: b"er".to_vec(),
        }
    }

    const GRANTED: &[u8] = b"\x05\0\0\x01\x7f\0\0\x01\x04\x38";

    #[tokio::test]
    async fn names_and_addresses_are_asked_for_and_nothing_behind_the_reply_is_read() {
        let ipv6 = Ipv6Addr::LOCALHOST;
        for (host, asked_for) in [
            (Host::Name("abc".into()), &b"\x03\x03abc\x01\xbb"[..]),
            (
                Host::Ipv4([10, 0, 0, 7].into()),
                b"\x01\x0a\0\0\x07\x01\xbb",
            ),
            (
                Host::Ipv6(ipv6),
                &[&[4], &ipv6.octets()[..], b"\x01\xbb"].concat(),
            ),
        ] {
            for bound in [
                &b"\x01\0\0\0\0\0\0"[..],
                b"\x03\x02ab\0\0",
                &[&[4], &[0; 18][..]].concat(),
            ] {
                let answers = [b"\x05\0\x05\0\0", bound, b"server"].concat();
                let destination = Destination::new(host.clone(), 443);
                let (result, asked, left) = spoken(&destination, None, &answers).await;
                result.unwrap();
                assert_eq!(asked, [b"\x05\x01\0\x05\x01\0", asked_for].concat());
                assert_eq!(left, b"server");
            }
        }
    }

    #[tokio::test]
    async fn users_are_named_only_to_proxies_that_ask() {
        let answers = [b"\x05\x02\x01\0", GRANTED].concat();
        let (result, asked, _) = spoken(&somewhere(), Some(&somebody()), &answers).await;
        result.unwrap();
        assert!(asked.starts_with(b"\x05\x02\0\x02\x01\x02us\x02er\x05\x01\0"));
        let answers = [b"\x05\0", GRANTED].concat();
        let (result, asked, _) = spoken(&somewhere(), Some(&somebody()), &answers).await;
        result.unwrap();
        assert!(asked.starts_with(b"\x05\x02\0\x02\x05\x01\0"));
    }

    #[tokio::test]
    async fn refusals_say_why() {
        for (credentials, answers, expected) in [
            (
                None,
                &b"\x05\xff"[..],
                "authentication required by the proxy; check the user and password in its URL",
            ),
            (
                Some(somebody()),
                b"\x05\xff",
                "authentication required by the proxy; check the user and password in its URL",
            ),
            (
                Some(somebody()),
                b"\x05\x02\x01\x01",
                "user and password rejected by the proxy",
            ),
            (
                None,
                b"\x05\0\x05\x05\0\x01",
                "request refused with SOCKS5 code 5 (connection refused)",
            ),
            (
                None,
                b"\x05\0\x05\x63\0\x01",
                "request refused with SOCKS5 code 99 (unknown code)",
            ),
        ] {
            let (result, ..) = spoken(&somewhere(), credentials.as_ref(), answers).await;
            assert_eq!(result.unwrap_err().to_string(), expected);
        }
    }

    #[tokio::test]
    async fn what_is_not_socks5_is_refused() {
        for (credentials, answers) in [
            (None, &b"\x04\0"[..]),
            (None, b"HTTP/1.1 400 Bad Request\r\n\r\n"),
            // A method that was not offered.
            (None, b"\x05\x02"),
            (None, b"\x05\x01"),
            (Some(somebody()), b"\x05\x02\x05\0"),
            (None, b"\x05\0\x04\0\0\x01"),
            (None, b"\x05\0\x05\0\0\x02"),
        ] {
            let (result, ..) = spoken(&somewhere(), credentials.as_ref(), answers).await;
            assert!(
                matches!(result, Err(ProxyError::SocksMalformed)),
                "{answers:?}"
            );
        }
    }

    #[tokio::test]
    async fn an_end_of_the_stream_anywhere_is_an_error() {
        let answers = [b"\x05\x02\x01\0", GRANTED].concat();
        for cut in 0..answers.len() {
            let (result, ..) = spoken(&somewhere(), Some(&somebody()), &answers[..cut]).await;
            assert!(matches!(result, Err(ProxyError::Io(_))), "{cut}");
        }
    }

    #[tokio::test]
    async fn names_may_be_as_long_as_a_request_has_room_for() {
        let destination = |bytes| Destination::new(Host::Name("x".repeat(bytes)), 1);
        assert_eq!(request(&destination(255)).unwrap().len(), 7 + 255);
        assert!(matches!(
            request(&destination(256)),
            Err(ProxyError::NameTooLong {
                bytes: 256,
                bytes_max: 255
            })
        ));
    }
}
