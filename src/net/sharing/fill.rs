//! Filling links from nothing: all of them, or those that flows connect with each other.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Filling, MANY, NONE, SAME_LEVEL, Sharing};
use crate::net::units::Ordered;

/// Lower bounds of when each link fills. A link's level only rises as flows elsewhere settle, so an
/// outdated entry is too low, never too high: it is put right when it comes to the top.
pub(super) type Levels = BinaryHeap<Reverse<(Ordered, u32)>>;

/// What a solution works with, kept for the next one.
#[derive(Clone, Debug, Default)]
pub(super) struct Scratch {
    pub(super) filling: Vec<Filling>,
    pub(super) levels: Levels,
    settling: Vec<f64>,
    touched: Vec<u32>,
    full: Vec<u32>,
    /// Links that a search has come to.
    pub(super) seen: Vec<bool>,
}

impl Scratch {
    pub(super) fn grow(&mut self, links: usize) {
        self.filling.resize(links, Filling::default());
        self.settling.resize(links, 0.0);
        self.seen.resize(links, false);
    }
}

/// Takes from the heap the links that fill next, and the level at which they do.
fn next(filling: &[Filling], levels: &mut Levels, full: &mut Vec<u32>) -> Option<f64> {
    full.clear();
    let mut lowest = f64::INFINITY;
    while let Some(&Reverse((Ordered(bound), link))) = levels.peek()
        && bound <= lowest * (1.0 + SAME_LEVEL)
    {
        levels.pop();
        let one = filling[link as usize];
        if one.open <= 0.0 {
            continue;
        }
        let level = one.level();
        if full.is_empty() && level > bound {
            // Outdated: other links may fill before it.
            levels.push(Reverse((Ordered(level), link)));
        } else if level <= lowest * (1.0 + SAME_LEVEL) {
            lowest = lowest.min(level);
            full.push(link);
        } else {
            levels.push(Reverse((Ordered(level), link)));
        }
    }
    (!full.is_empty()).then_some(lowest)
}

impl Sharing {
    /// The links that flows connect with these, directly or over others; nothing if they are more
    /// than is worth filling from nothing.
    pub(super) fn component(&mut self, links: &[u32]) -> Option<Vec<u32>> {
        let seen = &mut self.scratch.seen;
        let mut found = links.to_vec();
        for &link in links {
            seen[link as usize] = true;
        }
        let (mut next, mut crossings) = (0, 0);
        let small = loop {
            let Some(&link) = found.get(next) else {
                break true;
            };
            next += 1;
            let on = &self.crossing[link as usize];
            crossings += on.others.len();
            if crossings > super::SMALL {
                break false;
            }
            let mut look = |other: u32| {
                if !std::mem::replace(&mut seen[other as usize], true) {
                    found.push(other);
                }
            };
            for (&other, &bundle) in on.others.iter().zip(&on.bundles) {
                if other == MANY {
                    let links = &self.bundles[bundle as usize].links;
                    for &other in links {
                        look(other);
                    }
                } else {
                    look(other);
                }
            }
        };
        self.effort.visits += crossings as u64;
        for &link in &found {
            seen[link as usize] = false;
        }
        small.then_some(found)
    }

    /// Fills links from nothing. No flow on them may cross another link.
    pub(super) fn fill(&mut self, links: &[u32]) {
        // Taken out, so that its vectors can be written while the rest of `self` is read and
        // changed.
        let mut scratch = std::mem::take(&mut self.scratch);
        let Scratch {
            filling,
            levels,
            settling,
            touched,
            full,
            ..
        } = &mut scratch;
        levels.clear();
        for &link in links {
            let at = link as usize;
            self.solution.rank[at] = NONE;
            filling[at] = Filling {
                spare: self.capacity[at],
                open: self.total[at],
            };
            if filling[at].open > 0.0 {
                levels.push(Reverse((Ordered(filling[at].level()), link)));
            }
        }
        let mut rate = 0.0_f64;
        let mut filled = 0;
        while let Some(level) = next(filling, levels, full) {
            // Never below an earlier round, whatever rounding does.
            rate = rate.max(level);
            for &link in &*full {
                self.solution.rank[link as usize] = filled;
                self.solution.level[link as usize] = rate;
                self.rated.push(link);
                filled += 1;
            }
            let alone = full.len() == 1;
            for &link in &*full {
                let at = link as usize;
                self.effort.visits += self.crossing[at].others.len() as u64;
                // Settling moves bundles about, never from beyond the place that is looked at.
                for place in 0..self.crossing[at].others.len() {
                    let through = self.crossing[at].others[place];
                    let flows = self.crossing[at].flows[place];
                    let id = self.crossing[at].bundles[place];
                    let mut settle = |other: u32| {
                        if alone && through != MANY {
                            filling[other as usize].settle(f64::from(flows), rate);
                            return;
                        }
                        // Flows are whole numbers, at least 1, so 0 is a link not touched in this
                        // round.
                        if settling[other as usize] == 0.0 {
                            touched.push(other);
                        }
                        settling[other as usize] += f64::from(flows);
                    };
                    let rank = &self.solution.rank;
                    // Who fills among its other links first, before this one or after it.
                    let earliest = if through == MANY {
                        let links = &self.bundles[id as usize].links;
                        let others = links.iter().filter(|&&other| other != link);
                        let ranks = others.clone().map(|&other| rank[other as usize]);
                        let earliest = ranks.min().unwrap_or(NONE);
                        if earliest > rank[at] {
                            others.copied().for_each(&mut settle);
                        }
                        earliest
                    } else {
                        let earliest = rank[through as usize];
                        if earliest > rank[at] {
                            settle(through);
                        }
                        earliest
                    };
                    // Among links that fill together the bottleneck is the one it was.
                    if earliest > rank[at] && place >= self.own[at] {
                        let old = self.bundles[id as usize].bottleneck;
                        let old = rank.get(old as usize).copied().unwrap_or(NONE);
                        if earliest == NONE || old == NONE {
                            self.set_bottleneck(id, link);
                        }
                    }
                }
                filling[at] = Filling::default();
            }
            // Of links that fill together: one subtraction for all, not one for each. Hundreds of
            // roundings become one.
            for link in touched.drain(..) {
                let flows = std::mem::take(&mut settling[link as usize]);
                filling[link as usize].settle(flows, rate);
            }
        }
        self.effort.links += u64::from(filled);
        self.scratch = scratch;
    }
}
