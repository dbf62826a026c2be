//! What a line that was typed at the prompt asks for: a message, or a command that begins with `/`.

use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use linerate::{CloseCode, Message};

use super::{
    action::Action,
    input::{Format, content},
};

/// What `/help` prints.
pub(super) const HELP: &str = "\
Each line is sent as a message. Commands:
  /ping [TEXT]                     send a Ping and show the round-trip time
  /close [CODE] [REASON]           close the connection, with code 1000 by default
  /binary [hex:|base64:]DATA       send a binary message: hex digits if possible, else Base64
  /file [--text] PATH              send a file as one binary message, or as text
  /help                            show this list
  //TEXT                           send a text that begins with a slash
Keys: up and down for the history, ctrl-r to search it, tab to complete a command; ctrl-c or ctrl-d \
closes the connection.";

/// The commands, for completion.
pub(super) const NAMES: [&str; 5] = ["/binary ", "/close", "/file ", "/help", "/ping"];

/// The longest payload of a Ping (RFC 6455 §5.5).
const PING_BYTES_MAX: usize = 125;

/// The longest reason for closing (RFC 6455 §5.5.1).
const REASON_BYTES_MAX: usize = 123;

/// What a line at the prompt asks for.
#[derive(Debug, PartialEq)]
pub(super) enum Command {
    Do(Action),
    Help,
    /// The line is empty.
    Nothing,
}

/// Interprets a line; lines that are not commands are messages of this format.
///
/// # Errors
/// Returns an error if the command is unknown, its arguments are invalid, its file cannot be read,
/// or the line does not have the format.
pub(super) fn parse(line: &str, format: Format) -> anyhow::Result<Command> {
    let Some(command) = line.strip_prefix('/') else {
        return match line {
            "" => Ok(Command::Nothing),
            _ => message(line, format),
        };
    };
    if command.starts_with('/') {
        return message(command, format);
    }
    let (name, arguments) = command.split_once(' ').unwrap_or((command, ""));
    let action = match name {
        "binary" => Action::Send(binary(arguments)?),
        "close" => close(arguments)?,
        "file" => file(arguments)?,
        "help" => return Ok(Command::Help),
        "ping" => ping(arguments)?,
        _ => bail!(
            "unknown command /{name}; /help lists the commands, // sends a text that begins with /"
        ),
    };
    Ok(Command::Do(action))
}

fn message(line: &str, format: Format) -> anyhow::Result<Command> {
    let message = format.message(line.into());
    let message = message.context("the line was not sent")?;
    Ok(Command::Do(Action::Send(message)))
}

fn binary(data: &str) -> anyhow::Result<Message> {
    let (format, data) = match (data.strip_prefix("hex:"), data.strip_prefix("base64:")) {
        (Some(data), _) => (Some(Format::Hex), data),
        (_, Some(data)) => (Some(Format::Base64), data),
        _ => (None, data),
    };
    let decode = |format: Format| format.message(data.into());
    match format {
        Some(format) => decode(format),
        None => match decode(Format::Hex).or_else(|_| decode(Format::Base64)) {
            Ok(message) => Ok(message),
            Err(_) => bail!("the data are neither an even number of hex digits nor valid Base64"),
        },
    }
}

fn close(arguments: &str) -> anyhow::Result<Action> {
    let arguments = arguments.trim_start();
    let (code, reason) = arguments.split_once(' ').unwrap_or((arguments, ""));
    let code = match code {
        "" => CloseCode::NORMAL,
        code => match code.parse().ok().and_then(CloseCode::new) {
            Some(code) => code,
            None => bail!(
                "cannot close with {code:?}: expected 1000 to 1003, 1007 to 1014 or 3000 to 4999"
            ),
        },
    };
    ensure!(
        reason.len() <= REASON_BYTES_MAX,
        "the reason has {} bytes; at most {REASON_BYTES_MAX} are possible",
        reason.len()
    );
    Ok(Action::Close {
        code,
        reason: reason.into(),
    })
}

fn file(arguments: &str) -> anyhow::Result<Action> {
    let arguments = arguments.trim();
    let (is_text, path) = match arguments.strip_prefix("--text ") {
        Some(path) => (true, path.trim_start()),
        None => (false, arguments),
    };
    ensure!(!path.is_empty(), "expected a path: /file [--text] PATH");
    let bytes = content(&expanded(path))?;
    let message = if is_text {
        let text = String::from_utf8(bytes);
        text.with_context(|| format!("{path} cannot be sent as text"))?
            .into()
    } else {
        bytes.into()
    };
    Ok(Action::SendFile {
        name: path.into(),
        message,
    })
}

/// Replaces `~/` at the beginning with the user's home directory, as a shell would.
fn expanded(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => path.into(),
    }
}

fn ping(text: &str) -> anyhow::Result<Action> {
    ensure!(
        text.len() <= PING_BYTES_MAX,
        "the text has {} bytes; a Ping has at most {PING_BYTES_MAX}",
        text.len()
    );
    Ok(Action::Ping(text.into()))
}

