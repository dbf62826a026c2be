//! The text of a format, as copied from a configuration.

use super::super::FormatError;

/// The longest text that is accepted as a format, 16 KiB. The longest seen in use has 2 KiB.
pub(super) const BYTES_MAX: usize = 16 << 10;

/// The server whose notation a format uses.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Dialect {
    Apache,
    Haproxy,
    Nginx,
}

/// How a server escapes bytes that would otherwise end a field.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Escape {
    /// As `\x22` or `\"`.
    #[default]
    Default,
    /// As in JSON strings.
    Json,
    /// Not at all.
    None,
}

/// A format without the surrounding text of the configuration.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) dialect: Dialect,
    pub(super) escape: Escape,
    /// Its name in the configuration.
    pub(super) name: Option<String>,
    /// The characters, each with its position in the original text.
    pub(super) chars: Vec<PlacedChar>,
}

/// A character and its position in the original text, from 1.
pub(super) type PlacedChar = (char, usize);

/// A word of a configuration, with the position of each character.
struct Word {
    chars: Vec<PlacedChar>,
    is_quoted: bool,
}

impl Word {
    fn text(&self) -> String {
        self.chars.iter().map(|(char, _)| char).collect()
    }
}

/// Extracts the format from `log_format name 'a' 'b';`, `LogFormat "a" name` or `log-format "a"`,
/// from quotes alone, or from bare text.
pub(super) fn read(text: &str) -> Result<Source, FormatError> {
    if text.len() > BYTES_MAX {
        return Err(FormatError::TooLong {
            bytes: text.len(),
            bytes_max: BYTES_MAX,
        });
    }
    let chars: Vec<_> = text.chars().zip(1..).collect();
    let trimmed = text.trim_start();
    let source = if starts_with_word(trimmed, "log_format") {
        nginx_directive(&chars)?
    } else if starts_with_word(trimmed, "LogFormat") {
        apache_directive(&chars)?
    } else if starts_with_word(trimmed, "log-format") {
        haproxy_directive(&chars)?
    } else if let Some(words) = strings(trimmed, &chars) {
        let name = words.last().filter(|word| !word.is_quoted).map(Word::text);
        let strings = words.into_iter().filter(|word| word.is_quoted);
        bare(strings.flat_map(|word| word.chars).collect(), name)?
    } else {
        let start =
            chars.partition_point(|(_, at)| *at <= text.chars().count() - trimmed.chars().count());
        let end = start + trimmed.trim_end().chars().count();
        bare(chars[start..end].to_vec(), None)?
    };
    if source.chars.is_empty() {
        return Err(FormatError::Empty);
    }
    Ok(source)
}

fn starts_with_word(text: &str, word: &str) -> bool {
    let (Some(head), Some(rest)) = (text.get(..word.len()), text.get(word.len()..)) else {
        return false;
    };
    head.eq_ignore_ascii_case(word) && rest.starts_with(char::is_whitespace)
}

fn nginx_directive(chars: &[PlacedChar]) -> Result<Source, FormatError> {
    let words = words(chars)?;
    let mut words = words.into_iter().skip(1);
    let name = words.next().map(|word| word.text());
    let mut words = words.peekable();
    let escape = match words.next_if(|word| !word.is_quoted && word.text().starts_with("escape=")) {
        Some(word) => escape(&word)?,
        None => Escape::Default,
    };
    Ok(Source {
        dialect: Dialect::Nginx,
        escape,
        name,
        chars: words.flat_map(|word| word.chars).collect(),
    })
}

/// Returns the words of a text that consists only of quoted strings, as in nginx's directive, or of
/// one string and a name, as in Apache's. Returns `None` for a format that merely begins with a
/// quote.
fn strings(trimmed: &str, chars: &[PlacedChar]) -> Option<Vec<Word>> {
    let words = words(chars)
        .ok()
        .filter(|_| trimmed.starts_with(['\'', '"']))?;
    let is_name =
        |word: &Word| !word.is_quoted && !word.chars.iter().any(|(char, _)| "%$".contains(*char));
    let fits = match &words[..] {
        [_] => true,
        [_, last] if is_name(last) => true,
        words => trimmed.starts_with('\'') && words.iter().all(|word| word.is_quoted),
    };
    fits.then_some(words)
}

