//! Formats the results as a table in Markdown.

use std::fmt::Write;

use super::trial::Trial;

/// A row: the results of a server in a cell.
#[derive(Clone, Debug)]
pub struct Row {
    /// The trial at the highest rate that was sustained; `None` if no rate was.
    pub best: Option<Trial>,
    /// True if the load was the limit.
    pub is_bound_by_load: bool,
    /// The trial at a rate that is the same for all servers.
    pub calm: Trial,
}

/// Formats the rows as a Markdown table, in their order.
pub fn markdown(rows: &[Row]) -> String {
    let mut out = String::from(
        "| server | protocol | subscribers | batch | sustained, messages/s | delivered/s | delivered per CPU-s | \
         p50 / p99 at peak, ms | at the common rate: delivered per CPU-s | p50 / p99, ms | memory, MiB |\n\
         | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for row in rows {
        let calm = &row.calm;
        // Writing to a string cannot fail.
        _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            calm.peer,
            calm.dialect,
            match calm.stalled {
                0 => calm.subscribers.to_string(),
                stalled => format!("{} + {stalled} stalled", calm.subscribers),
            },
            if calm.batch_ms == 0 {
                "–".into()
            } else {
                format!("{} ms", calm.batch_ms)
            },
            peak(row),
            if calm.is_sustained() {
                thousands(calm.delivered_per_cpu_s)
            } else {
                failed(calm)
            },
            latency(calm),
            calm.resident_bytes_peak >> 20,
        );
    }
    out
}

fn peak(row: &Row) -> String {
    let Some(best) = &row.best else {
        return "none | – | – | –".into();
    };
    let at_least = if row.is_bound_by_load { "≥ " } else { "" };
    format!(
        "{at_least}{} | {} | {} | {}",
        thousands(best.rate),
        thousands(best.delivered as f64 / best.seconds),
        thousands(best.delivered_per_cpu_s),
        latency(best)
    )
}

fn failed(trial: &Trial) -> String {
    format!("fails: {} lost, {} ended", trial.lost, trial.ended)
}

fn latency(trial: &Trial) -> String {
    match &trial.latency {
        Some(latency) => format!("{:.1} / {:.1}", latency.p50_us / 1e3, latency.p99_us / 1e3),
        None => "–".into(),
    }
}

/// Formats a number with commas between groups of three digits.
fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::thousands;

    #[test]
    fn numbers_have_commas() {
        assert_eq!(thousands(7.0), "7");
        assert_eq!(thousands(999.6), "1,000");
        assert_eq!(thousands(1_234_567.0), "1,234,567");
    }
}
