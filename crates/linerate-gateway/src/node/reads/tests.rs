//! Tests of shared reads, on an in-memory stream. Each read waits for a permit.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use linerate_broker::{
    BoxFuture, Broker, BrokerError, BrokerOptions, Event, History, Ingest, Publish, StreamOptions,
    memory::Memory,
};
use linerate_hub::{ChannelName, Epoch, StreamPosition};
use tokio::{runtime::Handle, sync::Semaphore, task::JoinHandle};

use super::{ReadRequest, Reads, SPREAD_MAX};
use crate::node::tests::{channel, until};

const STREAM: StreamOptions = StreamOptions {
    is_durable: true,
    size_max: 1_000,
    ttl: Duration::from_secs(60),
};

#[derive(Debug)]
struct Nobody;

impl Ingest for Nobody {
    fn ingest(&self, _: Vec<Event>) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

struct Library {
    broker: Arc<Memory>,
    reads: Arc<Reads>,
    begun: Arc<AtomicUsize>,
    permits: Arc<Semaphore>,
}

impl Library {
    /// Creates a library whose channel `news` has `publications` publications, of which `size_max`
    /// are kept.
    async fn new(publications: u64, size_max: usize) -> Self {
        let broker = Memory::new(&BrokerOptions::default(), Arc::new(Nobody)).unwrap();
        let broker = Arc::new(broker);
        for number in 1..=publications {
            let publish = Publish {
                payload: number.to_string().into(),
                info: None,
                tags: Vec::new(),
                idempotency_key: None,
                options: StreamOptions { size_max, ..STREAM },
            };
            broker.publish(&channel("news"), publish).await.unwrap();
        }
        let (begun, permits) = (Arc::<AtomicUsize>::default(), Arc::new(Semaphore::new(0)));
        let reads = Reads::new(Handle::current(), {
            let (broker, begun, permits) = (broker.clone(), begun.clone(), permits.clone());
            move |channel: ChannelName, stream, request| {
                begun.fetch_add(1, Ordering::SeqCst);
                let (broker, permits) = (broker.clone(), permits.clone());
                Box::pin(async move {
                    permits.acquire().await.unwrap().forget();
                    broker.history(&channel, stream, request).await
                })
            }
        });
        Self {
            broker,
            reads,
            begun,
            permits,
        }
    }

    fn ask(&self, since: Option<StreamPosition>, limit: usize) -> Asked {
        let reads = self.reads.clone();
        tokio::spawn(async move {
            let request = ReadRequest {
                stream: STREAM,
                since,
                limit,
            };
            reads.read(&channel("news"), request).await
        })
    }

    async fn epoch(&self) -> Epoch {
        let request = Default::default();
        let news = channel("news");
        let history = self.broker.history(&news, STREAM, request).await;
        history.unwrap().newest.epoch
    }

    fn begun(&self) -> usize {
        self.begun.load(Ordering::SeqCst)
    }

