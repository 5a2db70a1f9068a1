//! Filling again after a few flows came or went.
//!
//! What a flow does to others begins where its bottleneck fills: links that fill before are not
//! concerned. So things are put back to a snapshot from before, and the links after it are filled
//! once more, one after another, in the order of last time. A few of the next links and all whose
//! flows changed are compared each time, and the one that fills first is taken; where it overtakes
//! another, it becomes the bottleneck of the flows that they share.
//!
//! The result is right if links fill at levels that do not fall, and if no link ends up over its
//! capacity: then every flow has a full link on which none is faster, and there is only one such
//! allocation. Both are checked, and where one fails (a link has moved further than was looked, or
//! has filled that did not last time), everything is filled from nothing.

use super::{FEW_LINKS, Filling, MANY, NONE, OVERFULL, SAME, Sharing, Snapshot};

/// So many of the next links are compared.
const WINDOW: usize = 12;

/// What is left to fill.
struct Rest {
    /// The order of last time, from the snapshot on.
    links: Vec<u32>,
    /// Up to here all have filled, or are in `idle`.
    head: usize,
    /// Links with changed flows, and their places in `links`, where new ones have none.
    changed: Vec<(u32, usize)>,
    /// Links whose flows have all settled elsewhere.
    idle: Vec<u32>,
}

impl Sharing {
    /// Fills again what the changes concern; `false` if that must be done from nothing.
    pub(super) fn refill(&mut self) -> bool {
        let changed = self.changed_links();
        if self.changes.everything || changed.len() > FEW_LINKS {
            return false;
        }
        let start = self.put_back();
        let mut rest = Rest {
            links: self.solution.order.split_off(start),
            head: 0,
            changed: Vec::with_capacity(changed.len()),
            idle: Vec::new(),
        };
        for &link in &rest.links {
            self.solution.rank[link as usize] = NONE;
        }
        for link in changed {
            let place = rest.links.iter().position(|&other| other == link);
            if let Some(place) = place {
                rest.links[place] = NONE;
            }
            if self.total[link as usize] > 0.0 && self.solution.rank[link as usize] == NONE {
                rest.changed.push((link, place.unwrap_or(usize::MAX)));
            }
        }
        self.fill_rest(start, rest)
    }

    /// Links with changed flows, each once.
    pub(super) fn changed_links(&self) -> Vec<u32> {
        let mut links: Vec<u32> = self.changes.links.iter().map(|change| change.0).collect();
        links.sort_unstable();
        links.dedup();
        links
    }

    /// Goes back to the last snapshot that the changes leave alone but for the flows still open,
    /// and returns its place in the order.
    fn put_back(&mut self) -> usize {
        let left_at = self.changes.left_at;
        let mut valid = 0;
        let mut snapshots = std::mem::take(&mut self.solution.snapshots);
        for snapshot in snapshots.iter_mut().filter(|one| one.at <= left_at) {
            for &(link, change) in &self.changes.links {
                let filling = &mut snapshot.filling[link as usize];
                filling.spare += change.spare;
                filling.open += change.open;
            }
            let solution = &self.solution;
            let before = solution.order[snapshot.at - 1] as usize;
            // With one more flow a link may fill earlier than it did.
            let fills_later = |&link: &u32| {
                let link = link as usize;
                solution.rank[link] as usize >= snapshot.at
                    && snapshot.filling[link].level() > solution.level[before]
            };
            if !self.changes.joined.iter().all(fills_later) {
                break;
            }
            valid += 1;
        }
        snapshots.truncate(valid);
        let solution = &mut self.solution;
        solution.filling.clear();
        let mut start = 0;
        if let Some(snapshot) = snapshots.last() {
            solution.filling.extend(&snapshot.filling);
            start = snapshot.at;
        } else {
            let all = self.capacity.iter().zip(&self.total);
            let all = all.map(|(&spare, &open)| Filling { spare, open });
            solution.filling.extend(all);
        }
        solution.snapshots = snapshots;
        start
    }

