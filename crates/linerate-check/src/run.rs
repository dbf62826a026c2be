//! Runs the selected inputs against a server, several at a time.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::{StreamExt, stream};
use rustls::AlertDescription;

use crate::{
    case::{Case, Expect, Opening, Row, Stage, Verdict, Wait},
    connect::{Target, in_time},
    frame::Role,
    http::{Head, KEY},
    http2::{Tunnel, fields_with, hpack::block},
    judge::{Judgement, judge},
    outcome::Outcome,
    talk::{self, Conversation, TalkOptions},
};

/// The reason to give for inputs that are not sent any more.
const GONE: &str = "the server no longer opens WebSockets";

/// How a server is checked.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The server.
    pub target: Target,
    /// How many inputs run at the same time.
    pub jobs: usize,
    /// How long an answer may take.
    pub patience: Duration,
    /// True if the server echoes each message.
    pub echoes: bool,
    /// True if WebSockets are opened over HTTP/2.
    pub http2: bool,
}

impl Plan {
    fn manner(&self) -> TalkOptions {
        TalkOptions {
            role: Role::Server,
            echoes: self.echoes,
            patience: self.patience,
        }
    }
}

/// The result of an input.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The index of the row.
    pub row: usize,
    /// The index of the input in its row.
    pub case: usize,
    /// The bytes that were sent, with host and path filled in.
    pub sent: Vec<u8>,
    /// What came back.
    pub outcome: Outcome,
    /// The verdict, and the reason for it.
    pub judgement: Judgement,
}

/// Returns the request that opens a WebSocket, with the additional header lines `more`.
pub(crate) fn request(more: &str) -> String {
    format!(
        "GET {{path}} HTTP/1.1\r\nHost: {{host}}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: {KEY}\r\nSec-WebSocket-Version: 13\r\n{{more}}{more}\r\n"
    )
}

/// Opens a WebSocket with an ordinary request, to check that the server works.
///
/// # Errors
/// Describes what happens if no WebSocket is opened.
pub async fn greet(plan: &Plan) -> Result<(), String> {
    let case = greeting();
    let (_, outcome) = hold(plan, &case).await.map_err(|error| error.to_string())?;
    match &outcome.head {
        Some(_) if outcome.opened() && outcome.fault.is_none() => Ok(()),
        _ => Err(outcome.in_words()),
    }
}

/// Returns whether the server accepts WebSockets over HTTP/2.
pub async fn offers_http2(plan: &Plan) -> bool {
    let Ok(connection) = plan.target.connect_http2(plan.patience).await else {
        return false;
    };
    in_time(plan.patience, Tunnel::greet(connection))
        .await
        .is_ok()
}

fn greeting() -> Case {
    let stage = Stage {
        bytes: request("").into(),
        wait: Wait::Answer,
    };
    Case::new("", Opening::Nothing, vec![stage], Expect::OpenOrRefuse)
}

/// Runs all inputs of `rows`, and returns the findings in their order. Calls `tell` with each
/// finding as soon as it is available.
pub async fn run(plan: &Plan, rows: &[Row], mut tell: impl FnMut(&Finding)) -> Vec<Finding> {
    let plan = Arc::new(plan.clone());
    let places = rows.iter().enumerate().flat_map(|(row, content)| {
        let cases = content.cases.iter().enumerate();
        cases.map(move |(case, content)| (row, case, content))
    });
    let gone = Arc::new(AtomicBool::new(false));
    let checks = places.map(|(row, case, content)| {
        let (plan, gone) = (plan.clone(), gone.clone());
        async move {
            let (sent, outcome, judgement) = check(&plan, content, &gone).await;
            Finding {
                row,
                case,
                sent,
                outcome,
                judgement,
            }
        }
    });
    let mut findings = Vec::new();
    let mut running = stream::iter(checks).buffer_unordered(plan.jobs.max(1));
    while let Some(finding) = running.next().await {
        tell(&finding);
        findings.push(finding);
    }
    findings.sort_by_key(|finding| (finding.row, finding.case));
    findings
}

/// Checks one input. Sends nothing once `gone` is set, which means that the server no longer works.
async fn check(plan: &Plan, content: &Case, gone: &AtomicBool) -> (Vec<u8>, Outcome, Judgement) {
    if gone.load(Ordering::Relaxed) {
        return (
            Vec::new(),
            Outcome::default(),
            Judgement::not_applicable(GONE),
        );
    }
    let (sent, outcome, judgement) = match hold(plan, content).await {
        Ok((sent, mut outcome)) => {
            let judgement = judge_held(plan, content, &outcome);
            if content.input.opening != Opening::Nothing && outcome.opened() {
                // The report is about what came after the handshake.
                outcome.head = None;
            }
            (sent, outcome, judgement)
        }
        Err(error) => {
            let judgement = judge_unconnected(&content.input.opening, &error);
            (Vec::new(), Outcome::default(), judgement)
        }
    };
    let harms = matches!(content.expect, Expect::Endure(_) | Expect::Survive(_));
    let is_harmless = judgement.verdict == Verdict::Right && !harms;
    if is_harmless || greet(plan).await.is_ok() {
        return (sent, outcome, judgement);
    }
    gone.store(true, Ordering::Relaxed);
    // An input that never had a connection cannot have broken the server.
    let judgement = if sent.is_empty() {
        Judgement::not_applicable(GONE)
    } else {
        Judgement::dangerous(
            "the server no longer opens WebSockets; use --jobs 1 to find the input that causes it",
        )
    };
    (sent, outcome, judgement)
}

