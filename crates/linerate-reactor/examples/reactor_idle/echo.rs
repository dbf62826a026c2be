//! The handler of the measured servers.

use linerate_reactor::{Context, Handler, Message, Opened};

/// Echoes each message.
#[derive(Clone)]
pub(crate) struct Echo;

impl Handler for Echo {
    type Data = ();

    fn open(&mut self, _cx: &mut Context<'_>, _opened: Opened<'_>) {}

    fn message(&mut self, (): &mut (), cx: &mut Context<'_>, message: Message<'_>) {
        // The connection may be closing; the client then does not expect a reply.
        _ = cx.send(message);
    }
}
