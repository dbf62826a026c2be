//! The prompt of `linerate connect`, on a pseudo-terminal.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf, sync::Arc};

use linerate::{CloseCode, Closed, Message};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tempfile::TempDir;
use tokio::sync::{Mutex, mpsc, oneshot};

use super::serve;
use crate::support::{Server, linerate};
use crate::terminal::Terminal;

const ENTER: &str = "\r";
const UP: &str = "\x1b[A";
const LEFT: &str = "\x1b[D";
const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";

/// What the server does when the test tells it to.
enum Order {
    Close(CloseCode, &'static str),
    Send(Message),
}

/// A client on a terminal, and a server that reports and echoes its messages.
struct Stage {
    terminal: Terminal,
    orders: mpsc::UnboundedSender<Order>,
    messages: mpsc::UnboundedReceiver<Message>,
    closed: mpsc::UnboundedReceiver<Closed>,
    state: TempDir,
    _stop: oneshot::Sender<()>,
}

impl Stage {
    async fn new(arguments: &[&str]) -> Self {
        Self::with(arguments, &[], TempDir::new().unwrap()).await
    }

    async fn with(arguments: &[&str], variables: &[(&str, &str)], state: TempDir) -> Self {
        let (orders, received) = mpsc::unbounded_channel();
        let (report, messages) = mpsc::unbounded_channel();
        let (report_closed, closed) = mpsc::unbounded_channel();
        let received = Arc::new(Mutex::new(received));
        let handler = move |mut ws: linerate::WebSocket, _| {
            let (received, report) = (received.clone(), report.clone());
            let report_closed = report_closed.clone();
            async move {
                let mut orders = received.lock().await;
                loop {
                    tokio::select! {
                        message = ws.recv() => {
                            let Some(message) = message? else { break };
                            _ = report.send(message.clone());
                            ws.send(message).await?;
                        }
                        Some(order) = orders.recv() => match order {
                            Order::Close(code, reason) => _ = ws.close(code, reason).await?,
                            Order::Send(message) => ws.send(message).await?,
                        }
                    }
                }
                _ = report_closed.send(ws.closed().unwrap());
                Ok(())
            }
        };
        let (port, stop) = serve(linerate::Server::new(), handler).await;
        let url = format!("ws://127.0.0.1:{port}/");
        let mut command = linerate(&["connect", &url]);
        command.args(arguments).env_remove("NO_COLOR");
        command.env("XDG_STATE_HOME", state.path());
        command.env("TERM", "xterm-256color");
        command.envs(variables.iter().copied());
        let stage = Self {
            terminal: Terminal::run(&mut command),
            orders,
            messages,
            closed,
            state,
            _stop: stop,
        };
        stage.terminal.wait_for_end("ctrl-c closes\n>");
        stage
    }

    fn order(&self, order: Order) {
        assert!(self.orders.send(order).is_ok());
    }

    /// Types a line and waits until the server has received it as a text.
    async fn say(&mut self, line: &str) {
        self.terminal.press(&format!("{line}{ENTER}"));
        self.expect(line.into()).await;
    }

    async fn expect(&mut self, message: Message) {
        assert_eq!(self.messages.recv().await, Some(message));
    }

    /// Waits until the server has been told a code and a reason, and the client has exited.
    async fn expect_farewell(&mut self, code: u16, reason: &str) {
        let closed = self.closed.recv().await.unwrap();
        assert_eq!((closed.code, closed.reason()), (code, reason));
        assert!(self.terminal.exit().success());
    }

