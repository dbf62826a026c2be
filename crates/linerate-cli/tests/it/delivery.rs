//! Whether each publication arrives once and in order, or the subscriber is told that it does not, while things
//! break. Real brokers, real nodes, real connections; `make chaos` breaks them for longer.

use std::{
    env,
    time::{Duration, Instant},
};

use tokio::time::sleep;

use ledger::{Published, Verdict};
use node::{Node, Readiness};
use proxy::Proxy;
use publisher::{Publisher, Way};
use servers::{BrokerServer, Kind};
use subscriber::{Protocol, Subscriber};

mod event_stream;
mod ledger;
mod node;
mod proxy;
mod publisher;
mod servers;
mod subscriber;

/// How long a node may say that it is ready although it hears nothing.
const RED_MAX: Duration = Duration::from_secs(5);

/// How long subscribers may take to get what is left when everything works again.
const SETTLE_MAX: Duration = Duration::from_secs(20);

/// How many publications there must be before and after something breaks.
const PUBLICATIONS_MIN: u64 = 50;

/// Channels that the broker keeps, and their protocols.
const KEPT: [(&str, Protocol); 3] = [
    ("kept:1", Protocol::Centrifuge),
    ("kept:2", Protocol::Centrifuge),
    ("kept:2", Protocol::EventStream),
];

/// A channel of which the broker keeps next to nothing.
const SHORT: [(&str, Protocol); 1] = [("short:1", Protocol::Centrifuge)];

/// Channels that nobody but the node keeps, in which strangers publish.
const PLAIN: [(&str, Protocol); 2] = [
    ("plain:1", Protocol::Centrifuge),
    ("plain:1", Protocol::Raw),
];

/// A broker, a node that publishers use, and one that is to be hurt, with its subscribers.
struct Stage {
    name: &'static str,
    server: BrokerServer,
    proxy: Proxy,
    _unharmed: Node,
    node: Node,
    publishers: Vec<Publisher>,
    subscribers: Vec<Subscriber>,
    readiness: Readiness,
}

impl Stage {
    /// Starts everything, and waits until publications flow.
    async fn set(name: &'static str, kind: Kind, padding: usize) -> Option<Self> {
        let server = BrokerServer::start(kind)?;
        let proxy = Proxy::start(server.port()).await;
        let unharmed = Node::start(&kind.url(server.port())).await;
        let node = Node::start(&kind.url(proxy.port())).await;
        let subscribers = KEPT.iter().chain(&PLAIN).chain(&SHORT);
        let subscribers: Vec<_> = subscribers
            .map(|(channel, protocol)| Subscriber::start(node.address, channel, *protocol))
            .collect();
        let api = Way::Api(unharmed.address);
        let broker = Way::Broker(kind, server.port());
        let publishers = vec![
            Publisher::start("kept:1", api, padding),
            Publisher::start("kept:2", api, padding),
            Publisher::start("short:1", api, padding),
            Publisher::start("plain:1", broker, padding),
        ];
        let stage = Self {
            name,
            readiness: node.watch(),
            server,
            proxy,
            _unharmed: unharmed,
            node,
            publishers,
            subscribers,
        };
        stage.flow().await;
        Some(stage)
    }

