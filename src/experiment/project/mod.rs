//! What a cell would send and how long it would take, from its plan alone, without training.

mod beside;
mod notes;
mod row;
#[cfg(test)]
mod tests;
mod validated;
mod verdicts;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use super::Error;
use super::config::{Cell, Experiment};
use super::prepare::{Fitted, Preparation};
use super::row_maker::RowMaker;
use super::rows::RunRow;
use crate::graph::FitEnd;
use crate::net::{NetError, TrafficKind};
use crate::sim::{
    Course, Decision, Planner, Played, Setting, SimError, Timeline, WorkerTimes,
    held_in_evaluation, play, play_equals,
};

pub(crate) use beside::{Beside, beside};
pub(crate) use notes::{Notes, notes};
use validated::validated;
pub(crate) use verdicts::{Verdicts, verdicts};

/// What a cell would send and how long that would take. Times have the names that they have in the
/// table of runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Projection {
    /// Name of the cell.
    pub cell: String,
    /// The strategy's label.
    #[serde(skip)]
    pub strategy: String,
    /// Name of the data set.
    #[serde(skip)]
    pub dataset: String,
    /// Its nodes, columns of features and classes.
    #[serde(skip)]
    pub(crate) sizes: [usize; 3],
    /// Number of workers.
    pub workers: usize,
    /// The seed of the partition: the experiment's first.
    pub seed: u64,
    /// Epochs of the whole training.
    pub epochs: usize,
    /// Whether this is what is sent; if not, that depends on how the training goes, and this is the
    /// most it can be.
    pub exact: bool,
    /// What is assumed of a graph that is known in numbers alone, of which all here is an
    /// expectation; of shards, how they were divided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assumed: Option<String>,
    /// Of a graph known in numbers alone: the largest errors of payload and time where the strategy
    /// was trained on smaller ones, too, as shares; none if it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validated: Option<[Option<f64>; 2]>,
    /// Rows that cross the boundary in one exact exchange.
    pub boundary_rows: u64,
    /// Share of the edges whose ends are on two workers.
    pub(crate) cut_share: f64,
    /// The ends between which this lies, where the cut is known by a fit, or the degrees are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub between: Option<Between>,
    /// Number of messages.
    pub messages: u64,
    /// Encoded values.
    pub payload_bytes: u64,
    /// With framing.
    pub wire_bytes: u64,
    /// Payload by kind, those that are not zero.
    pub bytes_by_kind: BTreeMap<TrafficKind, u64>,
    /// Virtual time when the last worker ends.
    pub simulated_seconds: f64,
    /// Virtual time of a mean epoch without its set-up.
    pub(crate) epoch_seconds: f64,
    /// Mean over workers of the time of what is done once, such as fetching features, or now and
    /// then, such as moving chunks. With all epochs it makes the whole.
    pub(crate) setup_seconds: f64,
    /// Mean over workers of the time they compute: nothing where compute is measured, as nothing is
    /// computed here.
    pub compute_seconds: f64,
    /// Mean over workers of the time in which a message from or to them is in flight.
    pub communication_seconds: f64,
    /// The part of it in which they do nothing but wait.
    pub exposed_communication_seconds: f64,
    /// Mean over workers of the time in which they wait for others that have not begun to send.
    pub waiting_seconds: f64,
    /// Virtual time of all machines together, in hours: of one with several workers once.
    pub(crate) machine_hours: f64,
    /// What the worker holds whose device is the fullest; nothing where the plan does not say.
    pub memory_bytes: Option<u64>,
    /// What a worker holds at most while all evaluate the model, each its own nodes; nothing where
    /// the plan does not say what stays.
    pub evaluation_memory_bytes: Option<u64>,
    /// The memory of that device, if its profile states one.
    pub(crate) device_memory_bytes: Option<u64>,
    /// What each worker holds, by rank; one of them where all are alike and one was planned.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) memory_bytes_by_worker: Vec<u64>,
    /// Whether the one fits into the other, where both are known and the ends agree.
    pub fits: Option<bool>,
    /// Steps an epoch of parts that are unequal, and of equal ones.
    #[serde(skip)]
    pub(crate) steps: Option<[usize; 2]>,
    /// What the strategy says of how it goes with the cell's setting.
    #[serde(skip)]
    pub(crate) notes: Vec<String>,
    /// As a run that was carried out, of which accuracies are not known.
    #[serde(skip)]
    pub run: RunRow,
    /// The same at both of these ends.
    #[serde(skip)]
    pub ends: Option<Box<[RunRow; 2]>>,
}

