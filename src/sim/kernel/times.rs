//! What became of the workers' time.

use std::ops::Range;

use super::Kernel;
use crate::net::{Ledger, Seconds};
use crate::sim::trace::Trace;

/// One worker's account of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkerTimes {
    /// Time of the last thing it did.
    pub clock: Seconds,
    /// Time it computed.
    pub compute: Seconds,
    /// Time in which a message from or to it was in flight.
    pub communication: Seconds,
    /// The part of `communication` in which it did nothing but wait: what the network itself took
    /// and computing did not hide.
    pub exposed: Seconds,
    /// Time in which it waited for others that had not begun to send. With `compute` and `exposed`
    /// it makes `clock`.
    pub waiting: Seconds,
    /// The part of `clock` in which it did what its plan calls
    /// [set-up](crate::sim::Track::set_up), where a plan was played; nothing where a program ran.
    pub set_up: Seconds,
}

/// What the engine knows when all workers have ended.
pub struct EngineResults {
    /// Each worker's account of time.
    pub times: Vec<WorkerTimes>,
    /// Every message.
    pub ledger: Ledger,
    /// What the workers did in the first epochs.
    pub timeline: Trace,
}

impl Kernel {
    /// Times of every worker up to now.
    pub(crate) fn times(&self) -> Vec<WorkerTimes> {
        self.actors
            .iter()
            .map(|actor| {
                let exposed = actor.flights.overlap(&actor.blocked);
                WorkerTimes {
                    clock: actor.clock,
                    compute: actor.compute,
                    communication: actor.flights.length(),
                    exposed,
                    waiting: Seconds((actor.blocked.length().0 - exposed.0).max(0.0)),
                    set_up: actor.set_up,
                }
            })
            .collect()
    }

    /// So much of the time of these workers was set-up.
    pub(crate) fn set_up(&mut self, workers: Range<usize>, time: Seconds) {
        for actor in &mut self.actors[workers] {
            actor.set_up += time;
        }
    }

    /// What there is to know after the end.
    pub(crate) fn into_results(self) -> EngineResults {
        EngineResults {
            times: self.times(),
            ledger: self.ledger,
            timeline: self.timeline,
        }
    }
}
