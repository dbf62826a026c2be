//! Any bytes as a packed log, as a report contains it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_logview::{
    aggregate::{Aggregator, Detail},
    query::Query,
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

    let exact = Detail {
        seconds: 1,
        values_max: usize::MAX,
        rounds_numbers: false,
    };
    let packed = log.pack(exact).expect("it was packed before");
    let again = Aggregator::unpack(&packed).expect("it has just been packed");
    assert_eq!(again.figures(&query).map(|it| it.requests), some);
});
