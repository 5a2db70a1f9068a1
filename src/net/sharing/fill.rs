//! Filling from nothing.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::{Filling, SAME_LEVEL, Sharing, Snapshot};

/// When a link fills, as an ordered number.
#[derive(Clone, Copy, Debug)]
struct Level(f64);

/// So many links at one level make refilling one after another imprecise; see
/// [`super::refill`].
const LARGE_GROUP: usize = 8;

/// Lower bounds of when each link fills. A link's level only rises as flows elsewhere settle, so an
/// outdated entry is too low, never too high: it is put right when it comes to the top.
type Levels = BinaryHeap<Reverse<(Level, usize)>>;

/// Takes from the heap the links that fill next, and the level at which they do.
fn next(filling: &[Filling], levels: &mut Levels, full: &mut Vec<usize>) -> Option<f64> {
    full.clear();
    let mut lowest = f64::INFINITY;
    while let Some(&Reverse((Level(bound), link))) = levels.peek()
        && bound <= lowest * (1.0 + SAME_LEVEL)
    {
        levels.pop();
        if filling[link].open <= 0.0 {
            continue;
        }
        let level = filling[link].level();
        if full.is_empty() && level > bound {
            // Outdated: other links may fill before it.
            levels.push(Reverse((Level(level), link)));
        } else if level <= lowest * (1.0 + SAME_LEVEL) {
            lowest = lowest.min(level);
            full.push(link);
        } else {
            levels.push(Reverse((Level(level), link)));
        }
    }
    (!full.is_empty()).then_some(lowest)
}

impl Sharing {
    /// Fills all links from nothing.
    pub(super) fn fill(&mut self) {
        let links = self.links();
        let number = self.solution.number;
        let solution = &mut self.solution;
        solution.order.clear();
        solution.snapshots.clear();
        solution.grouped = 0;
        solution.rank.fill(super::NONE);
        let now = self.capacity.iter().zip(&self.total);
        solution.filling.clear();
        solution
            .filling
            .extend(now.map(|(&spare, &open)| Filling { spare, open }));
        let mut filling = std::mem::take(&mut solution.filling);
        let mut levels: Levels = (0..links)
            .filter(|&link| filling[link].open > 0.0)
            .map(|link| Reverse((Level(filling[link].level()), link)))
            .collect();
        let mut settling = vec![0.0; links];
        let mut touched: Vec<u32> = Vec::new();
        let mut full = Vec::new();
        let mut rate = 0.0_f64;
        let mut work = 0;
        while let Some(level) = next(&filling, &mut levels, &mut full) {
            // Never below an earlier round, whatever rounding does.
            rate = rate.max(level);
            if work >= 2 * links {
                work = 0;
                self.solution.snapshots.push(Snapshot {
                    at: self.solution.order.len(),
                    filling: filling.clone(),
                });
            }
            let first = self.solution.order.len();
            for &link in &full {
                self.solution.rank[link] = self.solution.order.len() as u32;
                self.solution.order.push(link as u32);
                self.solution.level[link] = rate;
            }
            if full.len() > LARGE_GROUP {
                self.solution.grouped = self.solution.order.len();
            }
            for &link in &full {
                work += self.crossing[link].len();
                // Settling moves bundles about, never from beyond the place that is looked at.
                for place in 0..self.crossing[link].len() {
                    let id = self.crossing[link][place].bundle;
                    let bundle = &mut self.bundles[id as usize];
                    if bundle.settled == number {
                        continue;
                    }
                    bundle.settled = number;
                    for &link in &bundle.links {
                        if settling[link as usize] == 0.0 {
                            touched.push(link);
                        }
                        settling[link as usize] += f64::from(bundle.flows);
                    }
                    // Among links that fill together the bottleneck is the one it was.
                    let old = self.solution.rank.get(bundle.bottleneck as usize);
                    if old.is_none_or(|&rank| rank == super::NONE || (rank as usize) < first) {
                        self.set_bottleneck(id, link as u32);
                    }
                }
            }
            // One subtraction a link and round, not one a flow: hundreds of roundings become one.
            for link in touched.drain(..) {
                let flows = std::mem::take(&mut settling[link as usize]);
                filling[link as usize].settle(flows, rate);
            }
        }
        let solution = &mut self.solution;
        solution.filling = filling;
        let rank = &solution.rank;
        let idle =
            (0..links).filter(|&link| self.total[link] > 0.0 && rank[link] == super::NONE);
        solution.order.extend(idle.map(|link| link as u32));
    }
}

impl Ord for Level {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Level {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Level {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Level {}
