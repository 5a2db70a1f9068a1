//! Estimator studies: every design of every graph, measured.

use std::path::Path;

use serde::Serialize;

use super::Error;
use super::config::{Chunking, DesignSpec, EstimatorStudy};
use crate::graph::{
    Csr, DatasetSpec, GraphError, Known, PartitionMethod, PartitionSpec, SplitSpec, SyntheticSpec,
};
use crate::rng::{Purpose, stream};
use crate::study::{Design, Estimator, Problem, Summary, Toy};

/// One estimator under one design.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct EstimatorRow {
    /// Name of the graph.
    pub graph: String,
    /// Name of the design.
    pub design: String,
    /// Number of workers.
    pub workers: usize,
    /// Whether workers hold a 1-hop halo.
    pub halo: bool,
    /// Mean expected coverage of the training nodes over all hops of the network.
    pub coverage: f64,
    /// How many outcomes of the design were looked at.
    pub outcomes: usize,
    /// Whether these are all.
    pub exact: bool,
    /// Name of the estimator.
    pub estimator: String,
    /// What was found of it.
    #[serde(flatten)]
    pub summary: Summary,
}

/// Measures every estimator under every design on every graph; `progress` hears of each design
/// before it starts.
///
/// # Errors
/// If a graph cannot be generated or divided, or its gradient is zero.
pub(crate) fn estimate(
    study: &EstimatorStudy,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<EstimatorRow>, Error> {
    let labels: Vec<String> = study.estimators.iter().map(Estimator::label).collect();
    let mut rows = Vec::new();
    let mut names: Vec<String> = Vec::new();
    for spec in &study.graphs {
        let (name, problem) = problem(study, spec)?;
        let earlier = names.iter().filter(|&known| *known == name).count();
        names.push(name.clone());
        let graph = if earlier > 0 {
            format!("{name} ({})", earlier + 1)
        } else {
            name
        };
        for spec in &study.designs {
            for &workers in &spec.workers {
                // Made once for both: with and without halo, the parts are the same.
                let design = design(spec, &problem.graph, workers, study.seed)?;
                for &halo in &spec.halo {
                    let with = if halo { ", halo" } else { "" };
                    progress(&format!(
                        "{graph}, {}, {workers} workers{with}",
                        spec.label()
                    ));
                    let found =
                        problem.measure(&design, halo, &study.estimators, study.sampling)?;
                    let all = labels.iter().zip(&found.estimators);
                    rows.extend(all.map(|(label, &summary)| EstimatorRow {
                        graph: graph.clone(),
                        design: spec.label(),
                        workers,
                        halo,
                        coverage: found.coverage,
                        outcomes: found.outcomes,
                        exact: found.exact,
                        estimator: label.clone(),
                        summary,
                    }));
                }
            }
        }
    }
    Ok(rows)
}

/// The generated graph with its training nodes, and the toy network after its steps.
fn problem(study: &EstimatorStudy, spec: &SyntheticSpec) -> Result<(String, Problem), GraphError> {
    let spec = DatasetSpec {
        synthetic: Some(spec.clone()),
        ..DatasetSpec::default()
    };
    let data = spec
        .read(Path::new(""))?
        .split(&SplitSpec::default(), study.seed)?;
    let width = data.features.width();
    let mut features = Vec::with_capacity(data.graph.nodes() * width);
    let mut row = vec![0.0_f32; width];
    for node in 0..data.graph.nodes() {
        data.features.copy_row_into(node, &mut row);
        features.extend(row.iter().map(|&value| f64::from(value)));
    }
    let mut random = stream(study.seed, Purpose::Parameters, 0, 0);
    let model = study.model;
    let mut problem = Problem {
        graph: Csr::clone(&data.graph),
        features,
        // Generated nodes all have labels.
        labels: data
            .labels
            .classes()
            .iter()
            .map(|class| class.unwrap_or(0))
            .collect(),
        train: data.split.train.clone(),
        self_loop: model.self_loop,
        toy: Toy::new([width, model.hidden, data.classes], model.loss, &mut random),
    };
    problem.descend(model.steps, model.learning_rate);
    Ok((data.name, problem))
}

fn design(spec: &DesignSpec, graph: &Csr, workers: usize, seed: u64) -> Result<Design, GraphError> {
    let Some(chunks) = spec.chunks(workers) else {
        return Ok(Design::of_nodes(spec.kind, graph.nodes(), workers));
    };
    let partition = PartitionSpec {
        method: match spec.chunking {
            Chunking::Random => PartitionMethod::Random,
            Chunking::Metis => PartitionMethod::Metis,
        },
        workers: chunks,
        ..PartitionSpec::default()
    }
    .partition(graph, Known::default(), Path::new(""), seed)?;
    Ok(Design::of_chunks(
        spec.kind,
        partition.assignment,
        chunks,
        workers,
    ))
}
