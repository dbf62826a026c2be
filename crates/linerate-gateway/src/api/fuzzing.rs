//! The server API without HTTP, for fuzzing; compiled only for fuzzers.

use std::sync::Arc;

use serde_json::Value;

use super::{
    method,
    reply::{ApiError, Reply},
};
use crate::node::Node;

/// Executes a method with a body and returns the reply; `None` if the method is unknown.
pub(crate) async fn perform(node: &Arc<Node>, name: &str, body: &[u8]) -> Option<Value> {
    let answer = match name {
        "batch" => match serde_json::from_slice(body) {
            Ok(batch) => {
                let replies = method::batch(node, batch).await;
                replies.map(|replies| serde_json::json!(replies))
            }
            Err(error) => Err(ApiError::malformed(&error)),
        },
        name => {
            let answer = method::perform(node, name, body).await?;
            answer.map(|outcome| serde_json::to_value(outcome).expect("outcomes are JSON"))
        }
    };
    Some(match answer {
        Ok(value) => serde_json::json!({ "result": value }),
        Err(error) => serde_json::to_value(Reply::Error(error)).expect("errors are JSON"),
    })
}
