//! One worker's way through the steps of a collective, whatever carries its messages.

use super::super::{FlowId, Seconds, Snapshot};
use super::step::{Combine, Step, Steps};

/// What carries the messages of one worker's steps.
pub(crate) trait Carrier {
    /// Sends so many elements to a worker, at this time.
    fn send(&mut self, to: usize, elements: usize, at: Seconds) -> FlowId;

    /// When the next message from a worker arrived, if it has.
    fn take(&mut self, from: usize) -> Option<Seconds>;

    /// When so many received elements are summed, begun at this time.
    fn sum(&mut self, elements: usize, at: Seconds) -> Seconds;
}

/// One worker's part of a collective that has not come to its end.
pub(crate) struct Taking {
    steps: Steps,
    /// The step that is being taken, and how many were before it.
    step: Option<Step>,
    taken: usize,
    /// The time until which it has come.
    clock: Seconds,
    sent: bool,
    received: bool,
    /// The message whose arrival the present step waits for.
    awaits: Option<FlowId>,
}

impl Taking {
    /// Begins at a time.
    pub(crate) fn new(mut steps: Steps, clock: Seconds) -> Self {
        Self {
            step: steps.next(),
            taken: 0,
            steps,
            clock,
            sent: false,
            received: false,
            awaits: None,
        }
    }

    /// The time until which it has come.
    pub(crate) const fn clock(&self) -> Seconds {
        self.clock
    }

    /// Adds how far it has come, as seen from a moment.
    pub(crate) fn snapshot(&self, moment: Seconds, into: &mut Snapshot) {
        into.count(self.taken);
        for known in [self.sent, self.received, self.awaits.is_some()] {
            into.count(usize::from(known));
        }
        into.time(self.clock, moment);
    }

    /// It goes on no earlier than this.
    pub(crate) fn wait_until(&mut self, time: Seconds) {
        self.clock = self.clock.max(time);
    }

    /// A message of this worker has arrived. Whether that is what it waited for.
    pub(crate) fn delivered(&mut self, flow: FlowId, at: Seconds) -> bool {
        if self.awaits != Some(flow) {
            return false;
        }
        self.awaits = None;
        self.wait_until(at);
        true
    }

    /// Takes steps as far as what has arrived allows. Whether all are taken.
    pub(crate) fn go_on(&mut self, carrier: &mut impl Carrier) -> bool {
        while let Some(step) = &self.step {
            if let (Some((to, range)), false) = (&step.send, self.sent) {
                let flow = carrier.send(*to, range.len(), self.clock);
                self.awaits = step.until_delivered.then_some(flow);
            }
            self.sent = true;
            if let (Some((from, range, combine)), false) = (&step.receive, self.received) {
                let Some(at) = carrier.take(*from) else {
                    return false;
                };
                self.clock = self.clock.max(at);
                if *combine == Combine::Reduce {
                    self.clock = carrier.sum(range.len(), self.clock);
                }
                self.received = true;
            }
            if self.awaits.is_some() {
                return false;
            }
            self.step = self.steps.next();
            self.taken += 1;
            (self.sent, self.received) = (false, false);
        }
        true
    }
}
