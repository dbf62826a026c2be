//! `linerate bench`: compares WebSocket servers.

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

use clap::{Args, Subcommand};

const EXAMPLES: &str = "\
Examples:
  In a checkout of linerate, compare the servers in bench/contenders:
    make contenders                       build them, once
    linerate bench                        run a few cells of each scenario; takes minutes
    linerate bench --effort standard      run every cell; takes half an hour
    linerate bench --scenario pipeline --contender raw-tcp --contender linerate
    linerate bench list                   list scenarios, cells and contenders

  Anywhere, measure your own server, which must echo each message:
    linerate bench --url ws://127.0.0.1:9001/
    linerate bench --url ws://127.0.0.1:9001/ --pid $(pidof my-server) --effort standard

  Afterwards:
    linerate bench report record.jsonl
    linerate bench compare before.jsonl after.jsonl

Every reply is compared byte for byte with what was sent. The record is a file of JSON lines, written \
during the run: ^C keeps the finished measurements, and --resume continues from there. At the end, \
a report is written next to the record, as an HTML page and as Markdown. Do not use the machine for \
anything else during a run, and never start two runs at once: each would disturb the other.";

/// Compares WebSocket servers, or measures one, by what they do per second of CPU time.
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
    /// Become a contender's server. For internal use by `linerate bench`.
    #[command(hide = true)]
    Launch(launch::Arguments),
    /// List scenarios, their cells, and contenders.
    List(list::Arguments),
    /// Write the HTML page and the Markdown report of a record.
    Report(report::Arguments),
    /// Compare linerate with Centrifuge and Socket.IO: JSON from Redis to filtered subscribers.
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
