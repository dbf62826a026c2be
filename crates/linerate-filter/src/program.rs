//! Compiles an expression to postfix operations over slots, one slot for each path that it names.

use crate::{
    container,
    evaluated::Search,
    tree::{Comparison, Literal, Node, Path, TextTest},
    value::Value,
};

/// A compiled expression.
#[derive(Debug)]
pub(crate) struct Program {
    operations: Vec<Operation>,
    paths: Vec<Path>,
    literals: Vec<Literal>,
    lists: Vec<Vec<Literal>>,
    /// The maximum number of values on the stack.
    stack_max: usize,
    /// True if the expression is a comparison with a literal, or a conjunction of such comparisons.
    is_conjunction: bool,
}

/// An operation takes its operands from the stack and pushes its result. The numbers are positions
/// in the program's tables.
#[derive(Clone, Copy, Debug)]
enum Operation {
    /// Combines the last two results. A result that equals the given value decides alone.
    Combine(bool),
    Compare(Comparison),
    /// Compares the value of a slot with a literal.
    CompareLiteral(Comparison, usize, usize),
    /// Tests whether the second slot has a value, if the first slot has an object.
    Has(usize, usize),
    In,
    InList(usize),
    Literal(usize),
    Load(usize),
    Negate,
    Not,
    Size,
    /// Jumps to the given operation if the last result equals the given value.
    SkipIf(bool, usize),
    Text(TextTest),
}

/// A stack of at most this many values needs no heap allocation.
const SMALL_STACK: usize = 4;

impl Program {
    pub(crate) fn new(root: Node) -> Self {
        let mut program = Self {
            operations: Vec::new(),
            paths: Vec::new(),
            literals: Vec::new(),
            lists: Vec::new(),
            stack_max: 0,
            is_conjunction: false,
        };
        program.emit(root, 0);
        program.is_conjunction = program.operations.iter().all(|operation| {
            let is_chain = matches!(
                operation,
                Operation::SkipIf(false, _) | Operation::Combine(false)
            );
            is_chain || matches!(operation, Operation::CompareLiteral(..))
        });
        program
    }

    /// Returns the path of each slot.
    pub(crate) fn paths(&self) -> &[Path] {
        &self.paths
    }

