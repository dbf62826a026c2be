//! Delivery from the broker to the clients.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use linerate_broker::{Event, Gap, GapReason, Ingest};
use linerate_hub::{ChannelOptions, GapCause, Publication, SlowPolicy};
use tokio::time::Instant;

use super::{Bus, channel, connect, node_on, publish, subscription};
use crate::{node::Dispatcher, protocol::Transmit};

#[tokio::test]
async fn a_publication_gets_to_the_subscribers_of_its_channel_on_all_workers() {
    let (node, workers) = node_on(&Arc::new(Bus::default()), 2);
    let mut memos = Vec::new();
    for worker in &workers {
        for name in ["news", "sport"] {
            let (client, memo) = connect(worker, "", "c");
            worker.subscribe(client, subscription(name)).await.unwrap();
            memos.push(memo);
        }
    }
    publish(&node, "news", "1").await;
    publish(&node, "sport", "2").await;
    for (memo, expected) in memos.iter().zip(["1", "2", "1", "2"]) {
        assert_eq!(memo.payloads(1).await, [expected]);
        assert!(memo.is_empty());
    }
    assert_eq!(node.counts.subscriptions(), 4);
    assert_eq!(node.dispatcher.arrived().publications, 2);
}

#[tokio::test]
async fn what_arrives_together_leaves_together() {
    let bus = Arc::new(Bus::default());
    let (_, workers) = node_on(&bus, 1);
    let (client, memo) = connect(&workers[0], "", "c");
    workers[0]
        .subscribe(client, subscription("news"))
        .await
        .unwrap();
    let publications = (0..50).map(|number| Event::Publication {
        channel: channel("news"),
        publication: Publication::new(number.to_string().into()),
    });
    bus.tell(publications.collect()).await;
    let Transmit::Block { messages, .. } = memo.next().await else {
        panic!("expected a block");
    };
    assert_eq!(messages, 50);
}

#[tokio::test]
async fn publications_may_come_later_if_all_subscribers_gather_batches() {
    let (node, workers) = node_on(&Arc::new(Bus::default()), 2);
    let patience = || node.dispatcher.patience();
    assert_eq!(patience(), Duration::ZERO);
    let batches = |millis| {
        let mut batches = subscription("news");
        batches.options.batch_interval = Duration::from_millis(millis);
        batches
    };
    let (client, _memo) = connect(&workers[0], "", "c");
    workers[0].subscribe(client, batches(1_000)).await.unwrap();
    assert_eq!(
        patience(),
        Duration::from_millis(25),
        "the delay is limited"
    );
    let (other, _memo) = connect(&workers[1], "", "d");
    workers[1].subscribe(other, batches(80)).await.unwrap();
    assert_eq!(patience(), Duration::from_millis(10));
    let (hasty, _memo) = connect(&workers[1], "", "e");
    workers[1].subscribe(hasty, batches(0)).await.unwrap();
    assert_eq!(patience(), Duration::ZERO);
    workers[1].unsubscribe(hasty, &channel("news"));
    assert_eq!(patience(), Duration::from_millis(10));
    workers[1].disconnect(other);
    assert_eq!(patience(), Duration::from_millis(25));
}

#[tokio::test]
async fn who_takes_nothing_gets_everything_later() {
    let (node, workers) = node_on(&Arc::new(Bus::default()), 1);
    let worker = &workers[0];
    let (client, memo) = connect(worker, "", "c");
    let (other, other_memo) = connect(worker, "", "d");
    worker
        .subscribe(client, subscription("news"))
        .await
        .unwrap();
    worker.subscribe(other, subscription("news")).await.unwrap();
    memo.set_full(true);
    for number in 0..600 {
        publish(&node, "news", &number.to_string()).await;
    }
    assert_eq!(other_memo.payloads(600).await.len(), 600);
    assert!(memo.is_empty(), "it has no room");
    memo.set_full(false);
    worker.writable(client);
    let expected: Vec<_> = (0..600).map(|number: u32| number.to_string()).collect();
    assert_eq!(memo.payloads(600).await, expected);
}

#[tokio::test]
async fn who_is_too_slow_hears_it_even_without_room() {
    let (node, workers) = node_on(&Arc::new(Bus::default()), 1);
    let (client, memo) = connect(&workers[0], "", "c");
    let mut slow = subscription("news");
    slow.ring = ChannelOptions {
        ring_messages_max: 10,
        ring_bytes_max: 100_000,
    };
    slow.options.slow = SlowPolicy::Disconnect;
    workers[0].subscribe(client, slow).await.unwrap();
    memo.set_full(true);
    for number in 0..100 {
        publish(&node, "news", &number.to_string()).await;
    }
    assert!(matches!(memo.next().await, Transmit::Slow { .. }));
}

#[tokio::test]
async fn a_gap_of_the_link_is_told_to_all_and_remembered() {
    let bus = Arc::new(Bus::default());
    let (node, workers) = node_on(&bus, 2);
    let mut memos = Vec::new();
    for worker in &workers {
        let (client, memo) = connect(worker, "", "c");
        worker
            .subscribe(client, subscription("news"))
            .await
            .unwrap();
        memos.push(memo);
    }
    let gap = Gap {
        channels: None,
        lasted: Duration::from_secs(1),
        reason: GapReason::LinkLost,
    };
    bus.tell(vec![Event::Gap(gap)]).await;
    for memo in memos {
        let Transmit::Gap { gap, .. } = memo.next().await else {
            panic!("expected a gap");
        };
        assert_eq!(gap.cause, GapCause::LinkLost);
    }
    assert_eq!(node.dispatcher.timeline.gaps().0, 1);
}

#[tokio::test]
async fn a_channel_without_subscribers_goes_to_no_worker() {
    let (node, workers) = node_on(&Arc::new(Bus::default()), 1);
    let worker = &workers[0];
    let (client, memo) = connect(worker, "", "c");
    worker
        .subscribe(client, subscription("news"))
        .await
        .unwrap();
    assert!(worker.unsubscribe(client, &channel("news")));
    assert!(!worker.unsubscribe(client, &channel("news")));
    publish(&node, "news", "1").await;
    assert!(node.dispatcher.routes.traffic().is_empty());
    assert!(memo.is_empty());
    worker.disconnect(client);
    assert_eq!((node.counts.clients(), node.counts.subscriptions()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_takes_nothing_holds_up_nobody_else() {
    let (dispatcher, _control) = Dispatcher::new(2);
    for worker in 0..2 {
        dispatcher.routes.add(&channel("news"), worker);
    }
    let start = Instant::now();
    let mut arrived = 0;
    for _ in 0..100 {
        let publication = Publication::new("1".into());
        let burst = (0..1_000).map(|_| Event::Publication {
            channel: channel("news"),
            publication: publication.clone(),
        });
        dispatcher.ingest(burst.collect()).await;
        let mut taken = VecDeque::new();
        dispatcher.inboxes.of(1).take(&mut taken);
        arrived += taken.len();
    }
    assert_eq!(arrived, 100_000);
    assert!(
        start.elapsed() <= Duration::from_secs(1),
        "the dispatcher waits only once"
    );
    let mut stuck = VecDeque::new();
    dispatcher.inboxes.of(0).take(&mut stuck);
    let kept = stuck.len() as u64 - 1;
    assert_eq!(dispatcher.arrived().overflowed, 100_000 - kept);
}
