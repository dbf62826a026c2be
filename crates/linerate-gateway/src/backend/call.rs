//! Sends questions to a backend, with limits on time, number and size.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use linerate_budget::Account;
use tokio::{
    runtime::Handle,
    sync::{Semaphore, SemaphorePermit},
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{
    AskError, Asker, Event, Question, Verdict, breaker::Breaker, headers::names_of, http::Poster,
};
use crate::{
    clock::now,
    config::{BackendOptions, Secret},
    endpoint_error::EndpointError,
    log_limiter::LogLimiter,
};

/// The pause before another attempt, on average.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// The header with the address of the client.
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// A backend of the application, which all workers share.
#[derive(Debug)]
pub(crate) struct Backend {
    options: BackendOptions,
    forwarded: Vec<HeaderName>,
    poster: Poster,
    breaker: Breaker,
    /// One permit for each request that may be sent at the same time.
    slots: Semaphore,
    /// The requests that wait for a permit.
    waiting: AtomicUsize,
    unanswered: LogLimiter,
}

/// A place among the requests that wait.
struct Waiting<'a>(&'a AtomicUsize);

impl Backend {
    /// Prepares a backend; connections are opened when they are needed.
    ///
    /// # Errors
    /// A file cannot be read, or a certificate or header is invalid.
    pub(super) fn new(options: &BackendOptions) -> Result<Self, EndpointError> {
        let poster = Poster::new(options);
        Ok(Self {
            forwarded: names_of(options),
            poster: poster.map_err(|problem| problem.of("backend", &options.name))?,
            breaker: Breaker::new(options.failures_max, options.failure_pause),
            slots: Semaphore::new(options.concurrent_requests_max),
            waiting: AtomicUsize::new(0),
            unanswered: LogLimiter::new(),
            options: options.clone(),
        })
    }

    /// Returns whether the backend would be the same with these options. If there are files, they
    /// may have changed.
    pub(super) fn still_has(&self, options: &BackendOptions) -> bool {
        let has_files = options.tls_authorities.is_some()
            || options.tls_certificate.is_some()
            || options.headers.values().any(Secret::is_file);
        self.options == *options && !has_files
    }

    /// Returns the name by which options refer to the backend.
    pub(crate) fn name(&self) -> &str {
        &self.options.name
    }

    /// Returns whether the backend is not asked, because it does not answer.
    pub(crate) fn is_paused(&self) -> bool {
        self.breaker.is_open()
    }

    /// Returns the number of requests that are sent or wait.
    pub(crate) fn open_requests(&self) -> usize {
        let sent = self.options.concurrent_requests_max - self.slots.available_permits();
        sent + self.waiting.load(Ordering::Relaxed)
    }

    /// Asks the backend, in a task on `runtime`, and returns its answer. The memory is charged to
    /// `account`. Dropping the future cancels the request.
    pub(crate) async fn ask<T>(
        self: Arc<Self>,
        runtime: &Handle,
        account: &Account,
        asker: &Asker<'_>,
        question: &Question<'_>,
        decode: impl FnOnce(&[u8]) -> Result<Verdict<T>, AskError>,
    ) -> Result<Verdict<T>, AskError> {
        let event = question.event();
        let body = question.encode(asker, self.options.binary, self.options.meta)?;
        let headers = self.headers(asker);
        let mut share = account.share(body.len() as u64);
        let mut call = JoinSet::new();
        let backend = self.clone();
        call.spawn_on(
            async move { backend.call(event, &headers, &body.into()).await },
            runtime,
        );
        let answer = match call.join_next().await {
            Some(Ok(answer)) => answer,
            _ => Err(AskError::Stopping),
        };
        let verdict = answer.and_then(|answer| {
            share.set(answer.len() as u64);
            decode(&answer)
        });
        self.log(event, verdict.as_ref().err());
        verdict
    }

    /// Sends a question until it is answered, as often as is allowed.
    async fn call(
        &self,
        event: Event,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Result<Bytes, AskError> {
        let limit = self.options.timeout;
        let attempts = async {
            let _slot = self.slot().await?;
            let mut retries = self.options.retries_max;
            loop {
                let answer = self.poster.post(event, headers.clone(), body.clone()).await;
                let Err(error) = answer else {
                    return answer;
                };
                let is_safe = event.is_idempotent() || matches!(error, AskError::Unsent(_));
                if retries == 0 || !is_safe || !error.is_unavailable() {
                    return Err(error);
                }
                retries -= 1;
                sleep(RETRY_PAUSE.mul_f32(rand::random_range(0.5..1.5))).await;
            }
        };
        let Some(permit) = self.breaker.permit(now()) else {
            return Err(AskError::Paused);
        };
        let answer = timeout(limit, attempts).await;
        let answer = answer.unwrap_or(Err(AskError::Timeout(limit)));
        match &answer {
            // Says nothing about the backend.
            Err(AskError::Busy { .. }) => {}
            Err(error) if error.is_unavailable() => permit.failed(now()),
            _ => permit.answered(),
        }
        answer
    }

    /// Waits until another request may be sent.
    async fn slot(&self) -> Result<SemaphorePermit<'_>, AskError> {
        if let Ok(slot) = self.slots.try_acquire() {
            return Ok(slot);
        }
        let waiting_max = self.options.waiting_requests_max;
        let _waiting = Waiting::new(&self.waiting, waiting_max)?;
        let slot = self.slots.acquire().await;
        slot.map_err(|_| AskError::Busy { waiting_max })
    }

    /// Returns the headers that depend on the client.
    fn headers(&self, asker: &Asker<'_>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(forwarded) = asker.headers {
            forwarded.append(&self.forwarded, &mut headers);
        }
        let peer = asker.peer.map(|peer| peer.to_canonical().to_string());
        if let Some(Ok(peer)) = peer.map(HeaderValue::try_from) {
            headers.insert(FORWARDED_FOR, peer);
        }
        headers
    }

    /// Logs that there was no answer, unless the client is to blame.
    fn log(&self, event: Event, error: Option<&AskError>) {
        let Some(error) = error.filter(|error| !matches!(error, AskError::NotJson)) else {
            return;
        };
        if let Some(count) = self.unanswered.ask(now()) {
            let (backend, event) = (self.name(), event.name());
            tracing::warn!(backend, event, count, %error, "backend did not answer; clients are refused");
        }
    }
}

impl<'a> Waiting<'a> {
    fn new(waiting: &'a AtomicUsize, waiting_max: usize) -> Result<Self, AskError> {
        let place = Self(waiting);
        match waiting.fetch_add(1, Ordering::Relaxed) < waiting_max {
            true => Ok(place),
            false => Err(AskError::Busy { waiting_max }),
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
