//! The effect of many limits at once.

use crate::query::RateLimit;
use crate::summary::RateEffect;

/// The first digits of the limits on the curve.
const DIGITS: [u64; 12] = [10, 12, 15, 20, 25, 30, 40, 50, 60, 70, 80, 90];
/// More requests than a window has in any log.
const ALLOWED_MAX: u64 = 1_000_000_000;

/// Counts the requests over each of a list of limits, which have the same window.
///
/// A request exceeds every limit that is lower than its number in its window, so one pass over the
/// requests suffices for all limits.
#[derive(Clone, Debug)]
pub(crate) struct Curve {
    /// What each limit allows, in ascending order.
    allowed: Vec<u64>,
    /// For keys that do not look like people, and for those that do.
    sums: [Sums; 2],
}

#[derive(Clone, Debug)]
struct Sums {
    /// By the number of limits that are all exceeded: keys, their requests, and requests over them.
    below: Vec<[u64; 3]>,
    /// More requests over each limit.
    over: Vec<u64>,
}

impl Curve {
    /// Creates a curve that includes `limit`.
    pub(crate) fn new(limit: RateLimit) -> Self {
        let scales = (0..).map(|power| 10_u64.pow(power));
        let scales = scales.take_while(|&scale| scale < ALLOWED_MAX);
        let mut allowed: Vec<u64> = scales
            .flat_map(|scale| DIGITS.map(|digit| digit * scale))
            .filter(|it| it % 10 == 0)
            .map(|it| it / 10)
            .chain([limit.requests()])
            .collect();
        allowed.sort_unstable();
        allowed.dedup();
        let sums = Sums {
            below: vec![[0; 3]; allowed.len() + 1],
            over: vec![0; allowed.len()],
        };
        Self {
            allowed,
            sums: [sums.clone(), sums],
        }
    }

    /// Counts requests that are those after the first `before` of their windows, up to `rank`.
    #[inline]
    pub(crate) fn count(&mut self, looks_like_people: bool, before: u64, rank: u64) {
        let sums = &mut self.sums[usize::from(looks_like_people)];
        let exceeded = self.allowed.partition_point(|&it| it <= before);
        sums.below[exceeded][2] += rank - before;
        for (&allowed, over) in self.allowed[exceeded..]
            .iter()
            .zip(&mut sums.over[exceeded..])
        {
            if allowed >= rank {
                break;
            }
            *over += rank - allowed;
        }
    }

    /// Counts a key of `requests` requests, which has at most `peak` in a window.
    pub(crate) fn end_key(&mut self, looks_like_people: bool, peak: u64, requests: u64) {
        let exceeded = self.allowed.partition_point(|&it| it < peak);
        let [keys, all, _] = &mut self.sums[usize::from(looks_like_people)].below[exceeded];
        *keys += 1;
        *all += requests;
    }

    /// Returns the effect of each limit, up to the first without any.
    pub(crate) fn effects(&self) -> Vec<RateEffect> {
        let mut effects: Vec<RateEffect> = Vec::with_capacity(self.allowed.len());
        let mut sums = [[0; 3]; 2];
        for at in (0..self.allowed.len()).rev() {
            for (sum, of) in sums.iter_mut().zip(&self.sums) {
                let more = of.below[at + 1];
                sum.iter_mut()
                    .zip(more)
                    .for_each(|(sum, more)| *sum += more);
            }
            let [programs, people] = sums;
            let over = |group: usize| sums[group][2] + self.sums[group].over[at];
            effects.push(RateEffect {
                allowed: self.allowed[at],
                keys: programs[0] + people[0],
                requests: programs[1] + people[1],
                over: over(0) + over(1),
                people: people[0],
                people_over: over(1),
            });
        }
        effects.reverse();
        let used = effects.iter().position(|effect| effect.keys == 0);
        effects.truncate(used.map_or(effects.len(), |at| at + 1));
        effects
    }

    /// Returns the effect of one of the limits.
    pub(crate) fn effect_of(&self, limit: RateLimit) -> RateEffect {
        let allowed = limit.requests();
        let found = self.effects().into_iter().find(|it| it.allowed == allowed);
        found.unwrap_or(RateEffect {
            allowed,
            ..RateEffect::default()
        })
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.allowed.capacity() * (3 * size_of::<u64>() + 2 * size_of::<[u64; 3]>())
    }
}
