//! Connects each client to an upstream server, in both directions.

use std::collections::HashMap;

use linerate_reactor::{
    CloseCode, Closed, ConnectError, ConnectionId, Context, Destination, Handler, Message, Opened,
    WorkerContext,
};

/// The handler of both ends: the clients, and the connections opened for them.
#[derive(Clone)]
pub(crate) struct Relay {
    upstream: Destination,
    /// The links, by the tag of the outbound connection.
    links: HashMap<u64, Link>,
    last_tag: u64,
}

/// Two connections that receive each other's messages.
#[derive(Clone)]
struct Link {
    /// `None` once the client's connection has ended.
    inbound: Option<ConnectionId>,
    /// `None` before the upstream connection is open, and once it has ended.
    outbound: Option<ConnectionId>,
}

/// The end of a link that a connection represents.
pub(crate) struct End {
    tag: u64,
    is_inbound: bool,
}

impl Relay {
    pub(crate) fn new(upstream: Destination) -> Self {
        Self {
            upstream,
            links: HashMap::new(),
            last_tag: 0,
        }
    }

    /// Returns the other end, if it is connected.
    fn other(&self, end: &End) -> Option<ConnectionId> {
        let link = self.links.get(&end.tag)?;
        if end.is_inbound {
            link.outbound
        } else {
            link.inbound
        }
    }

    /// Accepts a client and pauses its input until the upstream connection is open.
    fn open_inbound(&mut self, cx: &mut Context<'_>) -> End {
        self.last_tag += 1;
        let tag = self.last_tag;
        let link = Link {
            inbound: Some(cx.id()),
            outbound: None,
        };
        cx.pause();
        match cx.connect(&self.upstream.clone().with_tag(tag)) {
            Ok(()) => _ = self.links.insert(tag, link),
            Err(_) => _ = cx.close(CloseCode::TRY_AGAIN_LATER, "relay is full"),
        }
        End {
            tag,
            is_inbound: true,
        }
    }

    fn open_outbound(&mut self, cx: &mut Context<'_>, tag: u64) -> End {
        let inbound = self.links.get_mut(&tag).and_then(|link| {
            link.outbound = Some(cx.id());
            link.inbound
        });
        match inbound.and_then(|inbound| cx.to(inbound)) {
            Some(mut inbound) => inbound.resume(),
            // The client has disconnected in the meantime.
            None => _ = cx.close(CloseCode::GOING_AWAY, ""),
        }
        End {
            tag,
            is_inbound: false,
        }
    }
}

impl Handler for Relay {
    type Data = End;

    fn open(&mut self, cx: &mut Context<'_>, opened: Opened<'_>) -> End {
        match opened.destination() {
            Some(destination) => self.open_outbound(cx, destination.tag()),
            None => self.open_inbound(cx),
        }
    }

    fn failed(
        &mut self,
        worker: &mut WorkerContext<'_>,
        destination: &Destination,
        error: ConnectError,
    ) {
        eprintln!("upstream: {error}");
        let link = self.links.remove(&destination.tag());
        if let Some(id) = link.and_then(|link| link.inbound)
            && let Some(mut inbound) = worker.to(id)
        {
            inbound.close(CloseCode::TRY_AGAIN_LATER, "no upstream");
            inbound.resume();
        }
    }

    fn message(&mut self, end: &mut End, cx: &mut Context<'_>, message: Message<'_>) {
        if let Some(mut other) = self.other(end).and_then(|other| cx.to(other)) {
            other.send(message);
        }
    }

    /// Pauses the other end while this one cannot accept more messages.
    fn congested(&mut self, end: &mut End, cx: &mut Context<'_>) {
        if let Some(mut other) = self.other(end).and_then(|other| cx.to(other)) {
            other.pause();
        }
    }

    /// Resumes the other end.
    fn drain(&mut self, end: &mut End, cx: &mut Context<'_>) {
        if let Some(mut other) = self.other(end).and_then(|other| cx.to(other)) {
            other.resume();
        }
    }

    fn close(&mut self, end: End, cx: &mut Context<'_>, closed: Closed) {
        if let Some(mut other) = self.other(&end).and_then(|other| cx.to(other)) {
            // 1005 and 1006 stand for a missing code and are never sent in a frame.
            let code = match closed.code {
                Closed::NO_STATUS => CloseCode::NORMAL,
                code => CloseCode::new(code).unwrap_or(CloseCode::GOING_AWAY),
            };
            other.close(code, "");
            other.resume();
        }
        let Some(link) = self.links.get_mut(&end.tag) else {
            return;
        };
        if end.is_inbound {
            link.inbound = None;
        } else {
            link.outbound = None;
        }
        // An outbound connection that is still being opened will find no client, and close.
        if link.inbound.is_none() && link.outbound.is_none() {
            self.links.remove(&end.tag);
        }
    }
}
