//! The time of a run without training: its plan, played on the simulation's kernel by sizes alone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::place::Place;
use super::repeats::{Mark, Marks, Multiplied};
use super::{Decision, Phase, Planner, Timeline};
use crate::net::{Fabric, Ledger, Seconds, Snapshot};
use crate::sim::engine::Cluster;
use crate::sim::kernel::{Expected, Kernel, Since, WorkerTimes};
use crate::sim::{ComputeTiming, SimError, Trace};

/// What became of a plan that was played.
pub struct Played {
    /// Each worker's account of time.
    pub times: Vec<WorkerTimes>,
    /// Every message.
    pub ledger: Ledger,
    /// Virtual time when the last worker ended each epoch.
    pub epochs: Vec<Seconds>,
    /// How many phases were played: what was multiplied is not among them.
    pub steps: u64,
}

/// How far, and how, a plan is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Course {
    /// Number of epochs.
    pub epochs: usize,
    /// Whether worker 0 plays all of them.
    pub together: bool,
    /// Whether equal epochs, and equal steps of one, are played only until each takes the time of
    /// the one before it. What is not played is multiplied, which changes times by rounding.
    pub multiplied: bool,
}

impl Course {
    /// All of so many epochs, in which each worker plays itself.
    pub const fn whole(epochs: usize) -> Self {
        Self {
            epochs,
            together: false,
            multiplied: false,
        }
    }
}

/// What worker 0 has begun that may be like the one before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Due {
    Nothing,
    Step,
    Epoch,
}

/// Plays a plan, given what the training decided, where there was one; `progress` hears of each
/// epoch that is planned.
///
/// # Errors
/// If a message cannot be carried, or workers wait for each other for ever.
pub fn play(
    cluster: &Cluster,
    timing: &ComputeTiming,
    planner: &mut dyn Planner,
    course: Course,
    decisions: &BTreeMap<usize, Decision>,
    mut progress: impl FnMut(usize),
) -> Result<Played, SimError> {
    let workers = cluster.topology.workers();
    let actors = if course.together { 1 } else { workers };
    let fabric = Fabric::new(Arc::clone(&cluster.topology), cluster.framing);
    let trace = Trace::new(cluster.timeline_epochs);
    let kernel = Kernel::new(fabric, workers, actors, trace);
    let mut player = Player::new(cluster, timing, kernel, actors, course);
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
    /// Whether those who play stand for all.
    of_first: bool,
    /// Plans that not all workers have begun, and how many have.
    planned: BTreeMap<usize, (Arc<Timeline>, usize)>,
    /// The next plan, where it is known.
    ahead: Option<Arc<Timeline>>,
    course: Course,
    /// How many plans were asked for.
    made: usize,
    /// Of each epoch that is played, how many workers have ended it, and when the last one did.
    ended: Vec<(usize, Seconds)>,
    /// How many phases were played.
    steps: u64,
    /// What worker 0 has begun since everybody waited.
    due: Due,
    /// When steps and epochs began that are like the one before.
    step_marks: Marks,
    epoch_marks: Marks,
    multiplied: Multiplied,
}

impl<'a> Player<'a> {
    /// A player of the first `actors` workers of a kernel.
    pub(super) fn new(
        cluster: &'a Cluster,
        timing: &'a ComputeTiming,
        kernel: Kernel,
        actors: usize,
        course: Course,
    ) -> Self {
        Self {
            cluster,
            timing,
            kernel,
            places: (0..actors).map(|_| Place::default()).collect(),
            of_first: false,
            planned: BTreeMap::new(),
            ahead: None,
            course,
            made: 0,
            ended: Vec::new(),
            steps: 0,
            due: Due::Nothing,
            step_marks: Marks::default(),
            epoch_marks: Marks::default(),
            multiplied: Multiplied::default(),
        }
    }

    /// The same for a kernel in which the first workers stand for all.
    pub(super) fn of_first(self) -> Self {
        Self {
            of_first: true,
            ..self
        }
    }

    /// Plays all epochs, whose plans come from `plan`; `false` as soon as there is none.
    pub(super) fn run(
        &mut self,
        mut plan: impl FnMut(usize) -> Option<Arc<Timeline>>,
    ) -> Result<bool, SimError> {
        while let Some(rank) = self.kernel.turn() {
            while self.kernel.turn() == Some(rank) {
                self.settle(rank);
                if self.at_end(rank) && !self.open(rank, &mut plan) {
                    return Ok(false);
                }
                if self.step(rank)? {
                    continue;
                }
                if !self.multiply(&mut plan) {
                    return Ok(false);
                }
                self.kernel.pass_turn();
            }
        }
        match self.kernel.failure() {
            Some(failure) => Err(failure.into()),
            None => Ok(true),
        }
    }

