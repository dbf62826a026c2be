//! Templates of channel names, such as `orders:{customer_id}`.

use std::fmt;

/// A text with placeholders for the columns of a row.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Template {
    text: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Part {
    Column(String),
    Text(String),
}

/// The reason why a template is invalid.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// The template is empty.
    #[error("channel template is empty")]
    Empty,
    /// A brace has no counterpart, or the braces contain no name.
    #[error(
        "channel template must name a column in each pair of braces, as in orders:{{customer_id}}; see byte {at}"
    )]
    Braces {
        /// The byte offset of the brace.
        at: usize,
    },
}

impl Template {
    /// Reads a template. Text in braces is the name of a column.
    ///
    /// # Errors
    /// Returns an error if the template is empty or its braces do not match.
    pub fn new(text: &str) -> Result<Self, TemplateError> {
        if text.is_empty() {
            return Err(TemplateError::Empty);
        }
        let (mut parts, mut at) = (Vec::new(), 0);
        while at < text.len() {
            let rest = &text[at..];
            match rest.find(['{', '}']) {
                None => {
                    parts.push(Part::Text(rest.to_owned()));
                    break;
                }
                Some(0) => {
                    let error = TemplateError::Braces { at };
                    let name = rest.strip_prefix('{').ok_or(error)?;
                    let (name, _) = name.split_once('}').ok_or(error)?;
                    if name.is_empty() || name.contains('{') {
                        return Err(error);
                    }
                    parts.push(Part::Column(name.to_owned()));
                    at += name.len() + 2;
                }
                Some(brace) => {
                    parts.push(Part::Text(rest[..brace].to_owned()));
                    at += brace;
                }
            }
        }
        let text = text.to_owned();
        Ok(Self { text, parts })
    }

    /// Returns the text with the value of each column that it names.
    ///
    /// # Errors
    /// Returns the first error of `value`.
    pub(crate) fn fill<'a, E>(
        &'a self,
        mut value: impl FnMut(&'a str) -> Result<String, E>,
    ) -> Result<String, E> {
        let mut filled = String::new();
        for part in &self.parts {
            match part {
                Part::Column(name) => filled.push_str(&value(name)?),
                Part::Text(text) => filled.push_str(text),
            }
        }
        Ok(filled)
    }

    /// Returns a pattern that all names match, with `*` for each column.
    pub(crate) fn pattern(&self) -> String {
        let parts = self.parts.iter().map(|part| match part {
            Part::Column(_) => "*",
            Part::Text(text) => text,
        });
        parts.collect()
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::{Template, TemplateError};

    fn fill(text: &str) -> String {
        let value = |name: &str| Ok::<_, ()>(name.to_uppercase());
        Template::new(text).unwrap().fill(value).unwrap()
    }

    #[test]
    fn columns_are_replaced_by_their_values() {
        assert_eq!(fill("orders:{id}"), "orders:ID");
        assert_eq!(fill("{a}{b}-über-{straße}"), "AB-über-STRASSE");
        assert_eq!(fill("news"), "news");
        let template = Template::new("{a}").unwrap();
        let missing = template.fill(Err);
        assert_eq!(missing, Err("a"));
    }

    #[test]
    fn the_pattern_has_a_star_for_each_column() {
        let pattern = |text| Template::new(text).unwrap().pattern();
        assert_eq!(pattern("orders:{id}"), "orders:*");
        assert_eq!(pattern("{id}:x:{y}"), "*:x:*");
        assert_eq!(pattern("news"), "news");
    }

    #[test]
    fn braces_must_match() {
        for (text, at) in [("{", 0), ("a}", 1), ("ab{}", 2), ("{a{b}}", 0), ("{a}}", 3)] {
            assert_eq!(
                Template::new(text),
                Err(TemplateError::Braces { at }),
                "{text}"
            );
        }
        assert_eq!(Template::new(""), Err(TemplateError::Empty));
    }
}
