//! What every worker did when, for the first epochs of a run.

use crate::names::named;
use crate::net::{Bytes, Lane, Seconds};

/// Most spans and messages that a timeline holds; later ones are left out.
const LIMIT: usize = 200_000;

named! {
    /// What a worker does.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Doing {
        /// It computes.
        Compute = "compute",
        /// It waits for a message.
        Wait = "wait",
    }
}

/// A stretch of virtual time in which a worker did one thing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// Which worker.
    pub worker: usize,
    /// In which epoch.
    pub epoch: usize,
    /// What it did.
    pub doing: Doing,
    /// From when.
    pub start: Seconds,
    /// Until when.
    pub end: Seconds,
}

/// A message on its way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flight {
    /// Layer, ends and kind.
    pub lane: Lane,
    /// The epoch under which it is counted.
    pub epoch: usize,
    /// Its size without framing.
    pub payload: Bytes,
    /// When it was handed to the network.
    pub start: Seconds,
    /// When its last byte arrived.
    pub end: Seconds,
}

/// What workers did and which messages were under way, in the first epochs of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    epochs: usize,
    spans: Vec<Span>,
    /// Where the last span of each worker is, by rank.
    last: Vec<Option<usize>>,
    flights: Vec<Flight>,
    is_cut: bool,
}

impl Trace {
    /// An empty timeline that takes what belongs to the first `epochs` epochs.
    pub fn new(epochs: usize) -> Self {
        Self {
            epochs,
            ..Self::default()
        }
    }

    /// Number of epochs it covers, if the run has so many.
    pub const fn epochs(&self) -> usize {
        self.epochs
    }

    /// What workers did: in ascending order of time for each worker, without overlaps. What one did
    /// twice in a row is one span.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Messages in the order in which they arrived.
    pub fn flights(&self) -> &[Flight] {
        &self.flights
    }

    /// Whether something was left out because there was too much of it.
    pub(crate) const fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Whether there is room for something of this epoch.
    fn takes(&mut self, epoch: usize) -> bool {
        let wanted = epoch < self.epochs;
        let has_room = self.spans.len() + self.flights.len() < LIMIT;
        self.is_cut |= wanted && !has_room;
        wanted && has_room
    }

    /// Adds what a worker did; spans without length are left out.
    pub(super) fn add_span(&mut self, span: Span) {
        if span.end <= span.start || !self.takes(span.epoch) {
            return;
        }
        if self.last.len() <= span.worker {
            self.last.resize(span.worker + 1, None);
        }
        // The place where it would stand; put back below if it only makes the one before longer.
        let last = self.last[span.worker].replace(self.spans.len());
        if let Some(at) = last
            && let before = &mut self.spans[at]
            && (before.epoch, before.doing, before.end) == (span.epoch, span.doing, span.start)
        {
            before.end = span.end;
            self.last[span.worker] = last;
            return;
        }
        self.spans.push(span);
    }

    /// Adds a message that has arrived.
    pub(super) fn add_flight(&mut self, flight: Flight) {
        if self.takes(flight.epoch) {
            self.flights.push(flight);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_worker_does_twice_in_a_row_is_one_span_among_any_number_of_workers() {
        let mut trace = Trace::new(1);
        for step in 0..3_u8 {
            for worker in 0..200 {
                trace.add_span(Span {
                    worker,
                    epoch: 0,
                    doing: Doing::Compute,
                    start: Seconds(f64::from(step)),
                    end: Seconds(f64::from(step + 1)),
                });
            }
        }
        assert_eq!(trace.spans().len(), 200);
        let whole = |span: &Span| (span.start, span.end) == (Seconds(0.0), Seconds(3.0));
        assert!(trace.spans().iter().all(whole));
    }
}
