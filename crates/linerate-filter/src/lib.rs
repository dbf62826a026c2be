//! Filters for JSON payloads: a small expression language, evaluated directly on the bytes.
//!
//! The language is a strict subset of CEL, the Common Expression Language: literals, fields,
//! indices, comparisons, `in`, `&&`, `||`, `!`, `has`, `size`, `startsWith`, `endsWith` and
//! `contains`. No operation creates a value that is larger than its operands, so an evaluation
//! takes at most the length of the expression times the length of the payload.
//! `docs/gateway/filters.md` describes the language.
//!
//! | module | what it does |
//! | --- | --- |
//! | `lex`, `literal`, `parse` | parse a text into a [`tree`] |
//! | `program` | compiles a tree to postfix operations over slots, and evaluates them |
//! | `json` | reads JSON in place |
//! | `value`, `container` | compare values, and look into lists and objects |
//! | `scan`, `wanted` | find the values that filters name, in one pass over a payload |
//! | `set`, `evaluated` | evaluate many filters with one scan, a lookup where possible, and in slices |
//!
//! ```
//! use linerate_filter::{Filter, Limits};
//!
//! let filter = Filter::new(r#"level == "error" && bytes > 1000"#, &Limits::default())?;
//! assert!(filter.matches(br#"{"level":"error","bytes":1500}"#));
//! assert!(!filter.matches(br#"{"level":"error"}"#));
//! # Ok::<(), linerate_filter::ParseError>(())
//! ```

#![forbid(unsafe_code)]

mod container;
mod cost;
mod error;
mod evaluated;
mod filter;
mod guard;
mod json;
mod lex;
mod literal;
mod number;
mod parse;
mod path_tree;
mod program;
mod scan;
mod set;
mod text;
pub mod tree;
mod value;

pub use error::{ParseError, Problem};
pub use evaluated::Evaluated;
pub use filter::Filter;
pub use json::JSON_DEPTH_MAX;
pub use number::Number;
pub use parse::{DEPTH_MAX, Limits, parse, parse_with_columns};
pub use set::FilterSet;
