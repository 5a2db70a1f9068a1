//! How far transmissions are.
//!
//! All flows with the same bottleneck have the same rate. So each link keeps one clock of service,
//! the bytes that each of its flows has got; a flow is done when the clock shows what it showed when
//! the flow came, and the flow's bytes. A new rate then costs one number a link, not one a flow.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// A clock shows at most so many times the bytes of its smallest flow, so that rounding stays below
/// 1e-12 of any flow.
const MOST_SERVED: f64 = 4096.0;

/// A share of its bytes that a flow may lack when it ends. Equal messages whose shares were rounded
/// differently thus end together.
const NEGLIGIBLE: f64 = 1e-12;

const NOWHERE: u32 = u32::MAX;

/// All flows, by the link that holds them back.
#[derive(Clone, Debug)]
pub(super) struct Progress {
    clocks: Vec<Clock>,
    /// When the next flow of each link ends, and how much later still counts as then.
    ends: Vec<f64>,
    slack: Vec<f64>,
    flows: Vec<Flow>,
}

#[derive(Clone, Debug)]
struct Clock {
    /// Bytes that each flow has got at `since`, and bytes per second from then on.
    served: f64,
    since: f64,
    rate: f64,
    /// Bytes of the smallest flow since it was last set to zero.
    smallest: f64,
    live: usize,
    queue: BinaryHeap<Reverse<Due>>,
    /// Whether `ends` is out of date.
    stale: bool,
}

impl Default for Clock {
    fn default() -> Self {
        Self {
            served: 0.0,
            since: 0.0,
            rate: 0.0,
            smallest: f64::INFINITY,
            live: 0,
            queue: BinaryHeap::new(),
            stale: false,
        }
    }
}

impl Clock {
    fn served_at(&self, now: f64) -> f64 {
        self.served + self.rate * (now - self.since)
    }

    fn end(&self, due: Due) -> f64 {
        self.since + ((due.target - self.served) / self.rate).max(0.0)
    }
}

/// What the clock shows when a flow is done. Out of date if the flow has another stamp.
#[derive(Clone, Copy, Debug)]
struct Due {
    target: f64,
    slot: u32,
    stamp: u32,
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    link: u32,
    stamp: u32,
    target: f64,
    bytes: f64,
}

impl Progress {
    pub(super) fn new(links: usize) -> Self {
        Self {
            clocks: vec![Clock::default(); links],
            ends: vec![f64::INFINITY; links],
            slack: vec![0.0; links],
            flows: Vec::new(),
        }
    }

    /// Starts a flow of so many bytes that this link holds back.
    pub(super) fn begin(&mut self, slot: u32, bytes: f64, link: usize, now: f64) {
        let place = slot as usize;
        if place >= self.flows.len() {
            let none = Flow {
                link: NOWHERE,
                stamp: 0,
                target: 0.0,
                bytes: 0.0,
            };
            self.flows.resize(place + 1, none);
        }
        self.flows[place].bytes = bytes;
        self.join(slot, bytes, link, now);
    }

    /// Another link holds the flow back from now on. A flow that has not begun stays as it is.
    pub(super) fn move_to(&mut self, slot: u32, link: usize, now: f64) {
        let Some(&flow) = self.flows.get(slot as usize) else {
            return;
        };
        if flow.link == NOWHERE || flow.link as usize == link {
            return;
        }
        let remaining = (flow.target - self.clocks[flow.link as usize].served_at(now)).max(0.0);
        self.leave(slot);
        self.join(slot, remaining, link, now);
    }

    /// Takes out all flows that have ended by now, but for rounding: what is left is negligible, or
    /// takes less time than the clock can tell apart.
    pub(super) fn take_ended(&mut self, now: f64) -> Vec<u32> {
        let instant = 4.0 * f64::EPSILON * now;
        let mut ended = Vec::new();
        for link in 0..self.clocks.len() {
            if self.ends[link] > now + self.slack[link].max(instant) {
                continue;
            }
            while let Some(&Reverse(due)) = self.clocks[link].queue.peek() {
                let flow = self.flows[due.slot as usize];
                let clock = &mut self.clocks[link];
                if flow.stamp == due.stamp {
                    let late = clock.end(due) - now;
                    if late * clock.rate > NEGLIGIBLE * flow.bytes && late > instant {
                        break;
                    }
                    ended.push(due.slot);
                    clock.queue.pop();
                    self.leave(due.slot);
                } else {
                    clock.queue.pop();
                }
            }
            self.clocks[link].stale = true;
        }
        ended
    }

