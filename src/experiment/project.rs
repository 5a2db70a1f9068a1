//! Traffic and communication time from the plan alone, without training.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use super::config::Experiment;
use super::prepare::Preparation;
use crate::Error;
use crate::net::{Bytes, Fabric, NetError, Seconds, Topology, Traffic, TrafficKind, Transfer};
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
    /// Whether this is what is sent; if not, that depends on how the training goes, and this is the most it can be.
    pub exact: bool,
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
    let mut network = Network::of(setting);
    // Most epochs are like the one before.
    let mut last: Option<(Traffic, Seconds)> = None;
    for epoch in 0..setting.epochs {
        let plan = strategy.plan(&setting.boundary, &setting.model, epoch);
        let begun = network.now;
        match &last {
            Some((traffic, time)) if network.steady && *traffic == plan => network.now += *time,
            _ => network.epoch(&plan)?,
        }
        total.merge(&plan);
        last = Some((plan, Seconds(network.now.0 - begun.0)));
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
        exact: strategy.plans_exactly(),
        messages: count.messages,
        payload_bytes: count.payload.0,
        wire_bytes: count.wire.0,
        bytes_by_kind,
        communication_seconds: network.now.0,
    })
}

/// The network of a cell. Its clock goes on from round to round, so that outages come once and chance never repeats itself.
struct Network {
    topology: Arc<Topology>,
    fabric: Fabric,
    now: Seconds,
    /// Whether the same messages take the same time whenever they are sent.
    steady: bool,
}

impl Network {
    fn of(setting: &Setting) -> Self {
        let topology = Arc::clone(&setting.topology);
        Self {
            fabric: Fabric::new(Arc::clone(&topology), setting.framing),
            now: Seconds::ZERO,
            steady: !topology.is_uncertain() && topology.switches().is_empty(),
            topology,
        }
    }

    /// Phase after phase: messages of one layer and kind travel together; where two workers exchange several of a kind, as in the
    /// steps of an all-reduce, they follow one another.
    fn epoch(&mut self, plan: &Traffic) -> Result<(), NetError> {
        /// What one worker sends another in a phase, in order.
        type Sent = ((usize, usize), Vec<Bytes>);
        let mut phases: BTreeMap<(u32, TrafficKind), Vec<Sent>> = BTreeMap::new();
        for (lane, payload, count) in plan.iter() {
            let flows = phases.entry((lane.layer, lane.kind)).or_default();
            let ends = (lane.from as usize, lane.to as usize);
            let sizes = std::iter::repeat_n(payload, usize::try_from(count).unwrap_or(usize::MAX));
            // A plan is in the order of its lanes.
            match flows.last_mut().filter(|(known, _)| *known == ends) {
                Some((_, all)) => all.extend(sizes),
                None => flows.push((ends, sizes.collect())),
            }
        }
        for flows in phases.into_values() {
            let rounds = flows.iter().map(|(_, sizes)| sizes.len()).max();
            for round in 0..rounds.unwrap_or(0) {
                let flows = flows.iter();
                self.round(flows.filter_map(|(ends, sizes)| Some((*ends, *sizes.get(round)?))))?;
            }
        }
        Ok(())
    }

    /// Messages that travel together; the next are sent when all of them have arrived.
    fn round(
        &mut self,
        flows: impl Iterator<Item = ((usize, usize), Bytes)>,
    ) -> Result<(), NetError> {
        for ((from, to), payload) in flows {
            self.topology.check_route(from, to)?;
            self.fabric.send(Transfer {
                from,
                to,
                channel: None,
                payload,
                start: self.now,
            });
        }
        while let Some(deliveries) = self.fabric.advance() {
            let last = deliveries.iter().map(|delivery| delivery.time).max();
            self.now = last.map_or(self.now, |last| self.now.max(last));
        }
        self.fabric.stalled().map_or(Ok(()), Err)
    }
}
