//! Requests to other nodes that are in progress. Callers with the same question share one answer.
//!
//! Without this, a thousand clients that ask for the presence of the same channel would cause a
//! thousand messages to every node.

use std::{collections::HashMap, sync::Arc};

use futures_util::{
    FutureExt,
    future::{BoxFuture, Shared, WeakShared},
};

use parking_lot::Mutex;

use super::message::{Answer, NodeRequest};

type Flight = BoxFuture<'static, Arc<[Answer]>>;

/// The number of stored flights at which completed ones are removed.
const TIDY_AT: usize = 64;

/// The requests in progress, keyed by question.
#[derive(Debug, Default)]
pub(crate) struct Flights(Mutex<HashMap<String, WeakShared<Flight>>>);

impl Flights {
    /// Joins a request in progress with the same question, or starts a new one with `depart`.
    /// Returns `None` for requests that change something; these must be sent every time.
    pub(crate) fn join(
        &self,
        ask: &NodeRequest,
        depart: impl FnOnce() -> Flight,
    ) -> Option<Shared<Flight>> {
        let is_question = matches!(
            ask,
            NodeRequest::Channels { .. }
                | NodeRequest::Presence { .. }
                | NodeRequest::PresenceStats { .. }
        );
        let key = serde_json::to_string(ask).ok().filter(|_| is_question)?;
        let mut flights = self.0.lock();
        let under_way = flights.get(&key).and_then(WeakShared::upgrade);
        if let Some(flight) = under_way.filter(|flight| flight.peek().is_none()) {
            return Some(flight);
        }
        if flights.len() >= TIDY_AT {
            flights.retain(|_, flight| flight.upgrade().is_some());
        }
        let flight = depart().shared();
        if let Some(weak) = flight.downgrade() {
            flights.insert(key, weak);
        }
        Some(flight)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use futures_util::FutureExt;
    use tokio::sync::Semaphore;

    use super::{Answer, Flight, Flights, NodeRequest, TIDY_AT};
    use crate::node::ConnectionSelector;

    struct Airport {
        flights: Flights,
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

        fn depart(&self) -> Flight {
            let (departed, gate) = (self.departed.clone(), self.gate.clone());
            departed.fetch_add(1, Ordering::SeqCst);
            async move {
                drop(gate.acquire().await);
                Arc::from([Answer::Count(1)])
            }
            .boxed()
        }

        fn join(&self, ask: &NodeRequest) -> Option<futures_util::future::Shared<Flight>> {
            self.flights.join(ask, || self.depart())
        }
    }

    fn presence(channel: &str) -> NodeRequest {
        NodeRequest::Presence {
            channel: channel.to_owned(),
            bytes_max: 1_000,
        }
    }

    #[tokio::test]
    async fn the_same_question_is_asked_once_at_a_time() {
        let airport = Airport::new();
        let first = airport.join(&presence("a")).unwrap();
        let second = airport.join(&presence("a")).unwrap();
        let other = airport.join(&presence("b")).unwrap();
        assert_eq!(airport.departed.load(Ordering::SeqCst), 2);
        airport.gate.add_permits(1);
        for flight in [first, second, other] {
            assert_eq!(flight.await.len(), 1);
        }
        airport.join(&presence("a")).unwrap().await;
        assert_eq!(
            airport.departed.load(Ordering::SeqCst),
            3,
            "answers must not be cached"
        );
    }

    #[test]
    fn what_changes_something_is_asked_each_time() {
        let ask = NodeRequest::Disconnect {
            whom: ConnectionSelector::default(),
            code: 3000,
            reason: String::new(),
        };
        assert!(Airport::new().join(&ask).is_none());
    }

    #[test]
    fn flights_that_nobody_waits_for_are_forgotten() {
        let airport = Airport::new();
        for number in 0..3 * TIDY_AT {
            drop(airport.join(&presence(&number.to_string())));
        }
        assert!(airport.flights.0.lock().len() <= TIDY_AT);
    }
}
