//! From what an experiment file says about a graph in numbers to these numbers.

use std::path::Path;
use std::sync::Arc;

use super::classes::ExpectedGraph;
use super::degrees;
use super::rmat::RmatLaw;
use crate::graph::loaders::{each_line, open};
use crate::graph::rmat::EDGE_FACTOR;
use crate::graph::spec::{CountSpec, RmatCounts};
use crate::graph::{Csr, Dataset, Features, GraphError, Reading, Split};

/// Largest scale: the number of nodes is a whole number in double precision.
const LARGEST_SCALE: u32 = 50;

/// A graph in numbers, with what a model needs to know of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Counted {
    /// The graph.
    pub graph: ExpectedGraph,
    /// Nodes that train.
    pub training: f64,
    /// What is assumed of it, in a sentence.
    pub assumed: String,
}

/// Refuses a value of the section.
fn refuse(what: impl Into<String>) -> GraphError {
    GraphError::key("dataset.counts", what)
}

impl CountSpec {
    /// The graph in numbers. Relative paths start at `base`.
    ///
    /// # Errors
    /// If the section contradicts itself, or the file is missing or broken.
    pub fn read(&self, base: &Path) -> Result<Counted, GraphError> {
        if self.features == 0 || self.classes == 0 {
            return Err(refuse("`features` and `classes` must be at least 1"));
        }
        if !(self.train > 0.0 && self.train <= 1.0) {
            let what = format!(
                "`train` must be more than 0 and at most 1, not {}",
                self.train
            );
            return Err(refuse(what));
        }
        let (graph, law) = match (&self.rmat, &self.degrees) {
            (Some(rmat), None) => (rmat.graph()?, "neighbours by the closed form of R-MAT"),
            (None, Some(file)) => (
                read_degrees(&base.join(file))?,
                "neighbours in proportion to their degrees",
            ),
            _ => return Err(refuse("give exactly one of `rmat` and `degrees`")),
        };
        let training = (graph.nodes() * self.train).max(1.0).round();
        let assumed = format!(
            "{:.0} nodes, {:.0} undirected edges, known in expectation: equal random parts, {law}, \
             {training:.0} training nodes spread evenly, {} dense features, {} classes",
            graph.nodes(),
            graph.edges() / 2.0,
            self.features,
            self.classes
        );
        Ok(Counted {
            graph,
            training,
            assumed,
        })
    }

    /// A data set with the widths of the models that train on it, and no node: what is planned
    /// comes from the counts. Its notes say what is assumed.
    pub fn widths(&self, counted: &Counted) -> Dataset {
        Dataset {
            name: self.name(),
            graph: Csr::undirected(0, std::iter::empty()).into(),
            features: Features::Dense {
                width: self.features,
                values: Vec::new(),
            }
            .into(),
            labels: [].into(),
            classes: self.classes,
            split: Split::default(),
            reading: Arc::new(Reading {
                notes: vec![counted.assumed.clone()],
                ..Reading::default()
            }),
        }
    }

    /// Its name in tables: `rmat-36`, or that of the file.
    pub fn name(&self) -> String {
        let file = || {
            self.degrees
                .as_ref()?
                .file_stem()?
                .to_str()
                .map(str::to_owned)
        };
        let rmat = self.rmat.map(|rmat| format!("rmat-{}", rmat.scale));
        rmat.or_else(file).unwrap_or_else(|| "counts".to_owned())
    }
}

impl RmatCounts {
    fn graph(&self) -> Result<ExpectedGraph, GraphError> {
        if !(1..=LARGEST_SCALE).contains(&self.scale) {
            let what = format!(
                "`scale` must be from 1 to {LARGEST_SCALE}, not {}",
                self.scale
            );
            return Err(refuse(what));
        }
        let [a, b, c] = self.quadrants;
        if self.quadrants.iter().any(|&p| !(0.0..=1.0).contains(&p)) || a + b + c > 1.0 {
            let what = format!(
                "`quadrants` {:?} must be 0 or more and together at most 1",
                self.quadrants
            );
            return Err(refuse(what));
        }
        if self.edges.is_some() && self.edge_factor.is_some() {
            return Err(refuse(
                "`edges` and `edge_factor` say the same twice; keep one",
            ));
        }
        let factor = self.edge_factor.unwrap_or(EDGE_FACTOR as f64);
        if !(factor > 0.0 && factor.is_finite()) {
            return Err(refuse(format!(
                "`edge_factor` must be more than 0, not {factor}"
            )));
        }
        let mut law = RmatLaw::new(self.scale, factor, self.quadrants);
        if let Some(nodes) = self.nodes {
            let all = f64::from(self.scale).exp2();
            if !(nodes >= 1.0 && nodes <= all && nodes.fract() == 0.0) {
                let what = format!(
                    "`nodes` must be a whole number from 1 to 2^scale = {all}, not {nodes}"
                );
                return Err(refuse(what));
            }
            law = law.keeping(nodes);
        }
        if let Some(edges) = self.edges {
            if !(edges >= 1.0 && edges.is_finite()) {
                return Err(refuse(format!("`edges` must be at least 1, not {edges}")));
            }
            law = law.with_edges(edges).ok_or_else(|| {
                refuse(format!(
                    "`edges` {edges} are more than these nodes can have; ask for fewer, or raise `scale`"
                ))
            })?;
        }
        Ok(law.graph())
    }
}

