//! The file of an estimator study: graphs, a toy network, designs and estimators, and nothing about
//! training.

use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::check::Checks;
use super::data;
use super::decode::{decode, decode_tagged};
use super::error::ConfigError;
use super::locate::Document;
use super::path::KeyPath;
use super::{name, opened, optional, required, text_of};
use crate::graph::SyntheticSpec;
use crate::strategies::grappa::estimators::Weight;
use crate::study::{DesignKind, Estimator, Loss, Sampling};

/// Nodes beyond which a study is no longer small.
const LARGEST: usize = 2000;

/// A checked study.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EstimatorStudy {
    /// Its name: lower-case letters, digits, `-` and `_`.
    pub name: String,
    /// What it is about, in a sentence or two.
    pub description: Option<String>,
    /// Seed of initial weights, chunks and draws.
    pub seed: u64,
    /// `[[graph]]`: generated, at most 2000 nodes; at least one.
    pub graphs: Vec<SyntheticSpec>,
    /// `[model]`.
    pub model: ToyModel,
    /// `[sampling]` with the seed above.
    pub sampling: Sampling,
    /// `[[design]]`, at least one.
    pub designs: Vec<DesignSpec>,
    /// `[[estimator]]` with different labels, one of them unweighted.
    pub estimators: Vec<Estimator>,
    /// The estimators that the figure shows.
    pub figure: Vec<Estimator>,
}

/// The `[model]` of a study: two layers of means over neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ToyModel {
    /// Width of the hidden layer.
    pub hidden: usize,
    /// What is minimised.
    pub loss: Loss,
    /// Whether a node is one of its own neighbours.
    pub self_loop: bool,
    /// Steps of gradient descent before the gradient is looked at.
    pub steps: usize,
    /// Their size.
    pub learning_rate: f64,
}

impl Default for ToyModel {
    fn default() -> Self {
        Self {
            hidden: 8,
            loss: Loss::CrossEntropy,
            self_loop: true,
            steps: 0,
            learning_rate: 0.5,
        }
    }
}

/// How chunks are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Chunking {
    /// Balanced and uniformly random.
    #[default]
    Random,
    /// By METIS.
    Metis,
}

/// One `[[design]]`: a design for each number of workers, with and without halo as listed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DesignSpec {
    /// Which design.
    pub kind: DesignKind,
    /// Numbers of workers.
    pub workers: Vec<usize>,
    /// Whether workers hold a 1-hop halo.
    #[serde(default = "without_halo")]
    pub halo: Vec<bool>,
    /// Chunks for each worker of a grouping.
    #[serde(default = "two")]
    pub chunks_per_worker: usize,
    /// How chunks are made.
    #[serde(default)]
    pub chunking: Chunking,
}

fn without_halo() -> Vec<bool> {
    vec![false]
}

const fn two() -> usize {
    2
}

impl DesignSpec {
    /// How many chunks there are for so many workers; `None` where nodes are dealt.
    pub(crate) fn chunks(&self, workers: usize) -> Option<usize> {
        match self.kind {
            DesignKind::Independent | DesignKind::Random => None,
            DesignKind::Grouping => Some(workers * self.chunks_per_worker),
            DesignKind::Sweep => Some(workers),
        }
    }

    /// What tables call it.
    pub(crate) fn label(&self) -> String {
        match self.chunking {
            Chunking::Metis if self.kind.has_chunks() => format!("{}(metis)", self.kind.name()),
            _ => self.kind.name().to_owned(),
        }
    }
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Samples {
    samples: usize,
    enumerate_up_to: usize,
}

impl Default for Samples {
    fn default() -> Self {
        Self {
            samples: 2000,
            enumerate_up_to: 5000,
        }
    }
}

impl EstimatorStudy {
    const KEYS: [&'static str; 9] = [
        "name",
        "description",
        "seed",
        "graph",
        "model",
        "sampling",
        "design",
        "estimator",
        "figure",
    ];

    /// Reads the file of a study; `sets` are `key.path=value` overrides.
    ///
    /// # Errors
    /// [`ConfigError`]: the file cannot be read, is not TOML, or says something that makes no
    /// sense.
    pub(crate) fn read(path: &Path, sets: &[String]) -> Result<Self, ConfigError> {
        let (file, text) = text_of(path)?;
        Self::parse(&text, &file, sets)
    }

    /// Reads the text of a study, which goes by the name `file` in messages.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(crate) fn parse(text: &str, file: &str, sets: &[String]) -> Result<Self, ConfigError> {
        let document = opened(text, file, sets, &Self::KEYS)?;
        let seed = optional(&document, "seed")?.unwrap_or(0);
        let graphs = graphs(&document)?;
        let smallest = graphs.iter().map(nodes).min().unwrap_or(0);
        let estimators = estimators(&document)?;
        Ok(Self {
            name: name(&document)?,
            description: optional(&document, "description")?,
            seed,
            graphs,
            model: model(&document)?,
            sampling: sampling(&document, seed)?,
            designs: designs(&document, smallest)?,
            figure: figure(&document, &estimators)?,
            estimators,
        })
    }
}

fn at(document: &Document, section: KeyPath) -> Checks<'_> {
    Checks { document, section }
}

/// The entries of a list of tables, with their paths; at least one.
fn entries<T>(
    document: &Document,
    key: &str,
    read: impl Fn(&KeyPath, &toml::Value) -> Result<T, ConfigError>,
) -> Result<Vec<T>, ConfigError> {
    let path = KeyPath::dotted(key);
    let listed: Vec<toml::Value> = required(document, key)?;
    if listed.is_empty() {
        return Err(document.bad(
            &path,
            format!("must have at least one entry; write [[{key}]]"),
        ));
    }
    listed
        .iter()
        .enumerate()
        .map(|(index, value)| read(&path.join(&index.to_string()), value))
        .collect()
}

