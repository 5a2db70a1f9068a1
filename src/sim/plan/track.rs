//! The phases of one worker, and how planners write them down.

use std::ops::Range;
use std::sync::Arc;

use crate::model::Work;
use crate::net::{Bytes, Collective, Traffic, TrafficKind};

/// Something a worker does, in one piece.
#[derive(Clone, Debug, PartialEq)]
pub enum Phase {
    /// It computes.
    Compute(Work),
    /// It hands messages to the network and goes on.
    Start(Exchange),
    /// It waits for the messages of the oldest exchange of this kind and layer.
    Finish(TrafficKind, u32),
    /// It starts its steps of a collective and goes on.
    Reduce(Collective, TrafficKind),
    /// It waits for the oldest collective that it has not waited for.
    Collect,
    /// It hears what worker 0 hands out beside the network, or is worker 0 and hands it out.
    Share,
    /// From here on its messages are counted under the epoch so many after this one.
    CountUnder(usize),
    /// It plays all workers, of which `busy` share this work and the others wait.
    ComputeTogether {
        /// The work of all of them.
        work: Work,
        /// Who computes, ascending.
        busy: Arc<[usize]>,
    },
    /// It plays all workers, whose messages leave now, and waits for the last of them.
    Carry(Arc<Traffic>),
}

/// A sparse all-to-all, as one worker sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// What its messages carry.
    pub kind: TrafficKind,
    /// The layer whose input or gradient that is.
    pub layer: u32,
    /// Receivers in ascending order, and the payload of the message to each.
    pub to: Vec<(u32, Bytes)>,
    /// Senders from whom a message is expected, in ascending order.
    pub from: Vec<u32>,
}

impl Exchange {
    /// To whom the worker so many ranks on sends what in its place, of `size` workers.
    pub(super) fn receivers_of(
        &self,
        by: usize,
        size: usize,
    ) -> impl Iterator<Item = (u32, Bytes)> {
        // Ranks ascend; from this place on they begin again at 0.
        let ends = |&(peer, _): &(u32, Bytes)| (peer as usize) < size - by;
        let again = self.to.partition_point(ends);
        let place = move |&(peer, bytes): &(u32, Bytes)| (turned(peer, by, size), bytes);
        self.to[again..].iter().chain(&self.to[..again]).map(place)
    }

    /// From whom it expects a message.
    pub(super) fn senders_of(&self, by: usize, size: usize) -> impl Iterator<Item = u32> {
        let again = (self.from).partition_point(|&peer| (peer as usize) < size - by);
        let place = move |&peer: &u32| turned(peer, by, size);
        (self.from[again..].iter().chain(&self.from[..again])).map(place)
    }
}

const fn turned(rank: u32, by: usize, size: usize) -> u32 {
    ((rank as usize + by) % size) as u32
}

/// The phases of one worker in one epoch. Its methods are named as those of
/// [`Worker`](crate::sim::Worker), whose program they stand for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Track {
    phases: Vec<Phase>,
    /// Which of them are set-up, ascending.
    set_up: Vec<Range<usize>>,
    memory: Memory,
}

/// Bytes that a worker holds in an epoch, at most; beside its part of the graph, and the
/// parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// All through the epoch.
    pub kept: u64,
    /// The same, of what goes from step to step beside parameters, gradient and optimiser.
    pub learner: u64,
    /// What comes during a pass for later ones.
    pub ahead: u64,
    /// At the fullest moment of a pass over the layers; 0 where none was planned as one.
    pub pass: u64,
    /// Of that, what is there between passes, too: blocks, and features that are part of one.
    pub stays: u64,
    /// Whether the features of own nodes are part of the pass: it reads all of them.
    pub reads_features: bool,
}

impl Memory {
    /// What is held of either.
    pub(super) fn join(&mut self, other: Self) {
        self.kept = self.kept.max(other.kept);
        self.learner = self.learner.max(other.learner);
        self.ahead = self.ahead.max(other.ahead);
        self.pass = self.pass.max(other.pass);
        self.stays = self.stays.max(other.stays);
        self.reads_features |= other.reads_features;
    }
}

impl Track {
    /// All of them, in order.
    pub fn phases(&self) -> &[Phase] {
        &self.phases
    }

    /// What it holds.
    pub const fn memory(&self) -> Memory {
        self.memory
    }

    /// What the worker so many ranks on does, of `size`, who does the same in its place.
    pub(super) fn turned(&self, by: usize, size: usize) -> Self {
        let phase = |phase: &Phase| match phase {
            Phase::Start(exchange) => Phase::Start(Exchange {
                to: exchange.receivers_of(by, size).collect(),
                from: exchange.senders_of(by, size).collect(),
                ..*exchange
            }),
            other => other.clone(),
        };
        Self {
            phases: self.phases.iter().map(phase).collect(),
            set_up: self.set_up.clone(),
            memory: self.memory,
        }
    }

    /// Whether a phase is written as [set-up](Self::set_up).
    pub(super) fn sets_up(&self, phase: usize) -> bool {
        self.set_up.iter().any(|range| range.contains(&phase))
    }

