//! Limits of requests, compared with an independent count.

use proptest::prelude::*;

use crate::aggregate::rates::RateSizes;
use crate::aggregate::{Aggregator, Answer, Limits};
use crate::asns::{Asns, tests::database};
use crate::query::{Query, QueryError, RateKey, RateLimit, RateQuery, RuleFormat};
use crate::spill::SpillSpace;
use crate::summary::Rates;

const BROWSER: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0";

/// A request at a second of an hour.
#[derive(Clone, Debug)]
struct Request {
    second: i64,
    address: String,
    path: &'static str,
    status: u16,
    agent: &'static str,
}

impl Request {
    fn new(second: i64, address: &str) -> Self {
        Self {
            second,
            address: address.to_owned(),
            path: "/",
            status: 200,
            agent: BROWSER,
        }
    }

    fn line(&self) -> String {
        let Self {
            second,
            address,
            path,
            status,
            agent,
        } = self;
        let (minute, second) = (second / 60, second % 60);
        format!(
            "{address} - - [22/Jan/2021:00:{minute:02}:{second:02} +0000] \
             \"GET {path} HTTP/1.1\" {status} 10 \"-\" \"{agent}\"\n"
        )
    }
}

/// 2021-01-22 00:00:00 UTC.
const HOUR: i64 = 1_611_273_600;

fn log(requests: &[Request]) -> Aggregator {
    log_with(Limits::default(), requests)
}

fn log_with(limits: Limits, requests: &[Request]) -> Aggregator {
    let mut log = Aggregator::new(limits);
    for request in requests {
        log.handle_input(request.line().as_bytes());
    }
    log
}

fn rate(requests: u64, seconds: u32, by: RateKey) -> RateQuery {
    RateQuery {
        limit: RateLimit::new(requests, seconds).unwrap(),
        by,
        rules: None,
    }
}

fn rates(log: &Aggregator, rate: RateQuery) -> Rates {
    log.rates(&Query::default(), rate).unwrap()
}

/// Searches with little memory, so that several passes are needed.
fn rates_within(log: &Aggregator, rate: RateQuery, sizes: RateSizes) -> Rates {
    let query = Query {
        top_max: 1_000,
        ..Query::default()
    };
    let mut search = log.figures.search_rates(&query, rate, sizes).unwrap();
    loop {
        assert!((0.0..=1.0).contains(&search.fraction()));
        if let Some(answer) = log.advance(&mut search).unwrap() {
            let Answer::Rates(rates) = answer else {
                panic!("a search for rates finds rates");
            };
            return *rates;
        }
    }
}

/// What is expected of a key: requests, those over the limit, times, first, last and peak.
type Expected = (String, u64, u64, u64, i64, i64, u64);

/// Counts each window of each address on its own.
fn expected(requests: &[Request], allowed: u64, seconds: i64) -> (Vec<Expected>, u64, u64) {
    let mut addresses: Vec<_> = requests.iter().map(|it| it.address.clone()).collect();
    addresses.sort();
    addresses.dedup();
    let mut found = Vec::new();
    for address in addresses {
        let of = requests.iter().filter(|it| it.address == address);
        let mut times: Vec<_> = of.map(|it| it.second).collect();
        times.sort_unstable();
        let rank = |at: usize| {
            let inside = times[..=at].iter().filter(|it| **it > times[at] - seconds);
            inside.count() as u64
        };
        let is_over = |at: usize| rank(at) > allowed;
        let over: Vec<_> = (0..times.len()).filter(|at| is_over(*at)).collect();
        if let (Some(first), Some(last)) = (over.first(), over.last()) {
            let new = over.iter().filter(|at| **at == 0 || !is_over(**at - 1));
            found.push((
                address,
                times.len() as u64,
                over.len() as u64,
                new.count() as u64,
                HOUR + times[*first],
                HOUR + times[*last],
                (0..times.len()).map(rank).max().unwrap(),
            ));
        }
    }
    found.sort_by(|a, b| b.2.cmp(&a.2).then(a.0.cmp(&b.0)));
    let keys = found.len() as u64;
    let over = found.iter().map(|it| it.2).sum();
    (found, keys, over)
}

fn found(rates: &Rates) -> Vec<Expected> {
    let list = rates.limited.iter();
    list.map(|it| {
        let value = it.value.clone();
        (
            value,
            it.requests,
            it.over,
            it.times,
            it.first,
            it.last,
            it.peak,
        )
    })
    .collect()
}

