//! Tests of the page and the Markdown, with records made by hand.

use crate::cell::{Cell, Deflate, Load};
use crate::record::{Figures, Outcome, Record, ServerUsage};
use crate::report::{html, markdown};
use crate::summary::tests::sample::{Sample, echo, idle, idle_cell, latency, per_cpu, scheduled};

/// A record with contenders that show every possible result.
fn record() -> Record {
    let late = Figures {
        latency: Some(latency(2_500.0)),
        ..per_cpu(100.0)
    };
    Sample::new()
        .cell(echo("pipeline", "a"))
        .cell(scheduled("pipeline", "late"))
        .cell(idle_cell("idle", "1000c"))
        .cell(echo("churn", "bound"))
        .contender("linerate")
        .contender("peer")
        .contender_in("Go", "gopher")
        .contender_in("C", "raw-tcp")
        .measured("pipeline/a", "raw-tcp", &[2e6, 2e6, 2e6])
        .measured("pipeline/a", "linerate", &[1e6, 1e6, 1e6])
        .measured(
            "pipeline/a",
            "peer",
            &[1_200_000.0, 1_200_000.0, 1_200_000.0],
        )
        .measured("churn/bound", "linerate", &[4_321.0, 4_321.0, 4_321.0])
        .outcome(
            "churn/bound",
            "gopher",
            0,
            Outcome::LoadBound(per_cpu(7_654_321.0)),
        )
        .outcome("pipeline/late", "linerate", 0, Outcome::Measured(late))
        .failed(
            "pipeline/late",
            "peer",
            0,
            "<script>alert(1)</script> & \"quotes\"",
        )
        .outcome(
            "idle/1000c",
            "linerate",
            0,
            Outcome::Measured(idle(900, 2_048)),
        )
        .0
}

#[test]
fn no_contender_is_ranked_first_if_the_load_was_too_slow_for_one() {
    let page = html(&record());
    let verdict = "Not measurable here: load-bound. The load generator was too slow for gopher, so no contender is ranked \
                   first.";
    assert!(page.contains(verdict));
    let text = markdown(&record());
    let row = text.lines().find(|line| line.starts_with("| churn: "));
    let bound = "not measurable here: load-bound";
    assert!(row.unwrap().contains(&format!("| {bound} | {bound} |")));
    let means = text.lines().find(|line| line.starts_with("| linerate |"));
    assert!(
        means.unwrap().ends_with("| – |"),
        "churn is the last column"
    );
    let said = text.replace('\n', " ");
    assert!(
        said.contains("In 1 more cell no contender is ranked first"),
        "{said}"
    );
}

#[test]
fn a_page_refers_to_no_other_file() {
    let page = html(&record());
    for forbidden in [
        "<script", "src=", "@import", "url(", "<link", "<iframe", "http://",
    ] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
}

#[test]
fn every_link_within_the_page_leads_somewhere() {
    check_links(&html(&record()));
    check_links(&html(&Sample::new().0));
}

fn check_links(page: &str) {
    let links: Vec<&str> = page
        .split("href=\"#")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    assert!(links.len() > 4);
    for link in links {
        assert!(
            page.contains(&format!("id=\"{link}\"")),
            "#{link} leads nowhere"
        );
    }
}

#[test]
fn a_reason_is_shown_and_not_obeyed() {
    let page = html(&record());
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;quotes&quot;"));
}

#[test]
fn medians_ratios_and_their_units_are_on_the_page() {
    let page = html(&record());
    assert!(page.contains("messages per second of server CPU time; more is better"));
    assert!(page.contains("<span class=\"v\">1.20\u{202f}M</span>"));
    assert!(page.contains("peer is first; linerate is no. 2, 0.83 times as good."));
    assert!(page.contains("<span class=\"v\">2.50\u{202f}ms</span>"));
    assert!(page.contains("2.00\u{202f}KiB"));
}

#[test]
fn figures_of_a_bound_load_are_nowhere() {
    let page = html(&record());
    assert!(page.contains("not published: the load generator was the bottleneck"));
    assert!(!page.contains("7.65"));
    assert!(!markdown(&record()).contains("7.65"));
}

#[test]
fn figures_that_cannot_be_divided_leave_no_trace() {
    let still = Figures {
        elapsed_s: 0.0,
        server: Some(ServerUsage::default()),
        ..Figures::default()
    };
    let mut sample = Sample::new().contender("linerate").contender("raw-tcp");
    for cell in [echo("s", "a"), scheduled("s", "b"), idle_cell("s", "c")] {
        let id = cell.id();
        sample = sample.cell(cell);
        for contender in ["linerate", "raw-tcp"] {
            sample = sample.outcome(&id, contender, 0, Outcome::Measured(still));
        }
    }
    for text in [html(&sample.0), markdown(&sample.0)] {
        let text = text.split("<style>").next().unwrap().to_owned()
            + text.split("</style>").last().unwrap();
        for word in ["NaN", "inf%", "inf ", "inf<", "nan%"] {
            assert!(!text.contains(word), "{word}");
        }
    }
    assert!(html(&sample.0).contains("the compared figure is not known"));
}

