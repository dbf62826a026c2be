//! Any bytes as a packed log, as a report contains it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_logview::{
    aggregate::{Aggregator, Detail},
    query::{ChangesQuery, Field, ListQuery, Period, Query},
};

// A packed log that is opened answers every query, and is the same log when it is packed again.
fuzz_target!(|data: &[u8]| {
    let Ok(log) = Aggregator::unpack(data) else {
        return;
    };
    let mut query = Query::default();
    let all = log.figures(&query).expect("a packed log can be queried");
    assert_eq!(all.requests, log.requests());
    query.filters = vec!["status >= 400 || method == \"GET\" && bytes_sent > 7".to_owned()];
    let some = log.figures(&query).map(|it| it.requests);
    assert!(some.clone().unwrap_or_default() <= all.requests);

    let middle = all.first_time.unwrap_or_default();
    let before = Period {
        from: i64::MIN,
        until: middle,
    };
    let after = Period {
        from: middle,
        until: i64::MAX,
    };
    if let Ok(changes) = log.changes(&ChangesQuery::new(before, after)) {
        assert!(changes.before.requests + changes.after.requests <= all.requests);
        let mut values = changes.values.iter();
        assert!(values.all(|it| it.before + it.after <= all.requests));
    }

    for field in Field::LISTED {
        if let Ok(list) = log.values(&ListQuery::new(field)) {
            assert!(list.requests == all.requests && list.values.len() <= 20);
        }
    }
    let latency = log.latency(&Query::default());
    assert!(latency.is_ok_and(|it| it.counts.iter().sum::<u64>() <= all.requests));

    let exact = Detail {
        seconds: 1,
        values_max: usize::MAX,
        rounds_numbers: false,
    };
    let packed = log.pack(exact).expect("it was packed before");
    let again = Aggregator::unpack(&packed).expect("it has just been packed");
    assert_eq!(again.figures(&query).map(|it| it.requests), some);
});
