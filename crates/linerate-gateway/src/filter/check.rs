//! What an expression may do: decided on its syntax tree, before it ever runs.
//!
//! A node outside of macros costs at most as much as looking at the whole publication once. A macro goes round as
//! often as its list has items; so that it can't look at the whole publication each time, macros are not nested,
//! and inside of one only the item itself and fields with simple values are to be had.

use std::collections::BTreeSet;

use cel::common::ast::{ComprehensionExpr, EntryExpr, Expr, IdedExpr, operators};

use super::FilterError;

/// The variable that holds the whole publication.
pub(super) const WHOLE: &str = "data";

/// Functions and operators that cost no more than their arguments.
const FUNCTIONS: [&str; 9] = [
    "bool",
    "contains",
    "double",
    "endsWith",
    "int",
    "size",
    "startsWith",
    "string",
    "uint",
];
const OPERATORS: [&str; 19] = [
    operators::ADD,
    operators::CONDITIONAL,
    operators::DIVIDE,
    operators::EQUALS,
    operators::GREATER,
    operators::GREATER_EQUALS,
    operators::IN,
    operators::INDEX,
    operators::LESS,
    operators::LESS_EQUALS,
    operators::LOGICAL_AND,
    operators::LOGICAL_NOT,
    operators::LOGICAL_OR,
    operators::MODULO,
    operators::MULTIPLY,
    operators::NEGATE,
    operators::NOT_EQUALS,
    operators::NOT_STRICTLY_FALSE,
    operators::SUBSTRACT,
];

/// What was found out about an expression.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Fields that it refers to.
    pub(super) variables: BTreeSet<String>,
    /// Those of them that macros refer to each time they go round.
    pub(super) in_macros: BTreeSet<String>,
    nodes: usize,
}

/// Walks through an expression, and refuses what may cost too much.
pub(super) fn check(root: &IdedExpr, nodes_max: usize) -> Result<Findings, FilterError> {
    let mut findings = Findings::default();
    findings.walk(root, None)?;
    match findings.nodes {
        nodes if nodes > nodes_max => Err(FilterError::TooManyNodes { nodes, nodes_max }),
        _ => Ok(findings),
    }
}

impl Findings {
    fn walk(
        &mut self,
        node: &IdedExpr,
        within: Option<&ComprehensionExpr>,
    ) -> Result<(), FilterError> {
        self.nodes += 1;
        match &node.expr {
            Expr::Call(call) => {
                let name = call.func_name.as_str();
                if !FUNCTIONS.contains(&name) && !OPERATORS.contains(&name) {
                    return Err(unknown_function(name));
                }
                let operands = call.target.as_deref().into_iter().chain(&call.args);
                self.walk_all(operands, within)
            }
            Expr::Comprehension(comprehension) => self.walk_macro(comprehension, within),
            Expr::Ident(name) => self.note(name, within),
            Expr::List(list) => self.walk_all(&list.elements, within),
            Expr::Literal(_) => Ok(()),
            Expr::Map(map) => {
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        self.walk_all([&entry.key, &entry.value], within)?;
                    }
                }
                Ok(())
            }
            Expr::Select(select) => self.walk(&select.operand, within),
            Expr::Struct(structure) => Err(unknown_function(&structure.type_name)),
            Expr::Unspecified => Err(FilterError::Empty),
        }
    }

    fn walk_all<'a>(
        &mut self,
        nodes: impl IntoIterator<Item = &'a IdedExpr>,
        within: Option<&ComprehensionExpr>,
    ) -> Result<(), FilterError> {
        nodes
            .into_iter()
            .try_for_each(|node| self.walk(node, within))
    }

    fn walk_macro(
        &mut self,
        comprehension: &ComprehensionExpr,
        within: Option<&ComprehensionExpr>,
    ) -> Result<(), FilterError> {
        if within.is_some() {
            return Err(FilterError::NestedMacros);
        }
        if !matches!(comprehension.accu_init.expr, Expr::Literal(_)) {
            return Err(FilterError::UnknownMacro);
        }
        self.walk(&comprehension.iter_range, None)?;
        let body = [
            &comprehension.loop_cond,
            &comprehension.loop_step,
            &comprehension.result,
        ];
        self.walk_all(body, Some(comprehension))
    }

    /// Notes a name, unless a macro has made it.
    fn note(&mut self, name: &str, within: Option<&ComprehensionExpr>) -> Result<(), FilterError> {
        let Some(comprehension) = within else {
            self.variables.insert(name.to_owned());
            return Ok(());
        };
        let own = [
            Some(comprehension.iter_var.as_str()),
            comprehension.iter_var2.as_deref(),
            Some(comprehension.accu_var.as_str()),
        ];
        if own.contains(&Some(name)) {
            return Ok(());
        }
        if name == WHOLE {
            return Err(FilterError::WholeInMacro);
        }
        self.variables.insert(name.to_owned());
        self.in_macros.insert(name.to_owned());
        Ok(())
    }
}

fn unknown_function(name: &str) -> FilterError {
    FilterError::Function {
        function: name.to_owned(),
        known: FUNCTIONS.join(", "),
    }
}