    /// Waits until `count` callers wait for the next read.
    async fn until_waiting(&self, count: usize) {
        let waiting = || {
            let table = self.reads.table.lock();
            let next = table.get(channel("news").as_str());
            let next = next.and_then(Option::as_ref);
            let callers = next.into_iter().flat_map(|batch| &batch.callers);
            callers.filter(|caller| !caller.is_closed()).count() == count
        };
        until("asked", waiting).await;
    }
}

type Asked = JoinHandle<Result<History, BrokerError>>;

fn payloads(history: &History) -> Vec<String> {
    let payloads = history.publications.iter().map(|one| one.payload());
    payloads
        .map(|payload| String::from_utf8_lossy(payload).into_owned())
        .collect()
}

#[tokio::test]
async fn who_asks_while_something_is_read_shares_the_next_read() {
    let library = Library::new(20, 1_000).await;
    let epoch = library.epoch().await;
    let after = |offset| {
        Some(StreamPosition {
            epoch: epoch.clone(),
            offset,
        })
    };
    let first = library.ask(after(19), 100);
    until("begun", || library.begun() == 1).await;
    let others: Vec<Asked> = (10..=20)
        .map(|offset| library.ask(after(offset), 100))
        .collect();
    let newest_only = library.ask(None, 0);
    library.until_waiting(12).await;
    // They cannot share the read in progress, which may have begun before publications that they
    // must not miss.
    assert_eq!(library.begun(), 1);
    library.permits.add_permits(2);
    assert_eq!(payloads(&first.await.unwrap().unwrap()), ["20"]);
    for (offset, asked) in (10_u64..=20).zip(others) {
        let history = asked.await.unwrap().unwrap();
        let missed: Vec<String> = (offset + 1..=20).map(|one| one.to_string()).collect();
        assert_eq!(payloads(&history), missed);
        assert!(history.is_contiguous && history.newest.offset == 20);
    }
    let newest = newest_only.await.unwrap().unwrap();
    assert!(newest.publications.is_empty() && newest.newest.offset == 20);
    assert_eq!(library.begun(), 2);
    assert!(library.reads.table.lock().is_empty());
}

#[tokio::test]
async fn a_shared_read_answers_as_one_of_its_own_would() {
    // Of 30 publications, the last ten are left.
    let library = Library::new(30, 10).await;
    let epoch = library.epoch().await;
    let requests = (0..40).flat_map(|offset| [1, 3, 100].map(|limit| (offset, limit)));
    let requests: Vec<(u64, usize)> = requests.collect();
    let position = |offset| StreamPosition {
        epoch: epoch.clone(),
        offset,
    };
    // Share the read with callers that are behind what is left, and without them.
    for lowest in [0, 15, 19, 20, 25, 30, 35] {
        let blocker = library.ask(None, 1);
        until("begun", || library.begun() % 2 == 1).await;
        let asked: Vec<_> = requests
            .iter()
            .filter(|(offset, _)| *offset >= lowest)
            .map(|(offset, limit)| (offset, limit, library.ask(Some(position(*offset)), *limit)))
            .collect();
        library.until_waiting(asked.len()).await;
        library.permits.add_permits(2);
        for (offset, limit, asked) in asked {
            let shared = asked.await.unwrap().unwrap();
            let request = ReadRequest {
                stream: STREAM,
                since: Some(position(*offset)),
                limit: *limit,
            };
            let news = channel("news");
            let alone = library
                .broker
                .history(&news, STREAM, request.history_request(0))
                .await;
            let alone = alone.unwrap();
            assert_eq!(shared.is_contiguous, alone.is_contiguous, "{request:?}");
            assert_eq!(shared.newest, alone.newest);
            if alone.is_contiguous {
                assert_eq!(payloads(&shared), payloads(&alone), "{request:?}");
            }
        }
        blocker.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn who_wants_the_newest_publications_shares_a_read_with_others_who_do() {
    let library = Library::new(10, 1_000).await;
    let blocker = library.ask(None, 0);
    until("begun", || library.begun() == 1).await;
    let asked = [1, 3, 0, 2].map(|limit| library.ask(None, limit));
    library.until_waiting(4).await;
    library.permits.add_permits(2);
    let expected: [&[&str]; 4] = [&["10"], &["10", "9", "8"], &[], &["10", "9"]];
    for (asked, expected) in asked.into_iter().zip(expected) {
        assert_eq!(payloads(&asked.await.unwrap().unwrap()), expected);
    }
    assert_eq!(library.begun(), 2);
    blocker.await.unwrap().unwrap();
}

#[tokio::test]
async fn reads_in_different_orders_are_not_shared() {
    let library = Library::new(10, 1_000).await;
    let epoch = library.epoch().await;
    let after = StreamPosition { epoch, offset: 8 };
    let ask = |is_newest| match is_newest {
        true => (library.ask(None, 2), ["10", "9"]),
        false => (library.ask(Some(after.clone()), 2), ["9", "10"]),
    };
    for is_newest_first in [true, false] {
        let begun = library.begun();
        let blocker = library.ask(None, 0);
        until("begun", || library.begun() == begun + 1).await;
        let waiting = ask(is_newest_first);
        library.until_waiting(1).await;
        let alone = ask(!is_newest_first);
        until("alone", || library.begun() == begun + 2).await;
        library.permits.add_permits(3);
        for (asked, expected) in [waiting, alone] {
            assert_eq!(payloads(&asked.await.unwrap().unwrap()), expected);
        }
        blocker.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn who_is_far_behind_or_of_another_epoch_reads_alone() {
    let library = Library::new(10, 1_000).await;
    let epoch = library.epoch().await;
    let after = |epoch: &Epoch, offset| {
        Some(StreamPosition {
            epoch: epoch.clone(),
            offset,
        })
    };
    let blocker = library.ask(None, 1);
    until("begun", || library.begun() == 1).await;
    let near = library.ask(after(&epoch, SPREAD_MAX + 1), 100);
    library.until_waiting(1).await;
    let far = library.ask(after(&epoch, 0), 100);
    let other = library.ask(after(&Epoch::new("other"), 10), 100);
    until("alone", || library.begun() == 3).await;
    library.until_waiting(1).await;
    library.permits.add_permits(4);
    assert_eq!(payloads(&far.await.unwrap().unwrap()).len(), 10);
    assert!(!other.await.unwrap().unwrap().is_contiguous);
    assert!(!near.await.unwrap().unwrap().is_contiguous);
    blocker.await.unwrap().unwrap();
}

#[tokio::test]
async fn who_gives_up_takes_nobody_along_and_leaves_nothing_behind() {
    let library = Library::new(1, 1_000).await;
    let first = library.ask(None, 1);
    until("begun", || library.begun() == 1).await;
    let second = library.ask(None, 1);
    library.until_waiting(1).await;
    let third = library.ask(None, 1);
    library.until_waiting(2).await;
    for asked in [first, second] {
        asked.abort();
        assert!(asked.await.is_err());
    }
    library.permits.add_permits(2);
    assert_eq!(third.await.unwrap().unwrap().newest.offset, 1);
    until("forgotten", || library.reads.table.lock().is_empty()).await;
}

#[tokio::test]
async fn nobody_waits_for_a_read_that_has_panicked() {
    let library = Library::new(3, 100).await;
    let first = library.ask(None, 0);
    until("begun", || library.begun() == 1).await;
    let second = library.ask(None, 0);
    library.until_waiting(1).await;
    // This makes the read panic.
    library.permits.close();
    for asked in [first, second] {
        let answer = asked.await.unwrap();
        assert!(
            matches!(answer, Err(BrokerError::Away { .. })),
            "{answer:?}"
        );
    }
    assert!(library.reads.table.lock().is_empty());
}
