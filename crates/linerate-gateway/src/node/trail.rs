//! Positions of clients that name the epochs in which the client has been.
//!
//! The stream of an epoch that has followed that of a client is delivered from its beginning,
//! because the client has seen nothing of it. While two Redis servers are masters at the same time,
//! that can be wrong: a client that moves from a node at one of them to a node at the other, which
//! is isolated, meets the first epoch again once the partition has ended. No node knows where the
//! client was before, but the client keeps its position. The epoch that it is told is therefore
//! followed by those in which it was before: `new~older~oldest`.

use linerate_hub::{Epoch, StreamPosition};

/// Separates epochs; no broker uses it in one.
const SEPARATOR: char = '~';

/// The number of epochs that a position names. Nodes remember as many of each channel.
const EPOCHS_MAX: usize = 8;

/// The longest epoch that is named again, in bytes. Those of brokers are shorter.
const EPOCH_BYTES_MAX: usize = 64;

/// The epochs in which a client has been, newest first.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Trail(Vec<Epoch>);

impl Trail {
    /// Separates the position in the stream from the trail that a client's position names.
    pub(crate) fn split(position: &StreamPosition) -> (StreamPosition, Self) {
        let text = position.epoch.as_str();
        let epochs = text.split(SEPARATOR).filter(|epoch| is_epoch(epoch));
        let trail = Self(epochs.take(EPOCHS_MAX).map(Epoch::new).collect());
        let epoch = match text.split_once(SEPARATOR) {
            Some((newest, _)) => Epoch::new(newest),
            None => position.epoch.clone(),
        };
        let offset = position.offset;
        (StreamPosition { epoch, offset }, trail)
    }

    /// Returns whether the client has been in an epoch.
    pub(crate) fn contains(&self, epoch: &Epoch) -> bool {
        self.0.contains(epoch)
    }

    /// Returns the epoch that the client is told once it is in `epoch`.
    pub(super) fn told(&self, epoch: &Epoch) -> Epoch {
        let mut former = self.0.iter().filter(|former| *former != epoch).peekable();
        if former.peek().is_none() {
            return epoch.clone();
        }
        let mut told = epoch.to_string();
        for former in former.take(EPOCHS_MAX - 1) {
            told.push(SEPARATOR);
            told.push_str(former.as_str());
        }
        Epoch::new(&told)
    }
}

/// Returns whether a broker may have chosen a text, which a client presents.
fn is_epoch(text: &str) -> bool {
    let is_usual = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    (1..=EPOCH_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_usual)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(epoch: &str) -> (String, Trail) {
        let epoch = Epoch::new(epoch);
        let (position, trail) = Trail::split(&StreamPosition { epoch, offset: 7 });
        assert_eq!(position.offset, 7);
        (position.epoch.to_string(), trail)
    }

    #[test]
    fn an_epoch_that_is_told_names_the_former_ones() {
        let (newest, trail) = split("a");
        assert_eq!(newest, "a");
        assert_eq!(trail.told(&Epoch::new("a")).as_str(), "a");
        let told = trail.told(&Epoch::new("b"));
        assert_eq!(told.as_str(), "b~a");
        let (newest, trail) = split(told.as_str());
        assert_eq!(newest, "b");
        assert!(trail.contains(&Epoch::new("a")) && trail.contains(&Epoch::new("b")));
        assert!(!trail.contains(&Epoch::new("c")));
        assert_eq!(trail.told(&Epoch::new("a")).as_str(), "a~b", "back again");
        assert_eq!(Trail::default().told(&Epoch::new("a")).as_str(), "a");
    }

    #[test]
    fn a_limited_number_of_epochs_is_named() {
        let mut told = Epoch::new("0");
        for number in 1..20 {
            let (_, trail) = split(told.as_str());
            told = trail.told(&Epoch::new(&number.to_string()));
        }
        assert_eq!(told.as_str(), "19~18~17~16~15~14~13~12");
    }

    #[test]
    fn texts_that_no_broker_chose_are_not_named_again() {
        let (longest, longer) = ("x".repeat(64), "x".repeat(65));
        let (newest, trail) = split(&format!("a b~~\"~{longer}~{longest}"));
        assert_eq!(newest, "a b");
        assert_eq!(
            trail.told(&Epoch::new("c")).as_str(),
            format!("c~{longest}")
        );
        assert_eq!(split(""), (String::new(), Trail::default()));
    }
}
