//! The most requests of each address within one clock minute.

mod window;

use std::borrow::Cow;

use super::by_code::at;
use super::dictionary::FIRST;
use window::Window;

const MINUTE_SECONDS: i64 = 60;

/// Minutes are numbered from a day before 1970-01-01 UTC, because a time zone can put a line there.
const EPOCH_MINUTE: i64 = 24 * 60;

/// Counts the requests of each address by minute.
///
/// Most lines belong to the latest minute of their address or to the one before, because servers
/// write a line when a request ends. These two minutes are in the address's [`Window`]. The minutes
/// that leave it are put into a list, so that requests that arrive later, for example from another
/// file of the same time, can be added to them.
///
/// When the list is full, the minutes with the fewest requests are dropped. For an address whose
/// minutes only advance, the figures are exact even then, because every minute was complete when it
/// left the window. For others, [`error_max`](Self::error_max) says how far a figure may be off:
/// this is lossy counting (Manku and Motwani, 2002), with a closer bound for addresses that went
/// back in time only a few times.
#[derive(Debug)]
pub(super) struct Peaks {
    /// By the codes of addresses.
    windows: Vec<Window>,
    left: Vec<Minute>,
    left_max: usize,
    /// The most often that any address went back in time.
    returns_max: u32,
    /// The most requests of a minute that was dropped from the list.
    dropped_max: u32,
    /// The sum of these maxima over all times that minutes were dropped.
    dropped_sum: u64,
}

/// The requests of an address in a minute, or some of them.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Minute {
    address: u32,
    minute: u32,
    requests: u32,
}

/// The busiest minute of an address.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Peak {
    pub(super) requests: u64,
    /// When the minute began, in seconds since 1970-01-01 UTC.
    pub(super) at: i64,
}

impl Peaks {
    /// Creates the counters, with up to `left_max` minutes in the list.
    pub(super) fn new(left_max: usize) -> Self {
        Self {
            windows: Vec::new(),
            left: Vec::new(),
            left_max,
            returns_max: 0,
            dropped_max: 0,
            dropped_sum: 0,
        }
    }

    /// Counts a request of an address that has a code.
    #[inline]
    pub(super) fn count(&mut self, address: u32, time: i64) {
        if address < FIRST {
            return;
        }
        let minute = minute_of(time);
        let window = at(&mut self.windows, address);
        if !window.count(minute) {
            self.move_window(address, minute);
        }
    }

    /// Returns the busiest minute of every address, by code.
    pub(super) fn list(&self) -> Vec<Peak> {
        let mut windows = Cow::Borrowed(&self.windows);
        if self.returns_max > 0 {
            let mut left = self.left.clone();
            merge_equal(&mut left);
            let windows = windows.to_mut();
            for it in left {
                windows[it.address as usize].add(it.minute, it.requests);
            }
        }
        let peaks = windows.iter().map(Window::most);
        peaks
            .map(|(minute, requests)| Peak {
                requests: requests.into(),
                at: (i64::from(minute) - EPOCH_MINUTE) * MINUTE_SECONDS,
            })
            .collect()
    }

    /// Returns by how many requests the busiest minute of any address may be too low. 0 if all are
    /// exact.
    pub(super) fn error_max(&self) -> u64 {
        // A minute enters the list at most once more than its address went back in time. Each time
        // it loses at most `dropped_max` requests, and the last time the window still knew them.
        let by_returns = u64::from(self.returns_max) * u64::from(self.dropped_max);
        by_returns.min(self.dropped_sum)
    }

    /// Returns how many bytes of heap the counters hold.
    pub(super) fn memory_bytes(&self) -> usize {
        self.windows.capacity() * size_of::<Window>() + self.left.capacity() * size_of::<Minute>()
    }

    /// Moves the window of an address to another minute, and counts a request there.
    #[cold]
    fn move_window(&mut self, address: u32, minute: u32) {
        let window = &mut self.windows[address as usize];
        let left = window.move_to(minute);
        self.returns_max = self.returns_max.max(window.returns());
        for (minute, requests) in left.into_iter().filter(|(_, requests)| *requests > 0) {
            if self.left.len() >= self.left_max {
                self.drop_smallest();
            }
            self.left.push(Minute {
                address,
                minute,
                requests,
            });
        }
    }

    /// Makes space in the list: merges the entries of the same minute, and drops the minutes with
    /// the fewest requests until at most half of the list remains.
    fn drop_smallest(&mut self) {
        if self.returns_max > 0 {
            merge_equal(&mut self.left);
        }
        let kept_max = self.left_max / 2;
        let Some(surplus) = self.left.len().checked_sub(kept_max + 1) else {
            return;
        };
        let mut requests: Vec<u32> = self.left.iter().map(|it| it.requests).collect();
        let (_, &mut dropped, _) = requests.select_nth_unstable(surplus);
        self.left.retain(|it| it.requests > dropped);
        self.dropped_max = self.dropped_max.max(dropped);
        self.dropped_sum += u64::from(dropped);
    }
}

