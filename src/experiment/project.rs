//! Traffic and communication time from the plan alone, without training.

use serde::Serialize;
use std::collections::BTreeMap;

use super::config::Experiment;
use super::prepare::Preparation;
use crate::Error;
use crate::net::{Bytes, FlowSpec, Seconds, Traffic, TrafficKind, run_flows};
use crate::sim::Setting;
use crate::strategies::Strategy;

/// What a cell would send and how long that would take.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Projection {
    /// Name of the cell.
    pub cell: String,
    /// The seed of the partition: the experiment's first.
    pub seed: u64,
    /// Epochs of the whole training.
    pub epochs: usize,
    /// Number of messages.
    pub messages: u64,
    /// Encoded values.
    pub payload_bytes: u64,
    /// With framing.
    pub wire_bytes: u64,
    /// Payload by kind, those that are not zero.
    pub bytes_by_kind: BTreeMap<&'static str, u64>,
    /// Time on the network if nothing overlaps; computing is not included.
    pub communication_seconds: f64,
}

/// How far projecting has come.
#[derive(Clone, Copy, Debug)]
pub struct Projected<'a> {
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
pub fn project(
    experiment: &Experiment,
    preparation: &mut Preparation<'_>,
    progress: impl Fn(&Projected),
) -> Result<Vec<Projection>, Error> {
    let seed = experiment.seeds[0];
    let mut projections = Vec::new();
    // What is skipped has no projection.
    let cells = preparation.present(experiment)?.0;
    for (cell, number) in cells.iter().zip(1..) {
        let strategy = preparation.strategy(cell)?;
        let setting = preparation.setting(cell, seed, strategy.as_ref())?;
        let done = |epoch| {
            progress(&Projected {
                cell: &cell.name,
                number,
                of: cells.len(),
                epoch,
                epochs: setting.epochs,
            });
        };
        let projection = project_cell(&cell.name, strategy.as_ref(), &setting, done)?;
        projections.push(projection);
    }
    Ok(projections)
}

fn project_cell(
    cell: &str,
    strategy: &dyn Strategy,
    setting: &Setting,
    done: impl Fn(usize),
) -> Result<Projection, Error> {
    done(0);
    let mut total = Traffic::new();
    let mut seconds = 0.0;
    // Most epochs are like the one before.
    let mut last: Option<(Traffic, Seconds)> = None;
    for epoch in 0..setting.epochs {
        let plan = strategy.plan(&setting.boundary, &setting.model, epoch);
        let time = match &last {
            Some((traffic, time)) if *traffic == plan => *time,
            _ => epoch_time(&plan, setting)?,
        };
        seconds += time.0;
        total.merge(&plan);
        last = Some((plan, time));
        done(epoch + 1);
    }
    let count = total.total(&setting.framing);
    let bytes_by_kind = TrafficKind::ALL
        .into_iter()
        .map(|kind| (kind.name(), total.payload_of(kind).0))
        .filter(|(_, bytes)| *bytes > 0)
        .collect();
    Ok(Projection {
        cell: cell.to_owned(),
        seed: setting.seed,
        epochs: setting.epochs,
        messages: count.messages,
        payload_bytes: count.payload.0,
        wire_bytes: count.wire.0,
        bytes_by_kind,
        communication_seconds: seconds,
    })
}

/// Phase after phase: messages of one layer and kind travel together; where two workers exchange several of a kind, as in the steps of
/// an all-reduce, they follow one another.
fn epoch_time(plan: &Traffic, setting: &Setting) -> Result<Seconds, Error> {
    /// What one worker sends another in a phase, in order.
    type Sent = (usize, usize, Vec<Bytes>);
    let mut phases: BTreeMap<(u32, TrafficKind), Vec<Sent>> = BTreeMap::new();
    for (lane, payload, count) in plan.iter() {
        let flows = phases.entry((lane.layer, lane.kind)).or_default();
        let (from, to) = (lane.from as usize, lane.to as usize);
        let sizes = std::iter::repeat_n(payload, usize::try_from(count).unwrap_or(usize::MAX));
        match flows.iter_mut().find(|(f, t, _)| (*f, *t) == (from, to)) {
            Some((_, _, all)) => all.extend(sizes),
            None => flows.push((from, to, sizes.collect())),
        }
    }
    let mut seconds = 0.0;
    for flows in phases.into_values() {
        let rounds = flows
            .iter()
            .map(|(_, _, sizes)| sizes.len())
            .max()
            .unwrap_or(0);
        for round in 0..rounds {
            let together: Vec<FlowSpec> = flows
                .iter()
                .filter_map(|(from, to, sizes)| {
                    let bytes = *sizes.get(round)?;
                    Some(FlowSpec {
                        from: *from,
                        to: *to,
                        bytes,
                        start: Seconds::ZERO,
                    })
                })
                .collect();
            let results = run_flows(&setting.topology, setting.framing, &together)?;
            seconds += results.iter().map(|flow| flow.finish.0).fold(0.0, f64::max);
        }
    }
    Ok(Seconds(seconds))
}
