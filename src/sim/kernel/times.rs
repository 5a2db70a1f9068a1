//! What became of the workers' time.

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
                }
            })
            .collect()
    }

    /// Times of every worker, the record of all messages and the timeline, after the end.
    pub(crate) fn into_results(self) -> (Vec<WorkerTimes>, Ledger, Trace) {
        (self.times(), self.ledger, self.timeline)
    }
}
