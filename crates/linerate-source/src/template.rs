//! Templates of channel names, such as `orders:{customer_id}`.

use std::fmt;

/// A text with placeholders for parts of a record, such as the columns of a row.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Template {
    text: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Part {
    Name(String),
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
        "channel template must have a name in each pair of braces, as in orders:{{customer_id}}; see byte {at}"
    )]
    Braces {
        /// The byte offset of the brace.
        at: usize,
    },
}

impl Template {
    /// Reads a template. Text in braces is the name of a part of a record.
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
                    parts.push(Part::Name(name.to_owned()));
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

    /// Returns the text with the value of each name.
    ///
    /// # Errors
    /// Returns the first error of `value`.
    pub fn fill<'a, E>(
        &'a self,
        mut value: impl FnMut(&'a str) -> Result<String, E>,
    ) -> Result<String, E> {
        let mut filled = String::new();
        for part in &self.parts {
            match part {
                Part::Name(name) => filled.push_str(&value(name)?),
                Part::Text(text) => filled.push_str(text),
            }
        }
        Ok(filled)
    }

    /// Returns a pattern that all names match, with `*` for each name in braces.
    pub fn pattern(&self) -> String {
        let parts = self.parts.iter().map(|part| match part {
            Part::Name(_) => "*",
            Part::Text(text) => text,
        });
        parts.collect()
    }

    /// Returns the names in braces.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Name(name) => Some(name.as_str()),
            Part::Text(_) => None,
        })
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
