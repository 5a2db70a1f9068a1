//! Whose turn it is, and who computes beside it.

use std::cmp::Reverse;

use super::{Actor, Kernel, Phase};
use crate::net::Seconds;
use crate::sim::trace::{Doing, Span};

impl Kernel {
    pub(crate) const fn turn(&self) -> Option<usize> {
        self.turn
    }

    /// Whether a worker that entered a blocking call already has what it waits for. It may then go
    /// on without passing the turn: the fabric has not moved, and messages carry their own times.
    pub(crate) fn is_runnable(&self, rank: usize) -> bool {
        matches!(self.actors[rank].phase, Phase::Runnable)
    }

    /// A worker that has the turn computes.
    pub(crate) fn compute(&mut self, rank: usize, time: Seconds) {
        self.start_compute(rank, time);
        self.settle(rank);
    }

    /// A worker computes for a time in which it will ask for nothing: if it has the turn, others
    /// get it.
    pub(crate) fn compute_ahead(&mut self, rank: usize, time: Seconds) {
        let before = (self.actors[rank].clock, rank);
        self.start_compute(rank, time);
        // It may have computed ahead before, and come to its turn meanwhile without using it.
        let has_turn = self.turn == Some(rank);
        if self.ahead.remove(&before) || has_turn {
            self.ahead.insert((self.actors[rank].clock, rank));
        }
        if has_turn {
            self.pass_turn();
        }
    }

    fn start_compute(&mut self, rank: usize, time: Seconds) {
        let actor = &mut self.actors[rank];
        actor.computes_since.get_or_insert(actor.clock);
        actor.clock += time;
        actor.compute += time;
    }

    /// Writes down what a worker has computed until now, which has the turn: so spans come in the
    /// order of turns.
    pub(crate) fn settle(&mut self, rank: usize) {
        let actor = &mut self.actors[rank];
        if let Some(start) = actor.computes_since.take() {
            self.timeline.add_span(Span {
                worker: rank,
                epoch: actor.epoch,
                doing: Doing::Compute,
                start,
                end: actor.clock,
            });
        }
    }

    /// Ends a worker's part.
    pub(crate) fn finish(&mut self, rank: usize) {
        self.actors[rank].phase = Phase::Done;
        self.done += 1;
        self.pass_turn();
    }

    /// Gives the turn to the runnable worker with the smallest clock, moving virtual time until
    /// there is one.
    pub(crate) fn pass_turn(&mut self) {
        if self.failure.is_some() {
            self.turn = None;
            return;
        }
        // Nobody has it: whoever can go on from here on gets in line.
        self.turn = None;
        loop {
            // Of equal clocks the lower rank, which the pairs decide.
            let ready = self.ready.peek().map(|&Reverse(next)| next);
            let ahead = self.ahead.first().copied();
            if let Some(next) = ready
                && ahead.is_none_or(|ahead| next < ahead)
            {
                self.ready.pop();
                self.turn = Some(next.1);
                return;
            }
            if ahead.is_none() && self.done == self.workers() {
                return;
            }
            // Who computes may send something when it is done, and not before.
            let deliveries = match ahead {
                Some((until, _)) => self.fabric.advance_before(until),
                None => self.fabric.advance(),
            };
            if let Some(deliveries) = deliveries {
                for delivery in deliveries {
                    self.deliver(delivery.flow, delivery.time);
                }
            } else if let Some(next) = ahead {
                self.ahead.remove(&next);
                self.turn = Some(next.1);
                return;
            } else {
                return self.give_up();
            }
        }
    }

    /// Ends a run in which nobody can go on and nothing is under way.
    fn give_up(&mut self) {
        let goes_on = |actor: &Actor| !matches!(actor.phase, Phase::Done);
        let rank = self.actors.iter().position(goes_on).unwrap_or(0);
        match self.fabric.stalled() {
            Some(link_down) => self.end(link_down),
            None => self.fail(rank, self.describe_wait(rank)),
        }
    }

    fn describe_wait(&self, rank: usize) -> String {
        match &self.actors[rank].phase {
            Phase::Receiving { tag, expect, .. } => {
                format!("it waits for {tag:?} from workers {expect:?}, but nothing is in flight")
            }
            Phase::Exchanging(tag) => {
                format!("it waits for {tag:?}, which others did not start")
            }
            Phase::Collecting(_) => "it waits in a collective that others did not enter".to_owned(),
            Phase::Sharing(_) => "it waits for a value that worker 0 did not share".to_owned(),
            Phase::Carrying(count) => format!("it waits for {count} messages that do not arrive"),
            Phase::Runnable | Phase::Done => "it does not wait".to_owned(),
        }
    }
}
