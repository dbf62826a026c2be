//! Tokens of the expression language.

use crate::{ParseError, Problem, literal, tree::Literal};

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token<'t> {
    Constant(Literal),
    End,
    Ident(&'t str),
    /// An operator or a bracket, as written.
    Symbol(&'static str),
}

impl Token<'_> {
    /// Returns the name of the token for error messages.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Constant(_) => "a constant",
            Self::End => "the end",
            Self::Ident(_) => "a name",
            Self::Symbol(symbol) => symbol,
        }
    }
}

/// Splits a text into tokens.
#[derive(Clone, Debug)]
pub(crate) struct Lexer<'t> {
    pub(crate) text: &'t str,
    at: usize,
}

impl<'t> Lexer<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    /// Returns the next token and the byte offset where it begins.
    pub(crate) fn next(&mut self) -> Result<(usize, Token<'t>), ParseError> {
        self.skip_blanks();
        let at = self.at;
        let rest = &self.text[at..];
        let Some(first) = rest.chars().next() else {
            return Ok((at, Token::End));
        };
        let is_digit = |place: usize| rest.as_bytes().get(place).is_some_and(u8::is_ascii_digit);
        if is_digit(0) || (first == '.' && is_digit(1)) {
            let is_negated = self.text[..at].trim_end().ends_with('-');
            let number = literal::number(rest, is_negated);
            let (number, length) = number.ok_or_else(|| self.error(at, Problem::Number))?;
            self.at += length;
            return Ok((at, Token::Constant(Literal::Number(number))));
        }
        // With a prefix such as `r`, a string begins like a name.
        let may_be_string = matches!(first, '"' | '\'' | 'r' | 'R' | 'b' | 'B');
        if let Some(text) = may_be_string.then(|| literal::string(rest)).flatten() {
            let (text, length) =
                text.map_err(|(offset, problem)| self.error(at + offset, problem))?;
            self.at += length;
            return Ok((at, Token::Constant(Literal::Text(text))));
        }
        if first.is_ascii_alphabetic() || first == '_' {
            let is_part = |char: char| char.is_ascii_alphanumeric() || char == '_';
            let length = rest.find(|char| !is_part(char)).unwrap_or(rest.len());
            self.at += length;
            return Ok((at, word(&rest[..length])));
        }
        let symbol =
            symbol(rest.as_bytes()).ok_or_else(|| self.error(at, Problem::Character(first)))?;
        self.at += symbol.len();
        Ok((at, Token::Symbol(symbol)))
    }

    pub(crate) fn error(&self, at: usize, problem: Problem) -> ParseError {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        // Every byte except a UTF-8 continuation byte begins a character.
        let column = 1 + before.iter().filter(|byte| **byte & 0xc0 != 0x80).count();
        ParseError { column, problem }
    }

    fn skip_blanks(&mut self) {
        loop {
            let rest = &self.text[self.at..];
            let blank = |char| matches!(char, ' ' | '\t' | '\n' | '\r' | '\x0c');
            self.at += rest.len() - rest.trim_start_matches(blank).len();
            let rest = &self.text[self.at..];
            if !rest.starts_with("//") {
                return;
            }
            self.at += rest.find('\n').unwrap_or(rest.len());
        }
    }
}

/// Returns the operator or bracket at the beginning of a text.
fn symbol(text: &[u8]) -> Option<&'static str> {
    Some(match text {
        [b'&', b'&', ..] => "&&",
        [b'|', b'|', ..] => "||",
        [b'=', b'=', ..] => "==",
        [b'!', b'=', ..] => "!=",
        [b'<', b'=', ..] => "<=",
        [b'>', b'=', ..] => ">=",
        [first, ..] => {
            const SINGLE: &str = "!%()*+,-./:<=>?[]{}";
            let at = SINGLE.bytes().position(|byte| byte == *first)?;
            &SINGLE[at..=at]
        }
        [] => return None,
    })
}

fn word(word: &str) -> Token<'_> {
    match word {
        "false" => Token::Constant(Literal::Bool(false)),
        "in" => Token::Symbol("in"),
        "null" => Token::Constant(Literal::Null),
        "true" => Token::Constant(Literal::Bool(true)),
        name => Token::Ident(name),
    }
}
