//! Timers of pages and workers.

use std::{
    cell::RefCell,
    future::Future,
    pin::{Pin, pin},
    rc::Rc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use js_sys::Function;
use wasm_bindgen::prelude::{Closure, JsCast, JsValue, wasm_bindgen};

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_name = setTimeout)]
    fn set_timeout(callback: &Function, milliseconds: i32) -> JsValue;

    #[wasm_bindgen(js_name = clearTimeout)]
    fn clear_timeout(timer: &JsValue);
}

/// A future that completes after a delay. Dropping it stops the timer.
#[derive(Debug)]
pub(crate) struct Sleep {
    state: Rc<RefCell<State>>,
    timer: JsValue,
    _callback: Closure<dyn FnMut()>,
}

#[derive(Debug, Default)]
struct State {
    is_over: bool,
    waker: Option<Waker>,
}

/// Returns a future that completes after `time`.
pub(crate) fn sleep(time: Duration) -> Sleep {
    let state = Rc::<RefCell<State>>::default();
    let told = state.clone();
    let callback = Closure::new(move || {
        let waker = {
            let mut state = told.borrow_mut();
            state.is_over = true;
            state.waker.take()
        };
        // The woken task may borrow the state immediately.
        if let Some(waker) = waker {
            waker.wake();
        }
    });
    let milliseconds = i32::try_from(time.as_millis()).unwrap_or(i32::MAX);
    let timer = set_timeout(callback.as_ref().unchecked_ref(), milliseconds);
    Sleep {
        state,
        timer,
        _callback: callback,
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state.borrow_mut();
        if state.is_over {
            return Poll::Ready(());
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        clear_timeout(&self.timer);
    }
}

/// Waits for `future` for at most `limit`. Returns `None` if it did not complete in time.
pub(crate) async fn timeout<F: Future>(limit: Duration, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut time = sleep(limit);
    std::future::poll_fn(|cx| {
        if let Poll::Ready(output) = future.as_mut().poll(cx) {
            return Poll::Ready(Some(output));
        }
        Pin::new(&mut time).poll(cx).map(|()| None)
    })
    .await
}