#[cfg(test)]
mod tests {
    use linerate::CloseCode;

    use super::{Action, Command, HELP, NAMES, parse};
    use crate::connect::input::Format;

    fn done(line: &str) -> Action {
        match parse(line, Format::Text).unwrap() {
            Command::Do(action) => action,
            other => panic!("{line}: {other:?}"),
        }
    }

    fn refused(line: &str) -> String {
        format!("{:#}", parse(line, Format::Text).unwrap_err())
    }

    #[test]
    fn lines_are_messages_unless_they_begin_with_a_slash() {
        for (line, text) in [
            ("hi", "hi"),
            (" /close", " /close"),
            ("//ping", "/ping"),
            ("//", "/"),
            ("///", "//"),
        ] {
            assert_eq!(done(line), Action::Send(text.into()), "{line}");
        }
        assert_eq!(parse("", Format::Text).unwrap(), Command::Nothing);
        assert_eq!(parse("/help", Format::Text).unwrap(), Command::Help);
        for unknown in ["/", "/pin", "/ ping", "/Ping", "/quit now"] {
            assert!(
                refused(unknown).starts_with("unknown command /"),
                "{unknown}"
            );
        }
    }

    #[test]
    fn other_formats_have_commands_too() {
        let bytes = Command::Do(Action::Send(vec![0xDE, 0xAD].into()));
        assert_eq!(parse("de ad", Format::Hex).unwrap(), bytes);
        let slash = Command::Do(Action::Send(vec![0xFF, 0xFF, 0xFF].into()));
        assert_eq!(parse("/////", Format::Base64).unwrap(), slash);
        assert_eq!(
            parse("/ping", Format::Hex).unwrap(),
            Command::Do(Action::Ping("".into()))
        );
        let error = format!("{:#}", parse("xy", Format::Hex).unwrap_err());
        assert_eq!(
            error,
            "the line was not sent: not an even number of hex digits"
        );
    }

    #[test]
    fn pings_and_reasons_have_limits() {
        assert_eq!(done("/ping"), Action::Ping("".into()));
        assert_eq!(done("/ping  a b"), Action::Ping(" a b".into()));
        assert_eq!(
            done(&format!("/ping {}", "x".repeat(125))),
            Action::Ping("x".repeat(125))
        );
        assert!(refused(&format!("/ping {}", "x".repeat(126))).contains("126 bytes"));
        let reason = "x".repeat(123);
        let close = |code, reason: &str| Action::Close {
            code,
            reason: reason.into(),
        };
        assert_eq!(done("/close"), close(CloseCode::NORMAL, ""));
        assert_eq!(done("/close 1001"), close(CloseCode::GOING_AWAY, ""));
        assert_eq!(
            done("/close 1008 no  way"),
            close(CloseCode::POLICY_VIOLATION, "no  way")
        );
        assert_eq!(
            done(&format!("/close 1000 {reason}")),
            close(CloseCode::NORMAL, &reason)
        );
        assert!(refused(&format!("/close 1000 {reason}x")).contains("124 bytes"));
        for code in ["1005", "999", "5000", "bye", "-1", "70000"] {
            let error = refused(&format!("/close {code}"));
            assert!(
                error.contains(code) && error.contains("3000 to 4999"),
                "{error}"
            );
        }
    }

    #[test]
    fn binary_data_are_hex_digits_if_possible() {
        let sent = |bytes: &[u8]| Action::Send(bytes.to_vec().into());
        assert_eq!(done("/binary de ad"), sent(&[0xDE, 0xAD]));
        assert_eq!(done("/binary 3q0="), sent(&[0xDE, 0xAD]));
        assert_eq!(done("/binary"), sent(b""));
        assert_eq!(done("/binary hex:aaaa"), sent(&[0xAA, 0xAA]));
        assert_eq!(done("/binary base64:aaaa"), sent(&[0x69, 0xA6, 0x9A]));
        assert!(refused("/binary !").contains("neither"));
        assert_eq!(
            refused("/binary hex:3q0="),
            "not an even number of hex digits"
        );
    }

    #[test]
    fn files_are_sent_as_binary_or_text() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("two words");
        std::fs::write(&file, "größer").unwrap();
        let name = file.to_str().unwrap().to_owned();
        for (line, message) in [
            (format!("/file {name}"), "größer".as_bytes().to_vec().into()),
            (format!("/file --text {name} "), "größer".into()),
        ] {
            assert_eq!(
                done(&line),
                Action::SendFile {
                    name: name.clone(),
                    message
                }
            );
        }
        std::fs::write(&file, b"\xff").unwrap();
        assert!(refused(&format!("/file --text {name}")).contains("cannot be sent as text"));
        assert!(refused(&format!("/file {name}.none")).contains("cannot read"));
        assert!(refused("/file").contains("expected a path"));
    }

    #[test]
    fn the_help_has_all_commands() {
        for name in NAMES {
            assert!(HELP.contains(name.trim()), "{name}");
        }
    }
}
