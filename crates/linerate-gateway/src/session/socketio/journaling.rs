//! Notes what is handed to a client that may return.

use std::sync::Arc;

use crate::{
    node::{Notice, Outlet},
    protocol::Transmit,
    session::{Journal, SessionOutlet},
    webhook::Tracked,
};

/// The output side of a client that may return: notes what it hands on.
#[derive(Debug)]
pub(crate) struct JournalingOutlet {
    pub(crate) outlet: Arc<dyn SessionOutlet>,
    pub(crate) journal: Journal,
}

impl Outlet for JournalingOutlet {
    fn has_room(&self) -> bool {
        self.outlet.has_room()
    }

    fn transmit(&self, transmit: Transmit) {
        if let Transmit::Block { block, .. } = &transmit
            && let Some(end) = block.end()
        {
            self.journal.note(end);
        }
        self.outlet.transmit(transmit);
    }

    fn flush(&self) {
        self.outlet.flush();
    }

    fn notify(&self, notice: Notice) {
        self.outlet.notify(notice);
    }

    fn pending_bytes(&self) -> usize {
        self.outlet.pending_bytes()
    }

    fn tracked(&self) -> Option<&Tracked> {
        self.outlet.tracked()
    }

    fn received_bytes(&self) -> usize {
        self.outlet.received_bytes()
    }
}

impl SessionOutlet for JournalingOutlet {
    fn hold(&self) {
        self.outlet.hold();
    }

    fn keep_commands(&self, bytes: usize) {
        self.outlet.keep_commands(bytes);
    }

    fn journal(&self) -> Option<&Journal> {
        Some(&self.journal)
    }
}
