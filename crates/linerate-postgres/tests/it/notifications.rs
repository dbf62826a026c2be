use std::sync::Arc;

use linerate_hub::ChannelName;
use linerate_postgres::{NotificationOptions, run_notifications};
use linerate_source::{SourceState, Status};
use linerate_testkit::server::PostgresServer;
use tokio::task::JoinHandle;

use super::recorder::{Recorder, tls, until};

fn start(server: &PostgresServer, sink: &Arc<Recorder>) -> (JoinHandle<()>, Arc<Status>) {
    let options = NotificationOptions {
        name: "shop".to_owned(),
        server: server.url().parse().unwrap(),
        tls: tls(),
        channels: ["news", "Preise:\"€\""]
            .map(|name| ChannelName::new(name).unwrap())
            .to_vec(),
    };
    let status = Arc::new(Status::default());
    let source = run_notifications(options, sink.clone(), status.clone());
    (tokio::spawn(source), status)
}

#[tokio::test(flavor = "multi_thread")]
async fn notifications_are_published_once_and_another_node_takes_over_with_a_gap() {
    let Some(mut server) = PostgresServer::start() else {
        return;
    };
    let sink = Recorder::new();
    let (one, first) = start(&server, &sink);
    until("the source reads", || first.connections() == 1).await;
    let (two, second) = start(&server, &sink);
    until("the other node waits", || {
        second.state() == SourceState::Standby
    })
    .await;
    server.sql("NOTIFY news, 'a'; NOTIFY \"Preise:\"\"€\"\"\", '1'; NOTIFY other, 'x'");
    server.sql("BEGIN; NOTIFY news, 'rolled back'; ROLLBACK");
    assert_eq!(sink.wait("news", 1).await, ["a"]);
    assert_eq!(sink.wait("Preise:\"€\"", 1).await, ["1"]);
    assert!(sink.gaps().is_empty());
    one.abort();
    until("the other node reads", || second.connections() == 1).await;
    server.sql("NOTIFY news, 'b'");
    assert_eq!(sink.wait("news", 2).await, ["a", "b"]);
    until("the gap is reported", || sink.gaps().len() == 1).await;
    server.crash();
    until("it reads again", || second.connections() == 2).await;
    until("the gap is reported", || sink.gaps().len() == 2).await;
    server.sql("NOTIFY news, 'c'");
    assert_eq!(sink.wait("news", 3).await, ["a", "b", "c"]);
    two.abort();
}
