//! The cost of a filter that grows with the size of the values it names.

use crate::tree::{Node, TextTest};

/// The cost of walking through a list or an object, as a number of searches of a string.
const WALK: usize = 4;

/// Returns how often an expression searches through values of a payload, counted in searches of a
/// string.
///
/// The length of the expression bounds the time of all other operations.
pub(crate) fn searches(node: &Node) -> usize {
    match node {
        Node::All(nodes) | Node::Any(nodes) => nodes.iter().map(searches).sum(),
        Node::Compare(_, left, right) => {
            let is_constant = is_constant(left) || is_constant(right);
            searches(left) + searches(right) + usize::from(!is_constant)
        }
        Node::Has(_) | Node::Literal(_) | Node::Path(_) => 0,
        Node::In(value, _) => searches(value) + WALK,
        Node::InList(node, _) | Node::Negate(node) | Node::Not(node) => searches(node),
        Node::Size(node) => searches(node) + WALK,
        Node::Text(test, text, part) => {
            let is_short = *test == TextTest::StartsWith && is_constant(part);
            searches(text) + searches(part) + usize::from(!is_short)
        }
    }
}

fn is_constant(node: &Node) -> bool {
    matches!(node, Node::Literal(_))
}

#[cfg(test)]
mod tests {
    use super::searches;
    use crate::{Limits, parse};

    #[test]
    fn operations_that_search_values_are_counted() {
        for (text, expected) in [
            (r#"level == "error" && bytes > 1000 || has(a.b)"#, 0),
            (r#"a in ["x", "y"] && !(b.startsWith("/api"))"#, 0),
            (r#"a.contains("x") || b.endsWith("y")"#, 2),
            ("a == b || a.startsWith(b)", 2),
            (r#""x" in tags && size(tags) > 5"#, 8),
            (r#"(a.contains("x") == true) != !b.contains("y")"#, 3),
        ] {
            let root = parse(text, &Limits::default()).unwrap();
            assert_eq!(searches(&root), expected, "{text}");
        }
    }
}