proptest! {
    #[test]
    fn any_order_of_requests_is_counted_exactly(
        requests in proptest::collection::vec((0..90_i64, 0..4_u8), 0..60),
        allowed in 1..7_u64,
        seconds in 1..40_u32,
        times_max in 1..9_usize,
        seconds_max in 1..30_usize,
    ) {
        let requests: Vec<_> = requests
            .into_iter()
            .map(|(second, address)| Request::new(second, &format!("192.0.2.{address}")))
            .collect();
        let log = log(&requests);
        let (list, keys, over) = expected(&requests, allowed, seconds.into());
        let query = rate(allowed, seconds, RateKey::Address);
        let rates = rates(&log, query);
        prop_assert_eq!(found(&rates), list);
        prop_assert_eq!((rates.effect.keys, rates.effect.over), (keys, over));
        prop_assert_eq!(rates.requests, requests.len() as u64);
        for effect in &rates.curve {
            let (list, keys, over) = expected(&requests, effect.allowed, seconds.into());
            prop_assert_eq!((effect.keys, effect.over), (keys, over));
            prop_assert_eq!(effect.requests, list.iter().map(|it| it.1).sum::<u64>());
        }
        let sizes = RateSizes { times_max, seconds_max };
        prop_assert_eq!(rates_within(&log, query, sizes), rates);
    }
}

#[test]
fn requests_of_one_address_in_one_second_are_counted_at_once() {
    let same = vec![Request::new(7, "192.0.2.1"); 20_000];
    let log = log(&same);
    let query = rate(60, 60, RateKey::Address);
    let found = rates(&log, query);
    assert_eq!((found.effect.over, found.limited[0].times), (19_940, 1));
    assert_eq!(found.limited[0].peak, 20_000);
    let sizes = RateSizes {
        times_max: 100,
        seconds_max: 10,
    };
    assert_eq!(rates_within(&log, query, sizes), found);
}

#[test]
fn files_of_several_servers_are_counted_together() {
    // Each file alone is within the limit.
    let one: Vec<_> = (0..5).map(|n| Request::new(n * 10, "192.0.2.1")).collect();
    let other: Vec<_> = (0..5)
        .map(|n| Request::new(n * 10 + 5, "192.0.2.1"))
        .collect();
    assert_eq!(
        rates(&log(&one), rate(3, 21, RateKey::Address)).effect.over,
        0
    );
    let mut both = log(&one);
    both.handle_eof();
    for request in &other {
        both.handle_input(request.line().as_bytes());
    }
    let found = rates(&both, rate(3, 21, RateKey::Address));
    assert_eq!((found.effect.keys, found.effect.over), (1, 7));
}

