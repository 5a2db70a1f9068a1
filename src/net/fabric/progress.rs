//! How far transmissions are.
//!
//! All flows with the same bottleneck have the same rate. So each link keeps one clock of service,
//! the bytes that each of its flows has got; a flow is done when the clock shows what it showed
//! when the flow came, and the flow's bytes. A new rate then costs one number a link, not one a
//! flow, and only links with another rate or another next flow are looked at.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::ends::Ends;
use crate::net::sharing::Rated;
use crate::net::units::Ordered;

/// A clock shows at most so many times the bytes of its smallest flow, so that rounding stays below
/// 1e-12 of any flow.
const MOST_SERVED: f64 = 4096.0;

/// A share of its bytes that a flow may lack when it ends. Equal messages whose shares were rounded
/// differently thus end together.
const NEGLIGIBLE: f64 = 1e-12;

const NOWHERE: u32 = u32::MAX;

/// If one link in so many has another rate, all are gone through, several at a time.
const MANY: usize = 8;

/// All flows, by the link that holds them back.
#[derive(Clone, Debug)]
pub(super) struct Progress {
    clocks: Clocks,
    queues: Vec<Queue>,
    /// Links whose next flow may be another.
    stale: Vec<u32>,
    flows: Vec<Flow>,
}

/// By link. Apart from each other, because an instant may look at all.
#[derive(Clone, Debug)]
struct Clocks {
    /// Bytes that each flow has got at `since`, and bytes per second from then on.
    served: Vec<f64>,
    since: Vec<f64>,
    rate: Vec<f64>,
    /// What the clock shows when the next flow is done; infinite without one. What that may lack.
    due: Vec<f64>,
    lack: Vec<f64>,
    /// When that is; infinite at rate 0, where it waits for a link that is down.
    ends: Ends,
}

impl Clocks {
    fn new(links: usize) -> Self {
        let mut none = Self {
            served: Vec::new(),
            since: Vec::new(),
            rate: Vec::new(),
            due: Vec::new(),
            lack: Vec::new(),
            ends: Ends::new(links),
        };
        none.grow(links);
        none
    }

    fn grow(&mut self, links: usize) {
        for zero in [&mut self.served, &mut self.since, &mut self.rate] {
            zero.resize(links, 0.0);
        }
        self.lack.resize(links, 0.0);
        self.due.resize(links, f64::INFINITY);
        self.ends.grow(links);
    }

    fn served_at(&self, link: usize, now: f64) -> f64 {
        self.served[link] + self.rate[link] * (now - self.since[link])
    }

    /// Sets a clock to what it is to show now, and its rate.
    fn set(&mut self, link: usize, served: f64, rate: f64, now: f64) {
        self.served[link] = served;
        self.since[link] = now;
        self.rate[link] = rate;
    }

    /// Sets the rate of one link.
    fn set_rate(&mut self, link: usize, rate: f64, now: f64) {
        // Bit for bit: an unchanged rate must not add a rounding to the bytes served.
        if rate != self.rate[link] {
            self.set(link, self.served_at(link, now), rate, now);
        }
    }

    /// Works out anew when the next flow of a link ends.
    fn foresee(&mut self, link: usize) {
        let (served, since) = (self.served[link], self.since[link]);
        let (rate, due) = (self.rate[link], self.due[link]);
        let end = end_at(served, since, rate, due);
        // At rate 0 this is not a number, and the end itself, infinity, counts.
        let early = end - self.lack[link] / rate;
        self.ends
            .set(link, end, if early < end { early } else { end });
    }

    /// Sets the rates of all, and foresees all ends.
    fn set_rates(&mut self, rates: &[f64], now: f64) {
        // Rates may be there for caps that have held nobody back so far, which have no clock.
        let links = self.served.len().min(rates.len());
        // One length for all: then several links are worked on together.
        let (served, since) = (&mut self.served[..links], &mut self.since[..links]);
        let (old, rates) = (&mut self.rate[..links], &rates[..links]);
        let (due, lack) = (&self.due[..links], &self.lack[..links]);
        let (end, early) = self.ends.all();
        let (end, early) = (&mut end[..links], &mut early[..links]);
        for link in 0..links {
            let same = rates[link] == old[link];
            let moved = served[link] + old[link] * (now - since[link]);
            served[link] = if same { served[link] } else { moved };
            since[link] = if same { since[link] } else { now };
            old[link] = rates[link];
            let at = end_at(served[link], since[link], rates[link], due[link]);
            let before = at - lack[link] / rates[link];
            end[link] = at;
            early[link] = if before < at { before } else { at };
        }
        self.ends.rebuild();
    }
}

/// When a clock shows what it is to show.
#[inline]
fn end_at(served: f64, since: f64, rate: f64, due: f64) -> f64 {
    let wait = (due - served) / rate;
    let end = since + if wait > 0.0 { wait } else { 0.0 };
    if rate > 0.0 && due < f64::INFINITY {
        end
    } else {
        f64::INFINITY
    }
}

/// The flows of a link, by what the clock shows when they are done.
#[derive(Clone, Debug)]
struct Queue {
    /// Bytes of the smallest flow since the clock was last set to zero.
    smallest: f64,
    live: usize,
    due: BinaryHeap<Reverse<Due>>,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            smallest: f64::INFINITY,
            live: 0,
            due: BinaryHeap::new(),
        }
    }
}

