//! Measures what a compressed publication costs: bytes on the wire, and CPU time of the worker, for
//! each delivery.
//!
//! `cargo run --release -p linerate-gateway --example compressed_fan_out [SUBSCRIBERS [MESSAGES]]`
//! starts gateways with one worker in this process, in turn without compression, with blocks that
//! refer to nothing, and with context takeover. Each publication is a quote of about 250 bytes of
//! JSON, and the next one follows when all subscribers have received it, so each delivery is a
//! write. Each subscriber inflates and checks what it receives. CPU time is that of the thread
//! `worker-0`, as Linux counts it.

use std::{
    env, error, fs,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use linerate::{Client, Counters, Deflate, Options};
use linerate_broker::{BrokerOptions, connect};
use linerate_gateway::{Gateway, config::Loader};
use linerate_hub::ChannelName;

type Result<T> = std::result::Result<T, Box<dyn error::Error>>;

/// How often each mode is measured.
const ROUNDS: usize = 5;

/// The modes: a name and the configuration.
const MODES: [(&str, &str); 3] = [
    ("uncompressed", ""),
    (
        "no takeover",
        "[compression]\nenabled = true\nmessage_bytes_min = 64",
    ),
    (
        "takeover",
        "[compression]\nenabled = true\nmessage_bytes_min = 64\n[channel]\ncompression_takeover = true",
    ),
];

/// What a delivery costs.
#[derive(Clone, Copy, Debug)]
struct Cost {
    bytes: f64,
    cpu_us: f64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut arguments = env::args().skip(1);
    let subscribers = arguments.next().map_or(Ok(1_000), |text| text.parse())?;
    let messages = arguments.next().map_or(Ok(200), |text| text.parse())?;
    println!("{subscribers} subscribers, {messages} messages, {ROUNDS} rounds");
    let mut costs = [const { Vec::new() }; MODES.len()];
    for _ in 0..ROUNDS {
        for ((_, toml), costs) in MODES.iter().zip(&mut costs) {
            costs.push(measure(toml, subscribers, messages).await?);
        }
    }
    println!("mode          bytes  CPU µs (least, median, most)");
    for ((name, _), mut costs) in MODES.iter().zip(costs) {
        costs.sort_by(|a, b| a.cpu_us.total_cmp(&b.cpu_us));
        let [least, median, most] = [0, ROUNDS / 2, ROUNDS - 1].map(|at| costs[at].cpu_us);
        let bytes = costs[0].bytes;
        println!("{name:<12} {bytes:>6.1}  {least:.3} {median:.3} {most:.3}");
    }
    Ok(())
}

async fn measure(toml: &str, subscribers: usize, messages: usize) -> Result<Cost> {
    let mut config = Loader::new().with_text("example.toml", toml).load()?;
    config.server.listen = ([127, 0, 0, 1], 0).into();
    config.server.workers = 1;
    let gateway = Gateway::bind_with(config, |ingest| {
        connect("memory:", BrokerOptions::default(), ingest)
    })?;
    let url = format!("ws://{}/raw?channel=a", gateway.address());
    let running = gateway.start()?;
    let channel = ChannelName::new("a")?;
    let counters = Arc::<Counters>::default();
    let (right, wrong) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let mut options = Options::default();
    options.deflate = Some(Deflate::default());
    options.counters = Some(counters.clone());
    let client = Client::new().with_options(options);
    let mut tasks = Vec::new();
    for _ in 0..subscribers {
        let mut ws = client.connect(&url).await?;
        let (right, wrong) = (right.clone(), wrong.clone());
        tasks.push(tokio::spawn(async move {
            let mut number = 0;
            while let Ok(Some(message)) = ws.recv().await {
                let is_right = message.as_text() == Some(&*quote(number));
                let count = if is_right { &right } else { &wrong };
                count.fetch_add(1, Ordering::Relaxed);
                number += 1;
            }
        }));
    }
    let mut start = (0, Duration::ZERO);
    // The first publications fill the windows.
    let first = messages / 10;
    for number in 0..first + messages {
        if number == first {
            start = (counters.bytes_received(), worker_time()?);
        }
        let payload = quote(number).into_bytes();
        running.publish(&channel, payload).await?;
        while right.load(Ordering::Relaxed) < (number + 1) * subscribers {
            if wrong.load(Ordering::Relaxed) > 0 {
                return Err("a subscriber received something other than was published".into());
            }
            tokio::task::yield_now().await;
        }
    }
    let deliveries = (messages * subscribers) as f64;
    let cpu = worker_time()? - start.1;
    let bytes = counters.bytes_received() - start.0;
    tasks.iter().for_each(tokio::task::JoinHandle::abort);
    drop(running);
    Ok(Cost {
        bytes: bytes as f64 / deliveries,
        cpu_us: cpu.as_secs_f64() * 1e6 / deliveries,
    })
}

/// Returns the CPU time of the newest thread `worker-0`.
fn worker_time() -> Result<Duration> {
    let mut newest = None;
    for task in fs::read_dir("/proc/self/task")? {
        let path = task?.path();
        let name = fs::read_to_string(path.join("comm")).unwrap_or_default();
        if name.trim() == "worker-0" {
            let id: u32 = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .parse()?;
            newest = newest.max(Some((id, path)));
        }
    }
    let (_, path) = newest.ok_or("no thread is called worker-0")?;
    let times = fs::read_to_string(path.join("schedstat"))?;
    let nanoseconds = times.split(' ').next().unwrap_or_default().parse()?;
    Ok(Duration::from_nanos(nanoseconds))
}

/// Returns a quote: ten of its fields change, in the way in which those of a market do.
fn quote(number: usize) -> String {
    let mut random = number as u64 + 1;
    let mut below = |limit: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % limit
    };
    let symbol = [
        "ACME", "INIT", "UMBR", "WAYN", "STRK", "TYRL", "HOOL", "PIED",
    ];
    let symbol = symbol[below(8) as usize];
    let (bid, cents, spread) = (100 + below(40), below(98), 1 + below(2));
    format!(
        r#"{{"symbol":"{symbol}","exchange":"XNAS","currency":"USD","bid":{bid}.{cents:02},"bidSize":{},"ask":{bid}.{:02},"askSize":{},"last":{bid}.{:02},"lastSize":{},"volume":{},"time":{},"session":"regular","status":"open","condition":"{}","sequence":{}}}"#,
        below(900) * 10,
        cents + spread,
        below(900) * 10,
        cents + below(2),
        below(90) * 10,
        1_000_000 + number * 113 + below(100) as usize,
        1_732_600_000_000_u64 + number as u64 * 137 + below(100),
        ["firm", "fast", "slow"][below(3) as usize],
        4_200_000 + number,
    )
}
