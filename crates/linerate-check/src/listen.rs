//! The other way round: clients that connect get one input each.

use std::{io, time::Duration};

use tokio::{
    net::{TcpListener, TcpStream},
    time::timeout,
};

use crate::{
    case::{Case, Opening, Row, Verdict},
    catalogue::ACCEPTED,
    connect::replaced,
    frame::Role,
    http::accept,
    judge::{Judgement, judge},
    outcome::Outcome,
    run::Finding,
    talk::{Manner, Talk},
};

/// How a client is checked.
#[derive(Debug)]
pub struct Listening {
    /// Where it connects to, over and over.
    pub listener: TcpListener,
    /// How long an answer may take.
    pub patience: Duration,
    /// How long to wait for it to come; for ever, if it is started by hand.
    pub arrival: Option<Duration>,
    /// Whether the client sends each message back.
    pub echoes: bool,
}

/// Gives each client that connects the next input. `next` is called before each of them, and `tell`
/// with each finding.
///
/// # Errors
/// The listener fails.
pub async fn listen(
    listening: &Listening,
    rows: &[Row],
    mut next: impl FnMut() -> io::Result<()>,
    mut tell: impl FnMut(&Finding),
) -> io::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for (row, content) in rows.iter().enumerate() {
        for (place, case) in content.cases.iter().enumerate() {
            next()?;
            let (sent, outcome, judgement) = match arrived(listening).await? {
                Some(stream) => hold(listening, case, stream).await,
                None => {
                    let judgement = Judgement::wrong("the client does not connect any more");
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

async fn arrived(listening: &Listening) -> io::Result<Option<TcpStream>> {
    let accepted = listening.listener.accept();
    let (stream, _) = match listening.arrival {
        None => accepted.await?,
        Some(arrival) => match timeout(arrival, accepted).await {
            Ok(accepted) => accepted?,
            Err(_) => return Ok(None),
        },
    };
    stream.set_nodelay(true)?;
    Ok(Some(stream))
}

async fn hold(
    listening: &Listening,
    case: &Case,
    stream: TcpStream,
) -> (Vec<u8>, Outcome, Judgement) {
    let manner = Manner {
        role: Role::Client,
        echoes: listening.echoes,
        patience: listening.patience,
    };
    let mut talk = Talk::new(case, manner, Box::new(stream));
    let Some(key) = talk.hear().await else {
        let judgement = Judgement::wrong("the client sends no request with a key");
        return (Vec::new(), talk.leave(), judgement);
    };
    let fill = |bytes: &[u8]| with_accept(bytes, &key);
    let bytes = case
        .input
        .stages
        .iter()
        .flat_map(|stage| fill(&stage.bytes));
    let sent = bytes.collect();
    if case.input.opening != Opening::Nothing {
        talk.answer(&fill(ACCEPTED.as_bytes())).await;
    }
    let outcome = talk.run(fill).await;
    let judgement = judge(&case.expect, &outcome, listening.echoes);
    debug_assert!(judgement.verdict != Verdict::NotApplicable);
    (sent, outcome, judgement)
}

/// Puts what belongs to a key in its places.
fn with_accept(bytes: &[u8], key: &str) -> Vec<u8> {
    let accept = accept(key);
    let filled = replaced(bytes, b"{accept}", accept.as_bytes());
    replaced(
        &filled,
        b"{accept-lower}",
        accept.to_ascii_lowercase().as_bytes(),
    )
}
