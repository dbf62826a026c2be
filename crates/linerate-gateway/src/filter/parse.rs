//! Parsing, with bounds on what the parser does with a hostile text.

use std::thread;

use cel::{IdedExpr, ParseErrors};

use super::{FilterError, expression::ENVIRONMENT};

/// How deep brackets may be nested.
pub(crate) const DEPTH_MAX: usize = 16;
/// How deep the parser may call itself.
const RECURSION_MAX: u16 = 64;
/// The parser calls itself for each operator and several times for each bracket, which is more than the stack of a
/// worker has room for.
const STACK_BYTES: usize = 64 << 20;

/// Parses an expression.
pub(super) fn parse(text: &str) -> Result<IdedExpr, FilterError> {
    let depth = depth(text);
    if depth > DEPTH_MAX {
        let depth_max = DEPTH_MAX;
        return Err(FilterError::TooDeep { depth, depth_max });
    }
    let parsed = thread::scope(|scope| {
        let parse = || {
            let parser = ENVIRONMENT.parser().max_recursion_depth(RECURSION_MAX);
            parser.parse(text)
        };
        let thread = thread::Builder::new()
            .name("filter".into())
            .stack_size(STACK_BYTES);
        // A panic of the parser ends that thread only.
        let thread = thread.spawn_scoped(scope, parse).ok()?;
        thread.join().ok()
    });
    match parsed {
        Some(Ok(root)) => Ok(root),
        Some(Err(errors)) => Err(syntax(&errors)),
        None => Err(FilterError::Syntax {
            column: 1,
            message: "the parser gave up".into(),
        }),
    }
}

/// Returns how deep brackets are nested, at most. Those in texts count too, since what is a text is the parser's
/// to say.
fn depth(text: &str) -> usize {
    let mut open: usize = 0;
    let mut deepest = 0;
    for char in text.chars() {
        match char {
            '(' | '[' | '{' => open += 1,
            ')' | ']' | '}' => open = open.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(open);
    }
    deepest
}

/// Returns the first of the errors.
fn syntax(errors: &ParseErrors) -> FilterError {
    let first = errors.errors.first();
    FilterError::Syntax {
        column: first.map_or(1, |error| error.pos.1.max(1).cast_unsigned()),
        message: first.map_or_else(String::new, |error| error.msg.clone()),
    }
}