fn apache_directive(chars: &[PlacedChar]) -> Result<Source, FormatError> {
    let mut words = words(chars)?;
    if words.first().is_some_and(|word| !word.is_quoted) {
        words.remove(0);
    }
    let mut words = words.into_iter();
    let format = words.next().map(|word| word.chars);
    Ok(Source {
        dialect: Dialect::Apache,
        escape: Escape::Default,
        name: words.next().map(|word| word.text()),
        chars: format.unwrap_or_default(),
    })
}

fn haproxy_directive(chars: &[PlacedChar]) -> Result<Source, FormatError> {
    let format = words(chars)?.into_iter().nth(1);
    Ok(Source {
        dialect: Dialect::Haproxy,
        escape: Escape::Default,
        name: None,
        chars: format.map_or_else(Vec::new, |word| word.chars),
    })
}

/// Reads a format whose notation is determined by its first variables.
fn bare(chars: Vec<PlacedChar>, name: Option<String>) -> Result<Source, FormatError> {
    let follows = |sign: char, is_next: fn(char) -> bool| {
        chars
            .windows(2)
            .any(|pair| pair[0].0 == sign && is_next(pair[1].0))
    };
    let dialect = if chars.is_empty() {
        return Err(FormatError::Empty);
    } else if follows('$', |next| {
        next.is_ascii_alphabetic() || next == '_' || next == '{'
    }) {
        Dialect::Nginx
    } else if follows('%', |next| {
        next.is_ascii_alphabetic() || "{<>^!".contains(next)
    }) {
        // The address of the client, with which HAProxy's formats begin. It is nothing in Apache's.
        match chars
            .windows(3)
            .any(|three| matches!(three, [('%', _), ('c', _), ('i', _)]))
        {
            true => Dialect::Haproxy,
            false => Dialect::Apache,
        }
    } else {
        return Err(FormatError::NoVariable);
    };
    Ok(Source {
        dialect,
        escape: Escape::Default,
        name,
        chars: match dialect {
            Dialect::Apache | Dialect::Haproxy => without_backslashes(&chars),
            Dialect::Nginx => chars,
        },
    })
}

/// Undoes Apache's own escapes: `\"`, `\\`, `\n`, `\r` and `\t`.
fn without_backslashes(chars: &[PlacedChar]) -> Vec<PlacedChar> {
    let mut out = Vec::with_capacity(chars.len());
    let mut chars = chars.iter().copied();
    while let Some((char, at)) = chars.next() {
        let char = match char {
            '\\' => chars.next().map_or('\\', |(next, _)| unescaped(next)),
            char => char,
        };
        out.push((char, at));
    }
    out
}

fn unescaped(char: char) -> char {
    match char {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        char => char,
    }
}

fn escape(word: &Word) -> Result<Escape, FormatError> {
    let text = word.text();
    match text.trim_start_matches("escape=") {
        "default" => Ok(Escape::Default),
        "json" => Ok(Escape::Json),
        "none" => Ok(Escape::None),
        escape => Err(FormatError::UnknownEscape {
            escape: escape.to_owned(),
            at: word.chars.first().map_or(1, |(_, at)| *at),
        }),
    }
}

/// Splits a directive into words, quoted or not, up to its semicolon. Skips comments.
fn words(chars: &[PlacedChar]) -> Result<Vec<Word>, FormatError> {
    let mut words = Vec::new();
    let mut rest = chars;
    loop {
        match rest {
            [] | [(';', _), ..] => return Ok(words),
            [('#', _), ..] => rest = skip_while(rest, |char| char != '\n'),
            // Line continuation in Apache configurations.
            [('\\', _), ('\n', _), ..] => rest = &rest[2..],
            [(char, _), ..] if char.is_whitespace() => rest = &rest[1..],
            [(quote @ ('\'' | '"'), at), after @ ..] => {
                let (word, after) = quoted(*quote, *at, after)?;
                words.push(word);
                rest = after;
            }
            _ => {
                let after = skip_while(rest, |char| !char.is_whitespace() && char != ';');
                words.push(Word {
                    chars: rest[..rest.len() - after.len()].to_vec(),
                    is_quoted: false,
                });
                rest = after;
            }
        }
    }
}

fn skip_while(chars: &[PlacedChar], is_part: impl Fn(char) -> bool) -> &[PlacedChar] {
    let end = chars.iter().position(|(char, _)| !is_part(*char));
    &chars[end.unwrap_or(chars.len())..]
}