    /// Returns whether the expression is true for the given values of the slots, or `None` if a
    /// search is to run later.
    #[inline]
    pub(crate) fn is_true<'v>(
        &'v self,
        load: impl Fn(usize) -> &'v Value<'v>,
        searches: &mut impl Search,
    ) -> Option<bool> {
        if self.is_conjunction {
            // An error keeps a conjunction from being true, just as false does.
            return Some(self.operations.iter().all(|operation| match *operation {
                Operation::CompareLiteral(comparison, slot, literal) => {
                    let literal = Value::of(&self.literals[literal]);
                    load(slot).holds(comparison, &literal) == Some(true)
                }
                _ => true,
            }));
        }
        match self.stack_max {
            0..=SMALL_STACK => self.run(&mut [Value::Error; SMALL_STACK], load, searches),
            stack_max => self.run(&mut vec![Value::Error; stack_max], load, searches),
        }
    }

    fn run<'v>(
        &'v self,
        stack: &mut [Value<'v>],
        load: impl Fn(usize) -> &'v Value<'v>,
        searches: &mut impl Search,
    ) -> Option<bool> {
        let (mut next, mut top) = (0, 0);
        while let Some(operation) = self.operations.get(next) {
            next += 1;
            match *operation {
                Operation::Has(object, field) => {
                    stack[top] = match (load(object), load(field)) {
                        (Value::Map(_), Value::Error) => Value::Bool(false),
                        (Value::Map(_), _) => Value::Bool(true),
                        _ => Value::Error,
                    };
                    top += 1;
                }
                Operation::CompareLiteral(comparison, slot, literal) => {
                    let literal = Value::of(&self.literals[literal]);
                    stack[top] = load(slot).compare(comparison, &literal);
                    top += 1;
                }
                Operation::Literal(literal) => {
                    stack[top] = Value::of(&self.literals[literal]);
                    top += 1;
                }
                Operation::Load(slot) => {
                    stack[top] = *load(slot);
                    top += 1;
                }
                Operation::SkipIf(result, place) => {
                    if stack[top - 1].is(result) {
                        next = place;
                    }
                }
                Operation::InList(list) => {
                    stack[top - 1] = stack[top - 1].is_in_list(&self.lists[list]);
                }
                Operation::Negate => stack[top - 1] = stack[top - 1].negated(),
                Operation::Not => stack[top - 1] = stack[top - 1].inverted(),
                Operation::Size => {
                    stack[top - 1] = searches.search(|| container::size(stack[top - 1]))?
                }
                Operation::Combine(decisive) => {
                    top -= 1;
                    stack[top - 1] = stack[top - 1].combined(stack[top], decisive);
                }
                Operation::Compare(_) | Operation::In | Operation::Text(_) => {
                    top -= 1;
                    let (left, right) = (stack[top - 1], stack[top]);
                    stack[top - 1] = searches.search(|| apply(*operation, left, right))?;
                }
            }
        }
        Some(stack[0].is(true))
    }

    /// Appends the operations that compute `node` when `height` values are already on the stack.
    fn emit(&mut self, node: Node, height: usize) {
        self.stack_max = self.stack_max.max(height + 1);
        let operation = match node {
            Node::All(nodes) => return self.emit_chain(nodes, height, false),
            Node::Any(nodes) => return self.emit_chain(nodes, height, true),
            Node::Compare(comparison, left, right) => match (*left, *right) {
                (Node::Path(path), Node::Literal(literal)) => {
                    self.literals.push(literal);
                    let (slot, literal) = (self.slot(path), self.literals.len() - 1);
                    Operation::CompareLiteral(comparison, slot, literal)
                }
                (left, right) => {
                    self.emit(left, height);
                    self.emit(right, height + 1);
                    Operation::Compare(comparison)
                }
            },
            Node::Has(path) => {
                let object = path.0.split_last().map_or(&[][..], |(_, object)| object);
                let object = self.slot(Path(object.to_vec()));
                Operation::Has(object, self.slot(path))
            }
            Node::In(value, container) => {
                self.emit(*value, height);
                self.emit_path(container, height + 1);
                Operation::In
            }
            Node::InList(value, list) => {
                self.emit(*value, height);
                self.lists.push(list);
                Operation::InList(self.lists.len() - 1)
            }
            Node::Literal(literal) => {
                self.literals.push(literal);
                Operation::Literal(self.literals.len() - 1)
            }
            Node::Negate(node) => {
                self.emit(*node, height);
                Operation::Negate
            }
            Node::Not(node) => {
                self.emit(*node, height);
                Operation::Not
            }
            Node::Path(path) => return self.emit_path(path, height),
            Node::Size(node) => {
                self.emit(*node, height);
                Operation::Size
            }
            Node::Text(test, text, part) => {
                self.emit(*text, height);
                self.emit(*part, height + 1);
                Operation::Text(test)
            }
        };
        self.operations.push(operation);
    }

    fn emit_chain(&mut self, nodes: Vec<Node>, height: usize, decisive: bool) {
        let mut skips = Vec::new();
        for (place, node) in nodes.into_iter().enumerate() {
            if place == 0 {
                self.emit(node, height);
                continue;
            }
            skips.push(self.operations.len());
            self.operations.push(Operation::SkipIf(decisive, 0));
            self.emit(node, height + 1);
            self.operations.push(Operation::Combine(decisive));
        }
        let end = self.operations.len();
        for skip in skips {
            self.operations[skip] = Operation::SkipIf(decisive, end);
        }
    }

    fn emit_path(&mut self, path: Path, height: usize) {
        self.stack_max = self.stack_max.max(height + 1);
        let slot = self.slot(path);
        self.operations.push(Operation::Load(slot));
    }

    /// Returns the slot of a path, adding one if the path is new.
    fn slot(&mut self, path: Path) -> usize {
        let known = self.paths.iter().position(|known| *known == path);
        known.unwrap_or_else(|| {
            self.paths.push(path);
            self.paths.len() - 1
        })
    }
}

fn apply(operation: Operation, left: Value<'_>, right: Value<'_>) -> Value<'static> {
    match operation {
        Operation::Compare(comparison) => left.compare(comparison, &right),
        Operation::Text(test) => left.test(test, right),
        _ => container::contains(right, left),
    }
}
