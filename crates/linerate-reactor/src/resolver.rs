//! Name lookups on a separate thread, which is started when it is first needed, so that no worker
//! blocks.

use std::{
    io,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
};

use crate::{
    mailbox::{LookupResult, Mailbox},
    outbound::destination::look_up,
};

/// Maximum number of pending lookups; further ones fail.
const LOOKUPS_MAX: usize = 1_024;

/// The thread that looks names up, one at a time.
#[derive(Debug, Default)]
pub(crate) struct Resolver(Mutex<Option<SyncSender<Lookup>>>);

/// A name to be looked up.
#[derive(Debug)]
struct Lookup {
    worker: u16,
    number: u64,
    name: String,
    port: u16,
}

impl Resolver {
    /// Starts to look a name up; the result goes to the worker's mailbox.
    ///
    /// # Errors
    /// If 1,024 lookups are pending, or the thread cannot be started.
    pub(crate) fn look_up(
        &self,
        mailboxes: &Arc<[Mailbox]>,
        worker: u16,
        number: u64,
        (name, port): (&str, u16),
    ) -> io::Result<()> {
        let mut lookups = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lookups = match &mut *lookups {
            Some(lookups) => lookups,
            none => none.insert(start(Arc::downgrade(mailboxes))?),
        };
        let lookup = Lookup {
            worker,
            number,
            name: name.to_owned(),
            port,
        };
        lookups
            .try_send(lookup)
            .map_err(|_| io::Error::other("limit of 1,024 pending name lookups reached"))
    }
}

/// Starts the thread, which ends when the last handle on the reactor is dropped.
fn start(mailboxes: Weak<[Mailbox]>) -> io::Result<SyncSender<Lookup>> {
    let (sender, lookups) = sync_channel(LOOKUPS_MAX);
    let thread = thread::Builder::new().name("reactor-lookup".to_owned());
    thread.spawn(move || serve(&lookups, &mailboxes))?;
    Ok(sender)
}

fn serve(lookups: &Receiver<Lookup>, mailboxes: &Weak<[Mailbox]>) {
    for lookup in lookups {
        let found = look_up(&lookup.name, lookup.port);
        let Some(mailboxes) = mailboxes.upgrade() else {
            return;
        };
        mailboxes[usize::from(lookup.worker)].finish_lookup(LookupResult {
            number: lookup.number,
            found,
        });
    }
}
