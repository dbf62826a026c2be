//! Compares the codes with the tables in `docs/gateway/protocols.md`.

use linerate_hub::GapCause;

use crate::protocol::codes::{ClientError, Disconnect, Unsubscribe};

/// Returns the rows of all tables whose first cell is a number.
fn rows() -> Vec<(u32, String)> {
    let text = include_str!("../../../../../docs/gateway/protocols.md");
    let rows = text.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        let number = cells.next()?.parse().ok()?;
        let name = cells.next()?.trim_end_matches(" |");
        Some((number, name.into()))
    });
    rows.collect()
}

#[test]
fn the_documentation_has_all_codes_and_no_others() {
    let errors = ClientError::ALL.into_iter().map(|error| {
        let temporary = if error.is_temporary {
            " (temporary)"
        } else {
            ""
        };
        (error.code, format!("{}{temporary}", error.message))
    });
    let disconnects = Disconnect::ALL.into_iter();
    let disconnects = disconnects.map(|one| (one.code.into(), one.reason.to_string()));
    let unsubscribes = Unsubscribe::ALL
        .into_iter()
        .map(|one| (one.code, one.reason.to_string()));
    let causes = (1..)
        .zip(GapCause::ALL)
        .map(|(number, cause)| (number, format!("`{}`", cause.as_str())));
    let expected = errors.chain(disconnects).chain(unsubscribes).chain(causes);
    assert_eq!(rows(), expected.collect::<Vec<_>>());
}