    fn fill_rest(&mut self, start: usize, mut rest: Rest) -> bool {
        let mut rate = match start {
            0 => 0.0,
            _ => self.solution.level[self.solution.order[start - 1] as usize],
        };
        let mut work = 0;
        while let Some((link, place)) = self.fills_first(&mut rest) {
            if work >= 2 * self.links() {
                work = 0;
                self.solution.snapshots.push(Snapshot {
                    at: self.solution.order.len(),
                    filling: self.solution.filling.clone(),
                });
            }
            let filling = self.solution.filling[link as usize];
            let level = filling.level();
            if level < rate * (1.0 - SAME) {
                return false;
            }
            if level > rate * (1.0 + SAME) {
                rate = level;
            }
            if self.overtakes(&rest, place) {
                self.claim(link);
            }
            self.solution.rank[link as usize] = self.solution.order.len() as u32;
            self.solution.order.push(link);
            self.solution.level[link as usize] = rate;
            work += self.own[link as usize];
            if self.settle_own(link, rate) != filling.open {
                return false;
            }
        }
        let all_idle = rest.idle.iter().copied();
        let changed = rest.changed.iter().map(|changed| changed.0);
        let idle: Vec<u32> = all_idle
            .chain(changed)
            .filter(|&link| self.solution.rank[link as usize] == NONE)
            .collect();
        for &link in &idle {
            let Filling { spare, open } = self.solution.filling[link as usize];
            if open > 0.0 || spare < -OVERFULL * self.capacity[link as usize] {
                return false;
            }
        }
        self.solution.order.extend(idle);
        true
    }

    /// Of the links that are looked at, the one that fills first, and its place in the order of
    /// last time.
    fn fills_first(&self, rest: &mut Rest) -> Option<(u32, usize)> {
        let Self { solution, .. } = self;
        let waits = |link: u32| link != NONE && solution.rank[link as usize] == NONE;
        let mut first: Option<(u32, usize)> = None;
        let mut least = Filling {
            spare: f64::INFINITY,
            open: 1.0,
        };
        let mut compare = |link: u32, place: usize| {
            let one = solution.filling[link as usize];
            // Levels, without a division.
            let lower = one.spare.max(0.0) * least.open < least.spare * one.open;
            if one.open > 0.0 && (lower || first.is_none()) {
                first = Some((link, place));
                least = Filling {
                    spare: one.spare.max(0.0),
                    ..one
                };
            }
            one.open > 0.0
        };
        let mut seen = 0;
        let mut place = rest.head;
        while let Some(&link) = rest.links.get(place)
            && seen < WINDOW
        {
            if waits(link) && compare(link, place) {
                seen += 1;
            } else if place == rest.head {
                if waits(link) {
                    rest.idle.push(link);
                }
                rest.head += 1;
            }
            place += 1;
        }
        for &(link, place) in &rest.changed {
            if waits(link) {
                compare(link, place);
            }
        }
        first
    }

    /// Whether the link from this place fills before one that used to fill earlier, or before new
    /// flows were given to anyone.
    fn overtakes(&self, rest: &Rest, place: usize) -> bool {
        let changed = rest.changed.iter().any(|&(link, was)| {
            was == place
                || (self.solution.rank[link as usize] == NONE
                    && was < place
                    && self.own[link as usize] > 0)
        });
        changed || place > rest.head
    }

    /// Makes a link the bottleneck of all flows on it that have not settled.
    fn claim(&mut self, link: u32) {
        for place in self.own[link as usize]..self.crossing[link as usize].bundles.len() {
            if self.is_open(link, place) {
                let id = self.crossing[link as usize].bundles[place];
                self.set_bottleneck(id, link);
            }
        }
    }

    /// Whether none of the other links of a bundle on this link has filled.
    fn is_open(&self, link: u32, place: usize) -> bool {
        let on = &self.crossing[link as usize];
        let waits = |link: u32| self.solution.rank[link as usize] == NONE;
        match on.others[place] {
            MANY => {
                let links = &self.bundles[on.bundles[place] as usize].links;
                links.iter().all(|&link| waits(link))
            }
            other => waits(other),
        }
    }

    /// Gives the rate to all flows that a link holds back, and returns how many they are.
    fn settle_own(&mut self, link: u32, rate: f64) -> f64 {
        let filling = &mut self.solution.filling;
        let own = self.own[link as usize];
        let on = &self.crossing[link as usize];
        let mut settled = 0_u64;
        for place in 0..own {
            let (other, flows) = (on.others[place], on.flows[place]);
            settled += u64::from(flows);
            // MANY is no link: one look tells that, and that the other link exists.
            if let Some(other) = filling.get_mut(other as usize) {
                other.settle(f64::from(flows), rate);
            } else {
                let id = on.bundles[place];
                self.bundles[id as usize].settle_others(link, rate, filling);
            }
        }
        filling[link as usize] = Filling::default();
        settled as f64
    }
}
