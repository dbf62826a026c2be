//! `linerate bench`: WebSocket servers beside one another.

mod compare;
mod launch;
mod list;
mod place;
mod remote;
mod report;
mod resume;
mod run;
mod stop;
mod story;
mod table;

use std::io::{self, Write};

use clap::{Args, Subcommand};

const EXAMPLES: &str = "\
Examples:
  In a checkout of linerate, compare the servers in bench/contenders:
    make contenders                       build them, once
    linerate bench                        a few cells of each scenario, in minutes
    linerate bench --effort standard      everything, in half an hour
    linerate bench --scenario pipeline --contender raw-tcp --contender linerate
    linerate bench list                   what there is to choose from

  Anywhere, measure a server of your own that sends each message back:
    linerate bench --url ws://127.0.0.1:9001/
    linerate bench --url ws://127.0.0.1:9001/ --pid $(pidof my-server) --effort standard

  Afterwards:
    linerate bench report record.jsonl
    linerate bench compare before.jsonl after.jsonl

Each answer is checked, byte for byte. The record is a file of JSON lines, written while the run
lasts: ^C keeps what is done, and --resume goes on. Beside it a report is written, a page and
Markdown. Leave the machine alone meanwhile, and never start two runs on it at a time: each would
measure the other.";

/// Compares WebSocket servers, or measures one: what they do for a second of CPU time.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: Option<Verb>,

    #[command(flatten)]
    run: run::Arguments,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Show what changed between two records, and which changes exceed the noise.
    Compare(compare::Arguments),
    /// Become a contender's server; `linerate bench` starts itself so.
    #[command(hide = true)]
    Launch(launch::Arguments),
    /// Show scenarios, their cells and contenders.
    List(list::Arguments),
    /// Write the page and the Markdown of a record.
    Report(report::Arguments),
    /// From Redis to filtered subscribers, beside Centrifuge and Socket.IO.
    Story(story::Arguments),
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    match arguments.verb {
        Some(Verb::Compare(arguments)) => compare::run(&arguments),
        Some(Verb::Launch(arguments)) => launch::run(&arguments),
        Some(Verb::List(arguments)) => list::run(&arguments),
        Some(Verb::Report(arguments)) => report::run(&arguments),
        Some(Verb::Story(arguments)) => story::run(&arguments),
        None => run::run(&arguments.run),
    }
}

/// Prints to standard output.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        // Whoever reads has seen enough, as `head` has.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => Ok(result?),
    }
}
