//! `linerate bench list`: lists scenarios, their cells, and contenders.

use std::fmt::Write;

use clap::Args;
use linerate_bench::{
    contender::{Contender, Manifest, Program},
    scenario::{Effort, Scenario},
};
use linerate_harness::table::{Align, Table};

use super::place;
use crate::terminal::print;

/// Lists scenarios, their cells, and contenders.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    #[command(flatten)]
    places: place::Arguments,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let mut text =
        String::from("Scenarios and their cells; a quick run measures those marked with *.\n");
    for scenario in arguments.places.scenarios()? {
        text += &describe_scenario(&scenario);
    }
    if let Some(folder) = arguments.places.contenders_folder() {
        writeln!(text, "\nContenders in {}\n", folder.display())?;
        text += &describe_contenders(&arguments.places.contenders()?);
    }
    Ok(print(&text)?)
}

fn describe_scenario(scenario: &Scenario) -> String {
    let rows = scenario.cells.iter().map(|cell| {
        let is_quick = scenario
            .cells_at(Effort::Quick)
            .any(|quick| quick.name == cell.name);
        let star = if is_quick { '*' } else { ' ' };
        vec![format!("{star} {}", cell.name), cell.title.clone()]
    });
    let cells = Table::new([("", Align::Left); 2], rows).text();
    format!("\n{}: {}\n\n{cells}", scenario.name, scenario.title)
}

fn describe_contenders(contenders: &[Contender]) -> String {
    let rows = contenders.iter().map(|contender| {
        let state = match &contender.program {
            Program::Absent(reason) => format!("absent: {reason}"),
            Program::Built(_) => "built".into(),
        };
        let Manifest {
            version, language, ..
        } = &contender.manifest;
        vec![
            format!("  {}", contender.name),
            version.clone(),
            language.clone(),
            state,
        ]
    });
    Table::new([("", Align::Left); 4], rows).text()
}