/// A degree and a number of nodes in each line, with a comma, a tab or spaces between them; `#`
/// starts a comment.
fn read_degrees(path: &Path) -> Result<ExpectedGraph, GraphError> {
    let mut found: Vec<(f64, f64)> = Vec::new();
    each_line(path, open(path)?, |line| {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            return Ok(());
        }
        let mut words = line.split([',', '\t', ' ']).filter(|word| !word.is_empty());
        let mut number = || words.next()?.parse::<u64>().ok();
        let (Some(degree), Some(nodes), None) = (number(), number(), words.next()) else {
            return Err(format!(
                "expected a degree and how many nodes have it, such as `3,120`, found `{line}`"
            ));
        };
        found.push((degree as f64, nodes as f64));
        Ok(())
    })?;
    let nodes: f64 = found.iter().map(|(_, nodes)| nodes).sum();
    let ends: f64 = found.iter().map(|(degree, nodes)| degree * nodes).sum();
    let broken = |what: String| Err(GraphError::file(path, what));
    if nodes < 1.0 {
        return broken(
            "has no nodes; write a degree and a number of nodes in each line".to_owned(),
        );
    }
    if ends % 2.0 != 0.0 {
        return broken(format!(
            "has degrees that add up to {ends:.0}: each edge has two ends, so the sum must be even"
        ));
    }
    if let Some((degree, _)) = found
        .iter()
        .find(|(degree, count)| *degree >= nodes && *count > 0.0)
    {
        return broken(format!(
            "has a node of degree {degree:.0} among {nodes:.0} nodes: a node has at most {:.0} neighbours",
            nodes - 1.0
        ));
    }
    Ok(degrees::graph(&found))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(text: &str) -> CountSpec {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_trillion_edges_are_described_in_one_line() {
        let counted = spec("rmat = { scale = 36, edge_factor = 16 }")
            .read(Path::new(""))
            .unwrap();
        assert_eq!(counted.graph.nodes(), f64::from(36).exp2());
        assert!(counted.graph.edges() / 2.0 > 1e12);
        assert!(
            counted.assumed.contains("equal random parts"),
            "{}",
            counted.assumed
        );
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        for (text, message) in [
            ("features = 3", "give exactly one of `rmat` and `degrees`"),
            (
                "rmat = { scale = 4 }\ndegrees = \"x\"",
                "give exactly one of `rmat` and `degrees`",
            ),
            (
                "rmat = { scale = 0 }",
                "`scale` must be from 1 to 50, not 0",
            ),
            (
                "rmat = { scale = 4, edges = 121 }",
                "more than these nodes can have",
            ),
            (
                "rmat = { scale = 4, edges = 9, edge_factor = 2 }",
                "say the same twice",
            ),
            (
                "rmat = { scale = 4, nodes = 17 }",
                "from 1 to 2^scale = 16, not 17",
            ),
            (
                "rmat = { scale = 4, quadrants = [0.9, 0.2, 0.2] }",
                "together at most 1",
            ),
            (
                "rmat = { scale = 4 }\ntrain = 0",
                "`train` must be more than 0",
            ),
            ("rmat = { scale = 4 }\nclasses = 0", "must be at least 1"),
        ] {
            let error = spec(text).read(Path::new("")).unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
    }

    #[test]
    fn a_file_of_degrees_is_read_and_held_to_what_graphs_can_have() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("star.csv");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            spec("degrees = \"star.csv\"").read(folder.path())
        };
        let star = read("# degree,nodes\n3,1\n1,3\n").unwrap();
        assert_eq!((star.graph.nodes(), star.graph.edges()), (4.0, 6.0));
        for (text, message) in [
            ("3,1\n1,2\n", "add up to 5"),
            ("4,1\n1,2\n", "a node has at most 2 neighbours"),
            ("3\n", "star.csv:1: expected a degree"),
            ("-1,3\n", "star.csv:1: expected a degree"),
            ("", "has no nodes"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
