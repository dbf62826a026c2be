//! Tokens for the channel page, which shows how clients connect.

use std::time::Duration;

use axum::{
    Json,
    extract::{Request, State},
};
use http::StatusCode;

use super::{AdminState, Administrator, channel_name, json, view};
use crate::{
    api::Refusal,
    auth::{TokenMaker, TokenMakerError},
};

/// The user of all these tokens. It is fixed so that an administrator cannot act as another user.
const USER: &str = "playground";

/// How long the tokens are valid: long enough to try what the page shows.
const VALIDITY: Duration = Duration::from_secs(15 * 60);

/// Creates tokens for a channel.
///
/// # Errors
/// The secret is not configured (status 409, code 108) or cannot be read.
pub(super) async fn make(
    _: Administrator,
    State(state): State<AdminState>,
    request: Request,
) -> Result<Json<view::Tokens>, Refusal> {
    let asked: view::MakeTokens = json(&state, request).await?;
    let channel = channel_name(&asked.channel)?;
    let settings = state.admin.shared.settings_full();
    let maker = TokenMaker::new(&settings.config.auth.token).map_err(|error| match error {
        TokenMakerError::NoSecret => Refusal::new(StatusCode::CONFLICT, 108, error),
        TokenMakerError::File(_) => Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, 100, error),
    })?;
    Ok(Json(view::Tokens {
        user: USER,
        expires_in_s: VALIDITY.as_secs(),
        connection: maker.make(USER, None, None, Some(VALIDITY)),
        channel: maker.make(USER, Some(channel.as_str()), None, Some(VALIDITY)),
        subscribed: maker.make_subscribed(USER, &[channel.as_str()], VALIDITY),
    }))
}