fn judge_held(plan: &Plan, case: &Case, outcome: &Outcome) -> Judgement {
    let opening = &case.input.opening;
    let opened = outcome.head.as_ref().filter(|head| head.opens());
    match (opening, opened) {
        (Opening::Nothing, Some(_)) if matches!(case.expect, Expect::GivenUp { .. }) => {
            return Judgement::wrong("a WebSocket is opened");
        }
        (Opening::Http2 { .. } | Opening::Http2Nothing | Opening::Nothing | Opening::Tcp, _) => {}
        (_, None) => return judge_unopened(opening, outcome),
        (_, Some(head)) => {
            if let Err(why) = agreed(head, opening) {
                return Judgement::not_applicable(why);
            }
        }
    }
    judge(&case.expect, outcome, plan.echoes)
}

fn judge_unconnected(opening: &Opening, error: &io::Error) -> Judgement {
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref());
    match (opening, tls) {
        (Opening::Tls(shape), Some(rustls::Error::AlertReceived(alert))) => match alert {
            AlertDescription::NoApplicationProtocol if !shape.protocols.is_empty() => {
                Judgement::right()
            }
            AlertDescription::ProtocolVersion if shape.is_tls12 => {
                Judgement::not_applicable("the server does not speak TLS 1.2")
            }
            _ => Judgement::wrong(format!("connection failed: {error}")),
        },
        _ => Judgement::wrong(format!("connection failed: {error}")),
    }
}

fn judge_unopened(opening: &Opening, outcome: &Outcome) -> Judgement {
    let status = outcome.head.as_ref().and_then(Head::status);
    if opening.offer().is_some() && status.is_some_and(|status| (400..500).contains(&status)) {
        return Judgement::permitted("a request with this offer is refused");
    }
    Judgement::wrong("no WebSocket is opened")
}

/// Runs the conversation of an input. Returns the bytes that were sent, and what came back.
async fn hold(plan: &Plan, case: &Case) -> io::Result<(Vec<u8>, Outcome)> {
    let stages = case.input.stages.iter().map(|stage| &*stage.bytes);
    let stages = stages.collect::<Vec<_>>().concat();
    if case.input.opening.is_over_http2() {
        let connection = plan.target.connect_http2(plan.patience).await?;
        let outcome = talk::http2::hold(case, connection, plan.patience).await;
        return Ok((stages, outcome));
    }
    let connection = match case.input.opening {
        Opening::Tcp => plan.target.connect_tcp(plan.patience).await?,
        Opening::Tls(shape) => plan.target.connect_shaped(shape, plan.patience).await?,
        _ if plan.http2 => return hold_in_tunnel(plan, case, stages).await,
        _ => plan.target.connect(plan.patience).await?,
    };
    let mut talk = Conversation::new(case, plan.manner(), connection);
    match case.input.opening {
        Opening::Http2 { .. } | Opening::Http2Nothing | Opening::Nothing | Opening::Tcp => {
            let outcome = talk.run(|bytes| plan.target.fill(bytes)).await;
            Ok((plan.target.fill(&stages), outcome))
        }
        Opening::Extended(_) | Opening::Takeover(_) | Opening::Tls(_) | Opening::WebSocket => {
            let request = request(&offer(&case.input.opening));
            let request = plan.target.fill(request.as_bytes());
            talk.open(&request).await;
            let head = talk.head().filter(|_| talk.is_open());
            if head.is_none_or(|head| agreed(head, &case.input.opening).is_err()) {
                return Ok((request, talk.leave()));
            }
            Ok((stages, talk.run(<[u8]>::to_vec).await))
        }
    }
}

/// Runs the conversation of an input on an HTTP/2 stream. Of an HTTP/1.1 request, only the
/// extensions that it offers are used.
async fn hold_in_tunnel(
    plan: &Plan,
    case: &Case,
    stages: Vec<u8>,
) -> io::Result<(Vec<u8>, Outcome)> {
    const EXTENSIONS: &str = "sec-websocket-extensions";
    let offered = match &case.input.opening {
        Opening::Nothing => Head::of_request(&stages).field(EXTENSIONS),
        opening => opening.offer().map(str::to_owned),
    };
    let offered = offered.as_deref().map(|offer| (EXTENSIONS, offer));
    let fields = fields_with(&plan.target.http2_request(), offered);
    let connection = plan.target.connect_http2(plan.patience).await?;
    let (head, tunnel) = in_time(plan.patience, Tunnel::open(connection, &fields)).await?;
    let is_agreed = head.opens() && agreed(&head, &case.input.opening).is_ok();
    let mut talk = Conversation::new(case, plan.manner(), Box::new(tunnel));
    let request = Head {
        line: String::new(),
        fields: offered
            .map(|(name, value)| (name.into(), value.into()))
            .into_iter()
            .collect(),
    };
    talk.go_on(head, &request);
    if !is_agreed || case.input.opening == Opening::Nothing {
        return Ok((block(&fields), talk.leave()));
    }
    Ok((stages, talk.run(<[u8]>::to_vec).await))
}

fn offer(opening: &Opening) -> String {
    let line = |offer| format!("Sec-WebSocket-Extensions: {offer}\r\n");
    opening.offer().map(line).unwrap_or_default()
}

/// Checks that a response accepts the extension that the input needs.
///
/// # Errors
/// Describes what was not accepted.
fn agreed(head: &Head, opening: &Opening) -> Result<(), &'static str> {
    if opening.offer().is_none() {
        return Ok(());
    }
    let extensions = head.field("sec-websocket-extensions");
    let extensions = extensions.ok_or("the server does not agree to permessage-deflate")?;
    let forgets = extensions.contains("client_no_context_takeover");
    if matches!(opening, Opening::Takeover(_)) && forgets {
        return Err(
            "the server does not keep its window between messages (client_no_context_takeover)",
        );
    }
    Ok(())
}
