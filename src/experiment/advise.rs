//! Which strategy for this graph on this network: all that fit, ranked by the time that they would
//! take, and what would change the ranking.

mod other;
mod probe;

use std::path::Path;

use serde::Serialize;

use super::Error;
use super::config::{Cell, Experiment};
use super::prepare::Preparation;
use super::project::{Projection, add_ends, project_cell};
use super::rows::distinct;
use crate::graph::GraphError;
use crate::sim::Timing;
use crate::strategies::Registry;
pub(crate) use other::Other;
pub(crate) use probe::{NODES_A_WORKER, Probe};

/// What is advised in one setting.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Advice {
    /// The sweep's values; empty without a sweep.
    pub setting: String,
    /// Name of the data set.
    pub dataset: String,
    /// Number of workers.
    pub workers: usize,
    /// Epochs of the whole training; layer by layer, a strategy may have others.
    pub epochs: usize,
    /// Strategies that fit, the fastest first.
    pub ranking: Vec<Advised>,
    /// Those that do not.
    pub left_out: Vec<LeftOut>,
    /// What else could be, and who would be first then.
    pub changes: Vec<Change>,
    /// What could not be asked, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unasked: Vec<Unasked>,
}

/// A setting next to the one that was asked for, which nothing can be said of.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Unasked {
    /// What would be different.
    pub to: Other,
    /// Why not.
    pub why: String,
}

/// How far advice is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Heard<'a> {
    /// This is projected, or trained as a probe, next.
    Begins(&'a str),
    /// The ranking of a setting, before probes and before it is known what would change it.
    Ranked(&'a Advice),
    /// All that is advised in a setting.
    Advised(&'a Advice),
}

/// One strategy of a ranking.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Advised {
    /// Its label.
    pub strategy: String,
    /// What crosses the network with it, and when.
    pub sends: &'static str,
    /// Whether the file has it, and not only this program.
    pub listed: bool,
    /// Whether it trains in the mini-batches that the file asks for, and not on all nodes at once.
    pub batches: bool,
    /// What it would send and how long it would take.
    pub projection: Projection,
    /// Accuracy of a short training on a small part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<probe::Probed>,
    /// Why there is none, where one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unprobed: Option<String>,
}

/// A strategy that cannot be advised.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct LeftOut {
    /// Its label.
    pub strategy: String,
    /// Why not.
    pub why: Why,
}

/// Why a strategy cannot be advised.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Why {
    /// A worker would need more bytes than its device has.
    Memory {
        /// What the worker that needs most holds.
        needs: u64,
        /// What there is.
        there: u64,
    },
    /// It does not go with the setting.
    Refused(String),
}

/// The ranking in another setting.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Change {
    /// What is different.
    pub to: Other,
    /// How many workers there are then, but for entries that have their own.
    pub workers: usize,
    /// Strategies that fit then and their times in seconds, the fastest first.
    pub ranking: Vec<(String, f64)>,
    /// Those that do not go with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
}

/// Ranks the strategies of an experiment, and the others of the registry with their defaults, in
/// every setting of its sweep; `hear` is told how far it is.
///
/// # Errors
/// If computing takes no time in the experiment, data are missing or broken, or nothing fits.
pub(crate) fn advise(
    experiment: &Experiment,
    registry: &Registry,
    base: &Path,
    probe: Option<Probe>,
    hear: &mut dyn FnMut(Heard<'_>),
) -> Result<Vec<Advice>, Error> {
    let mut adviser = Adviser {
        experiment: &experiment.name,
        registry,
        base,
        preparation: Preparation::new(registry, base.to_owned()).for_plans(),
        // A checked file has at least one.
        seed: experiment.seeds[0],
        probe,
        hear,
    };
    let cells = adviser.preparation.present(experiment)?.0;
    if let Some(cell) = cells.iter().find(|cell| is_measured(cell)) {
        let what = "must name a device here, as nothing is trained that could be measured: \
                    timing = { profile = \"a100\" }; `grapevine list devices` has their names";
        return Err(cell.refuse("compute.timing", what.to_owned()).into());
    }
    let settings = distinct(cells.iter().map(|cell| cell.sweep.to_string()));
    let mut advice = Vec::new();
    for setting in settings {
        let of_it = |cell: &&&Cell| cell.sweep.to_string() == setting;
        let listed: Vec<&Cell> = cells.iter().filter(of_it).copied().collect();
        let of_setting = adviser.setting(&setting, &listed)?;
        (adviser.hear)(Heard::Advised(&of_setting));
        advice.push(of_setting);
    }
    Ok(advice)
}

const fn is_measured(cell: &Cell) -> bool {
    matches!(cell.settings.compute.timing, Timing::Named(_))
}

/// One strategy in one setting.
struct Candidate {
    cell: Cell,
    listed: bool,
}

struct Adviser<'a> {
    experiment: &'a str,
    registry: &'a Registry,
    base: &'a Path,
    preparation: Preparation<'a>,
    seed: u64,
    probe: Option<Probe>,
    hear: &'a mut dyn FnMut(Heard<'_>),
}

