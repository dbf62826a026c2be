//! The parser: a Pratt parser with limited recursion.

use crate::{
    ParseError, Problem,
    lex::{Lexer, Token},
    tree::{Comparison, Literal, Node, Path, Segment, TextTest},
};

/// The maximum nesting depth of brackets, arguments and comparisons of comparisons.
pub const DEPTH_MAX: usize = 32;

/// The name that stands for the whole payload.
const WHOLE: &str = "data";

/// The words that CEL reserves.
const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "namespace",
    "package",
    "return",
    "var",
    "void",
    "while",
];

/// The precedence of the operators; a larger number binds more strongly.
const OR: u8 = 1;
const AND: u8 = 2;
const RELATION: u8 = 3;

/// Limits on the size of a filter.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// Maximum length of the text in bytes. The default is 1,024.
    pub expression_bytes_max: usize,
    /// Maximum number of operators, functions, constants and path segments; a list of constants
    /// counts as one. The default is 64.
    pub nodes_max: usize,
}

impl Limits {
    /// Creates limits for the length of the text in bytes and the number of nodes.
    pub fn new(expression_bytes_max: usize, nodes_max: usize) -> Self {
        Self {
            expression_bytes_max,
            nodes_max,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::new(1_024, 64)
    }
}

/// Parses an expression.
///
/// # Errors
/// Returns an error if the text is not an expression of the language, or is larger than allowed.
pub fn parse(text: &str, limits: &Limits) -> Result<Node, ParseError> {
    Ok(parse_leaves(text, limits)?.0)
}

/// Parses an expression like [`parse`], and also returns the columns of its leaves, for callers
/// that compile the tree and report errors of their own.
///
/// The columns count characters from 1. They are those of the constants and fields outside of
/// lists, in the order in which a walk from left to right visits [`Node::Literal`], [`Node::Path`],
/// [`Node::Has`] and the container of [`Node::In`].
///
/// ```
/// use linerate_filter::{Limits, parse_with_columns};
///
/// let (_, columns) = parse_with_columns("level == 1 && has(data.user)", &Limits::default())?;
/// assert_eq!(columns, [1, 10, 19]);
/// # Ok::<(), linerate_filter::ParseError>(())
/// ```
///
/// # Errors
/// Returns an error if the text is not an expression of the language, or is larger than allowed.
pub fn parse_with_columns(text: &str, limits: &Limits) -> Result<(Node, Vec<usize>), ParseError> {
    let (root, leaves) = parse_leaves(text, limits)?;
    let mut chars = text.char_indices().zip(1..).peekable();
    let mut column_at = |leaf: usize| {
        while chars.next_if(|((at, _), _)| *at < leaf).is_some() {}
        chars.peek().map_or(1, |(_, column)| *column)
    };
    Ok((root, leaves.into_iter().map(&mut column_at).collect()))
}

/// Parses an expression and returns it with the byte offsets of its leaves.
fn parse_leaves(text: &str, limits: &Limits) -> Result<(Node, Vec<usize>), ParseError> {
    let (bytes, bytes_max) = (text.len(), limits.expression_bytes_max);
    let lexer = Lexer::new(text);
    if bytes > bytes_max {
        return Err(lexer.error(0, Problem::TooLong { bytes, bytes_max }));
    }
    let mut parser = Parser {
        lexer,
        token: Token::End,
        at: 0,
        depth: 0,
        nodes: 0,
        nodes_max: limits.nodes_max,
        is_selection: false,
        leaves: Vec::new(),
    };
    parser.advance()?;
    if parser.token == Token::End {
        return Err(parser.problem(Problem::Empty));
    }
    let root = parser.expression(OR)?;
    match parser.token {
        Token::End => Ok((root, parser.leaves)),
        _ => Err(parser.expected("an operator or the end")),
    }
}

struct Parser<'t> {
    lexer: Lexer<'t>,
    token: Token<'t>,
    /// The byte offset where the token begins.
    at: usize,
    depth: usize,
    nodes: usize,
    nodes_max: usize,
    /// True if the last operand ends in `.field`, as `has` requires.
    is_selection: bool,
    /// The byte offsets of the constants and fields outside of lists.
    leaves: Vec<usize>,
}