fn section<T: DeserializeOwned + Default>(
    document: &Document,
    name: &str,
) -> Result<T, ConfigError> {
    let path = KeyPath::dotted(name);
    match document.get(&path) {
        None => Ok(T::default()),
        // serde would take a list of values in the order of a struct's fields.
        Some(value) if !value.is_table() => {
            Err(document.bad(&path, format!("must be a table [{name}]")))
        }
        Some(value) => decode(document, &path, value),
    }
}

fn nodes(graph: &SyntheticSpec) -> usize {
    match graph {
        SyntheticSpec::Sbm { nodes, .. }
        | SyntheticSpec::Csbm { nodes, .. }
        | SyntheticSpec::Rmat {
            nodes: Some(nodes), ..
        } => *nodes,
        // The scale has been checked to be at most 31.
        SyntheticSpec::Rmat { scale, .. } => 1_usize << scale,
    }
}

fn graphs(document: &Document) -> Result<Vec<SyntheticSpec>, ConfigError> {
    entries(document, "graph", |path, value| {
        let graph: SyntheticSpec = decode_tagged(document, path, value)?;
        let check = at(document, path.clone());
        data::synthetic(&graph, &check)?;
        let several = matches!(
            graph,
            SyntheticSpec::Sbm {
                labels: Some(_),
                ..
            }
        );
        check.that(
            !several,
            "labels",
            "are for experiments that train: the toy network learns one class of a node; remove it",
        )?;
        let key = match graph {
            SyntheticSpec::Rmat { nodes: None, .. } => "scale",
            _ => "nodes",
        };
        let few = nodes(&graph) <= LARGEST;
        check.that(
            few,
            key,
            &format!("must give a small graph, of at most {LARGEST} nodes"),
        )?;
        Ok(graph)
    })
}

fn model(document: &Document) -> Result<ToyModel, ConfigError> {
    let model: ToyModel = section(document, "model")?;
    let check = at(document, KeyPath::dotted("model"));
    check.columns(model.hidden)?;
    check.above_zero(model.learning_rate, "learning_rate")?;
    Ok(model)
}

fn sampling(document: &Document, seed: u64) -> Result<Sampling, ConfigError> {
    let Samples {
        samples,
        enumerate_up_to,
    } = section(document, "sampling")?;
    let check = at(document, KeyPath::dotted("sampling"));
    check.that(
        samples >= 40,
        "samples",
        &format!("must be at least 40, for standard errors, not {samples}"),
    )?;
    Ok(Sampling {
        enumerate_up_to,
        samples,
        seed,
    })
}

fn designs(document: &Document, smallest: usize) -> Result<Vec<DesignSpec>, ConfigError> {
    entries(document, "design", |path, value| {
        let design: DesignSpec = decode(document, path, value)?;
        let check = at(document, path.clone());
        check.that(
            !design.workers.is_empty(),
            "workers",
            "must list at least one number, like [2, 4]",
        )?;
        check.that(
            !design.halo.is_empty(),
            "halo",
            "must list at least one of false and true",
        )?;
        check.positive(design.chunks_per_worker, "chunks_per_worker")?;
        for (index, &workers) in design.workers.iter().enumerate() {
            let parts = design.chunks(workers).unwrap_or(workers);
            let fits = workers >= 1 && parts <= smallest;
            let message = format!(
                "must make 1 to {smallest} parts, one node or more each, and {workers} workers do not"
            );
            check.that(fits, &format!("workers.{index}"), &message)?;
        }
        let grouping = design.kind == DesignKind::Grouping;
        let given = |key: &str| value.get(key).is_some();
        check.that(
            grouping || !given("chunks_per_worker"),
            "chunks_per_worker",
            "goes with kind = \"grouping\"; remove it",
        )?;
        let chunks = design.kind.has_chunks();
        check.that(
            chunks || !given("chunking"),
            "chunking",
            "goes with kind = \"grouping\" or \"sweep\"; remove it",
        )?;
        Ok(design)
    })
}

fn estimators(document: &Document) -> Result<Vec<Estimator>, ConfigError> {
    let read = entries(document, "estimator", |path, value| {
        let estimator: Estimator = decode(document, path, value)?;
        estimator
            .check()
            .map_err(|(key, message)| document.bad(&path.join(key), message))?;
        Ok(estimator)
    })?;
    let path = KeyPath::dotted("estimator");
    for (index, estimator) in read.iter().enumerate() {
        if read[..index].contains(estimator) {
            let message = format!("\"{}\" is there twice", estimator.label());
            return Err(document.bad(&path.join(&index.to_string()), message));
        }
    }
    if !read
        .iter()
        .any(|estimator| estimator.weight == Weight::None)
    {
        return Err(document.bad(
            &path,
            "must have one of weight = \"none\", which the others are compared with",
        ));
    }
    Ok(read)
}

fn figure(document: &Document, estimators: &[Estimator]) -> Result<Vec<Estimator>, ConfigError> {
    let Some(wanted) = optional::<Vec<String>>(document, "figure")? else {
        return Ok(estimators.to_vec());
    };
    let labels: Vec<String> = estimators.iter().map(Estimator::label).collect();
    let chosen = wanted.iter().enumerate().map(|(index, label)| {
        let place = labels.iter().position(|known| known == label);
        place.map(|place| estimators[place].clone()).ok_or_else(|| {
            let path = KeyPath::dotted("figure").join(&index.to_string());
            document.unknown(&path, label, labels.iter().map(String::as_str))
        })
    });
    chosen.collect()
}

#[cfg(test)]
mod tests;
