//! The time of a run without training: its plan, played on the simulation's kernel by sizes alone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::{Decision, Exchange, Phase, Planner, Timeline};
use crate::net::{ExchangeKind, Fabric, Ledger, Seconds};
use crate::sim::engine::Cluster;
use crate::sim::kernel::{Kernel, WorkerTimes};
use crate::sim::{ComputeTiming, SimError, Trace};

/// What became of a plan that was played.
pub struct Played {
    /// Each worker's account of time.
    pub times: Vec<WorkerTimes>,
    /// Every message.
    pub ledger: Ledger,
    /// Virtual time when the last worker ended each epoch.
    pub epochs: Vec<Seconds>,
}

/// One worker's place in its plan.
#[derive(Default)]
struct Place {
    timeline: Arc<Timeline>,
    next: usize,
    /// The epoch it goes to next.
    epoch: usize,
    /// Whom it expects messages from, by exchange: the oldest of a kind and layer is waited for
    /// first.
    expects: Vec<Exchange>,
    /// Collectives that it started, and the next one it waits for.
    started: u64,
    collected: u64,
}

/// Plays `epochs` epochs of a plan, given what the training decided, where there was one.
/// `together` says that worker 0 plays all of them; `progress` hears of each epoch that is planned.
///
/// # Errors
/// If a message cannot be carried, or workers wait for each other for ever.
pub fn play(
    cluster: &Cluster,
    timing: &ComputeTiming,
    planner: &mut dyn Planner,
    epochs: usize,
    together: bool,
    decisions: &BTreeMap<usize, Decision>,
    mut progress: impl FnMut(usize),
) -> Result<Played, SimError> {
    let workers = cluster.topology.workers();
    let actors = if together { 1 } else { workers };
    let fabric = Fabric::new(Arc::clone(&cluster.topology), cluster.framing);
    let trace = Trace::new(cluster.timeline_epochs);
    let kernel = Kernel::new(fabric, workers, actors, trace);
    let mut player = Player::new(cluster, timing, kernel, actors, epochs);
    player.run(|epoch| {
        let timeline = planner.next(decisions.get(&epoch));
        progress(epoch);
        Some(timeline)
    })?;
    Ok(player.into_played())
}

pub(super) struct Player<'a> {
    cluster: &'a Cluster,
    timing: &'a ComputeTiming,
    kernel: Kernel,
    places: Vec<Place>,
    /// Whether worker 0 stands for all.
    of_equals: bool,
    /// Plans that not all workers have begun, and how many have.
    planned: BTreeMap<usize, (Arc<Timeline>, usize)>,
    epochs: usize,
    /// Of each epoch, how many workers have ended it, and when the last one did.
    ended: Vec<(usize, Seconds)>,
}

impl<'a> Player<'a> {
    /// A player of the first `actors` workers of a kernel.
    pub(super) fn new(
        cluster: &'a Cluster,
        timing: &'a ComputeTiming,
        kernel: Kernel,
        actors: usize,
        epochs: usize,
    ) -> Self {
        Self {
            cluster,
            timing,
            kernel,
            places: (0..actors).map(|_| Place::default()).collect(),
            of_equals: false,
            planned: BTreeMap::new(),
            epochs,
            ended: vec![(0, Seconds::ZERO); epochs],
        }
    }

    /// The same for a kernel in which worker 0 stands for all.
    pub(super) fn of_equals(self) -> Self {
        Self {
            of_equals: true,
            ..self
        }
    }

    /// Plays all epochs, whose plans come from `plan`; `false` as soon as there is none.
    pub(super) fn run(
        &mut self,
        mut plan: impl FnMut(usize) -> Option<Arc<Timeline>>,
    ) -> Result<bool, SimError> {
        let mut made = 0;
        while let Some(rank) = self.kernel.turn() {
            while self.kernel.turn() == Some(rank) {
                if self.places[rank].epoch == made && self.at_end(rank) && made < self.epochs {
                    let Some(timeline) = plan(made) else {
                        return Ok(false);
                    };
                    self.planned.insert(made, (timeline, 0));
                    made += 1;
                }
                self.step(rank)?;
            }
        }
        match self.kernel.failure() {
            Some(failure) => Err(failure.into()),
            None => Ok(true),
        }
    }

