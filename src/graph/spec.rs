//! What an experiment file may say about data and partitions.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::rmat::graph500;
use crate::defaults::{count, is_default};
use crate::names::named;

/// The `[dataset]` section: exactly one of `name`, `path` with `format`, `synthetic`, `shards`,
/// or `counts`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatasetSpec {
    /// A data set that is part of the program, `cora` or `minesweeper`, or a published one that
    /// `grapevine fetch` has put into the data folder.
    pub name: Option<String>,
    /// The folder with the published files, or the one file.
    pub path: Option<PathBuf>,
    /// How the files at `path` are written.
    pub format: Option<Format>,
    /// Whether the first line of the CSV files names their columns. Default: it does where it holds
    /// no node ids.
    pub header: Option<bool>,
    /// For `csv`: the file in the folder with a node id and its features, numbers, in each line, or
    /// a list of columns of the file of nodes. Default: each node is its own feature. For
    /// `parquet`: such a list; default the column `features`.
    pub features: Option<FeatureSource>,
    /// The file of nodes in the folder. Default: the one whose name ends in `target.csv` or
    /// `nodes.csv`, or `nodes.parquet`.
    pub nodes: Option<PathBuf>,
    /// The file of edges in the folder. Default: the one whose name ends in `edges.csv`, or
    /// `edges.parquet`.
    pub edges: Option<PathBuf>,
    /// The column with the ids of nodes. Default: the first of a CSV file, `id` of a Parquet table.
    pub id: Option<String>,
    /// The column with the classes, or a list of columns of 0 and 1, one for each of several
    /// labels. Default: the last of a CSV file, `label` of a Parquet table. For `igb`: the file
    /// with the classes, default `node_label_19`.
    pub label: Option<LabelColumns>,
    /// The column with one end of each edge. Default: the first of two columns of a CSV file,
    /// `source` of a Parquet table.
    pub source: Option<String>,
    /// The column with the other end. Default: the second of two columns of a CSV file, `target` of
    /// a Parquet table.
    pub target: Option<String>,
    /// Whether cells with this data set are left out, and that said, where `path` does not exist or
    /// the published data set has not been fetched. Default false: an error.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
    /// A generated graph.
    pub synthetic: Option<SyntheticSpec>,
    /// The folder of a divided graph, as `grapevine partition --shards` writes it.
    pub shards: Option<PathBuf>,
    /// A graph that is known in numbers alone, for `grapevine project`.
    pub counts: Option<CountSpec>,
    /// Which nodes train, validate and test. Default: the published split; generated data comes
    /// with one of 60, 20 and 20 %.
    // Left out where it is the default, so that a sweep can put shares there.
    #[serde(default, skip_serializing_if = "is_default")]
    pub split: SplitSpec,
    /// Features divided by their row sum, as Kipf and Welling (2017) do. Default: true for bags of
    /// words (stored sparse, no value negative), false otherwise.
    pub normalise_features: Option<bool>,
    /// How dense features are held while they are not used. Default: in single precision.
    // Left out where it is the default, so that folders from before it can be resumed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub feature_storage: FeatureStorage,
    /// How nodes are numbered. What is drawn at random for a node goes with its number. Default: as
    /// the data have them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub order: NodeOrder,
}

/// How dense features are held. What is trained on, sent and planned is in single precision
/// whatever this says: rows are decoded where they are gathered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FeatureStorage {
    /// In memory, 4 bytes a value.
    #[default]
    F32,
    /// In memory, 2 bytes a value, each rounded once, when it is read.
    F16,
    /// In their file, of which the system holds as much as memory allows.
    Mapped,
}

/// Where features of nodes are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FeatureSource {
    /// In a file of their own.
    File(PathBuf),
    /// In columns of the file of nodes.
    Columns(Vec<String>),
}

/// Where classes or labels of nodes are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum LabelColumns {
    /// The class, in one place.
    One(String),
    /// Several labels, each in a column of its own.
    Several(Vec<String>),
}

impl LabelColumns {
    /// The names.
    pub(crate) fn names(&self) -> &[String] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::Several(names) => names,
        }
    }

    /// The one place of the class.
    pub fn one(&self) -> Option<&str> {
        match self {
            Self::One(name) => Some(name),
            Self::Several(_) => None,
        }
    }
}

/// Orders of nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeOrder {
    /// As the data have them.
    #[default]
    Given,
    /// By falling degree: rows that are read most lie together.
    Degree,
    /// Reverse Cuthill–McKee: neighbours lie together.
    Rcm,
}

