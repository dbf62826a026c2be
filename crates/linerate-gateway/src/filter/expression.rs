//! One compiled expression.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, LazyLock},
};

use cel::{Context, Env, IdedExpr, Value};
use linerate_hub::{Filter, Guard, Publication};
use serde_json::Value as Json;

use super::{
    FilterError,
    check::{self, Findings, WHOLE},
    convert::Converter,
    guard, parse,
};
use crate::config::FilterOptions;

/// How much text of a field a macro may look at each time it goes round.
const TEXT_IN_MACRO_BYTES_MAX: usize = 1_024;

/// What expressions know of from the start.
pub(super) static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib()));

/// A compiled expression.
pub(super) struct Expression {
    text: String,
    root: IdedExpr,
    findings: Findings,
    guard: Option<Guard>,
    values_max: usize,
}

impl Expression {
    pub(super) fn compile(text: &str, options: &FilterOptions) -> Result<Self, FilterError> {
        let (bytes, bytes_max) = (text.len(), options.expression_bytes_max);
        if bytes > bytes_max {
            return Err(FilterError::TooLong { bytes, bytes_max });
        }
        if text.is_empty() {
            return Err(FilterError::Empty);
        }
        let root = parse::parse(text)?;
        let findings = check::check(&root, options.nodes_max)?;
        Ok(Self {
            text: text.to_owned(),
            guard: guard::find(&root),
            root,
            findings,
            values_max: options.values_max,
        })
    }

    /// Evaluates; `None` if that fails, by a missing field for instance.
    fn evaluate(&self, json: &Json) -> Option<Value> {
        let mut context = Context::with_env(ENVIRONMENT.clone());
        let mut converter = Converter::new(self.values_max);
        let fields = json.as_object();
        for name in &self.findings.variables {
            let value = match name.as_str() {
                WHOLE => Some(json),
                name => fields.and_then(|fields| fields.get(name)),
            };
            // What is missing is an error only if the expression comes to need it.
            let Some(value) = value else {
                continue;
            };
            if self.findings.in_macros.contains(name) && !is_simple(value) {
                return None;
            }
            context.add_variable_from_value(name.as_str(), converter.convert(value)?);
        }
        Value::resolve(&self.root, &context).ok()
    }
}

impl Filter for Expression {
    fn expression(&self) -> &str {
        &self.text
    }

    fn matches(&self, publication: &Publication) -> bool {
        let Some(json) = publication.value() else {
            return false;
        };
        let evaluated = catch_unwind(AssertUnwindSafe(|| self.evaluate(json)));
        matches!(evaluated, Ok(Some(Value::Bool(true))))
    }

    fn guard(&self) -> Option<&Guard> {
        self.guard.as_ref()
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expression").field(&self.text).finish()
    }
}

/// Returns whether a value costs next to nothing to look at.
fn is_simple(value: &Json) -> bool {
    match value {
        Json::Array(_) | Json::Object(_) => false,
        Json::String(text) => text.len() <= TEXT_IN_MACRO_BYTES_MAX,
        _ => true,
    }
}
