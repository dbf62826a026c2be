//! `linerate check --list`: lists rows and their inputs.

use std::fmt::Write;

use linerate_check::Row;

/// Returns the rows and the names of their inputs, as text.
pub(super) fn of(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        let count = row.cases.len();
        // Writing to a string cannot fail.
        _ = writeln!(
            text,
            "{} {}: {} ({count} inputs)",
            row.id,
            row.area().name(),
            row.title
        );
        _ = writeln!(text, "    required: {} ({})", row.required, row.section);
        let names: Vec<&str> = row.cases.iter().map(|case| &*case.name).collect();
        _ = writeln!(text, "    {}", names.join(" "));
    }
    let inputs: usize = rows.iter().map(|row| row.cases.len()).sum();
    _ = writeln!(text, "{} rows, {inputs} inputs", rows.len());
    text
}
