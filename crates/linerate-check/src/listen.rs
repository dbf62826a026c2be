//! Checks clients: gives each client that connects one input, and judges its reaction.

use std::{io, sync::Arc, time::Duration};

use rustls::ServerConfig;
use tokio::{
    io::AsyncReadExt,
    net::{TcpListener, TcpStream},
    time::timeout,
};
use tokio_rustls::TlsAcceptor;

use crate::{
    case::{Case, Opening, Row},
    catalogue::ACCEPTED,
    connect::{in_time, replaced},
    connection::Connection,
    frame::Role,
    http::{Head, accept},
    judge::{Judgement, judge},
    outcome::Outcome,
    run::Finding,
    talk::{Conversation, TalkOptions},
    tls::{Segments, Shape, ShapedStream},
};

/// How a client is checked.
#[derive(Debug)]
pub struct ClientPlan {
    /// The listener to which the client connects, once per input.
    pub listener: TcpListener,
    /// How long an answer may take.
    pub patience: Duration,
    /// How long to wait for the client to connect. `None` waits forever, for a client that is
    /// started by hand.
    pub arrival: Option<Duration>,
    /// True if the client echoes each message.
    pub echoes: bool,
    /// The TLS configuration, if the client connects over TLS.
    pub tls: Option<Arc<ServerConfig>>,
}

/// Gives each client that connects the next input, and returns all findings. Calls `next` before it
/// waits for a client, and `tell` with each finding.
///
/// # Errors
/// If the listener or `next` fails.
pub async fn listen(
    plan: &ClientPlan,
    rows: &[Row],
    mut next: impl FnMut() -> io::Result<()>,
    mut tell: impl FnMut(&Finding),
) -> io::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for (row, content) in rows.iter().enumerate() {
        for (place, case) in content.cases.iter().enumerate() {
            next()?;
            let (sent, outcome, judgement) = match arrived(plan).await? {
                Some(stream) => hold(plan, case, stream).await,
                None => {
                    let judgement = Judgement::wrong("the client does not connect in time");
                    (Vec::new(), Outcome::default(), judgement)
                }
            };
            let finding = Finding {
                row,
                case: place,
                sent,
                outcome,
                judgement,
            };
            tell(&finding);
            findings.push(finding);
        }
    }
    Ok(findings)
}

async fn arrived(plan: &ClientPlan) -> io::Result<Option<TcpStream>> {
    let accepted = plan.listener.accept();
    let (stream, _) = match plan.arrival {
        None => accepted.await?,
        Some(arrival) => match timeout(arrival, accepted).await {
            Ok(accepted) => accepted?,
            Err(_) => return Ok(None),
        },
    };
    stream.set_nodelay(true)?;
    Ok(Some(stream))
}

async fn hold(plan: &ClientPlan, case: &Case, stream: TcpStream) -> (Vec<u8>, Outcome, Judgement) {
    let manner = TalkOptions {
        role: Role::Client,
        echoes: plan.echoes,
        patience: plan.patience,
    };
    let connection = match begin(plan, &case.input.opening, stream).await {
        Ok(connection) => connection,
        Err(error) => {
            let judgement = Judgement::wrong(format!("connection failed: {error}"));
            return (Vec::new(), Outcome::default(), judgement);
        }
    };
    let mut talk = Conversation::new(case, manner, connection);
    if case.input.opening == Opening::Tcp {
        let stages = case.input.stages.iter().flat_map(|stage| &stage.bytes);
        let sent = stages.copied().collect();
        let outcome = talk.run(<[u8]>::to_vec).await;
        let judgement = judge(&case.expect, &outcome, plan.echoes);
        return (sent, outcome, judgement);
    }
    let request = talk.hear().await.unwrap_or_default();
    let Some(key) = request.field("sec-websocket-key") else {
        let judgement = Judgement::wrong("the client sends no request with a Sec-WebSocket-Key");
        return (Vec::new(), talk.leave(), judgement);
    };
    let opens = match answer(&request, &case.input.opening) {
        Ok(answer) => answer,
        Err(why) => return (Vec::new(), talk.leave(), Judgement::not_applicable(why)),
    };
    let fill = |bytes: &[u8]| with_accept(bytes, &key);
    let bytes = case
        .input
        .stages
        .iter()
        .flat_map(|stage| fill(&stage.bytes));
    let sent = bytes.collect();
    if case.input.opening != Opening::Nothing {
        talk.answer(&fill(opens.as_bytes())).await;
    }
    let outcome = talk.run(fill).await;
    let judgement = judge(&case.expect, &outcome, plan.echoes);
    (sent, outcome, judgement)
}