    /// It keeps so many bytes all through the epoch.
    pub fn keeps(&mut self, bytes: u64) {
        self.memory.kept = self.memory.kept.max(bytes);
    }

    /// So many bytes come during its pass for later ones.
    pub(crate) fn hears_ahead(&mut self, bytes: u64) {
        self.memory.ahead = self.memory.ahead.max(bytes);
    }

    /// It keeps so many bytes from step to step, beside the parameters, a gradient of them and what
    /// the optimiser keeps, whatever else it [keeps](Self::keeps).
    pub(crate) fn learns_with(&mut self, bytes: u64) {
        self.memory.learner = self.memory.learner.max(bytes);
    }

    /// It holds so many bytes at the fullest moment of a pass over the layers, of which some stay
    /// for the next.
    pub fn passes_with(&mut self, most: u64, stays: u64) {
        self.memory.pass = self.memory.pass.max(most);
        self.memory.stays = self.memory.stays.max(stays);
    }

    /// Passes over the layers read all features of own nodes, which are held once.
    pub fn reads_features(&mut self) {
        self.memory.reads_features = true;
    }

    /// Bytes of the messages of these kinds that it sends in the epoch.
    pub(crate) fn sends(&self, kinds: &[TrafficKind]) -> u64 {
        let sent = self.phases.iter().map(|phase| match phase {
            Phase::Start(exchange) if kinds.contains(&exchange.kind) => {
                exchange.to.iter().map(|(_, bytes)| bytes.0).sum()
            }
            _ => 0,
        });
        sent.sum()
    }

    /// It computes.
    pub fn compute(&mut self, work: Work) {
        self.phases.push(Phase::Compute(work));
    }

    /// What is written so is set-up, if `now`: it is done once, or now and then, and is no part of
    /// what every epoch does, such as fetching features that are kept, or moving chunks.
    pub fn set_up<T>(&mut self, now: bool, write: impl FnOnce(&mut Self) -> T) -> T {
        let first = self.phases.len();
        let written = write(self);
        if now {
            self.set_up.push(first..self.phases.len());
        }
        written
    }

    /// What is written so takes none of its time for computing, if `beside`: others do it
    /// meanwhile.
    pub(crate) fn work_of_others<T>(
        &mut self,
        beside: bool,
        write: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let first = self.phases.len();
        let written = write(self);
        if beside {
            for phase in &mut self.phases[first..] {
                if let Phase::Compute(work) | Phase::ComputeTogether { work, .. } = phase {
                    *work = Work::default();
                }
            }
        }
        written
    }

    /// It takes a step of an optimiser: gradient, parameter and two moments are read, three of them
    /// written, charged as six passes: 6 operations and 48 bytes a parameter.
    pub fn update(&mut self, parameters: usize) {
        self.compute(Work::pass(parameters) * 6.0);
    }

    /// It sends, and waits for what it expects.
    pub fn exchange(&mut self, exchange: Exchange) {
        let (kind, layer) = (exchange.kind, exchange.layer);
        self.start_exchange(exchange);
        self.finish_exchange(kind, layer);
    }

    /// It sends and goes on.
    pub fn start_exchange(&mut self, exchange: Exchange) {
        self.phases.push(Phase::Start(exchange));
    }

    /// It waits for what it expects of the oldest exchange of this kind and layer.
    pub fn finish_exchange(&mut self, kind: TrafficKind, layer: u32) {
        self.phases.push(Phase::Finish(kind, layer));
    }

    /// It combines so many values with all others and waits for the result.
    pub fn all_reduce(&mut self, len: usize, kind: TrafficKind) {
        self.start_all_reduce(len, kind);
        self.finish_collective();
    }

    /// It gets the values of all workers, of which each has so many.
    pub fn all_gather(&mut self, lens: &[usize], kind: TrafficKind) {
        self.start_collective(Collective::AllGather(lens.into()), kind);
        self.finish_collective();
    }

    /// It starts to combine so many values with all others and goes on.
    pub fn start_all_reduce(&mut self, len: usize, kind: TrafficKind) {
        self.start_collective(Collective::AllReduce(len), kind);
    }

    /// It starts its part of a collective and goes on.
    pub fn start_collective(&mut self, collective: Collective, kind: TrafficKind) {
        self.phases.push(Phase::Reduce(collective, kind));
    }

    /// It waits for the oldest collective that it has not waited for.
    pub fn finish_collective(&mut self) {
        self.phases.push(Phase::Collect);
    }

    /// It hears, or hands out, what worker 0 shares beside the network.
    pub fn share(&mut self) {
        self.phases.push(Phase::Share);
    }

    /// From here on its messages are counted under the epoch `ahead` after this one.
    pub fn count_under(&mut self, ahead: usize) {
        self.phases.push(Phase::CountUnder(ahead));
    }

    /// It plays all workers, of which `busy` share this work and the others wait.
    pub fn compute_together(&mut self, work: Work, busy: &[usize]) {
        let busy = busy.into();
        self.phases.push(Phase::ComputeTogether { work, busy });
    }

    /// It plays all workers, whose messages leave now.
    pub fn carry(&mut self, traffic: Traffic) {
        self.phases.push(Phase::Carry(Arc::new(traffic)));
    }
}