    /// Waits until there are some more publications in each channel, and each subscriber has seen one of them.
    async fn flow(&self) {
        let counts: Vec<u64> = self.publishers.iter().map(Publisher::len).collect();
        let start = Instant::now();
        for (publisher, before) in self.publishers.iter().zip(counts) {
            while publisher.len() < before + PUBLICATIONS_MIN {
                assert!(start.elapsed() < SETTLE_MAX, "{}: nothing flows", self.name);
                sleep(Duration::from_millis(20)).await;
            }
        }
        while self
            .subscribers
            .iter()
            .any(|subscriber| subscriber.newest().is_none())
        {
            assert!(
                start.elapsed() < SETTLE_MAX,
                "{}: nothing arrives",
                self.name
            );
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until everything works again, and judges what each subscriber saw.
    async fn judge(mut self, broken: Instant) -> Vec<Judged> {
        let (name, kind) = (self.name, self.server.kind);
        self.readiness.ready().await;
        self.flow().await;
        let mut published = Vec::new();
        for publisher in self.publishers.drain(..) {
            published.push((publisher.channel.clone(), publisher.end().await));
        }
        let red = self.readiness.after(broken, false);
        let green = red.and_then(|red| {
            self.readiness
                .after(broken + red, true)
                .map(|green| red + green)
        });
        println!("{name} of {kind:?}: /ready said no after {red:?}, and yes again after {green:?}");
        let mut judged = Vec::new();
        for subscriber in &self.subscribers {
            let (_, published) = published
                .iter()
                .find(|(channel, _)| *channel == subscriber.channel)
                .expect("every channel has a publisher");
            settle(subscriber, published).await;
            let verdict = published.judge(&subscriber.seen());
            print(name, kind, subscriber, published, &verdict);
            judged.push(Judged {
                channel: subscriber.channel.clone(),
                verdict,
                red,
            });
        }
        judged
    }
}

/// What came of a subscriber.
struct Judged {
    channel: String,
    verdict: Verdict,
    /// After how long the node was not ready any more.
    red: Option<Duration>,
}

impl Judged {
    /// Checks that nothing went wrong that the subscriber was not told of.
    fn check_told(&self) {
        let verdict = &self.verdict;
        let wrong = verdict.lost + verdict.duplicated + verdict.reordered;
        assert_eq!(wrong, 0, "{}: {verdict:?}", self.channel);
    }

    /// Checks that, besides, nothing is missing in a channel that is kept.
    fn check(&self) {
        self.check_told();
        let verdict = &self.verdict;
        assert!(
            verdict.received >= PUBLICATIONS_MIN,
            "{}: {verdict:?}",
            self.channel
        );
        if self.channel.starts_with("kept:") {
            assert_eq!(verdict.announced, 0, "{}: {verdict:?}", self.channel);
        }
    }

    /// Checks that more was missed in a channel of which little is kept than could be recovered.
    fn check_beyond(&self) {
        if self.channel.starts_with("short:") {
            assert!(self.verdict.announced > 0, "{:?}", self.verdict);
        }
    }

    fn check_red(&self) {
        assert!(
            self.red.is_some_and(|red| red < RED_MAX),
            "red after {:?}",
            self.red
        );
    }
}

async fn settle(subscriber: &Subscriber, published: &Published) {
    let start = Instant::now();
    while subscriber.newest() < published.newest() && start.elapsed() < SETTLE_MAX {
        sleep(Duration::from_millis(20)).await;
    }
}

/// Prints a line of the table in `docs/delivery.md`.
fn print(
    name: &str,
    kind: Kind,
    subscriber: &Subscriber,
    published: &Published,
    verdict: &Verdict,
) {
    println!(
        "| {name} | {kind:?} | {} | {:?} | {} | {} | {} | {} | {} | {} | {} | {} |",
        subscriber.channel,
        subscriber.protocol,
        published.len(),
        published.unknown(),
        verdict.received,
        verdict.lost,
        verdict.duplicated,
        verdict.reordered,
        verdict.gaps,
        verdict.announced,
    );
}

/// Returns how long something is to be broken: for as long as the shorter time, or in `make chaos` the longer.
fn outage(short: u64, long: u64) -> Duration {
    Duration::from_secs(match env::var_os("LINERATE_CHAOS") {
        Some(_) => long,
        None => short,
    })
}

async fn kill_the_broker(kind: Kind) {
    let Some(mut stage) = Stage::set("kill -9 of the broker", kind, 0).await else {
        return;
    };
    let broken = Instant::now();
    stage.server.kill();
    sleep(outage(2, 30)).await;
    stage.server.restart();
    for judged in stage.judge(broken).await {
        match kind {
            Kind::Nats => judged.check(),
            // Redis may have lost what it took within its last second, so its streams begin anew with it.
            Kind::Redis => judged.check_told(),
        }
        judged.check_red();
    }
}

async fn pause_the_broker(kind: Kind) {
    let Some(stage) = Stage::set("SIGSTOP of the broker", kind, 0).await else {
        return;
    };
    let broken = Instant::now();
    stage.server.pause();
    sleep(outage(6, 30)).await;
    stage.server.resume();
    for judged in stage.judge(broken).await {
        judged.check();
        judged.check_red();
    }
}

async fn cut_the_way_to_the_broker(kind: Kind) {
    let Some(stage) = Stage::set("cut connection", kind, 0).await else {
        return;
    };
    let broken = Instant::now();
    // A connection that breaks and comes back at once, several times, and then one that stays away.
    for _ in 0..3 {
        stage.proxy.cut();
        stage.proxy.mend();
        sleep(Duration::from_millis(300)).await;
    }
    stage.proxy.cut();
    sleep(outage(2, 30)).await;
    stage.proxy.mend();
    for judged in stage.judge(broken).await {
        judged.check();
        judged.check_beyond();
        judged.check_red();
    }
}

async fn silence_the_way_to_the_broker(kind: Kind) {
    let Some(stage) = Stage::set("silent connection", kind, 0).await else {
        return;
    };
    let broken = Instant::now();
    stage.proxy.silence();
    sleep(outage(6, 30)).await;
    stage.proxy.mend();
    for judged in stage.judge(broken).await {
        judged.check();
        judged.check_red();
    }
}

async fn restart_the_node(kind: Kind) {
    let Some(mut stage) = Stage::set("restart of the node", kind, 0).await else {
        return;
    };
    let broken = Instant::now();
    for _ in 0..outage(2, 10).as_secs() {
        stage.node.terminate().await;
        stage.node.restart().await;
        sleep(Duration::from_secs(1)).await;
    }
    for judged in stage.judge(broken).await {
        judged.check();
    }
}

async fn kill_the_node(kind: Kind) {
    let Some(mut stage) = Stage::set("kill -9 of the node", kind, 0).await else {
        return;
    };
    let broken = Instant::now();
    for _ in 0..outage(2, 10).as_secs() {
        stage.node.kill();
        sleep(Duration::from_millis(500)).await;
        stage.node.restart().await;
        sleep(Duration::from_secs(1)).await;
    }
    for judged in stage.judge(broken).await {
        judged.check();
    }
}

async fn slow_down_some_clients(kind: Kind) {
    let Some(stage) = Stage::set("slow clients", kind, 16 << 10).await else {
        return;
    };
    let slow = stage.subscribers.len();
    let broken = Instant::now();
    let mut stage = stage;
    for (channel, protocol) in KEPT.iter().chain(&PLAIN) {
        stage
            .subscribers
            .push(Subscriber::start(stage.node.address, channel, *protocol));
    }
    stage.flow().await;
    for subscriber in &stage.subscribers[slow..] {
        subscriber.read(false);
    }
    sleep(outage(6, 30)).await;
    for subscriber in &stage.subscribers[slow..] {
        subscriber.read(true);
    }
    let judged = stage.judge(broken).await;
    for judged in &judged[..slow] {
        judged.check();
        assert_eq!(judged.verdict.announced, 0, "others are not to suffer");
    }
    for judged in &judged[slow..] {
        let Verdict {
            lost,
            duplicated,
            reordered,
            ..
        } = judged.verdict;
        assert_eq!(
            (lost, duplicated, reordered),
            (0, 0, 0),
            "{}",
            judged.channel
        );
    }
}

macro_rules! with_both_brokers {
    ($($what:ident: $with_redis:ident, $with_nats:ident;)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $with_redis() {
                $what(Kind::Redis).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $with_nats() {
                $what(Kind::Nats).await;
            }
        )*
    };
}

with_both_brokers! {
    kill_the_broker: a_killed_redis_begins_anew_and_says_so, a_killed_nats_loses_nothing_that_is_kept;
    pause_the_broker: a_paused_redis_loses_nothing_that_is_kept, a_paused_nats_loses_nothing_that_is_kept;
    cut_the_way_to_the_broker: a_cut_way_to_redis_loses_nothing_that_is_kept,
        a_cut_way_to_nats_loses_nothing_that_is_kept;
    silence_the_way_to_the_broker: g01_a_silent_way_to_redis_is_found_out_and_loses_nothing_that_is_kept,
        g01_a_silent_way_to_nats_is_found_out_and_loses_nothing_that_is_kept;
    restart_the_node: g06_a_restarted_node_on_redis_loses_nothing_that_is_kept,
        g06_a_restarted_node_on_nats_loses_nothing_that_is_kept;
    kill_the_node: g06_a_killed_node_on_redis_loses_nothing_that_is_kept,
        g06_a_killed_node_on_nats_loses_nothing_that_is_kept;
    slow_down_some_clients: slow_clients_on_redis_are_told_and_others_do_not_suffer,
        slow_clients_on_nats_are_told_and_others_do_not_suffer;
}
