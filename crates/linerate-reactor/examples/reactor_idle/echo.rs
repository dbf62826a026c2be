//! The handler of the measured servers.

use linerate_reactor::{Handler, Message, Opened, Tx};

/// Echoes each message.
#[derive(Clone)]
pub(crate) struct Echo;

impl Handler for Echo {
    type Data = ();

    fn open(&mut self, _tx: &mut Tx<'_>, _opened: Opened<'_>) {}

    fn message(&mut self, (): &mut (), tx: &mut Tx<'_>, message: Message<'_>) {
        // The connection may be closing; the client then does not expect a reply.
        _ = tx.send(message);
    }
}