/// Reads up to the closing quote. A character after a backslash is part of the word.
fn quoted(
    quote: char,
    at: usize,
    chars: &[PlacedChar],
) -> Result<(Word, &[PlacedChar]), FormatError> {
    let mut place = 0;
    while let Some((char, _)) = chars.get(place) {
        if *char == quote {
            let word = Word {
                chars: without_backslashes(&chars[..place]),
                is_quoted: true,
            };
            return Ok((word, &chars[place + 1..]));
        }
        place += if *char == '\\' { 2 } else { 1 };
    }
    Err(FormatError::Unclosed { opening: quote, at })
}

#[cfg(test)]
mod tests {
    use super::{Dialect, Escape, FormatError, read};

    fn text(source: &str) -> (Dialect, String) {
        let source = read(source).unwrap();
        (
            source.dialect,
            source.chars.iter().map(|(char, _)| char).collect(),
        )
    }

    #[test]
    fn text_around_an_nginx_format_is_removed() {
        let expected = (Dialect::Nginx, r#"$a "$b" $c"#.to_owned());
        for source in [
            r#"$a "$b" $c"#,
            " $a \"$b\" $c\n",
            r#"'$a "$b" $c'"#,
            "'$a \"$b\" '\n    '$c'",
            "'$a \"$b\" '\n    '$c';",
            r#""$a \"$b\" $c""#,
            r#"log_format main '$a "$b" $c';"#,
            "log_format  main  '$a \"$b\" '\r\n                  '$c'; # the end",
            "log_format main # comment; here\n '$a \"$b\" ' # and here\n \"\\$c\";",
            "  log_format main escape=json '$a \"$b\" $c'",
        ] {
            assert_eq!(text(source), expected, "{source}");
        }
        let source = read("log_format main escape=json '$a';").unwrap();
        assert_eq!(
            (source.escape, source.name.as_deref()),
            (Escape::Json, Some("main"))
        );
        assert_eq!(
            read("log_format x escape=none $a;").unwrap().escape,
            Escape::None
        );
    }

    #[test]
    fn text_around_an_apache_format_is_removed() {
        let expected = (Dialect::Apache, r#"%h "%r" %>s"#.to_owned());
        for source in [
            r#"%h "%r" %>s"#,
            r#"%h \"%r\" %>s"#,
            r#""%h \"%r\" %>s""#,
            r#""%h \"%r\" %>s" mine"#,
            r#"LogFormat "%h \"%r\" %>s" mine"#,
            "LogFormat \\\n \"%h \\\"%r\\\" %>s\" mine\n",
            r#"logformat '%h "%r" %>s'"#,
        ] {
            assert_eq!(text(source), expected, "{source}");
        }
        assert_eq!(text(r#""%h" "%r""#).1, r#""%h" "%r""#);
        assert_eq!(text(r#""%h" %r"#).1, r#""%h" %r"#);
    }

    #[test]
    fn positions_refer_to_the_given_text() {
        let source = read("log_format é 'ab'\n 'c$d';").unwrap();
        let places: Vec<_> = source.chars.iter().map(|(_, at)| *at).collect();
        assert_eq!(places, [15, 16, 21, 22, 23]);
        let source = read("  $a").unwrap();
        assert_eq!(source.chars[0], ('$', 3));
    }

    #[test]
    fn invalid_formats_are_refused() {
        let error = |text: &str| read(text).unwrap_err();
        for empty in [
            "",
            "  ",
            "''",
            "log_format main",
            "log_format main '';",
            "LogFormat ",
        ] {
            assert_eq!(error(empty), FormatError::Empty, "{empty}");
        }
        assert_eq!(error("two words"), FormatError::NoVariable);
        assert_eq!(
            error("log_format main '$a"),
            FormatError::Unclosed {
                opening: '\'',
                at: 17
            }
        );
        assert_eq!(
            error("log_format main escape=xml '$a'"),
            FormatError::UnknownEscape {
                escape: "xml".to_owned(),
                at: 17
            }
        );
        let longest = "$a".repeat(super::BYTES_MAX / 2);
        assert!(read(&longest).is_ok());
        assert_eq!(
            error(&(longest + "x")),
            FormatError::TooLong {
                bytes: 16_385,
                bytes_max: 16_384
            }
        );
    }
}
