//! Tests that tasks waiting for a change of state are woken, and that no change is missed.

use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
};

use crate::{Budget, Consumer, State};

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[test]
fn a_watch_is_woken_by_a_change_and_reports_the_newest_state() {
    let budget = Budget::new(1000 << 10);
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    let mut cx = Context::from_waker(&waker);
    let mut watch = budget.watch();
    assert_eq!(watch.poll_changed(&mut cx), Poll::Pending);
    assert_eq!(watch.poll_changed(&mut cx), Poll::Pending);

    let mut lease = budget.lease(Consumer::Publications);
    lease.set(100 << 10);
    assert_eq!(count.0.load(Ordering::SeqCst), 0);
    lease.set(900 << 10);
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
    lease.set(990 << 10);
    assert_eq!(watch.poll_changed(&mut cx), Poll::Ready(State::Critical));
    assert_eq!(watch.poll_changed(&mut cx), Poll::Pending);
    drop(lease);
    assert_eq!(count.0.load(Ordering::SeqCst), 2);
    assert_eq!(watch.poll_changed(&mut cx), Poll::Ready(State::Normal));
}

#[test]
fn a_waiting_thread_sees_a_change_of_another() {
    let budget = Budget::new(1 << 20);
    let mut watch = budget.watch();
    let _lease = thread::scope(|scope| {
        scope.spawn(|| {
            let waker = Waker::from(Arc::new(Unpark(thread::current())));
            let mut cx = Context::from_waker(&waker);
            let mut changed = pin!(watch.changed());
            while changed.as_mut().poll(&mut cx) != Poll::Ready(State::Tight) {
                thread::park();
            }
        });
        budget.lease_of(Consumer::Publications, 900 << 10).unwrap()
    });
}