impl Adviser<'_> {
    fn setting(&mut self, setting: &str, listed: &[&Cell]) -> Result<Advice, Error> {
        let (mut ranking, mut left_out, mut too_large) = (Vec::new(), Vec::new(), Vec::new());
        let mut failed = None;
        if listed.iter().all(|cell| !cell.strategy.with.is_empty()) {
            let what = "each entry of the file has settings of its own in `with`, and there are none for strategies that it does not \
                        have: one without, such as { kind = \"full\" }, would have all others join";
            left_out.push(LeftOut {
                strategy: "all others".to_owned(),
                why: Why::Refused(what.to_owned()),
            });
        }
        for candidate in candidates(listed, self.registry) {
            let strategy = candidate.cell.strategy.label.clone();
            (self.hear)(Heard::Begins(&candidate.cell.name));
            let (cell, projection) = match self.candidate(&candidate) {
                Ok(found) => found,
                // The graph is the same for all: what is wrong with it is not about who it met.
                Err(Error::Config(error)) if candidate.listed && error.is_of("dataset") => {
                    return Err(error.into());
                }
                Err(error) if is_stop(&error) => return Err(error),
                Err(error) => {
                    let why = Why::Refused(what(&error));
                    left_out.push(LeftOut { strategy, why });
                    failed.get_or_insert(error);
                    continue;
                }
            };
            // Too much at both ends of what is known of the graph; at one of them it is open.
            let memory = projection.memory_bytes.zip(projection.device_memory_bytes);
            if let Some((needs, there)) = memory.filter(|_| projection.fits == Some(false)) {
                let why = Why::Memory { needs, there };
                left_out.push(LeftOut { strategy, why });
                too_large.push(cell);
                continue;
            }
            let kinds = self.registry.all().iter().map(|known| known.info);
            let kind = &cell.strategy.kind;
            let info = kinds.into_iter().find(|info| info.name == kind);
            let advised = Advised {
                strategy,
                sends: info.map_or("", |info| info.sends),
                listed: candidate.listed,
                batches: cell.settings.training.batch.is_some(),
                projection,
                probe: None,
                unprobed: None,
            };
            ranking.push((cell, advised));
        }
        let seconds = |(_, advised): &(Cell, Advised)| advised.projection.simulated_seconds;
        ranking.sort_by(|a, b| seconds(a).total_cmp(&seconds(b)));
        if let Some(failed) = failed.filter(|_| ranking.is_empty() && too_large.is_empty()) {
            // Where memory is not what is wrong with any of them, it is said as `project` would.
            return Err(failed);
        }
        let (mut cells, ranking): (Vec<Cell>, Vec<Advised>) = ranking.into_iter().unzip();
        let settings = &listed[0].settings;
        let first = ranking.first().map(|first| &first.projection);
        let mut advice = Advice {
            setting: setting.to_owned(),
            dataset: first.map_or_else(String::new, |first| first.dataset.clone()),
            workers: first.map_or(settings.partition.workers, |first| first.workers),
            epochs: settings.training.epochs,
            ranking,
            left_out,
            changes: Vec::new(),
            unasked: Vec::new(),
        };
        if !cells.is_empty() {
            (self.hear)(Heard::Ranked(&advice));
        }
        if let Some(probe) = self.probe {
            let base = self.base.to_owned();
            let mut samples = Preparation::new(self.registry, base);
            samples.sample = Some(probe.nodes);
            for (cell, advised) in cells.iter().zip(&mut advice.ranking) {
                (self.hear)(Heard::Begins(&format!("{}, a probe", cell.name)));
                // What does not go with a sample is ranked all the same.
                match probe.of(cell, self.seed, self.base, &mut samples) {
                    Ok(probed) => advised.probe = Some(probed),
                    Err(error) if is_stop(&error) => return Err(error),
                    Err(error) => advised.unprobed = Some(what(&error)),
                }
            }
        }
        cells.append(&mut too_large);
        (advice.changes, advice.unasked) = self.changes(&cells.iter().collect::<Vec<_>>())?;
        Ok(advice)
    }

    /// A candidate's projection. A strategy that the file does not have, and that does not go with
    /// its mini-batches, is taken with all nodes at once.
    fn candidate(&mut self, candidate: &Candidate) -> Result<(Cell, Projection), Error> {
        let mut cell = candidate.cell.clone();
        let mut projection = self.project(&cell);
        if projection.is_err() && !candidate.listed && cell.settings.training.batch.is_some() {
            cell.settings.training.batch = None;
            projection = self.project(&cell);
        }
        let mut projection = projection?;
        let (name, of) = (self.experiment, (&cell, self.seed));
        add_ends(&mut projection, name, of, &mut self.preparation, |_, _| ())?;
        Ok((cell, projection))
    }

    fn project(&mut self, cell: &Cell) -> Result<Projection, Error> {
        let fitted = self.preparation.fit(cell, self.seed)?;
        project_cell(self.experiment, cell, &fitted, |_| ())
    }

    /// A cell in another setting, where it exists: what cannot be so many workers is not in the
    /// ranking of so many.
    ///
    /// # Errors
    /// What hinders it.
    fn next_to(&mut self, to: Other, cell: &Cell) -> Result<Option<Projection>, Error> {
        // Told where there is such a setting, which for others is clear at once.
        let begins = format!("{}, with {}", cell.name, to.name());
        if let Some(end) = to.end() {
            let Some(fitted) = self.preparation.fit_end(cell, self.seed, end)? else {
                return Ok(None);
            };
            (self.hear)(Heard::Begins(&begins));
            return project_cell(self.experiment, cell, &fitted, |_| ()).map(Some);
        }
        let mut other = cell.clone();
        let key = if to.cuts() {
            "partition.method"
        } else {
            "partition.workers"
        };
        // An entry with one of its own stays as it is.
        if !cell.strategy.with.contains_key(key) {
            let now = &cell.settings.partition;
            if let Some(why) = to.hindered(now) {
                return Err(cell.refuse("partition", why.to_owned()).into());
            }
            let Some(partition) = to.partition(now) else {
                return Ok(None);
            };
            other.settings.partition = partition;
            // Random parts have a closed form, and nothing is fitted.
            if to == Other::RandomParts
                && let Some(counts) = &mut other.settings.dataset.counts
            {
                counts.fit = None;
            }
        }
        (self.hear)(Heard::Begins(&begins));
        self.project(&other).map(Some)
    }

    /// What fits next to the setting, of what fits in it and what is too large for it; and what
    /// cannot be asked.
    ///
    /// # Errors
    /// If it is told to stop.
    fn changes(&mut self, cells: &[&Cell]) -> Result<(Vec<Change>, Vec<Unasked>), Error> {
        let (mut changes, mut unasked) = (Vec::new(), Vec::new());
        for to in Other::ALL {
            let (mut ranking, mut refused, mut exists) = (Vec::new(), Vec::new(), false);
            let mut hindered = None;
            self.preparation.network_times = to.network();
            for (place, &cell) in cells.iter().enumerate() {
                let found = match self.next_to(to, cell) {
                    Ok(Some(found)) => found,
                    // They are such parts already.
                    Ok(None) if place == 0 && to.cuts() => break,
                    Err(error) if is_stop(&error) => return Err(error),
                    nothing => {
                        refused.push(cell.strategy.label.clone());
                        hindered = hindered.or(nothing.err());
                        continue;
                    }
                };
                exists = true;
                if found.fits != Some(false) {
                    ranking.push((cell.strategy.label.clone(), found.simulated_seconds));
                }
            }
            self.preparation.network_times = 1.0;
            ranking.sort_by(|a, b| a.1.total_cmp(&b.1));
            // A network changes no memory: that nothing fits is said where workers are others.
            if exists && !(ranking.is_empty() && to.network() != 1.0) {
                let now = &cells[0].settings.partition;
                changes.push(Change {
                    to,
                    workers: to.partition(now).map_or(now.workers, |parts| parts.workers),
                    ranking,
                    refused,
                });
            } else if let Some(error) = hindered.filter(|_| !exists) {
                let why = what(&error);
                unasked.push(Unasked { to, why });
            }
        }
        Ok((changes, unasked))
    }
}

/// Whether all that follows is not wanted, either.
const fn is_stop(error: &Error) -> bool {
    matches!(error, Error::Graph(GraphError::Stopped))
}

/// What is wrong with a cell whose strategy is named beside it.
fn what(error: &Error) -> String {
    match error {
        Error::Config(error) => error.what(),
        other => other.to_string(),
    }
}

/// The strategies of the file, then the others of the program with nothing but defaults.
fn candidates(listed: &[&Cell], registry: &Registry) -> Vec<Candidate> {
    let own = listed.iter().map(|&cell| Candidate {
        cell: cell.clone(),
        listed: true,
    });
    // Settings of an entry's own are not those of the experiment.
    let plain = listed.iter().find(|cell| cell.strategy.with.is_empty());
    // Without options `train` is `full`, which is there.
    let new =
        |kind: &&str| *kind != "train" && listed.iter().all(|cell| cell.strategy.kind != *kind);
    let others = plain.into_iter().flat_map(|cell| {
        let kinds = registry.names().into_iter().filter(new);
        kinds.map(|kind| Candidate {
            cell: cell.with_kind(kind),
            listed: false,
        })
    });
    own.chain(others).collect()
}
