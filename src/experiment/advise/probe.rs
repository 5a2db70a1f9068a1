//! What a strategy may cost in accuracy: a short training on a small part of the graph.

use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use super::Error;
use crate::experiment::config::Cell;
use crate::experiment::prepare::Preparation;
use crate::experiment::rows::is_nothing;
use crate::graph::{CountSpec, DatasetSpec, GraphError, Metric, PartitionMethod, SyntheticSpec};
use crate::net::NetworkSpec;
use crate::sim::Observer;
use crate::strategies;

/// How much is trained.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe {
    /// Nodes of the part, or of the graph that is drawn.
    pub nodes: usize,
    /// Epochs at most.
    pub epochs: usize,
    /// Seeds, from the experiment's first on.
    pub seeds: u64,
}

/// What came out.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Probed {
    /// Nodes that were trained on.
    pub nodes: usize,
    /// Whether they are of a graph that was drawn, where the graph is known in numbers alone.
    pub drawn: bool,
    /// Workers.
    pub workers: usize,
    /// Epochs.
    pub epochs: usize,
    /// What was measured of the test nodes.
    pub metric: Metric,
    /// That, at the best epoch by validation, of each seed; none where there is no such node.
    pub accuracies: Vec<Option<f64>>,
    /// Whether none is above that of who names the largest class for all; none where that is not
    /// known.
    pub learnt_nothing: Option<bool>,
}

/// A probe is on so many nodes a worker, at least; else there are fewer workers. It has two.
pub(crate) const NODES_A_WORKER: usize = 250;

/// Widest features that a stand-in for counts has.
const WIDEST: usize = 64;

/// The network of a probe.
const NETWORK: &str = "ethernet-10g";

/// Most classes of one.
const MOST_CLASSES: usize = 16;

impl Probe {
    /// Trains a cell on a small part of its graph, or on a small one of the same law.
    ///
    /// # Errors
    /// If it cannot be trained.
    pub(super) fn of(
        self,
        cell: &Cell,
        first: u64,
        base: &Path,
        samples: &mut Preparation<'_>,
    ) -> Result<Probed, Error> {
        let small = self.small(cell, base)?;
        let (mut accuracies, mut learnt_nothing) = (Vec::new(), Some(true));
        let (mut nodes, mut epochs, mut metric) = (0, 0, Metric::default());
        for seed in first..first + self.seeds {
            let fitted = samples.fit(&small, seed)?;
            let (training, together) = (&fitted.training, fitted.needs.together);
            let observer: Observer = Arc::new(|_| ());
            let outcome = strategies::run(&**training, together, observer)?;
            let data = fitted.setting.scored();
            (nodes, epochs, metric) = (data.graph.nodes(), training.epochs(), data.metric);
            let accuracy = outcome.best().and_then(|(_, scores)| scores.test);
            let nothing = accuracy.zip(data.largest_class());
            let nothing = nothing.map(|(reached, largest)| is_nothing(reached, largest));
            learnt_nothing = learnt_nothing
                .zip(nothing)
                .map(|(before, now)| before && now);
            accuracies.push(accuracy);
        }
        Ok(Probed {
            nodes,
            drawn: cell.settings.dataset.counts.is_some(),
            workers: small.settings.partition.workers,
            epochs,
            metric,
            accuracies,
            learnt_nothing,
        })
    }

    fn small(self, cell: &Cell, base: &Path) -> Result<Cell, Error> {
        let mut small = cell.clone();
        let settings = &mut small.settings;
        // It has seeds of its own, and a model of other sizes where its graph is drawn.
        settings.model.weights = None;
        if let Some(counts) = &settings.dataset.counts {
            settings.dataset = DatasetSpec {
                synthetic: Some(alike(counts, self.nodes, base)?),
                ..DatasetSpec::default()
            };
        }
        let partition = &mut settings.partition;
        partition.workers = partition.workers.min(self.nodes / NODES_A_WORKER).max(1);
        if partition.file.take().is_some() {
            partition.method = PartitionMethod::Random;
        }
        // What the network is like does not change what is learnt.
        settings.network = NetworkSpec {
            preset: Some(NETWORK.to_owned()),
            ..NetworkSpec::default()
        };
        settings.training.epochs = settings.training.epochs.min(self.epochs);
        settings.training.evaluate_every = 1;
        Ok(small)
    }
}

/// An R-MAT graph of so many nodes. Its law is that of the counts, or that of real graphs where
/// they have degrees alone, and as many edges are drawn for a node as the counts have.
fn alike(counts: &CountSpec, nodes: usize, base: &Path) -> Result<SyntheticSpec, GraphError> {
    let counted = counts.read(base)?;
    let scale = nodes.next_power_of_two().ilog2();
    // Each undirected edge is stored twice. A small graph has no room for very many.
    let edges = counted.graph.edges() / 2.0 / counted.graph.nodes();
    let edges = edges.min(nodes as f64 / 8.0);
    // An edge that is drawn stays if both its ends do.
    let kept = nodes as f64 / f64::from(scale).exp2();
    Ok(SyntheticSpec::Rmat {
        scale,
        edge_factor: Some(((edges / kept).round() as usize).max(1)),
        nodes: Some(nodes),
        edges: None,
        classes: counted.classes.min(MOST_CLASSES),
        features: counted.features.min(WIDEST),
        quadrants: counted.quadrants(),
        seed: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTS: [(&str, [f64; 3]); 4] = [
        ("rmat = { scale = 36 }", [0.57, 0.19, 0.19]),
        (
            "rmat = { scale = 20, edge_factor = 8, quadrants = [0.25, 0.25, 0.25] }",
            [0.25; 3],
        ),
        ("like = \"ogbn-arxiv\"", [0.48, 0.15, 0.15]),
        ("degrees = \"degrees.csv\"", [0.48, 0.15, 0.15]),
    ];

    #[test]
    fn what_stands_in_for_counts_has_the_nodes_that_were_asked_for_and_their_law() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("degrees.csv"), "4,9000\n").unwrap();
        for (text, law) in COUNTS {
            let counts: CountSpec = toml::from_str(text).unwrap();
            for nodes in [1100, 2000, 2048] {
                let made = alike(&counts, nodes, folder.path()).unwrap();
                let SyntheticSpec::Rmat { quadrants, .. } = made else {
                    panic!("{text}: {made:?}");
                };
                assert_eq!(quadrants, law, "{text}");
                let data = DatasetSpec {
                    synthetic: Some(made),
                    ..DatasetSpec::default()
                };
                let data = data.read(folder.path()).unwrap();
                assert_eq!(data.graph.nodes(), nodes, "{text}");
            }
        }
    }

    #[test]
    fn a_node_of_it_has_as_many_edges_whatever_the_number_of_nodes() {
        // Without skew next to none are drawn twice.
        let counts: CountSpec = toml::from_str(COUNTS[1].0).unwrap();
        for nodes in [1100, 2000, 4096] {
            let synthetic = Some(alike(&counts, nodes, Path::new("")).unwrap());
            let data = DatasetSpec {
                synthetic,
                ..DatasetSpec::default()
            };
            let edges = data.read(Path::new("")).unwrap().graph.edges() as f64 / 2.0;
            let each = edges / nodes as f64;
            assert!((7.6..8.4).contains(&each), "{nodes} nodes: {each}");
        }
    }
}