    fn history(&self) -> PathBuf {
        self.state.path().join("linerate/connect-history")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_are_edited_sent_and_remembered() {
    let mut stage = Stage::new(&[]).await;
    stage.terminal.press(&format!("helo{LEFT}l{ENTER}"));
    stage.expect("hello".into()).await;
    stage.terminal.wait_for_end("> hello\n< hello\n>");
    stage.say(" not stored").await;
    stage.terminal.press(&format!("{UP} again{ENTER}"));
    stage.expect("hello again".into()).await;
    stage.terminal.press(CTRL_D);
    stage.expect_farewell(1000, "").await;
    stage
        .terminal
        .wait_for_end("* closed: 1000 (normal closure)");
    let history = stage.history();
    let stored = fs::read_to_string(&history).unwrap();
    assert_eq!(
        stored.lines().skip(1).collect::<Vec<_>>(),
        ["hello", "hello again"]
    );
    let mode = fs::metadata(&history).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let mut next = Stage::with(&[], &[], stage.state).await;
    next.terminal.press(&format!("{UP}{UP}{ENTER}"));
    next.expect("hello".into()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_history_no_line_is_stored() {
    let mut stage = Stage::new(&["--no-history"]).await;
    stage.say("secret").await;
    stage.terminal.press(CTRL_C);
    stage.expect_farewell(1000, "").await;
    assert!(!stage.history().exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_arrives_leaves_the_typed_line() {
    let mut stage = Stage::new(&[]).await;
    // The line needs more than one row.
    let begun = format!("to be, {}", "or not to be ".repeat(8));
    stage.terminal.press(&begun);
    let begun = begun.trim_end();
    let rows = format!("> {}\n{}", &begun[..78], &begun[78..]);
    stage.terminal.wait_for_end(&rows);
    for number in 0..30 {
        stage.order(Order::Send(format!("news {number}").into()));
    }
    stage
        .terminal
        .wait_for_end(&format!("< news 28\n< news 29\n{rows}"));
    stage
        .terminal
        .press(&format!(", that is the question{ENTER}"));
    let whole = stage.messages.recv().await.unwrap();
    assert_eq!(
        whole.as_text().unwrap(),
        format!("{begun} , that is the question")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_a_busy_server_keep_their_order() {
    let mut stage = Stage::new(&["--no-history"]).await;
    for number in 0..200 {
        stage.order(Order::Send(format!("news {number};").into()));
        if number % 10 == 0 {
            stage.terminal.press(&format!("line {number};{ENTER}"));
        }
    }
    stage.order(Order::Send("the end".into()));
    stage
        .terminal
        .wait_for_output("< the end\r\n".replace('<', "<\x1b[0m").as_str());
    let output = stage.terminal.output();
    let places = (0..200).map(|number| output.find(&format!(" news {number};\r\n")));
    let places: Option<Vec<_>> = places.collect();
    assert!(places.expect("all are shown").is_sorted());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_message_cannot_control_the_terminal() {
    let stage = Stage::new(&["--no-pretty"]).await;
    let before = stage.terminal.output();
    let hostile = "\x1b]0;title\x07\x1b[2J\u{9b}2J\x1b[?1049h\x1bc\r> typed\n* closed: 1000\x08";
    stage.order(Order::Send(hostile.into()));
    stage.order(Order::Send("{\"a\":\"\u{9b}2J\"}".into()));
    stage.order(Order::Send("the end".into()));
    stage.terminal.wait_for_end(
        "< \\u{1b}]0;title\\u{7}\\u{1b}[2J\\u{9b}2J\\u{1b}[?1049h\\u{1b}c\\u{d}> typed\n  * closed: 1000\\u{8}\n\
         < {\"a\":\"\\u{9b}2J\"}\n< the end\n>",
    );
    let output = stage.terminal.output()[before.len()..].to_owned();
    for sequence in [
        "\x1b]",
        "\x07",
        "\x1b[2J",
        "\u{9b}",
        "\x1b[?1049h",
        "\x1bc",
        "\x08",
    ] {
        assert!(!output.contains(sequence), "{sequence:?} in {output:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_are_not_sent_as_messages() {
    let mut stage = Stage::new(&[]).await;
    let file = stage.state.path().join("a file");
    fs::write(&file, "content").unwrap();
    stage
        .terminal
        .press(&format!("/ping are you there?{ENTER}"));
    stage
        .terminal
        .wait_for_output("* pong are you there? after ");
    for (line, shown) in [
        (
            "/nonsense",
            "! unknown command /nonsense; /help lists the commands, //",
        ),
        (
            "/close 1005",
            "! cannot close with \"1005\": expected 1000 to 1003",
        ),
        ("/file /nowhere", "! cannot read /nowhere: "),
        ("/help", "/binary [hex:|base64:]DATA"),
    ] {
        stage.terminal.press(&format!("{line}{ENTER}"));
        stage.terminal.wait_for_output(shown);
    }
    // Completed with the tabulator key.
    stage.terminal.press(&format!("/bi\tde ad{ENTER}"));
    stage.expect(vec![0xDE, 0xAD].into()).await;
    stage
        .terminal
        .press(&format!("/file {}{ENTER}", file.display()));
    stage.expect(b"content".to_vec().into()).await;
    stage.terminal.wait_for_output("a file: 7 bytes in ");
    stage
        .terminal
        .press(&format!("/file --text {}{ENTER}", file.display()));
    stage.expect("content".into()).await;
    stage.terminal.press(&format!("//etc{ENTER}"));
    stage.expect("/etc".into()).await;
    stage.terminal.press(&format!("/close 3001 so long{ENTER}"));
    stage.expect_farewell(3001, "so long").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_closes_ends_the_prompt() {
    let mut stage = Stage::new(&[]).await;
    stage.terminal.press("unfinished");
    stage.terminal.wait_for_end("> unfinished");
    stage.order(Order::Send("bye".into()));
    stage.order(Order::Close(CloseCode::SERVICE_RESTART, "back\x1b soon"));
    assert!(stage.terminal.exit().success());
    let expected = "* closed by the server: 1012 (service restart) back\\u{1b} soon";
    stage.terminal.wait_for_end(expected);
    assert!(stage.terminal.output().contains("bye\r\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_closes_ends_a_search_in_the_history() {
    let mut stage = Stage::new(&[]).await;
    stage.say("needle").await;
    // The editor prints no messages while it searches.
    stage.terminal.press("\x12need");
    stage.terminal.wait_for_end("needle");
    stage.order(Order::Send("bye".into()));
    stage.order(Order::Close(CloseCode::GOING_AWAY, ""));
    assert!(stage.terminal.exit().success());
    stage
        .terminal
        .wait_for_end("* closed by the server: 1001 (going away)");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_lost_restores_the_terminal() {
    let mut server = Server::start();
    let mut terminal = run_at(&server, "xterm-256color");
    terminal.press("unfinished");
    terminal.wait_for_end("> unfinished");
    server.child.kill().unwrap();
    assert_eq!(terminal.exit().code(), Some(1));
    terminal.wait_for_end("without a closing handshake");
}

#[tokio::test(flavor = "multi_thread")]
async fn signals_close_the_connection_and_restore_the_terminal() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let mut stage = Stage::new(&[]).await;
        stage.terminal.press("unfinished");
        stage.terminal.wait_for_end("> unfinished");
        let process = Pid::from_raw(stage.terminal.child.id().cast_signed());
        kill(process, signal).unwrap();
        stage.expect_farewell(1000, "").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn json_is_pretty_and_coloured_unless_that_is_unwanted() {
    let json = r#"{"n":1.50,"n":12345678901234567890}"#;
    for (arguments, variables, expected) in [
        (
            &[][..],
            &[][..],
            "\x1b[36m<\x1b[0m {\r\n    \x1b[34m\"n\"\x1b[0m: \x1b[33m1.50\x1b[0m,\r\n",
        ),
        (
            &[],
            &[("NO_COLOR", "1")],
            "< {\r\n    \"n\": 1.50,\r\n    \"n\": 12345678901234567890\r\n  }\r\n",
        ),
        (
            &["--no-pretty"],
            &[("NO_COLOR", "1")],
            "< {\"n\":1.50,\"n\":12345678901234567890}\r\n",
        ),
        (&["--timestamps"], &[("NO_COLOR", "1")], "Z < {\r\n"),
    ] {
        let stage = Stage::with(arguments, variables, TempDir::new().unwrap()).await;
        stage.order(Order::Send(json.into()));
        stage.terminal.wait_for_output(expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_without_cursor_keys_has_no_prompt() {
    let server = Server::start();
    let mut terminal = run_at(&server, "dumb");
    terminal.press("[1]\n");
    terminal.wait_for_end("\n[1]\n< [\n    1\n  ]");
    terminal.press(CTRL_D);
    assert!(terminal.exit().success());
    terminal.wait_for_end("\n* closed: 1000 (normal closure)");
}

/// Runs a client of a server's echo on a terminal of this kind, and waits until it is connected.
fn run_at(server: &Server, kind: &str) -> Terminal {
    let mut command = linerate(&["connect", "--no-history", &server.url("/echo")]);
    let terminal = Terminal::run(command.env("TERM", kind));
    terminal.wait_for_output("* connected to ");
    terminal
}