impl<'t> Parser<'t> {
    /// Parses operators that bind at least as strongly as `power`, and their operands.
    fn expression(&mut self, power: u8) -> Result<Node, ParseError> {
        let mut left = self.unary()?;
        let depth = self.depth;
        while let Token::Symbol(symbol) = self.token {
            let binds = match symbol {
                "||" => OR,
                "&&" => AND,
                "==" | "!=" | "<" | "<=" | ">" | ">=" | "in" => RELATION,
                _ => self.refuse_operator(symbol)?,
            };
            if binds < power || binds == 0 {
                break;
            }
            left = match binds {
                RELATION => self.relation(left, symbol)?,
                _ => self.chain(left, symbol, binds)?,
            };
            self.is_selection = false;
        }
        self.depth = depth;
        Ok(left)
    }

    /// Parses the operands of `&&` or `||`, which become one node regardless of their number.
    fn chain(&mut self, first: Node, symbol: &'static str, power: u8) -> Result<Node, ParseError> {
        let mut nodes = vec![first];
        while self.take(symbol)? {
            self.count(1)?;
            nodes.push(self.expression(power + 1)?);
        }
        Ok(match power {
            AND => Node::All(nodes),
            _ => Node::Any(nodes),
        })
    }

    /// Parses the right side of a comparison. Each comparison is the left operand of the next one,
    /// so each adds a level of nesting.
    fn relation(&mut self, left: Node, symbol: &'static str) -> Result<Node, ParseError> {
        self.count(1)?;
        self.deepen()?;
        self.advance()?;
        let comparison = match symbol {
            "==" => Comparison::Equal,
            "!=" => Comparison::NotEqual,
            "<" => Comparison::Less,
            "<=" => Comparison::LessOrEqual,
            ">" => Comparison::Greater,
            ">=" => Comparison::GreaterOrEqual,
            _ => return self.membership(left),
        };
        let right = self.unary()?;
        Ok(Node::Compare(comparison, left.into(), right.into()))
    }

    fn membership(&mut self, left: Node) -> Result<Node, ParseError> {
        let at = self.at;
        if self.take("[")? {
            return Ok(Node::InList(left.into(), self.list()?));
        }
        match self.unary()? {
            Node::Path(path) => Ok(Node::In(left.into(), path)),
            _ => Err(self.lexer.error(
                at,
                Problem::Expected {
                    expected: "a list of constants or a field after in",
                    found: "another expression",
                },
            )),
        }
    }

    /// Parses constants up to the closing bracket.
    fn list(&mut self) -> Result<Vec<Literal>, ParseError> {
        self.count(1)?;
        let mut literals = Vec::new();
        while !self.take("]")? {
            let is_negated = self.take("-")?;
            let token = std::mem::replace(&mut self.token, Token::End);
            literals.push(match token {
                Token::Constant(Literal::Number(number)) if is_negated => {
                    Literal::Number(number.negated().unwrap_or(number))
                }
                Token::Constant(literal) if !is_negated => literal,
                token => {
                    self.token = token;
                    return Err(self.expected("a constant; a list holds only constants"));
                }
            });
            self.advance()?;
            if !self.take(",")? && self.token != Token::Symbol("]") {
                return Err(self.expected(", or ]"));
            }
        }
        Ok(literals)
    }

    /// Parses an operand with the signs before it. Two signs cancel each other, as in CEL.
    fn unary(&mut self) -> Result<Node, ParseError> {
        let Token::Symbol(sign @ ("!" | "-")) = self.token else {
            return self.member();
        };
        let mut is_odd = false;
        while self.take(sign)? {
            is_odd = !is_odd;
        }
        self.count(1)?;
        let operand = self.member()?;
        self.is_selection = false;
        Ok(match (is_odd, sign, operand) {
            (false, _, operand) => operand,
            (true, "!", operand) => Node::Not(operand.into()),
            (true, _, Node::Literal(Literal::Number(number))) => {
                Node::Literal(Literal::Number(number.negated().unwrap_or(number)))
            }
            (true, _, operand) => Node::Negate(operand.into()),
        })
    }

    /// Parses an operand and the fields, indices and functions after it.
    fn member(&mut self) -> Result<Node, ParseError> {
        let mut node = self.primary()?;
        loop {
            let at = self.at;
            if self.take(".")? {
                node = self.selection(node, at)?;
            } else if self.take("[")? {
                node = self.index(node, at)?;
            } else {
                return Ok(node);
            }
        }
    }

