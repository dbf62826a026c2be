//! Requests that are in progress. Callers with the same question share one answer.
//!
//! Without this, a thousand clients that ask for the presence of the same channel would cause a
//! thousand requests.

use std::collections::HashMap;

use futures_util::{
    FutureExt,
    future::{BoxFuture, Shared, WeakShared},
};
use parking_lot::Mutex;

/// The number of stored flights at which completed ones are removed.
const TIDY_AT: usize = 64;

/// The requests in progress, keyed by question.
#[derive(Debug)]
pub(super) struct Flights<T: Clone>(Mutex<HashMap<String, WeakShared<Flight<T>>>>);

type Flight<T> = BoxFuture<'static, T>;

impl<T: Clone> Flights<T> {
    /// Joins the request in progress with this question, or starts one with `depart`.
    pub(super) fn join(
        &self,
        question: String,
        depart: impl FnOnce() -> Flight<T>,
    ) -> Shared<Flight<T>> {
        let mut flights = self.0.lock();
        let under_way = flights.get(&question).and_then(WeakShared::upgrade);
        if let Some(flight) = under_way.filter(|flight| flight.peek().is_none()) {
            return flight;
        }
        if flights.len() >= TIDY_AT {
            flights.retain(|_, flight| flight.upgrade().is_some());
        }
        let flight = depart().shared();
        if let Some(weak) = flight.downgrade() {
            flights.insert(question, weak);
        }
        flight
    }
}

impl<T: Clone> Default for Flights<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use futures_util::{FutureExt, future::Shared};
    use tokio::sync::Semaphore;

    use super::{Flight, Flights, TIDY_AT};

    struct Airport {
        flights: Flights<usize>,
        departed: Arc<AtomicUsize>,
        gate: Arc<Semaphore>,
    }

    impl Airport {
        fn new() -> Self {
            Self {
                flights: Flights::default(),
                departed: Arc::default(),
                gate: Arc::new(Semaphore::new(0)),
            }
        }

        fn depart(&self) -> Flight<usize> {
            let number = self.departed.fetch_add(1, Ordering::SeqCst);
            let gate = self.gate.clone();
            async move {
                drop(gate.acquire().await);
                number
            }
            .boxed()
        }

        fn join(&self, question: &str) -> Shared<Flight<usize>> {
            self.flights.join(question.to_owned(), || self.depart())
        }
    }

    #[tokio::test]
    async fn the_same_question_is_asked_once_at_a_time() {
        let airport = Airport::new();
        let (first, second, other) = (airport.join("a"), airport.join("a"), airport.join("b"));
        assert_eq!(airport.departed.load(Ordering::SeqCst), 2);
        airport.gate.add_permits(1);
        assert_eq!((first.await, second.await, other.await), (0, 0, 1));
        assert_eq!(airport.join("a").await, 2, "answers must not be cached");
    }

    #[test]
    fn flights_that_nobody_waits_for_are_forgotten() {
        let airport = Airport::new();
        for number in 0..3 * TIDY_AT {
            drop(airport.join(&number.to_string()));
        }
        assert!(airport.flights.0.lock().len() <= TIDY_AT);
    }
}