/// Between which ends a projection lies: those of the interval of a fitted cut, or of a published
/// graph those of a more skewed one and of one without skew.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Between {
    /// Encoded values.
    pub payload_bytes: (u64, u64),
    /// Virtual time when the last worker ends.
    pub simulated_seconds: (f64, f64),
    /// What the worker holds whose device is the fullest; nothing where the plan does not say.
    pub memory_bytes: Option<(u64, u64)>,
}

impl Between {
    /// The least and the most of what is projected at the ends and between them.
    fn of(all: [&Projection; 3]) -> Self {
        let [low, middle, high] = all.map(|one| one.memory_bytes);
        let memory = low.zip(middle).zip(high);
        Self {
            payload_bytes: extremes(all.map(|one| one.payload_bytes), u64::cmp),
            simulated_seconds: extremes(all.map(|one| one.simulated_seconds), f64::total_cmp),
            memory_bytes: memory
                .map(|((low, middle), high)| extremes([low, middle, high], u64::cmp)),
        }
    }
}

/// The least and the most of three.
fn extremes<T: Copy>(mut three: [T; 3], order: fn(&T, &T) -> Ordering) -> (T, T) {
    three.sort_by(order);
    (three[0], three[2])
}

/// How far projecting has come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Projected<'a> {
    /// Name of the cell.
    pub cell: &'a str,
    /// Which end of what is known of its graph, where it has two.
    pub end: Option<&'static str>,
    /// Its place among all that are projected, from 1.
    pub number: usize,
    /// How many those are.
    pub of: usize,
    /// Epochs of it that are done; 0 when its graph is there.
    pub epoch: usize,
    /// Epochs it has.
    pub epochs: usize,
}

/// Projects every cell of an experiment, with its first seed; `progress` hears of each epoch.
///
/// # Errors
/// If data or settings are wrong.
pub(crate) fn project(
    experiment: &Experiment,
    preparation: &mut Preparation<'_>,
    progress: impl Fn(&Projected),
) -> Result<Vec<Projection>, Error> {
    // A checked file has at least one.
    let seed = experiment.seeds[0];
    let mut projections = Vec::new();
    // What is skipped has no projection.
    let cells = preparation.present(experiment)?.0;
    for (cell, number) in cells.iter().zip(1..) {
        let fitted = preparation.fit(cell, seed)?;
        let epochs = fitted.training.epochs();
        let done = |end, epoch| {
            progress(&Projected {
                cell: &cell.name,
                end,
                number,
                of: cells.len(),
                epoch,
                epochs,
            });
        };
        let name = &experiment.name;
        let mut projection = project_cell(name, cell, &fitted, |epoch| done(None, epoch))?;
        drop(fitted);
        let of_end = |end, epoch| done(Some(end), epoch);
        add_ends(&mut projection, name, (cell, seed), preparation, of_end)?;
        projections.push(projection);
        let later = cells[number..].iter();
        preparation.keep_only(&later.map(|cell| &cell.settings.dataset).collect::<Vec<_>>());
    }
    Ok(projections)
}