    /// Parses a field or a function after a dot.
    fn selection(&mut self, node: Node, at: usize) -> Result<Node, ParseError> {
        let Token::Ident(name) = self.token else {
            return Err(self.expected("the name of a field or a function"));
        };
        let name_at = self.at;
        self.advance()?;
        if self.take("(")? {
            return self.method(node, name, name_at);
        }
        self.count(1)?;
        self.is_selection = true;
        self.step(node, Segment::Field(name.into()), at)
    }

    fn index(&mut self, node: Node, at: usize) -> Result<Node, ParseError> {
        self.count(1)?;
        let segment = match &self.token {
            Token::Constant(Literal::Text(text)) => Segment::Field(text.clone()),
            Token::Constant(Literal::Number(crate::Number::Int(index))) => {
                Segment::Index(index.unsigned_abs())
            }
            _ => return Err(self.expected("an integer or a string as an index")),
        };
        self.advance()?;
        self.require("]")?;
        self.is_selection = false;
        self.step(node, segment, at)
    }

    fn step(&self, node: Node, segment: Segment, at: usize) -> Result<Node, ParseError> {
        let Node::Path(mut path) = node else {
            let construct = "a field or index of an expression other than a field";
            return Err(self.lexer.error(at, Problem::Unsupported { construct }));
        };
        path.0.push(segment);
        Ok(Node::Path(path))
    }

    /// Parses the arguments of a function that is called on `target`.
    fn method(&mut self, target: Node, name: &str, at: usize) -> Result<Node, ParseError> {
        self.count(1)?;
        let test = match name {
            "contains" => TextTest::Contains,
            "endsWith" => TextTest::EndsWith,
            "size" => {
                self.no_argument()?;
                return Ok(Node::Size(target.into()));
            }
            "startsWith" => TextTest::StartsWith,
            name => return Err(self.lexer.error(at, unknown_function(name))),
        };
        let part = self.argument(test.name(), "one string")?;
        Ok(Node::Text(test, target.into(), part.into()))
    }

    fn primary(&mut self) -> Result<Node, ParseError> {
        let at = self.at;
        self.count(1)?;
        self.is_selection = false;
        match std::mem::replace(&mut self.token, Token::End) {
            Token::Constant(literal) => {
                self.leaves.push(at);
                self.advance()?;
                Ok(Node::Literal(literal))
            }
            Token::Ident(name) => {
                self.advance()?;
                match self.token {
                    Token::Symbol("(") => self.function(name, at),
                    Token::Symbol("{") => Err(self.unsupported("constructing a message")),
                    _ => self.name(name, at),
                }
            }
            Token::Symbol("(") => {
                self.advance()?;
                self.nested(")")
            }
            token => {
                self.token = token;
                Err(match self.token {
                    Token::Symbol("[") => self.unsupported("a list anywhere but after in"),
                    Token::Symbol("{") => self.unsupported("constructing a map"),
                    _ => self.expected("a field, a constant, a function or ("),
                })
            }
        }
    }

    fn name(&mut self, name: &str, at: usize) -> Result<Node, ParseError> {
        if let Some(word) = RESERVED.iter().find(|word| **word == name) {
            return Err(self.lexer.error(at, Problem::Reserved { word }));
        }
        self.leaves.push(at);
        Ok(Node::Path(match name {
            WHOLE => Path::default(),
            name => Path(vec![Segment::Field(name.into())]),
        }))
    }

    /// Parses the arguments of a function that is not called on a value.
    fn function(&mut self, name: &str, at: usize) -> Result<Node, ParseError> {
        self.advance()?;
        match name {
            "has" => {
                const EXPECTED: &str = "a field after a dot, as in has(data.level)";
                let argument = self.argument("has", EXPECTED)?;
                match argument {
                    Node::Path(path) if self.is_selection => {
                        self.is_selection = false;
                        Ok(Node::Has(path))
                    }
                    _ => Err(self.lexer.error(at, arguments("has", EXPECTED))),
                }
            }
            "size" => {
                let of = self.argument("size", "one string, list or object")?;
                self.is_selection = false;
                Ok(Node::Size(of.into()))
            }
            "contains" => Err(self.lexer.error(at, on_string("contains"))),
            "endsWith" => Err(self.lexer.error(at, on_string("endsWith"))),
            "startsWith" => Err(self.lexer.error(at, on_string("startsWith"))),
            name => Err(self.lexer.error(at, unknown_function(name))),
        }
    }

