//! All uploads that are kept, and which of them give way.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::sleep,
};

use crate::{
    Limits, UploadError, UploadId,
    slot::{Claim, Slot},
};

pub(crate) struct Registry<F> {
    slots: Mutex<HashMap<UploadId, Arc<Slot<F>>>>,
    places: Arc<Semaphore>,
    open_max: usize,
}

impl<F: Send + 'static> Registry<F> {
    /// Creates the registry, and a task that ends uploads which are idle for too long.
    pub(crate) fn start(limits: &Limits) -> Arc<Self> {
        let open_max = limits.open_max.min(Semaphore::MAX_PERMITS);
        let registry = Arc::new(Self {
            slots: Mutex::default(),
            places: Arc::new(Semaphore::new(open_max)),
            open_max,
        });
        tokio::spawn(expire(Arc::downgrade(&registry), limits.idle_max));
        registry
    }

    /// Returns a place for a new upload. If there is none left, an upload without a connection
    /// gives way.
    pub(crate) fn place(&self) -> Result<OwnedSemaphorePermit, UploadError> {
        loop {
            if let Ok(place) = self.places.clone().try_acquire_owned() {
                return Ok(place);
            }
            let mut slots = self.slots();
            let detached = slots.values().filter_map(|slot| {
                let precedence = slot.precedence()?;
                Some((precedence, slot.id))
            });
            let Some((_, id)) = detached.max_by_key(|(precedence, _)| *precedence) else {
                return Err(UploadError::Busy { max: self.open_max });
            };
            let removed = slots.remove(&id);
            drop(slots);
            // Files are closed without the lock.
            drop(removed);
        }
    }

    /// Adds an upload. If another connection has just added the same one, that one is claimed.
    pub(crate) fn add(&self, slot: Slot<F>) -> Claim<F> {
        let id = slot.id;
        let slot = self.slots().entry(id).or_insert(Arc::new(slot)).clone();
        Claim::new(slot)
    }

    pub(crate) fn find(&self, id: UploadId) -> Option<Arc<Slot<F>>> {
        self.slots().get(&id).cloned()
    }

    /// Forgets an upload that has ended without a result.
    pub(crate) fn remove(&self, ended: &Slot<F>) {
        let mut slots = self.slots();
        if slots
            .get(&ended.id)
            .is_some_and(|slot| std::ptr::eq(&**slot, ended))
        {
            slots.remove(&ended.id);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots().len()
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<UploadId, Arc<Slot<F>>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends idle uploads until the registry is dropped.
async fn expire<F: Send + 'static>(registry: Weak<Registry<F>>, idle_max: Duration) {
    let interval = (idle_max / 4).clamp(Duration::from_millis(100), Duration::from_secs(60));
    loop {
        sleep(interval).await;
        let Some(registry) = registry.upgrade() else {
            return;
        };
        registry.slots().retain(|_, slot| !slot.expire(idle_max));
    }
}
