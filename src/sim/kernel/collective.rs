//! Collectives in the background: their steps are taken when messages arrive, whatever the worker
//! does then.

use std::collections::VecDeque;

use super::{Arrived, Kernel, Phase, Tag};
use crate::net::{
    Combine, FlowId, Reduce, Seconds, Step, TrafficKind, f32_bytes, floats, to_bytes,
};

/// A collective of one worker that has not come to its end.
pub(super) struct Collective {
    /// Number among the worker's collectives. All workers start the same ones in the same order, so
    /// it tells the messages of one from those of another.
    number: u64,
    /// The epoch under which its messages are counted.
    epoch: usize,
    /// None where sizes alone are played.
    values: Option<Vec<f32>>,
    op: Reduce,
    kind: TrafficKind,
    steps: VecDeque<Step>,
    /// The time until which it has come.
    clock: Seconds,
    sent: bool,
    received: bool,
    /// The message whose arrival the present step waits for.
    awaits: Option<FlowId>,
}

impl Kernel {
    /// Puts a collective behind those that the worker has started before, at the worker's clock.
    pub fn start_collective(
        &mut self,
        rank: usize,
        number: u64,
        steps: Vec<Step>,
        values: Vec<f32>,
        op: Reduce,
        kind: TrafficKind,
    ) {
        self.queue_collective(rank, number, steps, Some(values), op, kind);
    }

    /// As [`Self::start_collective`], by sizes alone.
    pub fn start_collective_sizes(
        &mut self,
        rank: usize,
        number: u64,
        steps: Vec<Step>,
        kind: TrafficKind,
    ) {
        self.queue_collective(rank, number, steps, None, Reduce::Sum, kind);
    }

    fn queue_collective(
        &mut self,
        rank: usize,
        number: u64,
        steps: Vec<Step>,
        values: Option<Vec<f32>>,
        op: Reduce,
        kind: TrafficKind,
    ) {
        let actor = &mut self.actors[rank];
        actor.collectives.push_back(Collective {
            number,
            epoch: actor.epoch,
            values,
            op,
            kind,
            steps: steps.into(),
            clock: actor.clock,
            sent: false,
            received: false,
            awaits: None,
        });
        self.progress_collectives(rank);
    }

    /// Waits for a collective; its result is taken with [`Self::take_reduced`] when the turn comes
    /// back.
    pub fn finish_collective(&mut self, rank: usize, number: u64) {
        self.block(rank, Phase::Collecting(number));
    }

    pub fn take_reduced(&mut self, rank: usize) -> Vec<f32> {
        self.actors[rank].reduced.take().unwrap_or_default()
    }

    /// A worker that waits for a collective goes on when it has come to its end, at that time.
    pub(super) fn progress_collecting(&mut self, rank: usize, number: u64) {
        let actor = &mut self.actors[rank];
        let Some((at, values)) = actor.collected.remove(&number) else {
            actor.phase = Phase::Collecting(number);
            return;
        };
        actor.clock = actor.clock.max(at);
        actor.reduced = Some(values);
        self.unblock(rank);
    }

    /// Takes the steps of a worker's first collective, and of the next when it has come to its end,
    /// as far as what has arrived allows.
    pub(super) fn progress_collectives(&mut self, rank: usize) {
        while let Some(mut collective) = self.actors[rank].collectives.pop_front() {
            let done = self.take_steps(rank, &mut collective);
            let actor = &mut self.actors[rank];
            if !done {
                actor.collectives.push_front(collective);
                return;
            }
            if let Some(next) = actor.collectives.front_mut() {
                next.clock = next.clock.max(collective.clock);
            }
            let result = (collective.clock, collective.values.unwrap_or_default());
            actor.collected.insert(collective.number, result);
        }
    }

    /// Whether all steps are taken.
    fn take_steps(&mut self, rank: usize, collective: &mut Collective) -> bool {
        let tag = Tag::Collective {
            kind: collective.kind,
            number: collective.number,
        };
        while let Some(step) = collective.steps.front() {
            if let (Some((to, range)), false) = (&step.send, collective.sent) {
                let bytes = f32_bytes(range.len());
                let values = collective.values.as_ref();
                let payload = values.map(|values| to_bytes(&values[range.clone()]));
                let payload = payload.unwrap_or_default();
                let route = (rank, *to, tag);
                let flow = self.send(route, payload, bytes, collective.clock, collective.epoch);
                collective.awaits = step.until_delivered.then_some(flow);
            }
            collective.sent = true;
            if let (Some((from, range, combine)), false) = (&step.receive, collective.received) {
                let Some(Arrived { at, payload }) = self.take_arrived((*from, rank, tag)) else {
                    return false;
                };
                collective.clock = collective.clock.max(at);
                if let Some(values) = &mut collective.values {
                    merge(
                        &mut values[range.clone()],
                        &payload,
                        *combine,
                        collective.op,
                    );
                }
                collective.received = true;
            }
            if collective.awaits.is_some() {
                return false;
            }
            collective.steps.pop_front();
            (collective.sent, collective.received) = (false, false);
        }
        true
    }

    /// A message of a collective has been delivered: its sender may have waited for that.
    pub(super) fn collective_delivered(&mut self, from: usize, flow: FlowId, at: Seconds) {
        if let Some(collective) = self.actors[from].collectives.front_mut()
            && collective.awaits == Some(flow)
        {
            collective.awaits = None;
            collective.clock = collective.clock.max(at);
            self.progress(from);
        }
    }
}

/// Received values into one's own, as a step says.
pub(in crate::sim) fn merge(values: &mut [f32], payload: &[u8], combine: Combine, op: Reduce) {
    for (value, received) in values.iter_mut().zip(floats(payload)) {
        *value = match (combine, op) {
            (Combine::Replace, _) => received,
            (Combine::Reduce, Reduce::Sum) => *value + received,
            (Combine::Reduce, Reduce::Max) => value.max(received),
        };
    }
}
