//! Collectives in the background: their steps are taken when messages arrive, whatever the worker
//! does then.
//!
//! Messages of collectives have sizes and take their time, but hold nothing: all values are in this
//! process. What they come to is worked out once, when the first worker asks for it.

use super::{Belongs, Kernel, Phase, Tag};
use crate::net::{
    AllReduceKind, Carrier, Collective, FlowId, Reduce, Seconds, Steps, Taking, TrafficKind,
    all_reduce_result, f32_bytes,
};

/// One worker's part of a collective that has not come to its end.
pub(super) struct Part {
    /// Number among the worker's collectives. All workers start the same ones in the same order, so
    /// it tells the messages of one from those of another.
    pub(super) number: u64,
    /// What its messages belong to.
    belongs: Belongs,
    kind: TrafficKind,
    pub(super) taking: Taking,
}

/// A worker's end of the fabric, for one collective.
struct End<'a> {
    kernel: &'a mut Kernel,
    rank: usize,
    tag: Tag,
    belongs: Belongs,
}

impl Carrier for End<'_> {
    fn send(&mut self, to: usize, elements: usize, at: Seconds) -> FlowId {
        let (route, bytes) = ((self.rank, to, self.tag), f32_bytes(elements));
        self.kernel.send(route, Vec::new(), bytes, at, self.belongs)
    }

    fn take(&mut self, from: usize) -> Option<Seconds> {
        let route = (from, self.rank, self.tag);
        self.kernel.take_arrived(route).map(|message| message.at)
    }

    fn sum(&mut self, elements: usize, at: Seconds) -> Seconds {
        let time = self.kernel.fabric.topology().sum_time(self.rank, elements);
        if time > Seconds::ZERO {
            // Part of what the collective takes, as its messages are.
            self.kernel.actors[self.rank].flights.add(at, at + time);
        }
        at + time
    }
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
    fn take(&mut self, all_reduce: &AllReduceKind, rank: usize) -> Vec<f32> {
        self.taken += 1;
        match &self.collective {
            Collective::AllReduce(_) => {
                let given = &mut self.given;
                let result = self.result.get_or_insert_with(|| {
                    // Taken: each worker's values are needed once, and then only the result is
                    // held.
                    let all = given.iter_mut().filter_map(Option::take).collect();
                    all_reduce_result(all_reduce, all, |own, other| self.op.of(own, other))
                });
                result.clone()
            }
            // Cloned, for each of the others asks for them, too.
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
            Collective::AllGather(lens) => {
                let given = &self.given;
                let result = self.result.get_or_insert_with(|| {
                    let mut start = 0;
                    let piece = |(given, len): (&Option<Vec<f32>>, &usize)| {
                        start += len;
                        let all = given.as_deref().unwrap_or_default();
                        all.get(start - len..start).unwrap_or_default().to_vec()
                    };
                    given.iter().zip(lens.iter()).flat_map(piece).collect()
                });
                result.clone()
            }
        }
    }
}

impl Kernel {
    /// Puts a collective behind those that the worker has started before, at the worker's clock.
    pub(crate) fn start_collective(
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
    pub(crate) fn start_collective_sizes(
        &mut self,
        rank: usize,
        number: u64,
        steps: Steps,
        kind: TrafficKind,
    ) {
        let belongs = self.begin(rank);
        let actor = &mut self.actors[rank];
        actor.collectives.push_back(Part {
            number,
            belongs,
            kind,
            taking: Taking::new(steps, actor.clock),
        });
        self.progress_collectives(rank);
    }

    /// Waits for a collective; its result is taken with [`Self::take_reduced`] when the turn comes
    /// back.
    pub(crate) fn finish_collective(&mut self, rank: usize, number: u64) {
        self.block(rank, Phase::Collecting(number));
    }

    /// What a collective that has come to its end has left this worker with.
    pub(crate) fn take_reduced(
        &mut self,
        rank: usize,
        number: u64,
        all_reduce: &AllReduceKind,
    ) -> Vec<f32> {
        let workers = self.workers();
        let Some(sum) = self.sums.get_mut(&number) else {
            return Vec::new();
        };
        let values = sum.take(all_reduce, rank);
        // The last has asked, and a long run must not keep the values of all its collectives.
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
        while let Some(mut part) = self.actors[rank].collectives.pop_front() {
            let (kind, number) = (part.kind, part.number);
            let done = part.taking.go_on(&mut End {
                kernel: self,
                rank,
                tag: Tag::Collective { kind, number },
                belongs: part.belongs,
            });
            let actor = &mut self.actors[rank];
            if !done {
                actor.collectives.push_front(part);
                return;
            }
            let clock = part.taking.clock();
            // One after another, as on one stream: the next cannot begin before this one's end.
            if let Some(next) = actor.collectives.front_mut() {
                next.taking.wait_until(clock);
            }
            actor.collected.insert(number, clock);
        }
    }

    /// A message of a collective has been delivered: its sender may have waited for that.
    pub(super) fn collective_delivered(&mut self, from: usize, flow: FlowId, at: Seconds) {
        if let Some(part) = self.actors[from].collectives.front_mut()
            && part.taking.delivered(flow, at)
        {
            self.progress(from);
        }
    }
}