/// What the clock shows when a flow is done. Out of date if the flow has another stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    target: Ordered,
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
            clocks: Clocks::new(links),
            queues: vec![Queue::default(); links],
            stale: Vec::new(),
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
        // Rounding may have served it a little more than it has.
        let remaining = (flow.target - self.clocks.served_at(flow.link as usize, now)).max(0.0);
        self.leave(slot);
        self.join(slot, remaining, link, now);
    }

    /// Bytes that a flow lacks.
    pub(super) fn remaining(&self, slot: u32, now: f64) -> f64 {
        self.flows.get(slot as usize).map_or(0.0, |flow| {
            let served = |link: u32| self.clocks.served_at(link as usize, now);
            flow.target
                - if flow.link == NOWHERE {
                    0.0
                } else {
                    served(flow.link)
                }
        })
    }

    /// Takes out all flows that have ended by now, but for rounding: what is left is negligible, or
    /// takes less time than the clock can tell apart.
    pub(super) fn take_ended(&mut self, now: f64) -> Vec<u32> {
        // Four roundings of the clock itself: sums of times late in a run are no finer than that.
        let instant = 4.0 * f64::EPSILON * now;
        let mut ended = Vec::new();
        for link in self.clocks.ends.until(now + instant, now) {
            loop {
                let late = self.clocks.ends.end(link) - now;
                // Not a number for a flow that waits, which lacks more than any.
                let done = late * self.clocks.rate[link] <= self.clocks.lack[link];
                if late > instant && !done {
                    break;
                }
                let Some(Reverse(due)) = self.queues[link].due.pop() else {
                    break;
                };
                ended.push(due.slot);
                self.leave(due.slot);
                self.look_ahead(link);
                self.clocks.foresee(link);
            }
        }
        ended
    }

    /// Sets the rates of links that have another, and returns when the next flow ends; infinite if
    /// none does.
    pub(super) fn set_rates(&mut self, rates: &[f64], rated: &Rated, now: f64) -> f64 {
        let stale = std::mem::take(&mut self.stale);
        for &link in &stale {
            self.look_ahead(link as usize);
        }
        match rated {
            // Both ways give the same bits, so that this is a matter of speed alone.
            Rated::Some(links) if (links.len() + stale.len()) * MANY < self.queues.len() => {
                for &link in links {
                    if (link as usize) < self.queues.len() {
                        self.clocks
                            .set_rate(link as usize, rates[link as usize], now);
                        self.clocks.foresee(link as usize);
                    }
                }
                for &link in &stale {
                    self.clocks.foresee(link as usize);
                }
            }
            _ => self.clocks.set_rates(rates, now),
        }
        self.clocks.ends.first()
    }

    fn join(&mut self, slot: u32, remaining: f64, link: usize, now: f64) {
        if link >= self.queues.len() {
            self.queues.resize_with(link + 1, Queue::default);
            self.clocks.grow(link + 1);
        }
        let bytes = self.flows[slot as usize].bytes;
        let queue = &mut self.queues[link];
        if queue.live == 0 {
            queue.due.clear();
            queue.smallest = f64::INFINITY;
            // A clock without flows starts again from 0, where doubles are finest.
            self.clocks.set(link, 0.0, 0.0, now);
        }
        queue.smallest = queue.smallest.min(bytes);
        // By the smallest flow, of which a rounding of the clock is the largest share.
        if self.clocks.served_at(link, now) > MOST_SERVED * queue.smallest {
            self.reset(link, now);
        }
        let flow = &mut self.flows[slot as usize];
        flow.link = link as u32;
        // Heaps cannot give up an entry in their middle: it stays, with a stamp that no longer
        // fits.
        flow.stamp = flow.stamp.wrapping_add(1);
        flow.target = self.clocks.served_at(link, now) + remaining;
        let queue = &mut self.queues[link];
        queue.live += 1;
        queue.due.push(Reverse(Due {
            target: Ordered(flow.target),
            slot,
            stamp: flow.stamp,
        }));
        self.stale.push(link as u32);
    }

    /// Out of its link's account; its entry in the queue is out of date from now on.
    fn leave(&mut self, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        self.queues[flow.link as usize].live -= 1;
        self.stale.push(flow.link);
        flow.link = NOWHERE;
        flow.stamp = flow.stamp.wrapping_add(1);
    }

    /// Sets a clock to zero and what it is to show accordingly.
    fn reset(&mut self, link: usize, now: f64) {
        let served = self.clocks.served_at(link, now);
        let queue = &mut self.queues[link];
        queue.smallest = f64::INFINITY;
        for Reverse(mut due) in std::mem::take(&mut queue.due).into_vec() {
            let flow = &mut self.flows[due.slot as usize];
            if flow.stamp == due.stamp {
                flow.target -= served;
                due.target = Ordered(flow.target);
                queue.smallest = queue.smallest.min(flow.bytes);
                queue.due.push(Reverse(due));
            }
        }
        self.clocks.set(link, 0.0, self.clocks.rate[link], now);
    }

    /// Finds the next flow of a link.
    fn look_ahead(&mut self, link: usize) {
        let (queue, flows) = (&mut self.queues[link], &self.flows);
        let current = |due: &Due| flows[due.slot as usize].stamp == due.stamp;
        // Half of them out of date: one pass over all is then paid by those that left. The constant
        // keeps small queues from being gone through again and again.
        if queue.due.len() > 2 * queue.live + 64 {
            queue.due.retain(|Reverse(due)| current(due));
        }
        while queue.due.peek().is_some_and(|Reverse(due)| !current(due)) {
            queue.due.pop();
        }
        let next = queue.due.peek();
        self.clocks.due[link] = next.map_or(f64::INFINITY, |Reverse(due)| due.target.0);
        self.clocks.lack[link] = next.map_or(0.0, |Reverse(due)| {
            NEGLIGIBLE * flows[due.slot as usize].bytes
        });
    }
}
