//! What cannot run, said at the key that it is about.

use crate::experiment::Error;
use crate::experiment::config::{Cell, ConfigError};
use crate::graph::{Dataset, GraphError};
use crate::memory::{self, Shortage};
use crate::model::ModelSpec;
use crate::sim::EpochRecord;
use crate::strategies::{Needs, Training};

/// Whether there is memory for what the cell holds at least: each worker's parameters with their
/// gradient and what the optimiser keeps, the outputs of the widest layer for all nodes, and a
/// record of every epoch.
pub(super) fn fits(cell: &Cell, dataset: &Dataset, needs: &Needs) -> Result<(), ConfigError> {
    /// Parameters, their gradient, and at least one value more of each.
    const COPIES: usize = 3;
    let settings = &cell.settings;
    let model = ModelSpec::new(&settings.model, dataset.features.width(), dataset.classes);
    let replicas = if needs.together {
        1
    } else {
        settings.partition.workers
    };
    let mut parameters = 0_usize;
    for layer in 0..model.layers() {
        // The weights alone: what a layer has besides is small.
        let weights = model.widths[layer].saturating_mul(model.widths[layer + 1]);
        parameters = parameters.saturating_add(weights);
    }
    let widest = model.widths[1..].iter().copied().max().unwrap_or(0);
    let rows = memory::bytes(&[dataset.graph.nodes(), widest], 4);
    let held = memory::bytes(&[parameters, replicas, COPIES], 4);
    let what = || {
        let (hidden, workers) = (settings.model.hidden, settings.partition.workers);
        format!("a model of {parameters} weights with {hidden} hidden columns on {workers} workers")
    };
    memory::need(what, held.saturating_add(rows))
        .map_err(|shortage| cell.refuse("model.hidden", shortage.to_string()))?;
    let epochs = settings.training.epochs;
    record(epochs).map_err(|shortage| cell.refuse("training.epochs", shortage.to_string()))
}

/// Whether there is memory for the record of the epochs of a strategy that counts its own.
pub(super) fn recordable(cell: &Cell, epochs: usize) -> Result<(), ConfigError> {
    record(epochs).map_err(|shortage| cell.refuse_option(None, &shortage.to_string()))
}

fn record(epochs: usize) -> Result<(), Shortage> {
    let records = memory::bytes(&[epochs], size_of::<EpochRecord>());
    memory::need(|| format!("the record of {epochs} epochs"), records)
}

/// Whether there is something to train on: classes and columns of features, training nodes, and
/// edges, without which no worker has anything to ask another for.
pub(super) fn trains(
    cell: &Cell,
    name: &str,
    sizes: (usize, usize),
    training: usize,
    edges: usize,
) -> Result<(), ConfigError> {
    let lacks = match sizes {
        (0, 0) => Some("neither labels nor features"),
        (0, _) => Some("no labels"),
        (_, 0) => Some("no features"),
        _ => None,
    };
    if let Some(lacks) = lacks {
        let message = format!(
            "data set \"{name}\" has {lacks} to train on; it serves `grapevine partition` only"
        );
        return Err(cell.refuse("dataset.path", message));
    }
    if training == 0 {
        let message = format!("data set \"{name}\" has no training nodes under this split");
        return Err(cell.refuse("dataset.split", message));
    }
    if edges == 0 && cell.settings.training.inductive {
        let message = format!(
            "`inductive` keeps the edges between training nodes alone, and \"{name}\" has none of them under this split; \
             let more nodes train"
        );
        return Err(cell.refuse("training.inductive", message));
    }
    if edges == 0 {
        let message = format!("data set \"{name}\" has no edges; check where they are from");
        return Err(cell.refuse("dataset.path", message));
    }
    Ok(())
}

/// Whether training nodes and the edges between them are known, where nothing else is to be.
pub(super) fn knows_training_nodes(cell: &Cell) -> Result<(), ConfigError> {
    let (training, data) = (&cell.settings.training, &cell.settings.dataset);
    let lacks = match (training.inductive, &data.counts, &data.shards) {
        (true, Some(_), _) => "of a graph in numbers nobody knows which edges are between them",
        (true, _, Some(_)) => {
            "shards are of the whole graph; name the data themselves, which are divided in this run"
        }
        _ => return Ok(()),
    };
    let message = format!("`inductive` keeps the edges between training nodes alone, and {lacks}");
    Err(cell.refuse("training.inductive", message))
}

/// Whether the strategy saves its state, where checkpoints of it are asked for.
pub(super) fn keeps_checkpoints(cell: &Cell, training: &dyn Training) -> Result<(), ConfigError> {
    let asked = cell.settings.training.checkpoint_every.is_some();
    match training.saves() {
        Err(why) if asked => {
            let kind = &cell.strategy.kind;
            let message = format!(
                "{kind} {why}, so that nothing could go on from a checkpoint: leave out `checkpoint_every`, or give it to \
                 the other strategies alone with `with = {{ \"training.checkpoint_every\" = … }}`"
            );
            Err(cell.refuse("training.checkpoint_every", message))
        }
        _ => Ok(()),
    }
}

/// Data that do not fit a cell, at the key that says so, or else at the key that names the files.
pub(super) fn misfit(cell: &Cell, files: &str, error: GraphError) -> Error {
    let refused = match error {
        // It is not about the data.
        GraphError::Stopped => return error.into(),
        GraphError::Key { key, what } => {
            let (section, name) = key.split_once('.').unwrap_or((key, "*"));
            if section == "strategy" {
                return cell.refuse_option(None, &what).into();
            }
            let lead = if name == "*" {
                String::new()
            } else {
                format!("`{name}`: ")
            };
            cell.refuse(&format!("{section}.{name}"), format!("{lead}{what}"))
        }
        GraphError::Read { .. } => {
            let hint = "relative paths start at the folder of the experiment file; those of a result \
                        folder, at where it was run";
            cell.refuse(files, format!("{error} ({hint})"))
        }
        _ => cell.refuse(files, error.to_string()),
    };
    refused.into()
}
