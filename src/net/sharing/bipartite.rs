//! Sharing between two sides, as between the workers of a star.
//!
//! Where every route is one link of one side and one link of the other, and many of the pairs are
//! in use, the numbers of flows are kept as a table, link by link of the other side. What a link's
//! flows leave it is then one pass over a row of the table and the rates of the other side's links,
//! without a look at a flow; the row lies together in memory.
//!
//! After a change the links from the first that it concerns are filled again, as they come in the
//! order of last time. A link's state is worked out when it comes into a *window* of the next ones
//! and kept up to date there; of the window the link that fills first is taken. If that is at a
//! level below the last, it should have been taken earlier: links are emptied until it fits, and
//! from then on all of them are compared. So levels never fall, and in an order in which they do
//! not, progressive filling gives each link the rate that it has in the one max-min fair
//! allocation.

use super::table::{Bipartite, Candidate};
use super::{FEW_LINKS, Filling, NONE, OVERFULL, SAME, SAME_LEVEL, Sharing};

/// So many of the next links are compared.
const WINDOW: usize = 3;

/// Entered when one pair in so many is in use, and left when one in [`SPARSE`] is.
const DENSE: usize = 4;
const SPARSE: usize = 16;

/// What is left to fill.
struct Rest {
    /// Up to here the order is that of last time; then it was `links`, of which those up to `next`
    /// have been in the window.
    start: usize,
    links: Vec<u32>,
    next: usize,
    window: Vec<Candidate>,
    /// How many are compared.
    most: usize,
    /// Links whose flows have all settled elsewhere.
    idle: Vec<u32>,
    /// Those of last time, not looked at until now.
    asleep: Vec<u32>,
}

impl Sharing {
    /// Begins or stops to keep flows as a table, whichever pays, and says whether they are kept so.
    pub(super) fn use_bipartite(&mut self) -> bool {
        if self.bipartite.is_some() {
            if self.shape.is_dense(self.in_use, SPARSE) {
                return true;
            }
            self.leave_bipartite();
        }
        if !self.shape.is_dense(self.in_use, DENSE) {
            return false;
        }
        let mut bipartite = Bipartite::new(&self.shape);
        for &id in self.by_route.values() {
            let bundle = &self.bundles[id as usize];
            // More flows of a pair than a `u16` counts: no table then.
            if !bipartite.set_flows(&bundle.links, id, bundle.flows) {
                return false;
            }
        }
        self.bipartite = Some(Box::new(bipartite));
        self.changes.everything = true;
        self.solution.order.clear();
        self.solution.rank.fill(NONE);
        // Of links that fill together, the first is the bottleneck from now on.
        self.moved.extend(self.by_route.values());
        true
    }

    /// Stops to keep flows as a table. The next solution is from nothing.
    pub(super) fn leave_bipartite(&mut self) {
        if self.bipartite.is_none() {
            return;
        }
        let ids: Vec<u32> = self.by_route.values().copied().collect();
        for id in ids {
            let links = self.bundles[id as usize].links.iter();
            let first = links.min_by_key(|&&link| self.solution.rank[link as usize]);
            self.set_bottleneck(id, first.map_or(NONE, |&link| link));
        }
        self.bipartite = None;
        self.changes.everything = true;
    }

    /// Fills again what the changes concern.
    pub(super) fn fill_bipartite(&mut self) {
        let Some(mut bipartite) = self.bipartite.take() else {
            return;
        };
        let rest = self.empty(&mut bipartite);
        let anew = self.fill_in_order(&mut bipartite, rest);
        self.bipartite = Some(bipartite);
        self.effort.tables += u64::from(!anew);
        self.effort.whole += u64::from(anew);
    }

