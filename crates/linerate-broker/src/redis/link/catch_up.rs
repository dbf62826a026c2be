//! Recovery after the link was lost: reports gaps, and delivers what streams still hold.

use std::{pin::pin, sync::Arc, time::Duration};

use foldhash::HashMap;
use futures_util::{StreamExt, stream};
use linerate_hub::{ChannelName, Epoch, Publication, StreamPosition};
use tokio::time::{Instant, sleep};

use super::{Link, Session};
use crate::{
    broker::BrokerError,
    event::{Event, Gap, GapReason},
    lock::lock,
    redis::{delivery::is_covered, subscriptions::Target},
    request::{History, HistoryRequest},
};

/// The delay before a stream that could not be read is read again.
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// The number of streams that are read at a time.
const READS_MAX: usize = 16;

/// The maximum number of payload bytes that are read. Further streams are reported as a gap and
/// left to clients that recover.
const BYTES_MAX: usize = 64 << 20;

impl Link {
    /// Runs after everything is subscribed again: reports what may have been missed, delivers what
    /// streams still hold of it, and then delivers what has arrived in the meantime.
    pub(super) async fn catch_up(&mut self, session: &mut Session) {
        session.resubscribed = None;
        let held = session.held.take();
        if held.is_none() {
            let now = (Instant::now(), GapReason::Overflow);
            self.lost.get_or_insert(now);
        }
        let mut events = Vec::new();
        if let Some((since, reason)) = self.lost.take() {
            self.reset_plain();
            let recovered = match held {
                Some(_) => self.read_streams().await,
                None => Vec::new(),
            };
            let missed = self.record(&recovered);
            events.extend(self.gap(missed, since.elapsed(), reason));
            for (channel, history) in recovered {
                let publications = history.publications.into_iter();
                events.extend(publications.map(|publication| Event::Publication {
                    channel: channel.clone(),
                    publication,
                }));
            }
        }
        let held = held.unwrap_or_default().into_iter();
        events.extend(held.filter_map(|event| self.release(event)));
        self.ingest(session, events).await;
    }

    fn gap(
        &mut self,
        missed: Vec<ChannelName>,
        lasted: Duration,
        reason: GapReason,
    ) -> Option<Event> {
        let channels = self.subscriptions.targets().filter_map(|it| it.channel());
        let is_whole = missed.len() == channels.count() && self.moved.is_none();
        if missed.is_empty() && !is_whole {
            return None;
        }
        let link = self.number;
        tracing::warn!(link, ?lasted, ?reason, "reconnected to Redis after a gap");
        let channels = (!is_whole).then_some(missed);
        Some(Event::Gap(Gap {
            channels,
            lasted,
            reason,
        }))
    }

    /// Reads the publications that durable channels have missed, as far as the limits on time and
    /// memory allow. If some are missing, those that were read come after a gap.
    async fn read_streams(&mut self) -> Vec<(ChannelName, History)> {
        let shared = Arc::clone(&self.shared);
        let known = self
            .subscriptions
            .targets()
            .filter_map(|target| match target {
                Target::Channel {
                    channel,
                    options,
                    newest,
                    ..
                } if options.has_stream() => {
                    let newest = match newest {
                        Some(newest) => {
                            shared.epochs.record(channel, &newest.epoch);
                            newest.clone()
                        }
                        None => nowhere_in(shared.epochs.newest(channel)?),
                    };
                    Some((channel.clone(), *options, newest))
                }
                _ => None,
            });
        let known: Vec<_> = known.collect();
        let reads = known.into_iter().map(async |(channel, options, newest)| {
            let epoch = newest.epoch.clone();
            let request = HistoryRequest {
                since: Some(newest),
                ..HistoryRequest::default()
            };
            loop {
                match shared.history(&channel, options, &request).await {
                    // The connection for commands was lost as well, which only its next use
                    // detects.
                    Err(BrokerError::Away { .. }) => sleep(RETRY_DELAY).await,
                    history => return (channel, epoch, history),
                }
            }
        });
        let end = sleep(shared.options.command_timeout);
        let reads = stream::iter(reads).buffer_unordered(READS_MAX);
        let mut reads = pin!(reads.take_until(end));
        let (mut recovered, mut bytes) = (Vec::new(), 0);
        let mut renewed = 0;
        while let Some((channel, epoch, history)) = reads.next().await {
            renewed += usize::from(is_of_other_epoch(&history, &epoch));
            if let Ok(history) = history
                && (history.is_contiguous || !history.publications.is_empty())
            {
                let payloads = history.publications.iter();
                bytes += payloads.map(|found| found.payload().len()).sum::<usize>();
                if bytes > BYTES_MAX {
                    break;
                }
                recovered.push((channel, history));
            }
        }
        if renewed > 0 {
            let link = self.number;
            tracing::warn!(
                link,
                channels = renewed,
                "Redis was restarted: epochs of durable channels have ended"
            );
        }
        recovered
    }

    /// Stores up to which position channels were recovered. Returns the channels that have missed
    /// something.
    fn record(&mut self, recovered: &[(ChannelName, History)]) -> Vec<ChannelName> {
        let histories = recovered
            .iter()
            .map(|(channel, history)| (channel.clone(), history));
        let histories: HashMap<ChannelName, &History> = histories.collect();
        let mut missed = Vec::new();
        for target in self.subscriptions.targets() {
            match target {
                Target::Channel {
                    channel,
                    newest,
                    recovered,
                    ..
                } => {
                    if let Some(history) = histories.get(channel) {
                        *recovered = history.newest.offset;
                        *newest = Some(history.newest.clone());
                    }
                    if histories
                        .get(channel)
                        .is_none_or(|history| !history.is_contiguous)
                    {
                        missed.push(channel.clone());
                    }
                }
                Target::Pattern { pattern, .. } => missed.push(pattern.clone()),
                Target::Control | Target::Probe => {}
            }
        }
        missed
    }

    /// Releases an event that was held: numbers it if this node numbers the channel, and drops it
    /// if it was already recovered.
    fn release(&mut self, event: Event) -> Option<Event> {
        let Event::Publication {
            channel,
            publication,
        } = event
        else {
            return Some(event);
        };
        let shared = Arc::clone(&self.shared);
        let name = shared.names.channel(&channel);
        let target = name.and_then(|name| self.subscriptions.target(name.as_bytes()));
        let publication = match (target, publication.position()) {
            (Some(Target::Channel { newest, .. }), Some(position)) => {
                if is_covered(newest.as_ref(), position) {
                    return None;
                }
                *newest = Some(position.clone());
                publication
            }
            (Some(Target::Channel { options, .. }), None) if !options.has_stream() => {
                let publication = Publication::build(publication.payload().clone());
                let now = Instant::now();
                let mut sequencer = lock(&shared.sequencer);
                sequencer.publish(now, &channel, *options, publication)
            }
            _ => publication,
        };
        Some(Event::Publication {
            channel,
            publication,
        })
    }
}

fn is_of_other_epoch(history: &Result<History, BrokerError>, epoch: &Epoch) -> bool {
    history
        .as_ref()
        .is_ok_and(|history| history.newest.epoch != *epoch)
}

/// Returns a position after which nothing of this epoch follows. A subscriber that has received
/// nothing yet must not receive earlier publications, but must receive everything of a later epoch.
fn nowhere_in(epoch: Epoch) -> StreamPosition {
    let offset = u64::MAX;
    StreamPosition { epoch, offset }
}
