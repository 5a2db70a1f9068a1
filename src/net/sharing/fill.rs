//! Filling from nothing.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::{Filling, MANY, NONE, SAME_LEVEL, Sharing, Snapshot};

/// When a link fills, as an ordered number.
#[derive(Clone, Copy, Debug)]
struct Level(f64);

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
        let solution = &mut self.solution;
        solution.order.clear();
        solution.snapshots.clear();
        solution.rank.fill(NONE);
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
            for &link in &full {
                self.solution.rank[link] = self.solution.order.len() as u32;
                self.solution.order.push(link as u32);
                self.solution.level[link] = rate;
            }
            let alone = full.len() == 1;
            for &link in &full {
                work += self.crossing[link].others.len();
                // Settling moves bundles about, never from beyond the place that is looked at.
                for place in 0..self.crossing[link].others.len() {
                    let through = self.crossing[link].others[place];
                    let flows = self.crossing[link].flows[place];
                    let id = self.crossing[link].bundles[place];
                    let mut settle = |other: u32| {
                        if alone && through != MANY {
                            filling[other as usize].settle(f64::from(flows), rate);
                            return;
                        }
                        if settling[other as usize] == 0.0 {
                            touched.push(other);
                        }
                        settling[other as usize] += f64::from(flows);
                    };
                    let rank = &self.solution.rank;
                    // Who fills among its other links first, before this one or after it.
                    let earliest = if through == MANY {
                        let links = &self.bundles[id as usize].links;
                        let others = links.iter().filter(|&&other| other as usize != link);
                        let ranks = others.clone().map(|&other| rank[other as usize]);
                        let earliest = ranks.min().unwrap_or(NONE);
                        if earliest > rank[link] {
                            others.copied().for_each(&mut settle);
                        }
                        earliest
                    } else {
                        let earliest = rank[through as usize];
                        if earliest > rank[link] {
                            settle(through);
                        }
                        earliest
                    };
                    // Among links that fill together the bottleneck is the one it was.
                    if earliest > rank[link] && place >= self.own[link] {
                        let old = self.bundles[id as usize].bottleneck;
                        let old = rank.get(old as usize).copied().unwrap_or(NONE);
                        if earliest == NONE || old == NONE {
                            self.set_bottleneck(id, link as u32);
                        }
                    }
                }
                filling[link] = Filling::default();
            }
            // Of links that fill together: one subtraction for all, not one for each. Hundreds of
            // roundings become one.
            for link in touched.drain(..) {
                let flows = std::mem::take(&mut settling[link as usize]);
                filling[link as usize].settle(flows, rate);
            }
        }
        let solution = &mut self.solution;
        solution.filling = filling;
        let rank = &solution.rank;
        let idle = (0..links).filter(|&link| self.total[link] > 0.0 && rank[link] == NONE);
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
