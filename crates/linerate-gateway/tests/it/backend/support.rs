//! A backend whose answers are set by a test, and which remembers what it was asked.

use std::{collections::HashMap, net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Bytes,
    extract::{Path, State},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::post,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::Semaphore, time::sleep};

use crate::support::{Gateway, config, in_time};

/// A backend with a path for each name and kind of question.
#[derive(Clone, Debug)]
pub(crate) struct Backend {
    address: SocketAddr,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    answers: HashMap<String, Answer>,
    asked: Vec<Asked>,
}

/// What a backend answers.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// An empty result, once there is a permit.
    Held(Arc<Semaphore>),
    Json(Value),
    Nothing,
    Status(u16),
    Text(&'static str),
}

/// What a backend was asked.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) name: String,
    pub(crate) event: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Backend {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let backend = Self {
            address: listener.local_addr().unwrap(),
            inner: Arc::default(),
        };
        let app = Router::new()
            .route("/{name}/{event}", post(answer))
            .with_state(backend.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        backend
    }

    /// Starts a gateway that asks this backend about these events. `toml` begins with keys of
    /// `[client]`, and `more` is added to each backend.
    pub(crate) async fn gateway(&self, events: &[&str], more: &str, toml: &str) -> Gateway {
        Gateway::start(config(&self.toml(events, more, toml))).await
    }

    pub(crate) fn toml(&self, events: &[&str], more: &str, toml: &str) -> String {
        format!("[client]\n{toml}\n{}", self.backends(events, more))
    }

    /// Returns the configuration of a backend for each of these events.
    pub(crate) fn backends(&self, events: &[&str], more: &str) -> String {
        let backends = events.iter().map(|event| {
            let url = format!("http://{}/{event}/{{event}}", self.address);
            format!("[[backend]]\nname = \"{event}\"\nurl = \"{url}\"\n{more}\n")
        });
        backends.collect()
    }

    /// Sets the result that answers a kind of question.
    pub(crate) fn returns(&self, event: &str, result: Value) {
        self.answers(event, Answer::Json(json!({ "result": result })));
    }

    pub(crate) fn answers(&self, event: &str, answer: Answer) {
        let mut inner = self.inner.lock();
        inner.answers.insert(event.to_owned(), answer);
    }

    /// Returns what was asked since the last call.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut self.inner.lock().asked)
    }

    /// Waits until the backend with this name is asked, and returns what was asked since the last
    /// call.
    pub(crate) async fn until_asked(&self, name: &str) -> Vec<Asked> {
        let is_asked = |inner: &Inner| inner.asked.iter().any(|one| one.name == name);
        until(async || is_asked(&self.inner.lock())).await;
        self.asked()
    }

    /// Returns the only question since the last call.
    pub(crate) fn only(&self) -> Asked {
        let mut asked = self.asked();
        assert_eq!(asked.len(), 1, "{asked:?}");
        asked.remove(0)
    }
}

/// Waits until something is true.
pub(crate) async fn until(mut is_true: impl AsyncFnMut() -> bool) {
    in_time(async {
        while !is_true().await {
            sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

async fn answer(
    State(backend): State<Backend>,
    Path((name, event)): Path<(String, String)>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let answer = {
        let mut inner = backend.inner.lock();
        inner.asked.push(Asked {
            name: name.clone(),
            event,
            headers,
            body: serde_json::from_slice(&body).unwrap(),
        });
        inner.answers.get(&name).cloned()
    };
    match answer.unwrap_or(Answer::Status(404)) {
        Answer::Held(permits) => {
            permits.acquire().await.unwrap().forget();
            "{\"result\":{}}".into_response()
        }
        Answer::Json(json) => json.to_string().into_response(),
        Answer::Nothing => std::future::pending().await,
        Answer::Status(status) => StatusCode::from_u16(status).unwrap().into_response(),
        Answer::Text(text) => text.into_response(),
    }
}
