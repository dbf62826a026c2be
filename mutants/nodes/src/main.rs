//! Prints the positions of operators, match arms, guards and function bodies in Rust files.
//!
//! `mutant-nodes FILE…` prints one line with a JSON object for each file: `file` and its `nodes`.
//! All positions are byte offsets.

mod visit;

use std::{env, error::Error, fs, ops::Range, process::ExitCode};

use serde::Serialize;

/// A node that a mutant may change.
#[derive(Serialize)]
struct Node {
    kind: Kind,
    /// The position that cargo-mutants reports: the operator, the arm, the guard, the first
    /// statement.
    at: usize,
    /// The expression with the operator, the `match` of the arm, the guard, the body.
    range: Range<usize>,
    /// The operator; for all others, an empty range at which something can be inserted: before the
    /// arrow of the arm, before the guard, at the beginning of the body.
    place: Range<usize>,
    /// Why the node cannot be switched at run time.
    fixed: Option<Fixed>,
    /// The function around it, if it is a `const fn`.
    const_fn: Option<ConstFn>,
}

#[derive(Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Arm,
    Body,
    Guard,
    Operator,
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
enum Fixed {
    /// The compiler evaluates it.
    Constant,
    /// It is a catch-all arm.
    Last,
    /// It binds variables.
    Let,
}

#[derive(Clone, Serialize)]
struct ConstFn {
    name: String,
    /// Where the keyword `const` begins.
    at: usize,
}

#[derive(Serialize)]
struct File<'a> {
    file: &'a str,
    nodes: Vec<Node>,
}

fn main() -> ExitCode {
    for path in env::args().skip(1) {
        if let Err(error) = print_nodes(&path) {
            eprintln!("mutant-nodes: {path}: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn print_nodes(path: &str) -> Result<(), Box<dyn Error>> {
    let nodes = visit::nodes(&syn::parse_file(&fs::read_to_string(path)?)?);
    println!("{}", serde_json::to_string(&File { file: path, nodes })?);
    Ok(())
}
