//! What a connection knows about its driver: how to wake it, and why it runs next.

use std::{
    task::{Context, Poll, Waker},
    time::Duration,
};

use super::{alarm::Alarm, tick::Tick};

/// The state of a connection's driver.
#[derive(Default)]
pub(super) struct DriverState {
    /// `None` before the driver has run and after it was dropped.
    waker: Option<Waker>,
    /// The tick for which the shared alarm is set.
    alarm_set: Option<Tick>,
    wakeup: Wakeup,
    /// True if the driver has no handler, or its handler has completed.
    pub(super) is_handler_done: bool,
}

/// What makes the driver run soon, as far as the connection knows.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Wakeup {
    /// The shared alarm has rung.
    Alarm,
    #[default]
    None,
    /// The driver was woken.
    Requested,
}

impl DriverState {
    /// Records that the driver runs, as the task of `cx`.
    pub(super) fn start_turn(&mut self, cx: &Context<'_>) {
        match &mut self.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            waker => *waker = Some(cx.waker().clone()),
        }
    }

    /// Records that the driver has done everything that can be done now.
    pub(super) fn end_turn(&mut self) {
        self.wakeup = Wakeup::None;
    }

    /// Records that the driver was dropped.
    pub(super) fn end(&mut self) {
        self.waker = None;
    }

    pub(super) const fn waker(&self) -> Option<&Waker> {
        self.waker.as_ref()
    }

    /// Wakes the driver, unless it is about to run anyway.
    pub(super) fn wake(&mut self) {
        if self.wakeup == Wakeup::None
            && let Some(waker) = &self.waker
        {
            self.wakeup = Wakeup::Requested;
            waker.wake_by_ref();
        }
    }

    /// Wakes the driver if its alarm is set for `tick`.
    pub(super) fn ring(&mut self, tick: Tick) {
        if self.alarm_set == Some(tick) {
            self.alarm_set = None;
            self.wake();
            self.wakeup = Wakeup::Alarm;
        }
    }

    /// Ensures that the driver is woken at `due` or earlier. Ready if the deadline may have passed.
    pub(super) fn poll_alarm(
        &mut self,
        cx: &mut Context<'_>,
        alarm: &mut Alarm,
        due: Duration,
    ) -> Poll<()> {
        if self.wakeup == Wakeup::Alarm {
            self.wakeup = Wakeup::Requested;
            return Poll::Ready(());
        }
        alarm.poll(cx, due, &mut self.alarm_set)
    }
}