/// Adds to a cell's projection between what it lies, where what is known of its graph has two ends;
/// `done` hears of each end's epochs.
///
/// # Errors
/// As [`project`].
pub(crate) fn add_ends(
    projection: &mut Projection,
    experiment: &str,
    (cell, seed): (&Cell, u64),
    preparation: &mut Preparation<'_>,
    done: impl Fn(&'static str, usize),
) -> Result<(), Error> {
    let mut at = |end, name| -> Result<Option<Projection>, Error> {
        let fitted = preparation.fit_end(cell, seed, end)?;
        let done = |epoch| done(name, epoch);
        let end = fitted.map(|fitted| project_cell(experiment, cell, &fitted, done));
        end.transpose()
    };
    let low = at(FitEnd::Low, "lower end")?;
    if let (Some(low), Some(high)) = (low, at(FitEnd::High, "upper end")?) {
        projection.between = Some(Between::of([&low, projection, &high]));
        if low.fits != projection.fits || high.fits != projection.fits {
            projection.fits = None;
        }
        // Random parts of R-MAT were trained; what is known of others the ends say.
        projection.validated = None;
        projection.ends = Some(Box::new([low.run, high.run]));
    }
    Ok(())
}

/// More workers than this are one to plan for where they are alike: random parts of a graph in
/// numbers are equal, and the time of one worker is that of all. Fitted parts differ, and all play.
const EACH: usize = 8;

/// A planner, and what workers hold in its plans.
struct Watched {
    planner: Box<dyn Planner>,
    setting: Arc<Setting>,
    /// The most that each holds while it trains.
    most: Vec<u64>,
    /// The most that any holds while all evaluate.
    evaluating: u64,
}

impl Watched {
    fn new(fitted: &Fitted) -> Self {
        Self {
            planner: fitted.training.planner(),
            setting: Arc::clone(&fitted.setting),
            most: Vec::new(),
            evaluating: 0,
        }
    }
}

impl Planner for Watched {
    fn next(&mut self, decided: Option<&Decision>) -> Arc<Timeline> {
        let timeline = self.planner.next(decided);
        self.watch(&timeline);
        timeline
    }

    fn next_of_equals(&mut self) -> Option<Arc<Timeline>> {
        let timeline = self.planner.next_of_equals()?;
        self.watch(&timeline);
        Some(timeline)
    }
}

impl Watched {
    /// Notes what is held in a plan.
    fn watch(&mut self, timeline: &Timeline) {
        self.most.resize(self.most.len().max(timeline.workers()), 0);
        for (rank, most) in self.most.iter_mut().enumerate() {
            let memory = timeline.memory(rank);
            if memory.pass > 0 {
                *most = (*most).max(self.setting.holds(rank, memory));
                let evaluating = held_in_evaluation(&self.setting, rank, memory);
                self.evaluating = self.evaluating.max(evaluating);
            }
        }
    }

    /// Of the worker whose device is the fullest: what it holds, and what its device has, where it
    /// states that. Nothing where no plan says what is held.
    fn fullest(&self) -> Option<(u64, Option<u64>)> {
        let of_worker = |(rank, &needs): (usize, &u64)| {
            let device = self.setting.timing.device(rank);
            (needs, device.and_then(|device| device.memory))
        };
        let share = |(needs, there): (u64, Option<u64>)| {
            there.map_or(0.0, |there| needs as f64 / there as f64)
        };
        let workers = self.most.iter().enumerate().map(of_worker);
        let fullest = workers.max_by(|&a, &b| {
            let by_share = share(a).total_cmp(&share(b));
            by_share.then(a.0.cmp(&b.0))
        });
        fullest.filter(|&(needs, _)| needs > 0)
    }

    fn held(self) -> Held {
        let fullest = self.fullest();
        // Nothing where no plan says what is held.
        let each = fullest.map_or_else(Vec::new, |_| self.most);
        let evaluating = fullest.map(|_| self.evaluating);
        Held {
            each,
            fullest,
            evaluating,
        }
    }
}

/// What workers hold in a plan.
struct Held {
    /// By rank.
    each: Vec<u64>,
    /// What the fullest holds, and what its device has.
    fullest: Option<(u64, Option<u64>)>,
    /// The most that any holds while all evaluate.
    evaluating: Option<u64>,
}

/// The plan of a cell, played, and what is held of it.
fn played(fitted: &Fitted, done: impl Fn(usize)) -> Result<(Played, Held), Error> {
    let Fitted {
        setting,
        needs,
        training,
    } = fitted;
    let (cluster, timing) = (setting.cluster(), &setting.timing);
    let course = Course {
        epochs: training.epochs(),
        together: needs.together,
        // With the graph, times are those of the training to the last bit.
        multiplied: setting.law.is_some(),
    };
    if setting.law.is_some() && !needs.together && setting.workers() > EACH {
        let mut planner = Watched::new(fitted);
        let one = play_equals(&cluster, timing, &mut planner, course, &done)?;
        if let Some(played) = one {
            return Ok((played, planner.held()));
        }
    }
    let mut planner = Watched::new(fitted);
    let played = play(
        &cluster,
        timing,
        &mut planner,
        course,
        // Without a training nothing is decided, and each epoch is the most that it can be.
        &BTreeMap::new(),
        done,
    )?;
    Ok((played, planner.held()))
}

/// An error about a link that never comes back is one about the file.
fn of_link(cell: &Cell, error: Error) -> Error {
    match error {
        Error::Sim(SimError::Net(down @ NetError::LinkDown { .. })) => cell
            .refuse_itself("network.failure", down.to_string())
            .into(),
        other => other,
    }
}

/// One cell, fitted.
///
/// # Errors
/// If its plan cannot be played.
pub(super) fn project_cell(
    experiment: &str,
    cell: &Cell,
    fitted: &Fitted,
    done: impl Fn(usize),
) -> Result<Projection, Error> {
    let Fitted {
        setting, training, ..
    } = fitted;
    let (played, held) = played(fitted, done).map_err(|error| of_link(cell, error))?;
    let memory = held.fullest;
    let traffic = played.ledger.traffic();
    let count = traffic.total(&setting.framing);
    let bytes_by_kind = TrafficKind::ALL
        .into_iter()
        .map(|kind| (kind, traffic.payload_of(kind).0))
        .filter(|(_, bytes)| *bytes > 0)
        .collect();
    let last = played.times.iter().map(|times| times.clock.0);
    let simulated_seconds = last.fold(0.0, f64::max);
    let mean = |of: fn(&WorkerTimes) -> f64| {
        played.times.iter().map(of).sum::<f64>() / played.times.len() as f64
    };
    let first = setting.timing.device(0).and_then(|device| device.memory);
    let device = memory.map_or(first, |(_, device)| device);
    let memory = memory.map(|(needs, _)| needs);
    let setup_seconds = mean(|times| times.set_up.0);
    let mut projection = Projection {
        cell: cell.name.clone(),
        strategy: cell.strategy.label.clone(),
        dataset: setting.dataset.name.clone(),
        sizes: [
            // Of inductive training the whole graph, of which the runs' data are said.
            (setting.unseen.as_ref()).map_or(setting.counts.nodes, |whole| whole.graph.nodes()),
            setting.dataset.features.width(),
            setting.dataset.classes,
        ],
        workers: setting.workers(),
        seed: setting.seed,
        epochs: training.epochs(),
        exact: training.plans_exactly(),
        assumed: match &setting.shards {
            Some(shards) => Some(shards.meta().partition.said()),
            None => (setting.law.is_some()).then(|| setting.dataset.reading.notes.join("; ")),
        },
        validated: validated(cell),
        boundary_rows: setting.counts.boundary_rows() as u64,
        cut_share: 2.0 * setting.edge_cut() as f64 / setting.counts.edges.max(1) as f64,
        between: None,
        steps: fitted.uneven_steps(cell),
        notes: fitted.training.notes(),
        messages: count.messages,
        payload_bytes: count.payload.0,
        wire_bytes: count.wire.0,
        bytes_by_kind,
        simulated_seconds,
        epoch_seconds: (simulated_seconds - setup_seconds) / training.epochs().max(1) as f64,
        setup_seconds,
        compute_seconds: mean(|times| times.compute.0),
        communication_seconds: mean(|times| times.communication.0),
        exposed_communication_seconds: mean(|times| times.exposed.0),
        waiting_seconds: mean(|times| times.waiting.0),
        machine_hours: simulated_seconds * setting.topology.places() as f64 / 3600.0,
        memory_bytes: memory,
        evaluation_memory_bytes: held.evaluating,
        device_memory_bytes: device,
        memory_bytes_by_worker: held.each,
        fits: memory.zip(device).map(|(needs, there)| needs <= there),
        run: RunRow::default(),
        ends: None,
    };
    let maker = RowMaker {
        experiment,
        cell,
        fitted,
    };
    projection.run = projection.as_run(RunRow {
        parameters: Some(setting.model.parameters() as u64),
        // Nothing is carried out.
        backend: String::new(),
        device: String::new(),
        ..maker.blank()
    });
    Ok(projection)
}