    /// Parses the only argument of a function and the closing bracket.
    fn argument(
        &mut self,
        function: &'static str,
        expected: &'static str,
    ) -> Result<Node, ParseError> {
        if self.token == Token::Symbol(")") {
            return Err(self.problem(arguments(function, expected)));
        }
        let argument = self.nested("")?;
        if self.token == Token::Symbol(",") {
            return Err(self.problem(arguments(function, expected)));
        }
        self.require(")")?;
        Ok(argument)
    }

    fn no_argument(&mut self) -> Result<(), ParseError> {
        match self.take(")")? {
            true => Ok(()),
            false => Err(self.problem(arguments(
                "size",
                "no argument after a dot, as in tags.size()",
            ))),
        }
    }

    /// Parses an expression one level deeper, and the bracket that closes it.
    fn nested(&mut self, closing: &'static str) -> Result<Node, ParseError> {
        self.deepen()?;
        let node = self.expression(OR)?;
        self.depth -= 1;
        if !closing.is_empty() {
            self.require(closing)?;
        }
        Ok(node)
    }

    fn deepen(&mut self) -> Result<(), ParseError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            let depth_max = DEPTH_MAX;
            return Err(self.problem(Problem::TooDeep { depth_max }));
        }
        Ok(())
    }

    fn count(&mut self, nodes: usize) -> Result<(), ParseError> {
        self.nodes += nodes;
        if self.nodes > self.nodes_max {
            let nodes_max = self.nodes_max;
            return Err(self.problem(Problem::TooManyNodes { nodes_max }));
        }
        Ok(())
    }

    fn advance(&mut self) -> Result<(), ParseError> {
        (self.at, self.token) = self.lexer.next()?;
        Ok(())
    }

    /// Moves past `symbol` if it is the next token, and returns whether it was.
    fn take(&mut self, symbol: &'static str) -> Result<bool, ParseError> {
        let is_next = self.token == Token::Symbol(symbol);
        if is_next {
            self.advance()?;
        }
        Ok(is_next)
    }

    fn require(&mut self, symbol: &'static str) -> Result<(), ParseError> {
        match self.take(symbol)? {
            true => Ok(()),
            false => Err(self.expected(symbol)),
        }
    }

    /// Returns 0, the precedence of a symbol that ends an expression, or an error for operators
    /// that filters do not support.
    fn refuse_operator(&self, symbol: &str) -> Result<u8, ParseError> {
        match symbol {
            "+" | "-" | "*" | "/" | "%" => Err(self.unsupported("arithmetic")),
            "?" => Err(self.unsupported("the conditional operator ? :")),
            "=" => Err(self.expected("==")),
            _ => Ok(0),
        }
    }

    fn expected(&self, expected: &'static str) -> ParseError {
        let found = self.token.name();
        self.problem(Problem::Expected { expected, found })
    }

    fn unsupported(&self, construct: &'static str) -> ParseError {
        self.problem(Problem::Unsupported { construct })
    }

    fn problem(&self, problem: Problem) -> ParseError {
        self.lexer.error(self.at, problem)
    }
}

fn arguments(function: &'static str, expected: &'static str) -> Problem {
    Problem::Arguments { function, expected }
}

fn on_string(function: &'static str) -> Problem {
    arguments(
        function,
        "one string and is called on another, as in path.startsWith(\"/api\")",
    )
}

/// Error messages repeat at most this many bytes of an unknown function name.
const NAME_BYTES_MAX: usize = 32;

fn unknown_function(name: &str) -> Problem {
    match name {
        "all" | "exists" | "exists_one" | "existsOne" | "filter" | "map" => Problem::Unsupported {
            construct: "a macro that iterates over a list",
        },
        // Names are ASCII, so every byte offset is a character boundary.
        name => Problem::Function {
            function: name[..name.len().min(NAME_BYTES_MAX)].to_owned(),
        },
    }
}
