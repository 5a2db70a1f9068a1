//! What a graph is like, before it is divided: degrees, components, classes and who is joined with
//! whom, features.

use serde::Serialize;

use super::{Csr, Labels, RawDataset};

/// The numbers that `grapevine info` prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct DataProfile {
    /// Name for tables.
    pub name: String,
    /// Number of nodes.
    pub nodes: usize,
    /// Undirected edges.
    pub edges: usize,
    /// Neighbours of nodes.
    pub degrees: Degrees,
    /// Connected components.
    pub components: usize,
    /// Nodes of the largest component.
    pub(crate) largest_component: usize,
    /// Nodes of each class, or with each label.
    pub classes: Vec<usize>,
    /// Whether a node has several labels, and not one class.
    pub several: bool,
    /// Nodes without a class.
    pub unlabelled: usize,
    /// Who is joined with whom; none without classes or edges between them.
    pub homophily: Option<Homophily>,
    /// Columns of the features.
    pub features: usize,
    /// Share of feature values that are not zero, in [0, 1].
    pub(crate) features_filled: f64,
    /// Training, validation and test nodes of each split that comes with the data.
    pub(crate) splits: Vec<[usize; 3]>,
}

/// The distribution of degrees.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Degrees {
    /// The least.
    pub least: usize,
    /// Half of the nodes have no more neighbours.
    pub(crate) median: usize,
    /// The mean.
    pub mean: f64,
    /// 99 % of the nodes have no more neighbours.
    pub(crate) percentile_99: usize,
    /// The most.
    pub most: usize,
    /// Nodes without a neighbour.
    pub isolated: usize,
    /// Each degree that occurs, ascending, and how many nodes have it.
    pub counts: Vec<(usize, usize)>,
}

/// How much neighbours agree in their class, over edges whose two ends have one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Homophily {
    /// Share of edges between nodes of one class.
    pub edge: f64,
    /// Mean over nodes of the share of their neighbours that have their class (Pei et al., 2020).
    pub node: f64,
    /// Edge homophily above what random edges between nodes of these degrees would have, 1 at most
    /// (Platonov et al., *Characterizing Graph Datasets for Node Classification*, 2023). None where
    /// all edges are within one class.
    pub(crate) adjusted: Option<f64>,
}

impl DataProfile {
    /// The profile of a data set. O(nodes + edges + feature values).
    pub(crate) fn new(data: &RawDataset) -> Self {
        let graph = &data.graph;
        let mut classes = vec![0; data.classes];
        match &data.labels {
            Labels::Classes(of) => of
                .iter()
                .flatten()
                .for_each(|&one| classes[one as usize] += 1),
            Labels::Several(of) => {
                for (label, count) in classes.iter_mut().enumerate() {
                    *count = (0..of.nodes()).filter(|&v| of.has(v, label)).count();
                }
            }
        }
        let sizes = components(graph);
        let filled = data.features.filled();
        let all = data.features.rows() * data.features.width();
        let size =
            |split: &super::Split| [&split.train, &split.validation, &split.test].map(Vec::len);
        Self {
            name: data.name.clone(),
            nodes: graph.nodes(),
            // Stored in both directions.
            edges: graph.edges() / 2,
            degrees: Degrees::of(graph),
            components: sizes.len(),
            largest_component: sizes.into_iter().max().unwrap_or(0),
            unlabelled: graph.nodes() - data.labels.known().len(),
            homophily: match &data.labels {
                Labels::Classes(of) => homophily(graph, of, data.classes),
                Labels::Several(_) => None,
            },
            several: data.labels.several().is_some(),
            classes,
            features: data.features.width(),
            features_filled: if all == 0 {
                0.0
            } else {
                filled as f64 / all as f64
            },
            splits: data.splits.iter().map(size).collect(),
        }
    }
}

impl Degrees {
    fn of(graph: &Csr) -> Self {
        let mut all: Vec<usize> = (0..graph.nodes()).map(|v| graph.degree(v)).collect();
        all.sort_unstable();
        let counts = all
            .chunk_by(|a, b| a == b)
            .map(|equal| (equal[0], equal.len()))
            .collect();
        // The smallest degree that so many nodes do not exceed.
        let percentile = |share: f64| {
            let rank = (share * all.len() as f64).ceil() as usize;
            // The 0th percentile is the first, too.
            all.get(rank.saturating_sub(1)).copied().unwrap_or(0)
        };
        Self {
            least: percentile(0.0),
            median: percentile(0.5),
            mean: graph.edges() as f64 / (all.len().max(1)) as f64,
            percentile_99: percentile(0.99),
            most: percentile(1.0),
            isolated: all.iter().take_while(|&&degree| degree == 0).count(),
            counts,
        }
    }
}

/// Sizes of the connected components.
fn components(graph: &Csr) -> Vec<usize> {
    let mut seen = vec![false; graph.nodes()];
    let (mut sizes, mut left) = (Vec::new(), Vec::new());
    for start in 0..graph.nodes() {
        if std::mem::replace(&mut seen[start], true) {
            continue;
        }
        left.push(start);
        let mut size = 0;
        while let Some(node) = left.pop() {
            size += 1;
            for &next in graph.neighbours(node) {
                if !std::mem::replace(&mut seen[next as usize], true) {
                    left.push(next as usize);
                }
            }
        }
        sizes.push(size);
    }
    sizes
}

