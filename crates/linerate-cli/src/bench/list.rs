//! `linerate bench list`: lists scenarios, their cells, and contenders.

use std::fmt::Write;

use clap::Args;
use linerate_bench::{
    contender::{Contender, Program},
    scenario::{Effort, Scenario},
};

use super::place;

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
        text += &describe_scenario(&scenario)?;
    }
    if let Some(folder) = arguments.places.contenders_folder() {
        writeln!(text, "\nContenders in {}\n", folder.display())?;
        text += &describe_contenders(&arguments.places.contenders()?)?;
    }
    super::print(&text)
}

fn describe_scenario(scenario: &Scenario) -> Result<String, std::fmt::Error> {
    let mut text = format!("\n{}: {}\n\n", scenario.name, scenario.title);
    let width = scenario
        .cells
        .iter()
        .map(|cell| cell.name.len())
        .max()
        .unwrap_or(0);
    for cell in &scenario.cells {
        let is_quick = scenario
            .cells_at(Effort::Quick)
            .any(|quick| quick.name == cell.name);
        let star = if is_quick { '*' } else { ' ' };
        writeln!(text, "{star} {:width$}  {}", cell.name, cell.title)?;
    }
    Ok(text)
}

fn describe_contenders(contenders: &[Contender]) -> Result<String, std::fmt::Error> {
    let width = |field: fn(&Contender) -> &str| {
        contenders
            .iter()
            .map(|contender| field(contender).len())
            .max()
            .unwrap_or(0)
    };
    let name_width = width(|contender| &contender.name);
    let version_width = width(|contender| &contender.manifest.version);
    let language_width = width(|contender| &contender.manifest.language);
    let mut text = String::new();
    for contender in contenders {
        let state = match &contender.program {
            Program::Absent(reason) => format!("absent: {reason}"),
            Program::Built(_) => "built".into(),
        };
        writeln!(
            text,
            "  {:name_width$}  {:version_width$}  {:language_width$}  {state}",
            contender.name, contender.manifest.version, contender.manifest.language
        )?;
    }
    Ok(text)
}
