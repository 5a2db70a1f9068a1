//! From what an experiment file says about a graph in numbers to these numbers.

use std::path::Path;
use std::sync::Arc;

use super::classes::ExpectedGraph;
use super::degrees;
use super::published::{PublishedSize, SKEW};
use super::rmat::RmatLaw;
use crate::graph::loaders::{each_line, open};
use crate::graph::rmat::{EDGE_FACTOR, are_quadrants};
use crate::graph::spec::{CountSpec, RmatCounts};
use crate::graph::{Csr, Dataset, Features, GraphError, Metric, Reading, Split};

/// Largest scale: the number of nodes is a whole number in double precision.
const LARGEST_SCALE: u32 = 50;

/// Features, classes and share of training nodes where nobody says any: those of
/// `experiments/grappa/scaling-size.toml`.
const FEATURES: usize = 128;
const CLASSES: usize = 16;
const TRAIN: f64 = 0.1;

/// A graph in numbers, with what a model needs to know of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Counted {
    /// The graph.
    pub graph: ExpectedGraph,
    /// Where `graph` stands in for a published one: a more skewed graph of its size, and one
    /// without skew.
    pub(crate) ends: Option<[ExpectedGraph; 2]>,
    /// Nodes that train.
    pub training: f64,
    /// Width of the features.
    pub features: usize,
    /// Number of classes.
    pub classes: usize,
    /// The law by which smaller graphs of its kind can be drawn, if there is one.
    pub(crate) family: Option<RmatCounts>,
    /// What is assumed of its edges.
    law: String,
}

impl Counted {
    /// What is assumed of it, in a sentence that says how it is divided.
    pub(crate) fn assumed(&self, parts: &str) -> String {
        let Self {
            graph,
            law,
            training,
            features,
            classes,
            ..
        } = self;
        format!(
            "{:.0} nodes, {:.0} undirected edges, known in expectation: {parts}, {law}, \
             {training:.0} training nodes spread evenly, {features} dense features, {classes} classes",
            graph.nodes(),
            graph.edges() / 2.0,
        )
    }

    /// Quadrants of R-MAT graphs that stand in for it: those of its law, or, where degrees are all
    /// that is known, those of real graphs.
    pub(crate) fn quadrants(&self) -> [f64; 3] {
        self.family.map_or(SKEW, |law| law.quadrants)
    }

    /// What is assumed of random parts.
    pub(crate) const RANDOM: &str = "equal random parts";
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
        let like = self.like.as_deref().map(PublishedSize::named).transpose()?;
        let published = |of: fn(&PublishedSize) -> Option<usize>| like.and_then(of);
        let features = self.features.or_else(|| published(|graph| graph.features));
        let classes = self.classes.or_else(|| published(|graph| graph.classes));
        let (features, classes) = (features.unwrap_or(FEATURES), classes.unwrap_or(CLASSES));
        if features == 0 || classes == 0 {
            return Err(refuse("`features` and `classes` must be at least 1"));
        }
        if let Some(train) = self.train.filter(|train| !(*train > 0.0 && *train <= 1.0)) {
            let what = format!("`train` must be more than 0 and at most 1, not {train}");
            return Err(refuse(what));
        }
        let (graph, family, law) = match (&self.rmat, &self.degrees, like) {
            (Some(rmat), None, None) => {
                let law = "neighbours by the closed form of R-MAT";
                (rmat.law()?.graph(), Some(*rmat), law.to_owned())
            }
            (None, Some(file), None) => (
                read_degrees(&base.join(file))?,
                None,
                "neighbours in proportion to their degrees".to_owned(),
            ),
            (None, None, Some(like)) => (
                like.rmat().law()?.graph(),
                Some(like.rmat()),
                format!(
                    "an R-MAT graph of the size of {} in place of its degrees ({})",
                    like.name, like.source
                ),
            ),
            _ => return Err(refuse("give exactly one of `rmat`, `degrees` and `like`")),
        };
        let share = |train: f64| (graph.nodes() * train).max(1.0).round();
        let as_published = || like.and_then(|graph| graph.training);
        let training = match (self.train, as_published()) {
            (None, Some(training)) => training as f64,
            (train, _) => share(train.unwrap_or(TRAIN)),
        };
        let ends = match like {
            Some(like) => {
                let even = degrees::even(graph.nodes(), graph.edges());
                Some([like.skewed().law()?.graph(), even])
            }
            None => None,
        };
        Ok(Counted {
            graph,
            ends,
            training,
            features,
            classes,
            family,
            law,
        })
    }

    /// A data set with the widths of the models that train on it, and no node: what is planned
    /// comes from the counts. Its notes say what is assumed, of the `parts` into which it is
    /// divided, too.
    pub(crate) fn widths(&self, counted: &Counted, parts: &str) -> Dataset {
        Dataset {
            name: self.name(),
            graph: Csr::undirected(0, std::iter::empty()).into(),
            features: Features::Dense {
                width: counted.features,
                values: Vec::new(),
            }
            .into(),
            labels: Vec::new().into(),
            classes: counted.classes,
            metric: Metric::Accuracy,
            split: Split::default(),
            reading: Arc::new(Reading {
                notes: vec![counted.assumed(parts)],
                ..Reading::default()
            }),
        }
    }

    /// Its name in tables: `rmat-36`, `like-reddit`, or that of the file.
    pub fn name(&self) -> String {
        let file = || {
            self.degrees
                .as_ref()?
                .file_stem()?
                .to_str()
                .map(str::to_owned)
        };
        let rmat = self.rmat.map(|rmat| format!("rmat-{}", rmat.scale));
        let like = || self.like.as_ref().map(|name| format!("like-{name}"));
        let name = rmat.or_else(like).or_else(file);
        name.unwrap_or_else(|| "counts".to_owned())
    }
}