#[test]
fn filters_and_periods_apply() {
    let mut requests: Vec<_> = (0..60).map(|n| Request::new(n, "192.0.2.1")).collect();
    for request in &mut requests[..30] {
        request.path = "/login";
    }
    let log = log(&requests);
    let query = Query {
        filters: vec![r#"path == "/login""#.to_owned()],
        from: Some(HOUR + 10),
        ..Query::default()
    };
    let found = log.rates(&query, rate(15, 60, RateKey::Address)).unwrap();
    assert_eq!((found.requests, found.effect.over), (20, 5));
}

#[test]
fn networks_agents_and_systems_are_keys() {
    let addresses = [
        "192.0.2.1",
        "192.0.2.200",
        "192.0.3.1",
        "2001:db8::1",
        "2001:db8::ffff:1",
    ];
    let mut requests: Vec<_> = addresses
        .iter()
        .map(|address| Request::new(0, address))
        .collect();
    requests.push(Request::new(0, "a.example"));
    requests[0].agent = "-";
    let limits = Limits {
        asns: Some(Asns::open(database()).unwrap()),
        ..Limits::default()
    };
    let log = log_with(limits, &requests);
    let of = |by| {
        let rates = rates(&log, rate(1, 1, by));
        let list = rates.limited.iter();
        let list = list.map(|it| (it.value.clone(), it.requests)).collect();
        (rates.keys, rates.without_key, list)
    };
    let list = |list: &[(&str, u64)]| -> Vec<_> {
        let list = list.iter();
        list.map(|(value, requests)| (value.to_string(), *requests))
            .collect()
    };
    let networks = list(&[("192.0.2.0/24", 2), ("2001:db8::/48", 2)]);
    assert_eq!(of(RateKey::Network), (3, 1, networks));
    assert_eq!(of(RateKey::Agent), (1, 1, list(&[(BROWSER, 5)])));
    let systems = list(&[("AS64496", 2), ("AS64500", 2)]);
    assert_eq!(of(RateKey::Asn), (2, 2, systems));
    assert_eq!(of(RateKey::Address), (6, 0, Vec::new()));
}

#[test]
fn people_are_told_from_programs() {
    let mut requests = Vec::new();
    for second in 0..10 {
        let mut page = Request::new(second, "192.0.2.1");
        requests.push(page.clone());
        page.path = "/style.css";
        requests.push(page.clone());
        // The same requests of a program, and of one that pretends to be a browser but fails.
        page.address = "192.0.2.2".to_owned();
        page.agent = "Googlebot/2.1";
        requests.push(page.clone());
        page.path = "/";
        requests.push(page.clone());
        page.address = "198.51.100.1".to_owned();
        page.agent = BROWSER;
        page.status = 404;
        requests.push(page.clone());
        requests.push(page);
    }
    let log = log(&requests);
    let found = rates(&log, rate(5, 10, RateKey::Address));
    let people: Vec<_> = found
        .limited
        .iter()
        .map(|it| (&*it.value, it.looks_like_people))
        .collect();
    let expected = [
        ("192.0.2.1", true),
        ("192.0.2.2", false),
        ("198.51.100.1", false),
    ];
    assert_eq!(people, expected);
    assert_eq!((found.people, found.effect.people), (1, 1));
    assert_eq!(found.effect.people_over, 15);
    // A network in which one address looks like people does as well.
    let found = rates(&log, rate(5, 10, RateKey::Network));
    let people: Vec<_> = found
        .limited
        .iter()
        .map(|it| it.looks_like_people)
        .collect();
    assert_eq!(people, [true, false]);
}

#[test]
fn values_that_are_not_tracked_are_counted_as_such() {
    let requests: Vec<_> = (0..10)
        .flat_map(|n| vec![Request::new(0, &format!("192.0.2.{n}")); 3])
        .collect();
    let limits = Limits {
        addresses_max: 4,
        ..Limits::default()
    };
    let found = rates(&log_with(limits, &requests), rate(2, 1, RateKey::Address));
    assert_eq!((found.keys, found.requests, found.without_key), (4, 12, 18));
}

#[test]
fn requests_in_a_file_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let requests: Vec<_> = (0..80_000_i64)
        .map(|n| Request::new(n * 7_919 % 3_600, &format!("10.0.{}.1", n * n % 97)))
        .collect();
    let in_memory = log(&requests);
    let space = SpillSpace::new(folder.path().to_owned(), 64 << 20, "the limit");
    let limits = Limits {
        column_bytes_max: 384 << 10,
        spill: Some(space.into()),
        ..Limits::default()
    };
    let in_file = log_with(limits, &requests);
    assert!(in_file.spilled_bytes() > 0);
    let query = rate(3, 30, RateKey::Address);
    let expected = rates(&in_memory, query);
    assert!(expected.effect.over > 0);
    let sizes = RateSizes {
        times_max: 1_000,
        seconds_max: 100,
    };
    assert_eq!(rates(&in_file, query), expected);
    assert_eq!(rates_within(&in_file, query, sizes).effect, expected.effect);
}

#[test]
fn rules_block_programs_and_spare_people() {
    let mut requests = Vec::new();
    for second in 0..10 {
        let mut page = Request::new(second, "192.0.2.1");
        requests.push(page.clone());
        page.path = "/style.css";
        requests.push(page.clone());
        page.agent = "x\\\"; } $a\\x0a";
        page.address = "192.0.2.2".to_owned();
        requests.push(page.clone());
        page.address = "a.example; deny all".replace([' ', ';'], "_");
        requests.push(page);
    }
    let log = log(&requests);
    let rules = |by, rules| {
        let mut rate = rate(5, 10, by);
        rate.rules = Some(rules);
        log.rates(&Query::default(), rate)
            .map(|it| it.rules.unwrap())
    };
    let text = rules(RateKey::Address, RuleFormat::Nginx).unwrap();
    assert!(text.contains("\n    192.0.2.2/32 1;\n"), "{text}");
    assert!(!text.contains("192.0.2.1/32") && !text.contains("a.example"));
    assert!(text.contains("they look like people: 1.\n"), "{text}");
    assert!(text.contains("cannot be written in rules: 1.\n"), "{text}");
    let text = rules(RateKey::Agent, RuleFormat::Haproxy).unwrap();
    assert!(text.contains(" -- x\\x"), "{text}");
    assert!(!text.contains("$a"), "{text}");
    assert_eq!(
        rules(RateKey::Agent, RuleFormat::Nftables),
        Err(QueryError::NoSuchRules {
            program: RuleFormat::Nftables,
            by: RateKey::Agent
        })
    );
    assert_eq!(
        rules(RateKey::Asn, RuleFormat::Nginx),
        Err(QueryError::NoAsns)
    );
}