    /// Sets the rates by link, and returns when the next flow ends; infinite if none does.
    pub(super) fn set_rates(&mut self, rates: &[f64], now: f64) -> f64 {
        let mut next = f64::INFINITY;
        for (link, &rate) in rates.iter().enumerate().take(self.clocks.len()) {
            let clock = &mut self.clocks[link];
            // Bit for bit: an unchanged rate must not add a rounding to the bytes served.
            if clock.live > 0 && rate.to_bits() != clock.rate.to_bits() {
                clock.served = clock.served_at(now);
                clock.since = now;
                clock.rate = rate;
                clock.stale = true;
            }
            if clock.stale {
                self.look_ahead(link);
            }
            next = next.min(self.ends[link]);
        }
        next
    }

    fn join(&mut self, slot: u32, remaining: f64, link: usize, now: f64) {
        if link >= self.clocks.len() {
            self.clocks.resize_with(link + 1, Clock::default);
            self.ends.resize(link + 1, f64::INFINITY);
            self.slack.resize(link + 1, 0.0);
        }
        let flow = &mut self.flows[slot as usize];
        let clock = &mut self.clocks[link];
        if clock.live == 0 {
            *clock = Clock {
                since: now,
                queue: std::mem::take(&mut clock.queue),
                ..Clock::default()
            };
            clock.queue.clear();
        }
        clock.smallest = clock.smallest.min(flow.bytes);
        if clock.served_at(now) > MOST_SERVED * clock.smallest {
            Self::reset(clock, &mut self.flows, now);
        }
        let clock = &mut self.clocks[link];
        let flow = &mut self.flows[slot as usize];
        flow.link = link as u32;
        flow.stamp = flow.stamp.wrapping_add(1);
        flow.target = clock.served_at(now) + remaining;
        clock.live += 1;
        clock.stale = true;
        clock.queue.push(Reverse(Due {
            target: flow.target,
            slot,
            stamp: flow.stamp,
        }));
    }

    /// Out of its link's account; its entry in the queue is out of date from now on.
    fn leave(&mut self, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        let clock = &mut self.clocks[flow.link as usize];
        clock.live -= 1;
        clock.stale = true;
        flow.link = NOWHERE;
        flow.stamp = flow.stamp.wrapping_add(1);
    }

    /// Sets a clock to zero and what it is to show accordingly.
    fn reset(clock: &mut Clock, flows: &mut [Flow], now: f64) {
        let served = clock.served_at(now);
        let queue = std::mem::take(&mut clock.queue).into_vec();
        clock.smallest = f64::INFINITY;
        for Reverse(mut due) in queue {
            let flow = &mut flows[due.slot as usize];
            if flow.stamp == due.stamp {
                flow.target -= served;
                due.target = flow.target;
                clock.smallest = clock.smallest.min(flow.bytes);
                clock.queue.push(Reverse(due));
            }
        }
        clock.served = 0.0;
        clock.since = now;
    }

    /// Finds the next end among the flows of a link.
    fn look_ahead(&mut self, link: usize) {
        let (clock, flows) = (&mut self.clocks[link], &self.flows);
        clock.stale = false;
        let current = |due: &Due| flows[due.slot as usize].stamp == due.stamp;
        if clock.queue.len() > 2 * clock.live + 64 {
            clock.queue.retain(|Reverse(due)| current(due));
        }
        while clock.queue.peek().is_some_and(|Reverse(due)| !current(due)) {
            clock.queue.pop();
        }
        self.ends[link] = f64::INFINITY;
        self.slack[link] = 0.0;
        // At rate 0 it waits for a link that is down.
        if let Some(&Reverse(due)) = clock.queue.peek()
            && clock.rate > 0.0
        {
            self.ends[link] = clock.end(due);
            self.slack[link] = NEGLIGIBLE * flows[due.slot as usize].bytes / clock.rate;
        }
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_slot = || (self.slot, self.stamp).cmp(&(other.slot, other.stamp));
        self.target.total_cmp(&other.target).then_with(by_slot)
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Due {}
