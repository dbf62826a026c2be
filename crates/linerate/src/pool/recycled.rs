//! Values that exist only while a connection uses them, so that an idle one has only a pointer.

use std::{
    cell::RefCell,
    ops::{Deref, DerefMut},
    thread::LocalKey,
};

/// How many unused values a thread keeps.
const SPARE_MAX: usize = 64;

/// The unused values of a thread.
#[allow(
    clippy::vec_box,
    reason = "values are recycled together with their boxes"
)]
pub(crate) struct Spare<T>(RefCell<Vec<Box<T>>>);

impl<T: Default> Spare<T> {
    pub(crate) const fn new() -> Self {
        Self(RefCell::new(Vec::new()))
    }

    /// Takes an unused value, or creates one.
    #[inline]
    fn take(spare: &'static LocalKey<Self>) -> Box<T> {
        let recycled = spare.try_with(|spare| spare.0.borrow_mut().pop());
        recycled.ok().flatten().unwrap_or_default()
    }

    fn give(spare: &'static LocalKey<Self>, value: Box<T>) {
        _ = spare.try_with(|spare| {
            let mut values = spare.0.borrow_mut();
            if values.len() < SPARE_MAX {
                values.push(value);
            }
        });
    }
}

/// State that idle connections share.
pub(crate) trait Recycle: Default + 'static {
    /// What a connection without the state sees in its place.
    const IDLE: &'static Self;

    /// Returns where the thread keeps unused values.
    fn spare() -> &'static LocalKey<Spare<Self>>;

    /// Returns whether the state does not matter any more; if so, makes it equal to
    /// [`IDLE`](Self::IDLE), but may keep a little memory.
    fn reset(&mut self) -> bool;
}

/// State that is allocated when it changes, and recycled by [`release`](Self::release).
pub(crate) struct Recycled<T: Recycle>(Option<Box<T>>);

impl<T: Recycle> Recycled<T> {
    /// Returns whether the connection has the state.
    #[inline]
    pub(crate) const fn is_held(&self) -> bool {
        self.0.is_some()
    }

    /// Recycles the state if it does not matter any more.
    #[inline]
    pub(crate) fn release(&mut self) {
        if let Some(value) = self.0.take_if(|value| value.reset()) {
            Spare::give(T::spare(), value);
        }
    }
}

impl<T: Recycle> Default for Recycled<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Recycle> Deref for Recycled<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or(T::IDLE)
    }
}

impl<T: Recycle> DerefMut for Recycled<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_with(|| Spare::take(T::spare()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, Eq, PartialEq)]
    struct Number(u32);

    thread_local! {
        static SPARE: Spare<Number> = const { Spare::new() };
    }

    impl Recycle for Number {
        const IDLE: &'static Self = &Self(0);

        fn spare() -> &'static LocalKey<Spare<Self>> {
            &SPARE
        }

        fn reset(&mut self) -> bool {
            self.0 == 0
        }
    }

    #[test]
    fn state_is_allocated_when_it_changes_and_recycled_when_it_does_not_matter() {
        let mut state = Recycled::<Number>::default();
        assert_eq!((state.is_held(), &*state), (false, &Number(0)));
        *state = Number(3);
        state.release();
        assert_eq!((state.is_held(), &*state), (true, &Number(3)));
        *state = Number(0);
        let address: *const Number = &raw const *state;
        state.release();
        assert!(!state.is_held());
        *state = Number(4);
        assert_eq!(&raw const *state, address);
    }

    #[test]
    fn what_a_thread_keeps_is_bounded() {
        let mut states: Vec<_> = (0..2 * SPARE_MAX)
            .map(|_| Recycled(Some(Box::new(Number(0)))))
            .collect();
        states.iter_mut().for_each(Recycled::release);
        assert_eq!(SPARE.with(|spare| spare.0.borrow().len()), SPARE_MAX);
    }
}