/// Published file formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// `ind.<name>.{x,y,tx,ty,allx,ally,graph,test.index}` (Yang et al., 2016).
    Planetoid,
    /// `<name>.content` and `<name>.cites` (Sen et al., 2008).
    Linqs,
    /// One zip of `.npy` members with two CSR matrices (Shchur et al., 2018).
    NpzCsr,
    /// One zip of `.npy` members with an edge list and ten splits (Platonov et al., 2023).
    NpzEdges,
    /// Edge and target CSV files with a JSON feature file (Rozemberczki et al., 2021).
    CsvJson,
    /// Edge and target CSV files without features (Rozemberczki and Sarkar, 2020).
    Csv,
    /// Lines of two node ids; `#` starts a comment (SNAP).
    EdgeList,
    /// METIS graph file.
    Metis,
    /// The raw folder of an Open Graph Benchmark node data set, CSV or binary.
    Ogb,
    /// `*_graph.npz`, a `SciPy` matrix, and `*_data.npz`, as DGL has Reddit.
    DglReddit,
    /// `adj_full.npz`, `feats.npy`, `class_map.json` and `role.json` (Zeng et al., 2020).
    #[serde(rename = "graphsaint")]
    GraphSaint,
    /// `{train,valid,test}_{graph.json,feats.npy,labels.npy}`, as DGL has PPI.
    Ppi,
    /// The homogeneous part of the Illinois Graph Benchmark (Khatua et al., 2023).
    Igb,
    /// The JSON file of Wiki-CS (Mernyei and Cangea, 2020).
    WikiCs,
    /// A sparse matrix in coordinates (`SuiteSparse`); topology only.
    MatrixMarket,
    /// Two Parquet tables, of nodes and of edges.
    Parquet,
}

/// Generated graphs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum SyntheticSpec {
    /// Stochastic block model with one block per class and Gaussian class features.
    Sbm {
        /// Number of nodes.
        nodes: usize,
        /// Number of blocks, which are the classes.
        classes: usize,
        /// Width of the features.
        features: usize,
        /// Expected neighbours in the same class.
        degree_within: f64,
        /// Expected neighbours in other classes.
        degree_between: f64,
        /// Standard deviation of the feature noise around a class mean of unit length. Default 1.
        #[serde(default = "one")]
        noise: f64,
        /// Gives each node so many labels, of which it may have several, instead of the class: a
        /// label where a random projection of the features, averaged twice over neighbourhoods, is
        /// large.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        labels: Option<usize>,
        /// Seed of graph and features; the same for every run of an experiment. Default 0.
        #[serde(default)]
        seed: u64,
    },
    /// Contextual stochastic block model (Deshpande et al., 2018), degree-corrected: `homophily`
    /// says how much of the class is in the neighbours, `feature_signal` how much in the features.
    Csbm {
        /// Number of nodes.
        nodes: usize,
        /// Number of classes, equally many nodes each. Default 2, as in the paper.
        #[serde(default = "count::<2>")]
        classes: usize,
        /// Width of the features, at least `classes` − 1. Default 16.
        #[serde(default = "count::<16>")]
        features: usize,
        /// Expected neighbours, before repeated pairs go.
        degree: f64,
        /// Chance that a neighbour is of the same class: 1 / `classes` says nothing of the class,
        /// and both more and less do.
        homophily: f64,
        /// Distance of the class means from 0, in standard deviations of the noise: of two classes
        /// the features alone tell Φ(`feature_signal`).
        feature_signal: f64,
        /// Exponent of the power law of degrees, above 2. Default: all nodes are as likely to have
        /// edges.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        power_law: Option<f64>,
        /// Seed of graph and features. Default 0.
        #[serde(default)]
        seed: u64,
    },
    /// Recursive matrix graph (Chakrabarti, Zhan and Faloutsos, 2004), made undirected.
    Rmat {
        /// 2^`scale` nodes, unless `nodes` says how many to keep.
        scale: u32,
        /// Edges drawn per node, before duplicates are removed. Default 16 (Graph500).
        edge_factor: Option<usize>,
        /// Keeps only the first so many nodes of a random relabelling.
        nodes: Option<usize>,
        /// Draws until there are so many distinct undirected edges, instead of `edge_factor`.
        edges: Option<usize>,
        /// Number of classes; labels come from a propagated random projection, so that neighbours
        /// tend to agree.
        classes: usize,
        /// Width of the features.
        features: usize,
        /// Quadrant probabilities a, b, c (d is the rest). Default .57, .19, .19 (Graph500).
        #[serde(default = "graph500")]
        quadrants: [f64; 3],
        /// Seed of graph and features. Default 0.
        #[serde(default)]
        seed: u64,
    },
}

const fn one() -> f64 {
    1.0
}

/// `[dataset] counts`: a graph too large to be held, for `grapevine project`. Exactly one of
/// `rmat`, `degrees` and `like`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CountSpec {
    /// A recursive matrix graph in closed form.
    pub rmat: Option<RmatCounts>,
    /// A file with a degree and the number of nodes that have it in each line.
    pub degrees: Option<PathBuf>,
    /// The size of a published graph, such as `"ogbn-papers100M"`, with R-MAT's degrees.
    pub like: Option<String>,
    /// Width of the features, which are dense. Default: as published; 128.
    pub features: Option<usize>,
    /// Number of classes. Default: as published; 16.
    pub classes: Option<usize>,
    /// Share of nodes that train, spread evenly. Default: as published; 0.1.
    pub train: Option<f64>,
    /// For METIS, LDG and FENNEL: which smaller graphs are cut.
    pub fit: Option<FitSpec>,
}

