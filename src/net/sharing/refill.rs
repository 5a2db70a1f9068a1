//! Filling again what a change concerns, among many flows that hang together.
//!
//! What a flow does to others begins where its bottleneck fills: links that fill before it, and
//! hold back nobody it could help, stay as they are. So only some links are *concerned*:
//!
//! 1. those of flows that came or left, or whose capacity changed;
//! 2. with a link, all others on the ways of the flows that it holds back. They fill later, so this
//!    goes upwards only;
//! 3. a link that turns out to hold back a flow at a higher rate than another of its links, which
//!    is concerned, would now give it.
//!
//! Concerned links are filled in the order of their levels, from a heap of lower bounds. What their
//! flows get elsewhere is what they got there, unless that link is concerned too. A link's state is
//! worked out from its flows when it comes to the top for the first time, and once more when others
//! are found to be concerned.
//!
//! The result is right if links fill at levels that do not fall: then every flow has a full link on
//! which none is faster, and there is only one such allocation. That is checked, and where rounding
//! breaks it, everything is filled from nothing.

use std::cmp::Reverse;

use super::{Filling, SAME, SAME_LEVEL, Sharing};
use crate::net::units::Ordered;

/// What a change means for a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Not concerned.
    #[default]
    Same,
    /// Concerned, but only one bundle crosses it, which another link holds back: it matters only if
    /// that link would give more than this one has.
    Wide,
    /// Concerned, and not looked at.
    Waits,
    /// What is left for its flows is worked out and kept up to date.
    Open,
    /// All its flows have rates, from elsewhere.
    Idle,
    /// It has been filled.
    Full,
}

/// A solution under way, kept for the next one.
#[derive(Clone, Debug, Default)]
pub(super) struct Refill {
    state: Vec<State>,
    concerned: Vec<u32>,
    ahead: Vec<u32>,
    /// Whether there is anything wide.
    wide: bool,
}

impl Refill {
    pub(super) fn grow(&mut self, links: usize) {
        self.state.resize(links, State::Same);
    }

    /// Whether flows that this link held back have no rate yet.
    fn is_open(&self, bottleneck: u32) -> bool {
        let state = self.state.get(bottleneck as usize);
        // `NONE`, which is no link, stands for a flow that never had a rate.
        state.is_none_or(|state| matches!(state, State::Waits | State::Open))
    }
}

impl Sharing {
    /// Fills again what the changes concern; `false` if that must be done from nothing.
    pub(super) fn refill(&mut self, changed: &[u32]) -> bool {
        // Taken out as in `fill`; what it holds is given back empty.
        let mut work = std::mem::take(&mut self.refill);
        self.scratch.levels.clear();
        work.wide = false;
        for &link in changed {
            self.concern(&mut work, link, 0.0);
        }
        let right = self.fill_concerned(&mut work);
        self.effort.links += work.concerned.len() as u64;
        for link in work.concerned.drain(..) {
            work.state[link as usize] = State::Same;
        }
        self.refill = work;
        right
    }

    /// A link is concerned, and those that its flows also cross.
    fn concern(&mut self, work: &mut Refill, link: u32, rate: f64) {
        work.ahead.push(link);
        let first = link;
        while let Some(link) = work.ahead.pop() {
            let at = link as usize;
            match work.state[at] {
                State::Same => work.concerned.push(link),
                // What it took for settled may be open now.
                State::Open | State::Idle => {
                    work.state[at] = State::Waits;
                    self.scratch.levels.push(Reverse((Ordered(rate), link)));
                    continue;
                }
                State::Wide if link == first => {}
                State::Wide | State::Waits | State::Full => continue,
            }
            if link != first && self.own[at] == 0 && self.crossing[at].bundles.len() == 1 {
                work.state[at] = State::Wide;
                work.wide = true;
                continue;
            }
            work.state[at] = State::Waits;
            // No link fills below its equal share: flows that settle elsewhere settle at less and
            // leave more.
            let bound = rate.max(self.equal(at) * (1.0 - SAME_LEVEL));
            self.scratch.levels.push(Reverse((Ordered(bound), link)));
            for place in 0..self.own[at] {
                let id = self.crossing[at].bundles[place];
                let links = self.bundles[id as usize].links.iter();
                work.ahead.extend(links.filter(|&&other| other != link));
            }
            self.effort.visits += self.own[at] as u64;
        }
    }

