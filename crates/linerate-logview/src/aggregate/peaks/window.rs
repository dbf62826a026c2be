//! The present minutes of an address.

/// The requests of the latest minute of an address and of the one before, and its busiest minute.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    minute: u32,
    /// The requests of `minute`. 0 only if nothing was counted yet.
    present: u32,
    /// The requests of the minute before.
    before: u32,
    most: u32,
    minute_of_most: u32,
    returns: u32,
}

impl Window {
    /// Counts a request and returns true if its minute is in the window.
    #[inline]
    pub(super) fn count(&mut self, minute: u32) -> bool {
        let requests = if minute == self.minute && self.present > 0 {
            &mut self.present
        } else if minute.checked_add(1) == Some(self.minute) && self.present > 0 {
            &mut self.before
        } else {
            return false;
        };
        *requests = requests.saturating_add(1);
        let requests = *requests;
        self.notice(minute, requests);
        true
    }

    /// Moves the window to another minute and counts a request there. Returns the minutes that left
    /// the window, with their requests, which may be 0.
    pub(super) fn move_to(&mut self, minute: u32) -> [(u32, u32); 2] {
        let [last, before] = [self.minute, self.minute.saturating_sub(1)];
        let left = if self.present > 0 && minute == last.saturating_add(1) {
            let left = [(before, self.before), (last, 0)];
            self.before = self.present;
            left
        } else {
            let left = [(before, self.before), (last, self.present)];
            self.returns += u32::from(self.present > 0 && minute < last);
            self.before = 0;
            left
        };
        (self.minute, self.present) = (minute, 1);
        self.notice(minute, 1);
        left
    }

    /// Adds requests that were counted when `minute` was in the window before.
    pub(super) fn add(&mut self, minute: u32, requests: u32) {
        let here = match self.minute.checked_sub(minute) {
            Some(0) => self.present,
            Some(1) => self.before,
            _ => 0,
        };
        self.notice(minute, requests.saturating_add(here));
    }

    /// Returns how often the window moved back in time.
    pub(super) fn returns(&self) -> u32 {
        self.returns
    }

    /// Returns the busiest minute, the earliest of those with equally many requests, and its
    /// requests.
    pub(super) fn most(&self) -> (u32, u32) {
        (self.minute_of_most, self.most)
    }

    #[inline]
    fn notice(&mut self, minute: u32, requests: u32) {
        let is_earlier = requests == self.most && minute < self.minute_of_most;
        if requests > self.most || is_earlier {
            (self.minute_of_most, self.most) = (minute, requests);
        }
    }
}
