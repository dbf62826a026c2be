//! Counts wrong keys by address: after too many of them, the address has to wait.

use std::{
    net::{IpAddr, Ipv6Addr},
    time::{Duration, Instant},
};

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use parking_lot::Mutex;

/// Maximum number of wrong keys from one address before it has to wait.
pub(crate) const WRONG_KEYS_MAX: u32 = 20;
/// Time after the first wrong key of an address until its wrong keys are forgotten.
pub(crate) const WRONG_KEYS_WINDOW: Duration = Duration::from_secs(60);
/// Maximum number of addresses in the table. Beyond it, the oldest is forgotten.
const ADDRESSES_MAX: usize = 4_096;

/// Addresses that have recently presented wrong keys. Requests from all other addresses are not
/// affected.
#[derive(Debug, Default)]
pub(crate) struct Attempts(Mutex<HashMap<IpAddr, Attempt, RandomState>>);

/// Why a key is rejected.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum KeyRefusal {
    /// The key was not checked, because too many keys from the same address were wrong. The next
    /// one is checked after this time.
    Limited(Duration),
    /// The key is wrong.
    Wrong,
}

#[derive(Clone, Copy, Debug)]
struct Attempt {
    since: Instant,
    wrong: u32,
}

impl Attempts {
    /// Returns how long an address has to wait before its next key is checked, or `None` if it need
    /// not wait.
    pub(crate) fn wait(&self, address: IpAddr, now: Instant) -> Option<Duration> {
        let table = self.0.lock();
        let attempt = table.get(&network(address))?;
        let left = attempt.left(now)?;
        (attempt.wrong >= WRONG_KEYS_MAX).then_some(left)
    }

    /// Counts a wrong key.
    pub(crate) fn note_wrong(&self, address: IpAddr, now: Instant) {
        let address = network(address);
        let mut table = self.0.lock();
        if let Some(attempt) = table.get_mut(&address)
            && attempt.left(now).is_some()
        {
            attempt.wrong = attempt.wrong.saturating_add(1);
            return;
        }
        if table.len() >= ADDRESSES_MAX {
            table.retain(|_, attempt| attempt.left(now).is_some());
        }
        if table.len() >= ADDRESSES_MAX {
            let oldest = table.iter().min_by_key(|(_, attempt)| attempt.since);
            if let Some(oldest) = oldest.map(|(address, _)| *address) {
                table.remove(&oldest);
            }
        }
        table.insert(
            address,
            Attempt {
                since: now,
                wrong: 1,
            },
        );
    }
}

impl Attempt {
    /// Returns the remainder of the window, or `None` if it has ended.
    fn left(&self, now: Instant) -> Option<Duration> {
        let left = WRONG_KEYS_WINDOW.checked_sub(now.saturating_duration_since(self.since))?;
        (!left.is_zero()).then_some(left)
    }
}

/// Returns the key for an address in the table. For IPv6 it is the upper 64 bits, because a
/// customer usually controls all of the lower ones.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            let prefix = u128::from(address) >> 64 << 64;
            Ipv6Addr::from(prefix).into()
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use std::{
        net::IpAddr,
        time::{Duration, Instant},
    };

    use super::{ADDRESSES_MAX, Attempts, WRONG_KEYS_MAX, WRONG_KEYS_WINDOW};

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_waits_for_the_rest_of_a_minute_and_others_do_not() {
        let (attempts, start) = (Attempts::default(), Instant::now());
        let guesser = address("2001:db8::1");
        for _ in 0..WRONG_KEYS_MAX {
            assert_eq!(attempts.wait(guesser, start), None);
            attempts.note_wrong(guesser, start);
        }
        assert_eq!(attempts.wait(guesser, start), Some(WRONG_KEYS_WINDOW));
        let neighbour = address("2001:db8::ffff:0:0:1");
        assert!(
            attempts.wait(neighbour, start).is_some(),
            "the same network"
        );
        for other in ["2001:db8:0:1::1", "192.0.2.1", "127.0.0.1"] {
            assert_eq!(attempts.wait(address(other), start), None);
        }
        let later = start + WRONG_KEYS_WINDOW;
        let left = attempts.wait(guesser, later - Duration::from_millis(1));
        assert_eq!(left, Some(Duration::from_millis(1)));
        assert_eq!(attempts.wait(guesser, later), None);
        attempts.note_wrong(guesser, later);
        assert_eq!(attempts.wait(guesser, later), None, "counted anew");
    }

    #[test]
    fn the_table_is_bounded_and_forgets_the_oldest() {
        let (attempts, start) = (Attempts::default(), Instant::now());
        let guesser = address("192.0.2.1");
        for _ in 0..WRONG_KEYS_MAX {
            attempts.note_wrong(guesser, start);
        }
        for number in 0..3 * ADDRESSES_MAX as u32 {
            let other = IpAddr::from(number.to_be_bytes());
            attempts.note_wrong(other, start + Duration::from_millis(number.into()));
        }
        assert_eq!(attempts.0.lock().len(), ADDRESSES_MAX);
        assert_eq!(attempts.wait(guesser, start), None);
    }
}
