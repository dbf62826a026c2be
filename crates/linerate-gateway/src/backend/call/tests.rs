use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{Router, http::StatusCode, response::IntoResponse, routing::post};
use bytes::Bytes;
use linerate_budget::Account;
use parking_lot::Mutex;
use tokio::{net::TcpListener, runtime::Handle, sync::Semaphore, task::JoinSet};

use super::{AskError, Asker, Backend, Question};
use crate::{backend::answer, config::BackendOptions, protocol::codes::Refusal};

const ASKER: Asker<'_> = Asker {
    client: "c1",
    user: "ann",
    dialect: &("raw", "websocket"),
    peer: None,
    meta: None,
    headers: None,
};

/// A backend whose answers are set by a test.
#[derive(Clone)]
struct Server {
    address: SocketAddr,
    /// The statuses of the next answers; then all are 200.
    statuses: Arc<Mutex<Vec<u16>>>,
    asked: Arc<AtomicUsize>,
    /// Each answer takes a permit.
    may_answer: Arc<Semaphore>,
}

impl Server {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            statuses: Arc::default(),
            asked: Arc::default(),
            may_answer: Arc::new(Semaphore::new(1_000_000)),
        };
        let it = server.clone();
        let app = Router::new().route("/", post(move || it.clone().answer()));
        tokio::spawn(async move { axum::serve(listener, app).await });
        server
    }

    async fn answer(self) -> axum::response::Response {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.may_answer.acquire().await.unwrap().forget();
        let status = self.statuses.lock().pop().unwrap_or(200);
        let status = StatusCode::from_u16(status).unwrap();
        (status, "{\"result\":{\"data\":7}}").into_response()
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// Holds all answers back.
    fn stop(&self) {
        self.may_answer.forget_permits(1_000_000);
    }

    fn go_on(&self) {
        self.may_answer.add_permits(1_000_000);
    }

    fn backend(&self, change: impl FnOnce(&mut BackendOptions)) -> Arc<Backend> {
        let mut options = BackendOptions {
            name: "app".into(),
            url: format!("http://{}/", self.address),
            timeout: Duration::from_secs(60),
            ..BackendOptions::default()
        };
        change(&mut options);
        Arc::new(Backend::new(&options).unwrap())
    }
}

async fn ask(backend: &Arc<Backend>, question: Question<'_>) -> Result<Bytes, AskError> {
    let (account, runtime) = (Account::default(), Handle::current());
    let backend = backend.clone();
    let asked = backend.ask(&runtime, &account, &ASKER, &question, answer::data);
    asked
        .await
        .map(|verdict: Result<Bytes, Refusal>| verdict.unwrap())
}

static NOTHING: Bytes = Bytes::new();

const RPC: Question<'_> = Question::Rpc {
    method: "sum",
    channel: None,
    data: &NOTHING,
};

#[tokio::test]
async fn answers_arrive_and_connections_are_kept() {
    let server = Server::start().await;
    let backend = server.backend(|_| {});
    for _ in 0..3 {
        assert_eq!(ask(&backend, RPC).await.unwrap(), "7");
    }
    assert_eq!((server.asked(), backend.open_requests()), (3, 0));
}

#[tokio::test]
async fn only_harmless_questions_are_repeated() {
    let server = Server::start().await;
    let backend = server.backend(|_| {});
    *server.statuses.lock() = vec![503];
    assert_eq!(ask(&backend, Question::Refresh).await.unwrap(), "7");
    assert_eq!(server.asked(), 2);
    *server.statuses.lock() = vec![503];
    let unavailable = AskError::Status(StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(ask(&backend, RPC).await, Err(unavailable));
    assert_eq!(server.asked(), 3);
    *server.statuses.lock() = vec![500];
    let broken = AskError::Status(StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(ask(&backend, Question::Refresh).await, Err(broken));
    assert_eq!(server.asked(), 4);
}

#[tokio::test]
async fn retries_are_limited() {
    let server = Server::start().await;
    let backend = server.backend(|options| options.retries_max = 2);
    *server.statuses.lock() = vec![502; 9];
    assert!(ask(&backend, Question::Refresh).await.is_err());
    assert_eq!(server.asked(), 3);
}

#[tokio::test]
async fn a_deaf_backend_is_not_asked_again_for_a_while() {
    let server = Server::start().await;
    server.stop();
    let backend = server.backend(|options| {
        options.timeout = Duration::from_millis(20);
        options.failures_max = 2;
        options.failure_pause = Duration::from_millis(20);
    });
    let timeout = AskError::Timeout(Duration::from_millis(20));
    assert_eq!(ask(&backend, RPC).await, Err(timeout.clone()));
    assert!(!backend.is_paused());
    assert_eq!(ask(&backend, RPC).await, Err(timeout));
    assert!(backend.is_paused());
    server.go_on();
    // Answers that were held back are of requests that have ended.
    let answer = loop {
        match ask(&backend, RPC).await {
            Err(AskError::Paused | AskError::Timeout(_)) => {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            answer => break answer,
        }
    };
    assert_eq!(answer.unwrap(), "7");
    assert!(!backend.is_paused());
}

#[tokio::test]
async fn requests_at_the_same_time_and_those_that_wait_are_limited() {
    let server = Server::start().await;
    server.stop();
    let backend = server.backend(|options| {
        options.concurrent_requests_max = 2;
        options.waiting_requests_max = 3;
    });
    let mut calls = JoinSet::new();
    for _ in 0..5 {
        let backend = backend.clone();
        calls.spawn(async move { ask(&backend, RPC).await });
    }
    while backend.open_requests() < 5 || server.asked() < 2 {
        tokio::task::yield_now().await;
    }
    let busy = ask(&backend, RPC).await.unwrap_err();
    assert_eq!(
        busy.to_string(),
        "3 requests are waiting, which is the limit"
    );
    assert_eq!(server.asked(), 2);
    server.go_on();
    for answer in calls.join_all().await {
        assert_eq!(answer.unwrap(), "7");
    }
    assert_eq!((server.asked(), backend.open_requests()), (5, 0));
}

#[tokio::test]
async fn a_client_that_leaves_frees_its_place() {
    let server = Server::start().await;
    server.stop();
    let backend = server.backend(|options| options.concurrent_requests_max = 1);
    let call = tokio::spawn({
        let backend = backend.clone();
        async move { ask(&backend, RPC).await }
    });
    while server.asked() < 1 {
        tokio::task::yield_now().await;
    }
    call.abort();
    while backend.open_requests() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_refused() {
    let server = Server::start().await;
    let backend = server.backend(|options| options.answer_bytes_max = 20);
    let too_large = AskError::TooLarge { bytes_max: 20 };
    assert_eq!(ask(&backend, RPC).await, Err(too_large));
}

#[tokio::test]
async fn what_has_not_been_sent_may_be_sent_again() {
    let server = Server::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = listener.local_addr().unwrap();
    drop(listener);
    let backend = server.backend(|options| options.url = format!("http://{nobody}/"));
    let error = ask(&backend, RPC).await.unwrap_err();
    assert!(matches!(error, AskError::Unsent(_)), "{error}");
    assert!(error.to_string().starts_with("cannot connect: "), "{error}");
}