    /// Empties the links from the first that is concerned.
    fn empty(&mut self, bipartite: &mut Bipartite) -> Rest {
        let mut changed = self.changed_links();
        let mut start = bipartite.full.min(self.changes.left_at);
        for &link in &self.changes.joined {
            start = start.min(self.solution.rank[link as usize] as usize);
        }
        // Then all links are compared.
        let all = self.changes.everything || changed.len() > FEW_LINKS;
        if all {
            start = 0;
            changed = (0..self.links() as u32).collect();
        }
        let solution = &mut self.solution;
        let mut links = solution.order.split_off(start.min(solution.order.len()));
        for (place, &link) in links.iter().enumerate() {
            solution.rank[link as usize] = NONE;
            bipartite.was[link as usize] = (start + place) as u32;
            bipartite.rated[link as usize] = solution.level[link as usize];
            // A link of an order made elsewhere may be out of use.
            if bipartite.column[link as usize].1 != NONE {
                bipartite.set_rate(link, None);
            }
        }
        let mut asleep = Vec::new();
        // In the order of last time, if all are compared.
        if all {
            changed.retain(|&link| bipartite.was[link as usize] == NONE);
        }
        bipartite.seen.fill(false);
        for &link in &changed {
            bipartite.seen[link as usize] = true;
        }
        if !all {
            asleep = links.split_off(bipartite.full - start);
            asleep.retain(|&link| !bipartite.seen[link as usize]);
        }
        let mut rest = Rest {
            start,
            links,
            asleep,
            next: 0,
            window: Vec::new(),
            most: if all { usize::MAX } else { WINDOW },
            idle: Vec::new(),
        };
        for link in changed {
            self.look(bipartite, &mut rest, link);
        }
        rest
    }

    /// Takes a link into the window, unless it is out of use, or its flows have all settled and
    /// there was room for them.
    fn look(&self, bipartite: &mut Bipartite, rest: &mut Rest, link: u32) {
        if self.total[link as usize] > 0.0 {
            let candidate = bipartite.candidate(link, &self.capacity, &self.total);
            let Filling { spare, open } = candidate.filling;
            if open > 0.0 || spare < -OVERFULL * self.capacity[link as usize] {
                rest.window.push(candidate);
            } else {
                bipartite.sleep(link, spare);
                rest.idle.push(link);
            }
        }
    }

    /// Looks at the links that were not full last time and whose flows may have got too much by
    /// now, and returns by how much the rates of each side have risen.
    fn wake(&self, bipartite: &mut Bipartite, rest: &mut Rest) -> [f64; 2] {
        let mut rise = [0.0_f64; 2];
        for &link in &self.solution.order[rest.start..] {
            let more = self.solution.level[link as usize] - bipartite.rated[link as usize];
            let side = &mut rise[usize::from(bipartite.column[link as usize].0)];
            *side = side.max(more);
        }
        let mut asleep = std::mem::take(&mut rest.asleep);
        asleep.retain(|&link| {
            let across = 1 - usize::from(bipartite.column[link as usize].0);
            let (slack, then) = bipartite.slack[link as usize];
            let most = bipartite.rise[across] + rise[across] - then;
            let sleeps = slack > most * self.total[link as usize];
            if !sleeps {
                self.look(bipartite, rest, link);
            }
            sleeps
        });
        rest.asleep = asleep;
        rise
    }

    /// Fills what is left, and says whether all links were compared.
    fn fill_in_order(&mut self, bipartite: &mut Bipartite, mut rest: Rest) -> bool {
        let mut undone = 0;
        let mut rise;
        loop {
            while rest.window.len() < rest.most
                && let Some(&link) = rest.links.get(rest.next)
            {
                rest.next += 1;
                if !std::mem::replace(&mut bipartite.seen[link as usize], true) {
                    self.look(bipartite, &mut rest, link);
                }
            }
            let Some(first) = take_first(&mut rest.window) else {
                rise = self.wake(bipartite, &mut rest);
                if rest.window.is_empty() {
                    break;
                }
                continue;
            };
            let last = self.solution.order.last();
            let mut rate = last.map_or(0.0, |&link| self.solution.level[link as usize]);
            let level = first.filling.level();
            // With all compared it is rounding, and the level is taken for that of the last.
            if level < rate * (1.0 - SAME) && rest.most != usize::MAX {
                undone += 1;
                // More attempts than links are no order found but rounding: then all are compared,
                // which ends it.
                self.undo(bipartite, &mut rest, first, undone > self.total.len());
                continue;
            }
            if level > rate * (1.0 + SAME) {
                rate = level;
            }
            self.fill_one(bipartite, &mut rest, first.link, rate);
        }
        bipartite.full = self.solution.order.len();
        bipartite.was.fill(NONE);
        self.solution.order.append(&mut rest.idle);
        self.solution.order.append(&mut rest.asleep);
        for (total, rise) in bipartite.rise.iter_mut().zip(rise) {
            *total += rise;
        }
        rest.most == usize::MAX
    }

