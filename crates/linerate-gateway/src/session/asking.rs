//! Asks backends on behalf of a client.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use linerate_hub::ChannelName;

use super::{Context, Gate, Identity};
use crate::{
    auth::SubscriptionClaims,
    backend::{
        Admitted, AskError, Asker, Backend, ForwardedHeaders, Published, Question, Renewal,
        Verdict, answer,
    },
    clock::now,
    node::{Connection, seconds_now},
    protocol::{
        codes::Refusal,
        command::{Connect, Subscribe},
    },
};

/// A client, as far as backends are told about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visitor<'a> {
    pub(crate) gate: &'a Gate,
    pub(crate) connection: &'a Connection,
    pub(crate) headers: Option<&'a ForwardedHeaders>,
}

impl Context {
    /// Returns the client, as far as backends are told about it.
    pub(super) fn visitor(&self) -> Visitor<'_> {
        Visitor {
            gate: &self.gate,
            connection: &self.connection,
            headers: self.headers.as_deref(),
        }
    }
}

impl Visitor<'_> {
    /// Authenticates the client by its token, or by asking the backend if it has none. Returns
    /// `None` for an anonymous client, if such clients are allowed.
    pub(crate) async fn authenticate(
        &self,
        connect: &Connect,
    ) -> Result<Option<Admitted>, Refusal> {
        let settings = self.gate.shared.settings_full();
        let backend = settings
            .backends
            .find(&settings.config.client.connect_backend);
        let is_open = connect.token.is_empty() && !self.gate.dialect.admits();
        if let Some(backend) = backend.filter(|_| is_open) {
            let anonymous = Identity::new(&self.connection.who, None);
            let decode = |body: &[u8]| answer::connect(body, seconds_now());
            let question = Question::Connect(connect);
            let admitted = self.ask(backend, &anonymous, &question, decode).await;
            let admitted = admitted.map_err(Refusal::wanting_another_token)?;
            if admitted.is_some() {
                return Ok(admitted);
            }
        }
        let claims = self.gate.authenticate(&connect.token).await;
        let claims = claims.map_err(Refusal::wanting_another_token)?;
        Ok(claims.map(|claims| Admitted { claims, data: None }))
    }

    /// Returns what is granted to the client in a channel, by its token or, if it has none, by the
    /// backend. Returns `None` if the options of the channel decide.
    pub(super) async fn judge_subscription(
        &self,
        identity: &Identity,
        channel: &ChannelName,
        wanted: &Subscribe,
    ) -> Result<Option<SubscriptionClaims>, Refusal> {
        if !wanted.token.is_empty() {
            let gate = self.gate;
            let claims = gate.judge_subscription(identity, channel, &wanted.token);
            return claims
                .await
                .map(Some)
                .map_err(Refusal::wanting_another_token);
        }
        let settings = self.gate.shared.settings_full();
        let options = settings.channel(channel);
        let Some(backend) = settings.backends.find(&options.subscribe_backend) else {
            return Ok(None);
        };
        let question = Question::Subscribe { channel, wanted };
        let claims = self.ask(backend, identity, &question, answer::subscribe);
        claims.await.map(Some)
    }

    /// Asks whether the connection, or its subscription to a channel, may continue.
    pub(super) async fn renew(
        &self,
        backend: Arc<Backend>,
        identity: &Identity,
        channel: Option<&ChannelName>,
    ) -> Result<Renewal, Refusal> {
        let question = match channel {
            None => Question::Refresh,
            Some(channel) => Question::SubRefresh { channel },
        };
        self.ask(backend, identity, &question, answer::renewal)
            .await
    }

    /// Asks whether the client may publish, and what.
    pub(super) async fn publish(
        &self,
        backend: Arc<Backend>,
        identity: &Identity,
        channel: &ChannelName,
        data: &Bytes,
    ) -> Result<Published, Refusal> {
        let question = Question::Publish { channel, data };
        self.ask(backend, identity, &question, answer::publish)
            .await
    }

    /// Calls a method, or passes on a message, and returns the answer of the backend.
    pub(super) async fn call(
        &self,
        backend: Arc<Backend>,
        identity: &Identity,
        question: &Question<'_>,
    ) -> Result<Bytes, Refusal> {
        self.ask(backend, identity, question, answer::data).await
    }

    async fn ask<T>(
        &self,
        backend: Arc<Backend>,
        identity: &Identity,
        question: &Question<'_>,
        decode: impl FnOnce(&[u8]) -> Result<Verdict<T>, AskError>,
    ) -> Result<T, Refusal> {
        let asker = Asker {
            client: &identity.who.client,
            user: identity.user(),
            dialect: self.connection.dialect,
            peer: self.connection.peer,
            meta: identity.meta(),
            headers: self.headers,
        };
        let started = now();
        let (worker, event) = (&self.gate.worker, question.event());
        let account = &worker.accounts().messages;
        let name = backend.name().to_owned();
        let runtime = worker.node().runtime();
        let verdict = backend
            .ask(runtime, account, &asker, question, decode)
            .await;
        let result = match &verdict {
            Ok(Ok(_)) => "ok",
            Ok(Err(_)) => "refused",
            Err(error) => error.label(),
        };
        let took: Duration = now().saturating_duration_since(started);
        let metrics = self.gate.shared.metrics();
        metrics.count_question(&name, event.name(), result, took);
        verdict.unwrap_or_else(|error| Err(error.to_client().into()))
    }
}