impl RmatCounts {
    /// The same law with 2^`scale` nodes, or as many of them as are kept here, and as many edges to
    /// a node.
    pub fn at(&self, scale: u32) -> Self {
        let factor = (f64::from(scale) - f64::from(self.scale)).exp2();
        Self {
            scale,
            nodes: self.nodes.map(|nodes| (nodes * factor).round().max(1.0)),
            edges: self.edges.map(|edges| (edges * factor).round().max(1.0)),
            ..*self
        }
    }

    /// The law.
    ///
    /// # Errors
    /// If the numbers contradict each other.
    pub(crate) fn law(&self) -> Result<RmatLaw, GraphError> {
        if !(1..=LARGEST_SCALE).contains(&self.scale) {
            let what = format!(
                "`scale` must be from 1 to {LARGEST_SCALE}, not {}",
                self.scale
            );
            return Err(refuse(what));
        }
        if !are_quadrants(self.quadrants) {
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
        if factor < 0.5 {
            return Err(refuse(format!(
                "`edge_factor` {factor} cannot give each node a neighbour, as an edge has two ends; ask for 0.5 at least"
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
            let nodes = self.nodes.unwrap_or_else(|| f64::from(self.scale).exp2());
            if 2.0 * edges < nodes {
                return Err(refuse(format!(
                    "`edges` {edges} cannot give each of {nodes} nodes a neighbour, as an edge has two ends; ask for {} at \
                     least, or lower `scale`",
                    (nodes / 2.0).ceil()
                )));
            }
            law = law.with_edges(edges).ok_or_else(|| {
                refuse(format!(
                    "`edges` {edges} are more than these nodes can have; ask for fewer, or raise `scale`"
                ))
            })?;
        }
        Ok(law)
    }
}

/// A degree and a number of nodes in each line, with a comma, a tab or spaces between them; `#`
/// starts a comment.
fn read_degrees(path: &Path) -> Result<ExpectedGraph, GraphError> {
    let mut found: Vec<(f64, f64)> = Vec::new();
    each_line(path, open(path)?, |line| {
        // Spreadsheets write a mark in front of the first line, which nobody sees.
        let line = line.trim_start_matches('\u{feff}');
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            return Ok(());
        }
        let mut words = line.split([',', '\t', ' ']).filter(|word| !word.is_empty());
        let mut number = || words.next()?.parse::<u64>().ok();
        let (Some(degree), Some(nodes), None) = (number(), number(), words.next()) else {
            return Err(format!(
                "expected a degree and how many nodes have it, such as `3,120`, and no header, found `{line}`"
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
    let most = f64::from(LARGEST_SCALE).exp2();
    if nodes > most || ends > most * most {
        return broken(format!(
            "has {nodes:e} nodes and {ends:e} ends of edges: more than 2^{LARGEST_SCALE} nodes, or that many neighbours of each, are not counted"
        ));
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
    if ends < 1.0 {
        return broken("has no edges: all degrees are 0".to_owned());
    }
    if let Some((degree, most)) = degrees::beyond(&found) {
        return broken(format!(
            "has degrees that no graph has: the {most:.0} nodes of degree {degree:.0} and more have more ends of edges than \
             fit among themselves and onto the others"
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
            counted
                .assumed(Counted::RANDOM)
                .contains("equal random parts")
        );
    }

    #[test]
    fn a_published_graph_brings_its_widths_and_split_unless_the_file_says_others() {
        let read = |text: &str| spec(text).read(Path::new("")).unwrap();
        let arxiv = read("like = \"ogbn-arxiv\"");
        assert_eq!((arxiv.features, arxiv.classes), (128, 40));
        assert_eq!(arxiv.training, 90_941.0);
        assert!(
            arxiv
                .assumed(Counted::RANDOM)
                .contains("R-MAT graph of the size of ogbn-arxiv")
        );
        let other = read("like = \"OGBN-arxiv\"\nfeatures = 7\nclasses = 3\ntrain = 0.5");
        assert_eq!((other.features, other.classes), (7, 3));
        assert_eq!(other.training, 84_672.0);
    }

    #[test]
    fn quadrants_that_are_one_but_for_rounding_leave_nothing_to_the_last() {
        // In one order these shares add up to more than 1, in the other to less than nothing left.
        for quadrants in [
            "0.8, 0.1, 0.1",
            "0.55, 0.25, 0.2",
            "0.1, 0.2, 0.7",
            "0.55, 0.34, 0.11",
        ] {
            let text = format!("rmat = {{ scale = 10, quadrants = [{quadrants}] }}");
            let counted = spec(&text).read(Path::new("")).expect(&text);
            let edges = counted.graph.edges();
            assert!(edges.is_finite() && edges > 1_000.0, "{text}: {edges}");
            // A fit draws what is counted.
            let law = counted.family.expect("a law").law().expect(&text);
            let drawn = law.draw(0).expect(&text).edges() as f64;
            assert!((drawn / edges - 1.0).abs() < 0.1, "{text}: {drawn} {edges}");
        }
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        for (text, message) in [
            (
                "features = 3",
                "give exactly one of `rmat`, `degrees` and `like`",
            ),
            (
                "rmat = { scale = 4 }\ndegrees = \"x\"",
                "give exactly one of `rmat`, `degrees` and `like`",
            ),
            ("like = \"imdb\"", "ogbn-arxiv, reddit, ogbn-products"),
            (
                "rmat = { scale = 0 }",
                "`scale` must be from 1 to 50, not 0",
            ),
            (
                "rmat = { scale = 4, edges = 121 }",
                "more than these nodes can have",
            ),
            (
                "rmat = { scale = 4, edges = 7 }",
                "`edges` 7 cannot give each of 16 nodes a neighbour",
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
                "rmat = { scale = 4, edge_factor = 0.1 }",
                "`edge_factor` 0.1 cannot give each node a neighbour",
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
        // As a spreadsheet writes it.
        let marked = read("\u{feff}3,1\r\n1,3\r\n").unwrap();
        assert_eq!((marked.graph.nodes(), marked.graph.edges()), (4.0, 6.0));
        for (text, message) in [
            ("3,1\n1,2\n", "add up to 5"),
            ("4,1\n1,2\n", "a node has at most 2 neighbours"),
            ("3\n", "star.csv:1: expected a degree"),
            ("-1,3\n", "star.csv:1: expected a degree"),
            ("", "has no nodes"),
            ("0,10\n", "has no edges"),
            ("7,4\n1,4\n", "the 4 nodes of degree 7 and more"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
