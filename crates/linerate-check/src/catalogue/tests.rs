use std::collections::HashSet;

use super::*;
use crate::{case::Area, judge::all_may_be_sent};

#[test]
fn names_tell_inputs_apart() {
    let request = Request::default();
    let mut floods = stress();
    floods.extend(http2_stress(&request));
    for rows in [
        server(),
        client(),
        floods,
        http2(&request),
        tls(),
        deadlines(),
    ] {
        let mut ids = HashSet::new();
        for row in &rows {
            assert!(ids.insert(row.id), "{}", row.id);
            let names: HashSet<&str> = row.cases.iter().map(|case| &*case.name).collect();
            assert_eq!(names.len(), row.cases.len(), "{}", row.id);
            assert!(
                names.iter().all(|name| !name.contains([' ', '/'])),
                "{names:?}"
            );
        }
    }
}

#[test]
fn no_code_is_wanted_that_must_not_be_sent() {
    for case in server().iter().flat_map(|row| &row.cases) {
        match &case.expect {
            Expect::Close { codes, .. } => assert!(all_may_be_sent(codes), "{}", case.name),
            Expect::Fail { codes, .. } => assert!(all_may_be_sent(codes), "{}", case.name),
            _ => {}
        }
    }
}

#[test]
fn every_area_has_inputs_that_are_in_order_or_refused() {
    let rows = server();
    let count = |area: Area| -> usize {
        let of_area = rows.iter().filter(|row| row.area() == area);
        of_area.map(|row| row.cases.len()).sum()
    };
    for area in [Area::Valid, Area::Framing, Area::Utf8, Area::Handshake] {
        assert!(count(area) >= 40, "{}: {}", area.name(), count(area));
    }
}

#[test]
fn rows_are_found_by_id_prefix_and_area() {
    let rows = server();
    let found = |part: &str| rows.iter().filter(|row| row.is_meant_by(part)).count();
    assert_eq!(found("F03"), 1);
    assert_eq!(found("f03/opcode-3"), 1);
    assert_eq!(found("framing"), found("F"));
    assert_eq!(found("none"), 0);
}