    /// What became of it.
    pub(super) fn into_played(self) -> Played {
        let (times, ledger, _) = self.kernel.into_results();
        Played {
            times,
            ledger,
            epochs: self.ended.into_iter().map(|(_, at)| at).collect(),
        }
    }

    fn at_end(&self, rank: usize) -> bool {
        let place = &self.places[rank];
        let track = place.timeline.workers.get(rank);
        place.next >= track.map_or(0, |track| track.phases().len())
    }

    /// Goes to the next epoch, if there is one.
    fn turn_page(&mut self, rank: usize) {
        let workers = self.places.len();
        let place = &mut self.places[rank];
        if let Some(before) = place.epoch.checked_sub(1) {
            let (count, at) = &mut self.ended[before];
            *count += 1;
            *at = (*at).max(self.kernel.clock(rank));
        }
        if place.epoch == self.epochs {
            return self.kernel.finish(rank);
        }
        let Some((timeline, begun)) = self.planned.get_mut(&place.epoch) else {
            return;
        };
        place.timeline = Arc::clone(timeline);
        *begun += 1;
        if *begun == workers {
            self.planned.remove(&place.epoch);
        }
        self.kernel.set_epoch(rank, place.epoch);
        place.next = 0;
        place.epoch += 1;
    }

    fn step(&mut self, rank: usize) -> Result<(), SimError> {
        if self.at_end(rank) {
            self.turn_page(rank);
            return Ok(());
        }
        let place = &mut self.places[rank];
        let timeline = Arc::clone(&place.timeline);
        let phase = &timeline.workers[rank].phases()[place.next];
        place.next += 1;
        let factor = |rank| self.cluster.topology.compute_factor(rank);
        match phase {
            Phase::Compute(work) => {
                let time = self.timing.time(*work, Duration::ZERO, factor(rank));
                self.kernel.compute(rank, time);
            }
            Phase::ComputeTogether { work, busy } => {
                let share = 1.0 / busy.len().max(1) as f64;
                let speeds = (0..self.kernel.workers()).map(factor);
                let slowest = speeds.fold(f64::INFINITY, f64::min);
                let time = self.timing.time(*work * share, Duration::ZERO, slowest);
                self.kernel.compute_all(rank, time, busy);
            }
            Phase::Start(exchange) => {
                match self.cluster.exchange {
                    ExchangeKind::Direct => self.kernel.send_sizes(rank, exchange)?,
                    ExchangeKind::Pairwise => self.kernel.start_pairwise_sizes(rank, exchange)?,
                }
                place.expects.push(Exchange {
                    to: Vec::new(),
                    ..exchange.clone()
                });
            }
            Phase::Finish(kind, layer) => {
                let of = |one: &Exchange| (one.kind, one.layer) == (*kind, *layer);
                let Some(at) = place.expects.iter().position(of) else {
                    return Err(SimError::Strategy(format!(
                        "the plan of worker {rank} waits for {kind} of layer {layer} that it did not start"
                    )));
                };
                let exchange = place.expects.remove(at);
                if exchange.from.is_empty() {
                    return Ok(());
                }
                match self.cluster.exchange {
                    ExchangeKind::Direct => {
                        let from = exchange.from.iter().map(|&peer| peer as usize).collect();
                        self.kernel.receive(rank, *kind, *layer, from);
                    }
                    ExchangeKind::Pairwise => self.kernel.finish_pairwise(rank, *kind, *layer),
                }
            }
            Phase::Reduce(collective, kind) => {
                let (size, all_reduce) = (self.kernel.workers(), &self.cluster.all_reduce);
                let of_equals = || collective.steps_of_equals(all_reduce, size);
                let steps = (self.of_equals.then(of_equals).flatten())
                    .unwrap_or_else(|| collective.steps(all_reduce, rank, size));
                let number = place.started;
                place.started += 1;
                self.kernel
                    .start_collective_sizes(rank, number, steps, *kind);
            }
            Phase::Collect => {
                let number = place.collected;
                place.collected += 1;
                self.kernel.finish_collective(rank, number);
            }
            Phase::Share => {
                let value = (rank == 0).then(Vec::new);
                self.kernel.share(rank, value);
            }
            Phase::CountUnder(epoch) => self.kernel.set_epoch(rank, *epoch),
            Phase::Carry(traffic) => self.kernel.carry(traffic),
        }
        if !self.kernel.is_runnable(rank) {
            self.kernel.pass_turn();
        }
        Ok(())
    }
}