    /// What became of it.
    pub(super) fn into_played(self) -> Played {
        let results = self.kernel.into_results();
        Played {
            times: self.multiplied.accounts(results.times),
            ledger: self.multiplied.messages(results.ledger),
            epochs: self
                .multiplied
                .ends(self.ended.into_iter().map(|(_, at)| at)),
            steps: self.steps,
        }
    }

    fn at_end(&self, rank: usize) -> bool {
        let place = &self.places[rank];
        place.stretch >= place.timeline.stretches.len()
    }

    /// Opens the epoch that a worker goes to, if there is one; `false` without a plan for it.
    fn open(&mut self, rank: usize, plan: &mut impl FnMut(usize) -> Option<Arc<Timeline>>) -> bool {
        let epoch = self.places[rank].epoch;
        if epoch == self.ended.len() {
            let next = self.ahead.take();
            if next.is_none() && self.made == self.course.epochs {
                return true;
            }
            let Some(timeline) = next.or_else(|| self.make(plan)) else {
                return false;
            };
            self.planned.insert(epoch, (timeline, 0));
            self.ended.push((0, Seconds::ZERO));
        }
        true
    }

    fn make(
        &mut self,
        plan: &mut impl FnMut(usize) -> Option<Arc<Timeline>>,
    ) -> Option<Arc<Timeline>> {
        self.made += 1;
        plan(self.made - 1)
    }

    /// Goes to the next epoch, if there is one.
    fn turn_page(&mut self, rank: usize) {
        let workers = self.places.len();
        let place = &mut self.places[rank];
        if let Some(before) = place.epoch.checked_sub(1) {
            let clock = self.kernel.clock(rank);
            let clock = self.multiplied.end_of(before, rank, clock);
            let (count, at) = &mut self.ended[before];
            *count += 1;
            *at = (*at).max(clock);
        }
        let Some((timeline, begun)) = self.planned.get_mut(&place.epoch) else {
            return self.kernel.finish(rank);
        };
        if rank == 0 {
            if !timeline.is_held_as(&place.timeline) {
                self.epoch_marks.clear();
            }
            self.step_marks.clear();
            self.due = Due::Epoch;
        }
        place.timeline = Arc::clone(timeline);
        *begun += 1;
        if *begun == workers {
            self.planned.remove(&place.epoch);
        }
        self.kernel.set_epoch(rank, place.epoch);
        (place.stretch, place.followed, place.next) = (0, 0, 0);
        place.epoch += 1;
    }

    /// At the end of a stretch goes on to the next phase, if there is one in this epoch.
    fn settle(&mut self, rank: usize) {
        loop {
            let place = &mut self.places[rank];
            let Some(stretch) = place.timeline.stretches.get(place.stretch) else {
                return;
            };
            if place.next < stretch.workers[rank].phases().len() {
                return;
            }
            place.followed += 1;
            place.next = 0;
            if place.followed >= stretch.times {
                (place.stretch, place.followed) = (place.stretch + 1, 0);
                if rank == 0 {
                    self.step_marks.clear();
                    self.due = Due::Nothing;
                }
            } else if rank == 0 {
                self.due = Due::Step;
            }
        }
    }

    /// Worker 0 has come to a point of its plan at which something begins again.
    fn mark(&self) -> Option<Mark> {
        let place = self.places.first()?;
        let clock = self.kernel.clock(0);
        let since = Since {
            moment: clock,
            collectives: place.started,
            shares: self.kernel.shares(),
        };
        let mut snapshot = Snapshot::default();
        if !self.kernel.snapshot(since, &mut snapshot) {
            return None;
        }
        for other in &self.places {
            other.snapshot(place, &mut snapshot);
        }
        Some(Mark {
            snapshot,
            clock,
            times: self.multiplied.accounts(self.kernel.times()),
        })
    }

    /// Takes at once what is settled, when everybody waits; `false` without a plan for an epoch.
    fn multiply(&mut self, plan: &mut impl FnMut(usize) -> Option<Arc<Timeline>>) -> bool {
        if !self.course.multiplied || self.due == Due::Nothing || !self.kernel.is_quiet() {
            return true;
        }
        if std::mem::replace(&mut self.due, Due::Nothing) == Due::Epoch {
            return self.multiply_epochs(plan);
        }
        self.multiply_steps();
        true
    }