/// `fit = { scales = [13, 14, 15, 16, 17], graphs = 3 }`: smaller graphs of the same law, by which
/// a partitioner without a closed form is extrapolated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FitSpec {
    /// Graphs of 2^scale nodes, at least four different scales. Default: five up to 17, or up to
    /// 128 nodes a worker where these are more.
    pub scales: Option<Vec<u32>>,
    /// Graphs of each. Default 3.
    pub graphs: Option<usize>,
}

/// `rmat = { scale = 36, edge_factor = 16 }`: the keys of the generator of that name.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RmatCounts {
    /// 2^`scale` nodes, unless `nodes` says how many to keep.
    pub scale: u32,
    /// Edges drawn per node, before repeated ones go. Default 16 (Graph500).
    pub edge_factor: Option<f64>,
    /// Keeps so many nodes, chosen at random.
    pub nodes: Option<f64>,
    /// So many distinct undirected edges, instead of `edge_factor`.
    pub edges: Option<f64>,
    /// Quadrant probabilities a, b, c (d is the rest). Default .57, .19, .19 (Graph500).
    #[serde(default = "graph500")]
    pub quadrants: [f64; 3],
}

/// Which nodes train, validate and test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SplitSpec {
    /// `"public"`, or `"public-3"` for the fourth of several published splits.
    Named(String),
    /// Seeded, by shares of all labelled nodes; what is left is the test set.
    Fractions(SplitFractions),
    /// Seeded, by counts; what is left is the test set.
    PerClass(SplitPerClass),
}

impl Default for SplitSpec {
    fn default() -> Self {
        Self::Named("public".to_owned())
    }
}

/// `{ train = 0.6, val = 0.2 }`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SplitFractions {
    /// Share of training nodes, in (0, 1).
    pub train: f64,
    /// Share of validation nodes, in (0, 1).
    pub val: f64,
    /// Fixed seed; default: the seed of the run.
    pub seed: Option<u64>,
}

/// `{ train_per_class = 20, val_per_class = 30 }` (Shchur et al., 2018), or `{ train_per_class =
/// 178, val = 357 }`, which validates on so many of all that do not train (the `random` split of
/// `torch_geometric.datasets.Planetoid`, which RETEXO's authors use).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SplitPerClass {
    /// Training nodes of each class.
    pub train_per_class: usize,
    /// Validation nodes of each class; this or `val`.
    pub val_per_class: Option<usize>,
    /// Validation nodes of all classes together, drawn from what does not train.
    pub val: Option<usize>,
    /// Fixed seed; default: the seed of the run.
    pub seed: Option<u64>,
}

/// The `[partition]` section.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartitionSpec {
    /// How nodes are assigned to workers.
    #[serde(default)]
    pub method: PartitionMethod,
    /// Number of workers.
    pub workers: usize,
    /// For `given`: a text file with one worker number per node and line, a `.npy` array of them,
    /// or the configuration (`.json`) that DGL writes.
    pub file: Option<PathBuf>,
    /// Fixed seed; default: the seed of the run.
    pub seed: Option<u64>,
    /// For `metis`: what is shared out equally, each by itself. Default: nodes alone, as METIS does
    /// without weights.
    // Left out where it is the default, so that folders from before it can be resumed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub balance: Vec<Balance>,
    /// For `metis`: what is kept small. Default: the edges that are cut, as METIS and DGL do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective: Option<Objective>,
    /// For `dirichlet`: the smaller, the more workers differ in their classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concentration: Option<f64>,
}

/// What a partition shares out equally. `DistDGL` balances training nodes, others and edges
/// (`balance_ntypes` and `balance_edges` of `dgl.distributed.partition_graph`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Balance {
    /// Nodes.
    Nodes,
    /// Nodes that train.
    Training,
    /// Edges: the sum of degrees.
    Edges,
}

/// What METIS keeps small (`objtype` of METIS and of `dgl.distributed.partition_graph`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// Edges between parts.
    #[default]
    Cut,
    /// Boundary rows: for each node, the other parts that have a neighbour of it. The authors of
    /// BNS-GCN, `PipeGCN`, Sylvie and RETEXO ask for this.
    Volume,
}

named! {
    /// Partitioners.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum PartitionMethod {
        /// Balanced and uniformly random.
        Random = "random",
        /// METIS multilevel k-way (Karypis and Kumar, JPDC 1998).
        #[default]
        Metis = "metis",
        /// Linear deterministic greedy, in one pass (Stanton and Kliot, 2012).
        Ldg = "ldg",
        /// FENNEL, in one pass (Tsourakakis and others, 2014).
        Fennel = "fennel",
        /// Clients that differ in their classes, as those of `FedGCN` (Yao and others, 2023).
        Dirichlet = "dirichlet",
        /// Read from a file.
        Given = "given",
    }
}