fn homophily(graph: &Csr, labels: &[Option<u32>], classes: usize) -> Option<Homophily> {
    let (mut alike, mut all) = (0_usize, 0_usize);
    // Ends of edges at nodes of each class.
    let mut ends = vec![0_usize; classes];
    let (mut shares, mut nodes) = (0.0, 0_usize);
    for (node, class) in labels.iter().enumerate() {
        let Some(class) = class else { continue };
        let neighbours = graph.neighbours(node).iter();
        let known = neighbours.filter_map(|&other| labels[other as usize]);
        let (mut mine, mut others) = (0, 0);
        for other in known {
            others += 1;
            mine += usize::from(other == *class);
        }
        if others > 0 {
            shares += mine as f64 / others as f64;
            nodes += 1;
        }
        alike += mine;
        all += others;
        ends[*class as usize] += others;
    }
    if all == 0 {
        return None;
    }
    let edge = alike as f64 / all as f64;
    let by_chance: f64 = ends
        .iter()
        .map(|&ends| (ends as f64 / all as f64).powi(2))
        .sum();
    Some(Homophily {
        edge,
        node: shares / nodes as f64,
        adjusted: (by_chance < 1.0).then(|| (edge - by_chance) / (1.0 - by_chance)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{DatasetSpec, Features};
    use std::path::Path;

    fn bundled(name: &str) -> DataProfile {
        let spec = DatasetSpec {
            name: Some(name.to_owned()),
            normalise_features: Some(false),
            ..DatasetSpec::default()
        };
        DataProfile::new(&spec.read(Path::new("")).unwrap())
    }

    #[test]
    fn homophily_is_what_other_programs_find() {
        // The formulas of Platonov and others (`h_edge`, `h_adj`), run with NumPy on the published
        // files; to two digits what they report: 0.81 and 0.77, 0.68 and 0.01.
        for (name, edge, adjusted) in [
            ("cora", "0.8100", "0.7711"),
            ("minesweeper", "0.6828", "0.0094"),
        ] {
            let found = bundled(name).homophily.unwrap();
            assert_eq!(format!("{:.4}", found.edge), edge, "{name}");
            assert_eq!(
                format!("{:.4}", found.adjusted.unwrap()),
                adjusted,
                "{name}"
            );
        }
    }

    #[test]
    fn cora_has_the_components_and_classes_that_others_count() {
        let cora = bundled("cora");
        // Of NetworkX: 78 components, the largest of 2,485 nodes.
        assert_eq!((cora.components, cora.largest_component), (78, 2485));
        assert_eq!(cora.classes.iter().sum::<usize>(), 2708);
        assert_eq!((cora.degrees.least, cora.degrees.most), (1, 168));
        assert!((cora.degrees.mean - 2.0 * 5278.0 / 2708.0).abs() < 1e-12);
        // 49,216 words.
        let filled = 49_216.0 / (2708.0 * 1433.0);
        assert!((cora.features_filled - filled).abs() < 1e-12);
        assert_eq!(cora.splits, [[140, 500, 1000]]);
    }

    #[test]
    fn a_small_graph_is_counted_by_hand() {
        // 0-1, 1-2, 2-3, and 4 alone; node 3 without a class.
        let graph = Csr::undirected(5, [(0, 1), (1, 2), (2, 3)].into_iter());
        let labels = vec![Some(0), Some(0), Some(1), None, Some(1)];
        let features = Features::Dense {
            width: 1,
            values: vec![1.0, 0.0, 2.0, 0.0, 0.0],
        };
        let data = RawDataset::new("t".to_owned(), graph, features, labels, 2, vec![]);
        let found = DataProfile::new(&data);
        assert_eq!((found.components, found.largest_component), (2, 4));
        assert_eq!(found.degrees.counts, [(0, 1), (1, 2), (2, 2)]);
        assert_eq!((found.degrees.median, found.degrees.isolated), (1, 1));
        assert_eq!((found.classes, found.unlabelled), (vec![2, 2], 1));
        assert!((found.features_filled - 0.4).abs() < 1e-12);
        // Edges 0-1 (alike) and 1-2 (not); by chance (3/4)² + (1/4)².
        let homophily = found.homophily.unwrap();
        assert!((homophily.edge - 0.5).abs() < 1e-12);
        assert!((homophily.node - (1.0 + 0.5 + 0.0) / 3.0).abs() < 1e-12);
        assert!((homophily.adjusted.unwrap() - (0.5 - 0.625) / 0.375).abs() < 1e-12);
    }

    #[test]
    fn without_edges_or_classes_there_is_no_homophily() {
        let graph = Csr::undirected(0, std::iter::empty());
        let data = RawDataset::new("t".to_owned(), graph, Features::none(0), vec![], 0, vec![]);
        let found = DataProfile::new(&data);
        assert_eq!(
            (found.homophily, found.components, found.degrees.most),
            (None, 0, 0)
        );
    }
}
