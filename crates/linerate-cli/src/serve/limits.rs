//! `linerate serve --print-limits`: every limit with its value in force.

use std::{fmt::Write as _, io::Write as _};

use linerate_gateway::{
    config::Loader,
    limits::{self, Limit},
};

/// Prints the limits that can be configured, then those that are fixed.
pub(super) fn print(loader: &Loader) -> anyhow::Result<()> {
    let configured = loader.limits()?;
    let fixed = limits::fixed();
    let all = || configured.iter().chain(&fixed);
    let key_chars = all().map(|limit| limit.key.len()).max().unwrap_or_default();
    let mut text =
        String::from("# What `linerate config default` has, with the values in force.\n");
    append(&configured, key_chars, &mut text);
    text.push_str("\n# What is fixed.\n");
    append(&fixed, key_chars, &mut text);
    // Whoever reads may have seen enough.
    _ = std::io::stdout().write_all(text.as_bytes());
    Ok(())
}

fn append(limits: &[Limit], key_chars: usize, text: &mut String) {
    for limit in limits {
        let Limit {
            key,
            value,
            unit,
            meaning,
        } = limit;
        // Writing to a string can't fail.
        _ = writeln!(text, "{key:key_chars$}  {value:>11} {unit:10}  {meaning}");
    }
}
