//! The handler of the servers that are measured.

use linerate_reactor::{Handler, Message, Opened, Tx};

/// Sends each message back.
#[derive(Clone)]
pub(crate) struct Echo;

impl Handler for Echo {
    type Data = ();

    fn open(&mut self, _tx: &mut Tx<'_>, _opened: Opened<'_>) {}

    fn message(&mut self, (): &mut (), tx: &mut Tx<'_>, message: Message<'_>) {
        // The connection may be closing; then nobody waits for the answer.
        _ = tx.send(message);
    }
}
