//! Collectives under way on a process: their steps are taken in the calls of the communicator, as
//! far as messages have come.
//!
//! MPI moves messages in the background as far as the library does so by itself; the next step
//! waits for the next call. A step that is to last until its message has arrived lasts until MPI
//! has taken it.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use super::account::Account;
use super::port::{Channel, Port, Receiving};
use crate::net::{Combine, Lane, NetError, Reduce, Step, Steps, TrafficKind, floats, to_bytes};

/// One that has not come to its end.
struct Collective {
    ticket: u64,
    epoch: usize,
    tag: i32,
    kind: TrafficKind,
    op: Reduce,
    values: Vec<f32>,
    steps: Steps,
    /// The step that is being taken.
    step: Option<Step>,
    sent: bool,
    /// The message that the present step receives, once it has begun to come.
    receiving: Option<Receiving>,
}

/// Those of one process, one after another in the order in which they were started.
#[derive(Default)]
pub(super) struct Collectives {
    started: u64,
    queue: VecDeque<Collective>,
    ended: BTreeMap<u64, Vec<f32>>,
}

impl Collectives {
    /// Puts one behind the others, and returns its number.
    pub(crate) fn start(
        &mut self,
        epoch: usize,
        tag: i32,
        kind: TrafficKind,
        (mut steps, values, op): (Steps, Vec<f32>, Reduce),
    ) -> u64 {
        let ticket = self.started;
        self.started += 1;
        self.queue.push_back(Collective {
            ticket,
            epoch,
            tag,
            kind,
            op,
            values,
            step: steps.next(),
            steps,
            sent: false,
            receiving: None,
        });
        ticket
    }

    /// Takes steps as far as messages have come.
    pub(crate) fn go_on(&mut self, port: &mut Port, account: &mut Account) -> Result<(), NetError> {
        while let Some(collective) = self.queue.front_mut() {
            if !collective.take_steps(port, account)? {
                return Ok(());
            }
            if let Some(collective) = self.queue.pop_front() {
                self.ended.insert(collective.ticket, collective.values);
            }
        }
        Ok(())
    }

    /// Waits for one, and for those before it.
    pub(crate) fn finish(
        &mut self,
        ticket: u64,
        port: &mut Port,
        account: &mut Account,
    ) -> Result<Vec<f32>, NetError> {
        if ticket >= self.started {
            return Err(NetError::Protocol {
                rank: port.rank,
                reason: "it finished a collective that it did not start".to_owned(),
            });
        }
        let mut since = Instant::now();
        port.wait(|port| {
            self.go_on(port, account)?;
            // What goes by between two looks counts as waiting for others unless a message had
            // begun to come.
            let now = Instant::now();
            if (self.queue.front()).is_some_and(|first| first.receiving.is_none()) {
                port.idled(now - since);
            }
            since = now;
            Ok(self.ended.remove(&ticket))
        })
    }
}

impl Collective {
    /// Whether all steps are taken.
    fn take_steps(&mut self, port: &mut Port, account: &mut Account) -> Result<bool, NetError> {
        // The buffers of steps sent so far are freed in between: a long ring has many.
        port.reap()?;
        while let Some(step) = &self.step {
            // A step whose message has not come is entered again later, and must not send twice.
            if let (Some((to, range)), false) = (&step.send, self.sent) {
                let payload = to_bytes(&self.values[range.clone()]);
                let lane = Lane::new(0, port.rank, *to, self.kind);
                account.record_in(self.epoch, lane, payload.len());
                port.send(*to, Channel::Data, self.tag, payload)?;
            }
            self.sent = true;
            if let Some((from, range, combine)) = &step.receive {
                if self.receiving.is_none() {
                    self.receiving = port.try_match(Some(*from), Channel::Data, self.tag)?;
                }
                let Some(mut receiving) = self.receiving.take() else {
                    return Ok(false);
                };
                if !receiving.is_there()? {
                    self.receiving = Some(receiving);
                    return Ok(false);
                }
                let (_, payload) = receiving.taken();
                merge(&mut self.values[range.clone()], &payload, *combine, self.op);
            }
            self.step = self.steps.next();
            self.sent = false;
        }
        Ok(true)
    }
}

/// Received values into one's own, as a step says.
fn merge(values: &mut [f32], payload: &[u8], combine: Combine, op: Reduce) {
    for (value, received) in values.iter_mut().zip(floats(payload)) {
        *value = match combine {
            Combine::Replace => received,
            Combine::Reduce => op.of(*value, received),
        };
    }
}