/// Prepares a connection for an input: accepts TLS if it is configured, unless the input replaces
/// the TLS handshake.
async fn begin(
    plan: &ClientPlan,
    opening: &Opening,
    mut stream: TcpStream,
) -> io::Result<Connection> {
    let Some(config) = &plan.tls else {
        return Ok(Box::new(stream));
    };
    let shape = match opening {
        Opening::Tls(shape) => *shape,
        Opening::Tcp => {
            in_time(plan.patience, take_hello(&mut stream)).await?;
            return Ok(Box::new(stream));
        }
        _ => Shape::default(),
    };
    let mut config = ServerConfig::clone(config);
    config.max_fragment_size = shape.record_bytes_max;
    config.enable_secret_extraction = true;
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let accepted = acceptor.accept(Segments::new(stream, shape));
    let stream = in_time(plan.patience, accepted).await?;
    Ok(Box::new(ShapedStream::new(stream, shape)))
}

/// Reads and discards the first TLS record of a client, which is its ClientHello.
async fn take_hello(stream: &mut TcpStream) -> io::Result<()> {
    let mut header = [0; 5];
    stream.read_exact(&mut header).await?;
    let mut hello = vec![0; u16::from_be_bytes([header[3], header[4]]).into()];
    stream.read_exact(&mut hello).await.map(|_| ())
}

/// Returns the response that opens the WebSocket of an input.
///
/// # Errors
/// Describes what the input needs and the client does not offer.
fn answer(request: &Head, opening: &Opening) -> Result<String, &'static str> {
    if opening.offer().is_none() {
        return Ok(ACCEPTED.into());
    }
    let offers = request
        .field("sec-websocket-extensions")
        .unwrap_or_default();
    let mut offers = offers.split(',');
    let offer = offers.find(|offer| offer.trim().starts_with("permessage-deflate"));
    let offer = offer.ok_or("the client does not offer permessage-deflate")?;
    // RFC 7692 §7.1.1.1, §7.1.2.1: a server that accepts an offer with these parameters has to
    // agree to them.
    let insists = |parameter: &&str| parameter.trim().starts_with("server_");
    let agreed: Vec<&str> = offer.split(';').filter(insists).map(str::trim).collect();
    let forgets = agreed.contains(&"server_no_context_takeover");
    if matches!(opening, Opening::Takeover(_)) && forgets {
        return Err(
            "the client does not keep its window between messages (server_no_context_takeover)",
        );
    }
    let agreed = [&["permessage-deflate"], &*agreed].concat().join("; ");
    let agreed = format!("{{accept}}\r\nSec-WebSocket-Extensions: {agreed}");
    Ok(ACCEPTED.replacen("{accept}", &agreed, 1))
}

/// Replaces `{accept}` and `{accept-lower}` with the value of `Sec-WebSocket-Accept` for a key.
fn with_accept(bytes: &[u8], key: &str) -> Vec<u8> {
    let accept = accept(key);
    let filled = replaced(bytes, b"{accept}", accept.as_bytes());
    replaced(
        &filled,
        b"{accept-lower}",
        accept.to_ascii_lowercase().as_bytes(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agreed(offer: &str, opening: &Opening) -> Result<String, &'static str> {
        let request = Head {
            line: String::new(),
            fields: vec![("sec-websocket-extensions".into(), offer.into())],
        };
        answer(&request, opening)
    }

    #[test]
    fn an_answer_agrees_to_what_the_offer_insists_on() {
        let plain = Opening::Extended("permessage-deflate");
        let deflate = "Sec-WebSocket-Extensions: permessage-deflate";
        let answer = agreed("x, permessage-deflate; client_max_window_bits", &plain).unwrap();
        assert!(answer.contains(&format!("{deflate}\r\n")), "{answer}");
        let each = "permessage-deflate; server_no_context_takeover";
        let answer = agreed(each, &plain).unwrap();
        assert!(answer.contains(&format!("{deflate}; server_no_context_takeover\r\n")));
        let takeover = Opening::Takeover("permessage-deflate");
        assert!(agreed(each, &takeover).is_err());
        assert!(agreed("x", &plain).is_err());
        let small = "permessage-deflate; server_max_window_bits=9";
        assert!(
            agreed(small, &plain)
                .unwrap()
                .contains(&format!("{small}\r\n"))
        );
        assert_eq!(agreed("x", &Opening::WebSocket).unwrap(), ACCEPTED);
    }
}
