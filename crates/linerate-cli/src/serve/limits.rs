//! `linerate serve --print-limits`: prints every limit with its effective value.

use std::{fmt::Write as _, io::Write as _};

use linerate_gateway::{Gateway, Limit, config::Loader};

use super::uploads::LogsSection;

/// Prints the limits that can be configured, then those that are fixed.
pub(super) fn print(loader: &Loader) -> anyhow::Result<()> {
    let configured = configured(loader)?;
    let fixed = Gateway::fixed_limits();
    let all = || configured.iter().chain(&fixed);
    let key_chars = all().map(|limit| limit.key.len()).max().unwrap_or_default();
    let mut text = String::from(
        "# Configurable limits (see `linerate config default`), with their effective values.\n",
    );
    append(&configured, key_chars, &mut text);
    text.push_str("\n# Fixed limits.\n");
    append(&fixed, key_chars, &mut text);
    // An error means that the reader closed the pipe early.
    _ = std::io::stdout().write_all(text.as_bytes());
    Ok(())
}

/// Returns the limits that can be configured, with their effective values.
fn configured(loader: &Loader) -> anyhow::Result<Vec<Limit>> {
    let LogsSection(logs) = loader.load()?.section()?;
    let mut limits = loader.limits()?;
    let memory = limits
        .iter()
        .find(|limit| limit.key == "server.memory_bytes_max");
    let memory_bytes_max = memory.map_or(u64::MAX, |limit| limit.value);
    for limit in &mut limits {
        if limit.key == "logs.tails_bytes_max" {
            limit.value = logs.tails_budget_bytes(memory_bytes_max);
        }
    }
    Ok(limits)
}

fn append(limits: &[Limit], key_chars: usize, text: &mut String) {
    for limit in limits {
        let Limit {
            key,
            value,
            unit,
            meaning,
        } = limit;
        // Writing to a string cannot fail.
        _ = writeln!(text, "{key:key_chars$}  {value:>11} {unit:10}  {meaning}");
    }
}