#[test]
fn an_empty_record_is_a_page_too() {
    let record = Sample::new().0;
    assert!(html(&record).contains("0 cells have valid figures."));
    assert!(markdown(&record).contains("Abacus 2000"));
}

#[test]
fn a_cell_without_results_has_no_valid_figure() {
    let sample = Sample::new().cell(echo("s", "a"));
    assert!(html(&sample.0).contains("No valid figure."));
}

/// Returns a cell of a matrix.
fn placed(connections: u32, messages: u32, frames: u32) -> Cell {
    let mut cell = echo("matrix", &format!("{connections}c-{messages}m-{frames}f"));
    if let Load::Echo(echo) = &mut cell.load {
        echo.connections = connections;
        echo.messages = Some(messages);
        echo.frames = frames;
    }
    cell
}

#[test]
fn a_matrix_is_laid_out_by_connections_and_messages() {
    let mut sample = Sample::new().contender("linerate");
    for connections in [1, 128, 256] {
        for (messages, frames) in [(1, 1), (64, 1), (128, 1), (128, 32)] {
            let cell = placed(connections, messages, frames);
            let id = cell.id();
            sample = sample.cell(cell).measured(&id, "linerate", &[100.0]);
        }
    }
    let page = html(&sample.0);
    assert_eq!(page.matches("<td class=\"mini\"").count(), 12);
    assert!(page.contains("<th scope=\"row\">128 connections</th>"));
    assert!(page.contains("<th scope=\"col\">128 messages, fragmented</th>"));
}

#[test]
fn markdown_names_date_machine_command_and_every_cell_we_lose() {
    let text = markdown(&record());
    assert!(text.starts_with("2026-11-20, Abacus 2000, 2 cores"));
    assert!(text.contains("`linerate bench --effort standard`"));
    assert!(text.contains("- `pipeline`, 1 of 2: **a** (peer 1.20×)"));
    assert!(text.contains("| linerate | 0.50 | 0.50 | 1.00 |"));
    assert!(text.contains("| raw-tcp | 1.00 | 1.00 | – |"));
}

#[test]
fn compressed_cells_tell_the_bytes_on_the_wire_and_who_compresses_alike() {
    let mut cell = echo("deflate", "a");
    if let Load::Echo(echo) = &mut cell.load {
        echo.deflate = Deflate::Takeover;
    }
    let id = cell.id();
    let mut sample = Sample::new().cell(cell);
    for (name, per_cpu_second, wire_bytes) in [
        ("linerate", 300.0, 4.0),
        ("hasty", 400.0, 6.0),
        ("thorough", 200.0, 4.05),
    ] {
        let figures = per_cpu(per_cpu_second);
        let figures = Figures {
            wire_bytes: Some(figures.messages * wire_bytes),
            ..figures
        };
        let outcome = Outcome::Measured(figures);
        sample = sample.contender(name).outcome(&id, name, 0, outcome);
    }
    let text = markdown(&sample.0);
    let row =
        "| deflate a | linerate: 300 (4 B) | hasty: 400 (6 B) | thorough: 200 (4.05 B), 1.50× |";
    assert!(text.replace('\u{202f}', " ").contains(row), "{text}");
    let page = html(&sample.0);
    let column = "<th scope=\"col\">on the wire</th>";
    assert!(page.contains(column) && page.contains("<td>2.00</td>"));
    assert!(!markdown(&record()).contains("compressed cell"));
    assert!(!html(&record()).contains(column));
}

#[test]
fn markdown_stays_short_with_a_hundred_lost_cells() {
    let mut sample = Sample::new();
    for scenario in ["one", "two", "three", "four"] {
        for index in 0..25 {
            let cell = echo(scenario, &format!("128KiB-256c-1w-{index}m-32f"));
            let id = cell.id();
            sample = sample
                .cell(cell)
                .measured(&id, "linerate", &[100.0])
                .measured(&id, "tokio-tungstenite", &[200.0]);
        }
    }
    for index in 0..20 {
        let name = format!("peer-{index}");
        let id = "one/128KiB-256c-1w-0m-32f";
        sample = sample.measured(id, &name, &[50.0]);
    }
    let text = markdown(&sample.0);
    assert!(text.lines().count() < 120, "{}", text.lines().count());
    let too_long = |line: &&str| !line.starts_with('|') && line.chars().count() > 120;
    assert_eq!(text.lines().find(too_long), None);
}
