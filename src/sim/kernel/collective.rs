//! Collectives in the background: their steps are taken when messages arrive, whatever the worker
//! does then.
//!
//! Messages of collectives have sizes and take their time, but hold nothing: all values are in this
//! process. What they come to is worked out once, when the first worker asks for it.

use super::{Arrived, Kernel, Phase, Tag};
use crate::net::{
    AllReduceKind, Collective, FlowId, Reduce, Seconds, Step, Steps, TrafficKind,
    all_reduce_result, f32_bytes,
};

/// One worker's part of a collective that has not come to its end.
pub(super) struct Taking {
    /// Number among the worker's collectives. All workers start the same ones in the same order, so
    /// it tells the messages of one from those of another.
    number: u64,
    /// The epoch under which its messages are counted.
    epoch: usize,
    kind: TrafficKind,
    steps: Steps,
    /// The step that is being taken.
    step: Option<Step>,
    /// The time until which it has come.
    clock: Seconds,
    sent: bool,
    received: bool,
    /// The message whose arrival the present step waits for.
    awaits: Option<FlowId>,
}

/// What a collective comes to.
pub(super) struct Sum {
    collective: Collective,
    op: Reduce,
    /// What the workers have given, by rank.
    given: Vec<Option<Vec<f32>>>,
    /// What everybody gets.
    result: Option<Vec<f32>>,
    taken: usize,
}

impl Sum {
    /// The values of one worker at the end. Others have given theirs by then, as far as they are
    /// part of it: its messages came from them.
    fn take(&mut self, all_reduce: AllReduceKind, rank: usize) -> Vec<f32> {
        self.taken += 1;
        match &self.collective {
            Collective::AllReduce(_) => {
                let given = &mut self.given;
                let result = self.result.get_or_insert_with(|| {
                    let all = given.iter_mut().filter_map(Option::take).collect();
                    all_reduce_result(all_reduce, all, |own, other| self.op.of(own, other))
                });
                result.clone()
            }
            &Collective::Broadcast { root, .. } => self.given[root].clone().unwrap_or_default(),
            Collective::Gather { root, lens } if *root == rank => {
                let mut all = self.given[rank].take().unwrap_or_default();
                let mut start = 0;
                for (other, len) in lens.iter().enumerate() {
                    if let Some(values) = self.given[other].take() {
                        all[start..start + len].copy_from_slice(&values);
                    }
                    start += len;
                }
                all
            }
            Collective::Gather { .. } => Vec::new(),
        }
    }
}

impl Kernel {
    /// Puts a collective behind those that the worker has started before, at the worker's clock.
    pub fn start_collective(
        &mut self,
        rank: usize,
        number: u64,
        (collective, op): (&Collective, Reduce),
        steps: Steps,
        values: Vec<f32>,
        kind: TrafficKind,
    ) {
        let workers = self.workers();
        let sum = self.sums.entry(number).or_insert_with(|| Sum {
            collective: collective.clone(),
            op,
            given: vec![None; workers],
            result: None,
            taken: 0,
        });
        sum.given[rank] = Some(values);
        self.start_collective_sizes(rank, number, steps, kind);
    }

    /// As [`Self::start_collective`], by sizes alone.
    pub fn start_collective_sizes(
        &mut self,
        rank: usize,
        number: u64,
        mut steps: Steps,
        kind: TrafficKind,
    ) {
        let actor = &mut self.actors[rank];
        actor.collectives.push_back(Taking {
            number,
            epoch: actor.epoch,
            kind,
            step: steps.next(),
            steps,
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

    /// What a collective that has come to its end has left this worker with.
    pub fn take_reduced(
        &mut self,
        rank: usize,
        number: u64,
        all_reduce: AllReduceKind,
    ) -> Vec<f32> {
        let workers = self.workers();
        let Some(sum) = self.sums.get_mut(&number) else {
            return Vec::new();
        };
        let values = sum.take(all_reduce, rank);
        if sum.taken == workers {
            self.sums.remove(&number);
        }
        values
    }

    /// A worker that waits for a collective goes on when it has come to its end, at that time.
    pub(super) fn progress_collecting(&mut self, rank: usize, number: u64) {
        let actor = &mut self.actors[rank];
        let Some(at) = actor.collected.remove(&number) else {
            actor.phase = Phase::Collecting(number);
            return;
        };
        actor.clock = actor.clock.max(at);
        self.unblock(rank);
    }

    /// Takes the steps of a worker's first collective, and of the next when it has come to its end,
    /// as far as what has arrived allows.
    pub(super) fn progress_collectives(&mut self, rank: usize) {
        while let Some(mut taking) = self.actors[rank].collectives.pop_front() {
            let done = self.take_steps(rank, &mut taking);
            let actor = &mut self.actors[rank];
            if !done {
                actor.collectives.push_front(taking);
                return;
            }
            if let Some(next) = actor.collectives.front_mut() {
                next.clock = next.clock.max(taking.clock);
            }
            actor.collected.insert(taking.number, taking.clock);
        }
    }

    /// Whether all steps are taken.
    fn take_steps(&mut self, rank: usize, taking: &mut Taking) -> bool {
        let tag = Tag::Collective {
            kind: taking.kind,
            number: taking.number,
        };
        while let Some(step) = &taking.step {
            if let (Some((to, range)), false) = (&step.send, taking.sent) {
                let (route, bytes) = ((rank, *to, tag), f32_bytes(range.len()));
                let flow = self.send(route, Vec::new(), bytes, taking.clock, taking.epoch);
                taking.awaits = step.until_delivered.then_some(flow);
            }
            taking.sent = true;
            if let (Some((from, ..)), false) = (&step.receive, taking.received) {
                let Some(Arrived { at, .. }) = self.take_arrived((*from, rank, tag)) else {
                    return false;
                };
                taking.clock = taking.clock.max(at);
                taking.received = true;
            }
            if taking.awaits.is_some() {
                return false;
            }
            taking.step = taking.steps.next();
            (taking.sent, taking.received) = (false, false);
        }
        true
    }

    /// A message of a collective has been delivered: its sender may have waited for that.
    pub(super) fn collective_delivered(&mut self, from: usize, flow: FlowId, at: Seconds) {
        if let Some(taking) = self.actors[from].collectives.front_mut()
            && taking.awaits == Some(flow)
        {
            taking.awaits = None;
            taking.clock = taking.clock.max(at);
            self.progress(from);
        }
    }
}
