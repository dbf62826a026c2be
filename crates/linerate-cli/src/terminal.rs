//! Output to terminals: escaping of untrusted text, detection of colours, and errors.

use std::{
    env,
    io::{self, IsTerminal, Write},
};

/// Returns whether an output may have colours: only on a terminal that has them, and not if the
/// environment variable `NO_COLOR` is set and not empty (<https://no-color.org/>).
pub(crate) fn has_colors(output: &impl IsTerminal) -> bool {
    let is_unwanted = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !is_unwanted && is_capable(output)
}

/// Returns whether an output is a terminal that can do more than print lines.
pub(crate) fn is_capable(output: &impl IsTerminal) -> bool {
    let is_dumb = env::var_os("TERM").is_some_and(|name| name == "dumb");
    !is_dumb && output.is_terminal()
}

/// Prints to standard output.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes());
    match written.and_then(|()| stdout.flush()) {
        // The reader closed the pipe early, as `head` does.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Escapes text so that it cannot control the terminal. Control characters, except those in `kept`,
/// and characters that change the writing direction are escaped.
pub(crate) fn printable(text: &str, kept: &[char]) -> String {
    let mut printable = String::with_capacity(text.len());
    for char in text.chars() {
        let steers = matches!(char,
            '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
        if (char.is_control() || steers) && !kept.contains(&char) {
            printable.extend(char.escape_unicode());
        } else {
            printable.push(char);
        }
    }
    printable
}

/// Returns an error and its causes on one line. A cause that the text before it repeats is left
/// out.
pub(crate) fn with_causes(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io;

    use anyhow::Context;

    use super::{printable, with_causes};

    #[test]
    fn each_cause_of_an_error_is_shown_once() {
        let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
        let error = Err::<(), _>(refused())
            .context("cannot connect")
            .unwrap_err();
        assert_eq!(with_causes(&error), "cannot connect: connection refused");
        let repeated = Err::<(), _>(refused()).context("cannot connect: connection refused");
        let error = repeated.context("no server").unwrap_err();
        assert_eq!(
            with_causes(&error),
            "no server: cannot connect: connection refused"
        );
    }

    #[test]
    fn what_steers_a_terminal_is_escaped() {
        assert_eq!(printable("\u{61c}\u{2067}", &[]), "\\u{61c}\\u{2067}");
        let text = "a\x1b]0;b\u{9b}c\u{202e}d\te\n";
        assert_eq!(
            printable(text, &[]),
            "a\\u{1b}]0;b\\u{9b}c\\u{202e}d\\u{9}e\\u{a}"
        );
        assert_eq!(printable("größer\t€\n", &['\n', '\t']), "größer\t€\n");
    }
}