    /// Fills what is wide and yet has less than this for a flow of a link, and says whether there
    /// was any. Nobody else hears of it, so it need not be its turn.
    fn fill_narrower(&mut self, work: &mut Refill, link: u32, level: f64) -> bool {
        let mut narrower = Vec::new();
        for &id in &self.crossing[link as usize].bundles {
            let bundle = &self.bundles[id as usize];
            if !work.is_open(bundle.bottleneck) {
                continue;
            }
            let wide = bundle.links.iter().copied();
            let least = wide
                .filter(|&other| work.state[other as usize] == State::Wide)
                .map(|other| (Ordered(self.equal(other as usize)), other))
                .min();
            narrower.extend(least.filter(|(least, _)| least.0 < level * (1.0 - SAME_LEVEL)));
        }
        for &(Ordered(least), other) in &narrower {
            self.give(work, other, least);
        }
        !narrower.is_empty()
    }

    /// The rate of flows that share a link equally.
    fn equal(&self, link: usize) -> f64 {
        self.capacity[link] / self.total[link].max(1.0)
    }

    fn fill_concerned(&mut self, work: &mut Refill) -> bool {
        let mut rate = 0.0_f64;
        while let Some(Reverse((_, link))) = self.scratch.levels.pop() {
            let at = link as usize;
            match work.state[at] {
                State::Waits => {
                    self.open(work, link, rate);
                    work.state[at] = State::Open;
                }
                State::Open => {}
                State::Same | State::Wide | State::Idle | State::Full => continue,
            }
            let filling = self.scratch.filling[at];
            if filling.open <= 0.0 {
                work.state[at] = State::Idle;
                continue;
            }
            let level = filling.level();
            if let Some(&Reverse((Ordered(bound), _))) = self.scratch.levels.peek()
                && level > bound
            {
                self.scratch.levels.push(Reverse((Ordered(level), link)));
                continue;
            }
            // Rates are max-min fair only while levels do not fall; else everything is filled from
            // nothing.
            if level < rate * (1.0 - SAME) {
                return false;
            }
            if work.wide && self.fill_narrower(work, link, level) {
                self.scratch.levels.push(Reverse((Ordered(level), link)));
                continue;
            }
            if level > rate * (1.0 + SAME_LEVEL) {
                rate = level;
            }
            self.give(work, link, rate);
        }
        true
    }

    /// Works out what a link has left for flows without a rate.
    fn open(&mut self, work: &mut Refill, link: u32, rate: f64) {
        let at = link as usize;
        loop {
            let mut filling = Filling {
                spare: self.capacity[at],
                open: self.total[at],
            };
            let on = &self.crossing[at];
            self.effort.visits += on.bundles.len() as u64;
            for (&id, &flows) in on.bundles.iter().zip(&on.flows) {
                let bottleneck = self.bundles[id as usize].bottleneck;
                if bottleneck != link && !work.is_open(bottleneck) {
                    let rate = self.solution.level[bottleneck as usize];
                    filling.settle(f64::from(flows), rate);
                }
            }
            self.scratch.filling[at] = filling;
            // Equal but for rounding is not above.
            let level = filling.level() * (1.0 + SAME_LEVEL);
            // Flows that others held back at more than this link now has for them. The highest
            // first: without it there may be room for the rest.
            let on = &self.crossing[at];
            let elsewhere = on.bundles[self.own[at]..].iter();
            let highest = elsewhere
                .map(|&id| self.bundles[id as usize].bottleneck)
                .filter(|&other| work.state.get(other as usize) == Some(&State::Same))
                .map(|other| (Ordered(self.solution.level[other as usize]), other))
                .max();
            match highest {
                Some((Ordered(above), other))
                    if above > level && (filling.open > 0.0 || filling.spare < 0.0) =>
                {
                    self.concern(work, other, rate);
                }
                _ => return,
            }
        }
    }

    /// Gives a rate to the flows of a link that have none.
    fn give(&mut self, work: &mut Refill, link: u32, rate: f64) {
        let at = link as usize;
        work.state[at] = State::Full;
        self.solution.level[at] = rate;
        self.rated.push(link);
        self.effort.visits += self.crossing[at].bundles.len() as u64;
        // Moving bundles about never brings one from beyond the place that is looked at.
        for place in 0..self.crossing[at].bundles.len() {
            let id = self.crossing[at].bundles[place];
            let bottleneck = self.bundles[id as usize].bottleneck;
            if bottleneck != link {
                if !work.is_open(bottleneck) {
                    continue;
                }
                self.set_bottleneck(id, link);
            }
            let bundle = &self.bundles[id as usize];
            let flows = f64::from(bundle.flows);
            for &other in bundle.links.iter().filter(|&&other| other != link) {
                if work.state[other as usize] == State::Open {
                    self.scratch.filling[other as usize].settle(flows, rate);
                }
            }
        }
    }
}
