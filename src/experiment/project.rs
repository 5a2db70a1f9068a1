//! What a cell would send and how long it would take, from its plan alone, without training.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Error;
use super::config::Experiment;
use super::prepare::{Fitted, Preparation};
use crate::net::TrafficKind;
use crate::sim::{Played, WorkerTimes, play, play_equals};

/// What a cell would send and how long that would take. Times have the names that they have in the
/// table of runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Projection {
    /// Name of the cell.
    pub cell: String,
    /// The seed of the partition: the experiment's first.
    pub seed: u64,
    /// Epochs of the whole training.
    pub epochs: usize,
    /// Whether this is what is sent; if not, that depends on how the training goes, and this is the
    /// most it can be.
    pub exact: bool,
    /// What is assumed of a graph that is known in numbers alone; then all here is an expectation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assumed: Option<String>,
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
    /// Mean over workers of the time they compute: nothing where compute is measured, as nothing is
    /// computed here.
    pub compute_seconds: f64,
    /// Mean over workers of the time in which a message from or to them is in flight.
    pub communication_seconds: f64,
    /// The part of it in which they do nothing but wait.
    pub exposed_communication_seconds: f64,
    /// Mean over workers of the time in which they wait for others that have not begun to send.
    pub waiting_seconds: f64,
}

/// How far projecting has come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Projected<'a> {
    /// Name of the cell.
    pub cell: &'a str,
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
        let done = |epoch| {
            progress(&Projected {
                cell: &cell.name,
                number,
                of: cells.len(),
                epoch,
                epochs: fitted.training.epochs(),
            });
        };
        projections.push(project_cell(&cell.name, &fitted, done)?);
    }
    Ok(projections)
}

/// More workers than this are one to plan for where they are alike: a graph in numbers has equal
/// parts, and the time of one worker is that of all.
const EACH: usize = 64;

/// The plan of a cell, played.
fn played(fitted: &Fitted, done: impl Fn(usize)) -> Result<Played, Error> {
    let Fitted {
        setting,
        needs,
        training,
    } = fitted;
    let (cluster, timing, epochs) = (setting.cluster(), &setting.timing, training.epochs());
    if !setting.holds_graph() && !needs.together && setting.workers() > EACH {
        let mut planner = training.planner();
        let one = play_equals(&cluster, timing, planner.as_mut(), epochs, &done)?;
        if let Some(played) = one {
            return Ok(played);
        }
    }
    let mut planner = training.planner();
    let played = play(
        &cluster,
        timing,
        planner.as_mut(),
        epochs,
        needs.together,
        // Without a training nothing is decided, and each epoch is the most that it can be.
        &BTreeMap::new(),
        done,
    )?;
    Ok(played)
}

fn project_cell(cell: &str, fitted: &Fitted, done: impl Fn(usize)) -> Result<Projection, Error> {
    let Fitted {
        setting, training, ..
    } = fitted;
    let played = played(fitted, done)?;
    let traffic = played.ledger.traffic();
    let count = traffic.total(&setting.framing);
    let bytes_by_kind = TrafficKind::ALL
        .into_iter()
        .map(|kind| (kind, traffic.payload_of(kind).0))
        .filter(|(_, bytes)| *bytes > 0)
        .collect();
    let last = played.times.iter().map(|times| times.clock.0);
    let mean = |of: fn(&WorkerTimes) -> f64| {
        played.times.iter().map(of).sum::<f64>() / played.times.len() as f64
    };
    Ok(Projection {
        cell: cell.to_owned(),
        seed: setting.seed,
        epochs: training.epochs(),
        exact: training.plans_exactly(),
        assumed: (!setting.holds_graph()).then(|| setting.dataset.reading.notes.join("; ")),
        messages: count.messages,
        payload_bytes: count.payload.0,
        wire_bytes: count.wire.0,
        bytes_by_kind,
        simulated_seconds: last.fold(0.0, f64::max),
        compute_seconds: mean(|times| times.compute.0),
        communication_seconds: mean(|times| times.communication.0),
        exposed_communication_seconds: mean(|times| times.exposed.0),
        waiting_seconds: mean(|times| times.waiting.0),
    })
}