    /// Gives a rate to the open flows of a link.
    fn fill_one(&mut self, bipartite: &mut Bipartite, rest: &mut Rest, link: u32, rate: f64) {
        self.solution.rank[link as usize] = self.solution.order.len() as u32;
        self.solution.order.push(link);
        self.solution.level[link as usize] = rate;
        self.effort.links += 1;
        bipartite.set_rate(link, Some(rate));
        let (row, was) = (bipartite.row(link), bipartite.was[link as usize]);
        let side = bipartite.column[link as usize].0;
        let shared = |other: u32| {
            let (its, column) = bipartite.column[other as usize];
            if its == side { 0 } else { row[column as usize] }
        };
        // A link that used to fill earlier no longer holds back what the two share.
        let mut overtake = |other: u32| {
            if bipartite.was[other as usize] < was {
                self.moved.push(bipartite.bundle(link, other));
            }
        };
        let mut idle = false;
        for candidate in &mut rest.window {
            if candidate.side == side {
                continue;
            }
            let flows = row[candidate.column as usize];
            if flows > 0 {
                candidate.filling.settle(f64::from(flows), rate);
                idle |= candidate.filling.open <= 0.0;
                overtake(candidate.link);
            }
        }
        for &other in &rest.links[rest.next..] {
            if bipartite.was[other as usize] >= was {
                break;
            }
            if !bipartite.seen[other as usize] && shared(other) > 0 {
                overtake(other);
            }
        }
        if idle {
            rest.window.retain(|one| {
                let open = one.filling.open > 0.0;
                if !open {
                    bipartite.sleep(one.link, one.filling.spare);
                    rest.idle.push(one.link);
                }
                open
            });
        }
    }

    /// Empties links that have filled too early, before one that fills at a lower level. They are
    /// compared with all others from now on; so there is an end to it. After too many attempts:
    /// all.
    fn undo(
        &mut self,
        bipartite: &mut Bipartite,
        rest: &mut Rest,
        mut first: Candidate,
        all: bool,
    ) {
        let mut waiting: Vec<u32> = rest.window.drain(..).map(|one| one.link).collect();
        waiting.push(first.link);
        waiting.append(&mut rest.idle);
        let side = bipartite.column[first.link as usize].0;
        while let Some(&link) = self.solution.order.last() {
            let rate = self.solution.level[link as usize];
            if !all && rate <= first.filling.level() {
                break;
            }
            let (its, column) = bipartite.column[link as usize];
            if its != side {
                let flows = f64::from(bipartite.row(first.link)[column as usize]);
                first.filling.settle(-flows, rate);
            }
            self.solution.order.pop();
            let place = self.solution.order.len();
            if place < rest.start {
                // It has been left alone until now.
                rest.start = place;
                bipartite.was[link as usize] = place as u32;
                bipartite.rated[link as usize] = rate;
            }
            self.solution.rank[link as usize] = NONE;
            bipartite.set_rate(link, None);
            waiting.push(link);
        }
        if all {
            rest.most = usize::MAX;
        }
        for link in waiting {
            self.look(bipartite, rest, link);
        }
    }
}

/// Takes out of the window the link that fills first; of those that fill together, the first.
fn take_first(window: &mut Vec<Candidate>) -> Option<Candidate> {
    // A link that is overfull has no open flows.
    let parts = |one: &Candidate| (one.filling.spare.max(0.0), one.filling.open.max(1.0));
    let mut first = 0;
    let (mut spare, mut open) = parts(window.first()?);
    for (place, candidate) in window.iter().enumerate().skip(1) {
        let one = parts(candidate);
        // Levels, without a division.
        if one.0 * open < spare * one.1 * (1.0 - SAME_LEVEL) {
            (first, spare, open) = (place, one.0, one.1);
        }
    }
    // Not `swap_remove`: of equal ones the first in the window is to stay the first.
    Some(window.remove(first))
}
