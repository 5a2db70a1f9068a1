//! How far projections from counts were off where the same was trained.
//!
//! `experiments/scale/validate.toml` trains six strategies on R-MAT graphs of 2¹¹ to 2¹⁶ nodes in
//! random parts, and its projection is held against that. The table beside this file has what came
//! of it; `tests/suite/counts.rs` holds it against the smallest of these sizes.

use serde::de::DeserializeOwned;
use toml::{Table, Value};

use crate::experiment::config::Cell;
use crate::graph::{CountSpec, PartitionSpec};
use crate::model::ModelConfig;
use crate::strategies::Registry;

/// What was trained.
const TRAINED: &str = include_str!("../../../experiments/scale/validate.toml");

/// The largest errors of each kind of strategy, of payload and simulated time, as shares of what
/// was trained.
const ERRORS: &str = include_str!("validated.csv");

/// Options of strategies that say how often something is done, and not what.
const HOW_OFTEN: [&str; 2] = ["repartition_every", "rounds_per_layer"];

/// The largest errors of payload and simulated time, as shares of what was trained, of settings
/// such as a cell's: its strategy with the same options, its kind of model, in batches or not, on
/// R-MAT graphs as skewed and no smaller, in as few random parts; for the time with the same
/// columns on the same network and devices, too. None of what was not among them: more parts, and
/// those of small graphs, are more unequal than a projection takes them to be, and stand-ins for
/// published graphs have other degrees.
pub(crate) fn validated(cell: &Cell) -> Option<[Option<f64>; 2]> {
    let (settings, strategy) = (&cell.settings, &cell.strategy);
    let trained: Table = toml::from_str(TRAINED).ok()?;
    let mut entries = trained.get("strategy")?.as_array()?.iter();
    let entry = entries.find(|entry| kind(entry) == Some(&strategy.kind))?;
    let known = Registry::builtin();
    let info = known.all().iter().map(|one| &one.info);
    let info = info.into_iter().find(|info| info.name == strategy.kind)?;
    // What is said for clarity, as it is by default, changes nothing.
    let by_default = |key: &str, value: &Value| {
        let said = (value.as_str()).map_or_else(|| value.to_string(), str::to_owned);
        let mut options = info.options.iter();
        options.any(|option| option.name == key && option.default == said)
    };
    let options = |table: &Table| -> Table {
        let own = table.iter().filter(|(key, value)| {
            !["kind", "label", "with"].contains(&key.as_str())
                && !HOW_OFTEN.contains(&key.as_str())
                && !by_default(key, value)
        });
        own.map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    };
    let counts = settings.dataset.counts.as_ref()?;
    let (asked, drawn) = (counts.rmat?, trained_counts(&trained)?);
    let law = drawn.rmat?;
    let rmat = asked.quadrants == law.quadrants
        && asked.nodes.is_none()
        && asked.edges.is_none()
        && asked.scale >= smallest(&trained)?;
    let model: ModelConfig = section(&trained, "model")?;
    let partition: PartitionSpec = section(&trained, "partition")?;
    let alike = rmat
        && settings.partition.method == partition.method
        && (2..=partition.workers).contains(&settings.partition.workers)
        && settings.model.kind == model.kind
        && settings.training.batch.is_some() == entry.get("with").is_some()
        && options(&strategy.options) == options(entry.as_table()?);
    if !alike {
        return None;
    }
    let [payload, time] = errors(&strategy.kind)?;
    let columns = |model: &ModelConfig| (model.layers, model.hidden);
    let as_timed = columns(&settings.model) == columns(&model)
        && counts.features == drawn.features
        && section(&trained, "network").as_ref() == Some(&settings.network)
        && section(&trained, "compute").as_ref() == Some(&settings.compute);
    Some([Some(payload), as_timed.then_some(time)])
}

/// The law of what was trained.
fn trained_counts(trained: &Table) -> Option<CountSpec> {
    trained
        .get("dataset")?
        .get("counts")?
        .clone()
        .try_into()
        .ok()
}

/// The smallest scale that was trained.
fn smallest(trained: &Table) -> Option<u32> {
    let scales = trained
        .get("sweep")?
        .get("dataset.counts.rmat.scale")?
        .as_array()?;
    let scales = scales.iter().filter_map(Value::as_integer);
    scales.min().and_then(|scale| u32::try_from(scale).ok())
}

fn kind(table: &Value) -> Option<&str> {
    table.get("kind")?.as_str()
}

fn section<T: DeserializeOwned>(trained: &Table, name: &str) -> Option<T> {
    trained.get(name)?.clone().try_into().ok()
}

/// The errors of a kind of strategy; none if it was not trained.
fn errors(kind: &str) -> Option<[f64; 2]> {
    let line = |line: &str| {
        let mut fields = line.split(',');
        let same = fields.next()? == kind;
        let mut error = || fields.next()?.parse::<f64>().ok();
        let errors = [error()?, error()?];
        same.then_some(errors)
    };
    ERRORS.lines().skip(1).find_map(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_of_a_strategy_and_within_what_a_projection_promises() {
        let registry = Registry::builtin();
        for line in ERRORS.lines().skip(1) {
            let kind = line.split(',').next().unwrap();
            assert!(registry.names().contains(&kind), "{line}");
            let [payload, time] = errors(kind).unwrap();
            assert!(payload.abs() <= 0.05 && time.abs() <= 0.1, "{line}");
        }
        assert_eq!(ERRORS.lines().count(), 7);
        assert_eq!(errors("kind"), None);
        assert_eq!(errors("varco"), None);
    }
}
