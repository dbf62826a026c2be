//! A backend of the application, which may be deaf, slow or wrong.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::post,
};
use tokio::{net::TcpListener, task::JoinHandle, time::sleep};

/// The time after which a slow backend answers every other question; the node waits for one second.
const SLOW: [Duration; 2] = [Duration::from_millis(500), Duration::from_millis(1_500)];

/// A backend that allows everything, unless it is told to behave differently.
pub(crate) struct Backend {
    pub(crate) address: SocketAddr,
    state: Arc<Mutex<Condition>>,
    server: JoinHandle<()>,
}

/// How a backend behaves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Behavior {
    /// It does not answer.
    Deaf,
    /// It allows everything.
    Right,
    /// It answers late, or too late.
    Slow,
    /// Its answers are errors, or not what is expected.
    Wrong,
}

struct Condition {
    behavior: Behavior,
    asked: usize,
}

impl Backend {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(Condition {
            behavior: Behavior::Right,
            asked: 0,
        }));
        let app = Router::new()
            .route("/", post(answer))
            .with_state(state.clone());
        let server = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self {
            address,
            state,
            server,
        }
    }

    pub(crate) fn behave(&self, behavior: Behavior) {
        self.state.lock().unwrap().behavior = behavior;
    }

    /// Returns the part of the configuration of a node that asks this backend.
    pub(crate) fn toml(&self) -> String {
        let address = self.address;
        format!("[[backend]]\nname = \"app\"\nurl = \"http://{address}/\"\n")
    }
}

async fn answer(State(state): State<Arc<Mutex<Condition>>>) -> Response {
    let (behavior, asked) = {
        let mut state = state.lock().unwrap();
        state.asked += 1;
        (state.behavior, state.asked)
    };
    match behavior {
        Behavior::Deaf => std::future::pending().await,
        Behavior::Right => {}
        Behavior::Slow => sleep(SLOW[asked % SLOW.len()]).await,
        Behavior::Wrong => {
            return match asked % 3 {
                0 => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
                1 => "<html>not found</html>".into_response(),
                _ => "{\"result\":7}".into_response(),
            };
        }
    }
    "{\"result\":{\"user\":\"ann\"}}".into_response()
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.server.abort();
    }
}