fn minute_of(time: i64) -> u32 {
    let minute = time.div_euclid(MINUTE_SECONDS) + EPOCH_MINUTE;
    u32::try_from(minute.max(0)).unwrap_or(u32::MAX)
}

/// Sorts minutes and adds up those of the same address and time.
fn merge_equal(minutes: &mut Vec<Minute>) {
    minutes.sort_unstable();
    minutes.dedup_by(|it, sum| {
        let is_equal = (it.address, it.minute) == (sum.address, sum.minute);
        if is_equal {
            sum.requests = sum.requests.saturating_add(it.requests);
        }
        is_equal
    });
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::{FIRST, Peaks};

    /// Returns the busiest minute of an address with requests at these times.
    fn most(times: &[i64]) -> (u64, i64) {
        let mut peaks = Peaks::new(99);
        times.iter().for_each(|&time| peaks.count(FIRST, time));
        assert_eq!(peaks.error_max(), 0);
        let peak = peaks.list()[FIRST as usize];
        (peak.requests, peak.at)
    }

    #[test]
    fn peak_is_the_first_minute_with_the_most_requests() {
        assert!(Peaks::new(99).list().is_empty());
        assert_eq!(most(&[-1]), (1, -60));
        assert_eq!(most(&[0, 59, 60, 61, 62, 119, 120, 500]), (4, 60));
        assert_eq!(most(&[60, 119, 120, 179]), (2, 60));
        assert_eq!(most(&[253_402_300_799; 3]), (3, 253_402_300_740));
    }

    #[test]
    fn late_lines_are_counted_in_their_minute_however_late_they_are() {
        assert_eq!(most(&[100, 120, 110, 121, 119]), (3, 60));
        assert_eq!(most(&[600, 60, 60, 600]), (2, 60));
        assert_eq!(most(&[60, 180, 120, 130, 190]), (2, 120));
        assert_eq!(most(&[60, 6_000, 61, 6_001, 62, 6_002, 63]), (4, 60));
    }

    #[test]
    fn files_that_overlap_have_the_peaks_of_one_sorted_file() {
        let file = |minutes: i64| (0..minutes).flat_map(|minute| [minute * 60, minute * 60 + 1]);
        let times: Vec<i64> = file(500).chain([30_000; 3]).chain(file(501)).collect();
        let mut peaks = Peaks::new(2_000);
        times.iter().for_each(|&time| peaks.count(FIRST, time));
        assert_eq!(peaks.list()[FIRST as usize].requests, 5);
        assert_eq!(peaks.list()[FIRST as usize].at, 30_000);
        assert_eq!(peaks.error_max(), 0);
    }

    #[test]
    fn one_long_file_is_exact_although_its_minutes_are_dropped() {
        let mut peaks = Peaks::new(10);
        for minute in 0..1_000 {
            let requests = if minute == 400 { 9 } else { 1 + minute % 7 };
            (0..requests).for_each(|_| peaks.count(FIRST, minute * 60));
        }
        let peak = peaks.list()[FIRST as usize];
        assert_eq!((peak.requests, peak.at), (9, 24_000));
        assert!(peaks.left.len() <= 10 && peaks.dropped_max > 0);
        assert_eq!(peaks.error_max(), 0);
    }

    #[test]
    fn values_without_a_code_have_no_peaks() {
        let mut peaks = Peaks::new(10);
        (0..FIRST).for_each(|code| peaks.count(code, 0));
        assert!(peaks.list().is_empty());
    }

    proptest! {
        #[test]
        fn no_peak_is_too_high_or_lower_than_the_error_allows(
            left_max in 0usize..40,
            requests in prop::collection::vec((FIRST..FIRST + 3, 0i64..1_800), 1..400),
        ) {
            let mut peaks = Peaks::new(left_max);
            let mut minutes = BTreeMap::<_, u64>::new();
            for &(address, time) in &requests {
                peaks.count(address, time);
                *minutes.entry((address, time / 60)).or_default() += 1;
                prop_assert!(peaks.left.len() <= left_max.max(2));
            }
            let list = peaks.list();
            for address in FIRST..FIRST + 3 {
                let of_address = minutes.iter().filter(|((it, _), _)| *it == address);
                let expected = of_address.map(|(_, requests)| *requests).max().unwrap_or(0);
                let found = list.get(address as usize).map_or(0, |peak| peak.requests);
                prop_assert!(found <= expected);
                prop_assert!(found + peaks.error_max() >= expected);
                prop_assert!(peaks.dropped_sum > 0 || found == expected);
            }
        }
    }
}