    /// Takes the steps of a stretch at once whose course is settled.
    fn multiply_steps(&mut self) {
        let place = &self.places[0];
        let stretch = &place.timeline.stretches[place.stretch];
        let left = stretch.times - place.followed;
        if left < 2 || !self.step_marks.hopes() {
            return;
        }
        let number = place.followed;
        let Some(gained) = self
            .mark()
            .and_then(|mark| self.step_marks.push(number, mark))
        else {
            return;
        };
        let (epoch, at) = (place.epoch, place.stretch);
        let mut others = self.places.iter();
        let together = others.all(|other| (other.epoch, other.stretch) == (epoch, at));
        let ahead = self.places.iter().map(|other| other.followed).max();
        let times = stretch.times.saturating_sub(1 + ahead.unwrap_or(0));
        if !together || times == 0 {
            return;
        }
        if !self.of_first {
            let (reduce, ledger) = (&self.cluster.all_reduce, &mut self.multiplied.ledger);
            stretch.record(epoch - 1, times as u64, reduce, ledger);
        }
        for other in &mut self.places {
            other.followed += times;
        }
        self.multiplied.add(&gained, times);
        self.step_marks.clear();
    }

    /// Takes epochs at once whose course is settled, when worker 0 has begun one that is like the
    /// one before; `false` without a plan for one.
    fn multiply_epochs(&mut self, plan: &mut impl FnMut(usize) -> Option<Arc<Timeline>>) -> bool {
        let (epoch, timeline) = (self.places[0].epoch - 1, &self.places[0].timeline);
        let timeline = Arc::clone(timeline);
        if self.made == self.course.epochs || !self.epoch_marks.hopes() {
            return true;
        }
        let mark = self.mark();
        let gained = mark.and_then(|mark| self.epoch_marks.push(epoch, mark));
        // Nobody may be further than this epoch.
        let (Some(gained), true) = (gained, self.ended.len() == epoch + 1) else {
            return true;
        };
        let mut times = 0;
        while self.ahead.is_none() && self.made < self.course.epochs {
            let Some(next) = self.make(plan) else {
                return false;
            };
            if next.is_held_as(&timeline) {
                times += 1;
            } else {
                self.ahead = Some(next);
            }
        }
        self.multiplied.add(&gained, times);
        let mut ledger = Ledger::new();
        if !self.of_first {
            timeline.traffic(&self.cluster.all_reduce, &mut ledger);
        }
        self.multiplied
            .epochs(epoch, times, gained[0].clock, ledger.traffic());
        self.epoch_marks.clear();
        true
    }

    /// Notes where set-up begins and ends in a worker's plan.
    fn account(&mut self, rank: usize) {
        let clock = self.kernel.clock(rank);
        if let Some(time) = self.places[rank].set_up_until(rank, clock) {
            let all = 0..self.kernel.workers();
            let whose = if self.course.together {
                all
            } else {
                rank..rank + 1
            };
            self.kernel.set_up(whose, time);
        }
    }

    /// Plays a phase. Whether the worker can go on.
    fn step(&mut self, rank: usize) -> Result<bool, SimError> {
        self.account(rank);
        if self.at_end(rank) {
            self.turn_page(rank);
            return Ok(true);
        }
        let players = self.places.len();
        let place = &mut self.places[rank];
        let timeline = Arc::clone(&place.timeline);
        let (workers, next) = (&timeline.stretches[place.stretch].workers, place.next);
        let phase = &workers[rank].phases()[next];
        place.next += 1;
        self.steps += 1;
        match phase {
            Phase::Compute(work) => {
                let factor = self.cluster.topology.compute_factor(rank);
                let time = self.timing.time(rank, *work, Duration::ZERO, factor);
                self.kernel.compute(rank, time);
            }
            Phase::ComputeTogether { work, busy } => {
                let share = 1.0 / busy.len().max(1) as f64;
                let (topology, work) = (&self.cluster.topology, *work * share);
                let time = self.timing.slowest(topology, work, Duration::ZERO);
                self.kernel.compute_all(rank, time, busy);
            }
            Phase::Start(exchange) => {
                let how = self.cluster.exchange;
                let expected = self.kernel.start_exchange(rank, how, exchange)?;
                place.expects.push(expected);
            }
            Phase::Finish(kind, layer) => {
                let of = |one: &Expected| (one.kind, one.layer) == (*kind, *layer);
                let Some(at) = place.expects.iter().position(of) else {
                    return Err(SimError::Strategy(format!(
                        "the plan of worker {rank} waits for {kind} of layer {layer} that it did not start"
                    )));
                };
                let (how, expected) = (self.cluster.exchange, place.expects.remove(at));
                if !expected.from.is_empty() {
                    self.kernel.finish_exchange(rank, how, expected);
                }
            }
            Phase::Reduce(collective, kind) => {
                let (size, all_reduce) = (self.kernel.workers(), &self.cluster.all_reduce);
                let turn = (rank, players);
                let of_first = || collective.steps_of_first(all_reduce, turn, size);
                let steps = (self.of_first.then(of_first).flatten())
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
            Phase::CountUnder(ahead) => self.kernel.set_epoch(rank, place.epoch - 1 + ahead),
            Phase::Carry(traffic) => self.kernel.carry(traffic),
        }
        Ok(self.kernel.is_runnable(rank))
    }
}
