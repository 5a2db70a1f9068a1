//! `grapevine list`: what experiment files can name.

use clap::{Args as ClapArgs, ValueEnum};
use serde_json::{Value, json};

use super::Verdict;
use super::columns;
use super::datasets;
use super::output::{BadArgument, Unwritten, left_columns, print, print_json};
use crate::experiment::config::closest;
use crate::graph::{BUNDLED, PUBLISHED, PublishedSize};
use crate::names::rows;
use crate::net::{ALL_REDUCE_CHOICES, PRESETS, TopologyKind};
use crate::sim::DEVICE_PROFILES;
use crate::strategies::{Registry, StrategyInfo};

/// Arguments of `list`.
#[derive(ClapArgs)]
pub(super) struct Args {
    /// What to list
    what: What,
    /// Of strategies, the only one to show
    name: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum What {
    Datasets,
    Strategies,
    Models,
    Partitioners,
    Networks,
    Devices,
    Columns,
}

/// Names, with what they hold.
pub(super) type About = (&'static str, &'static str);

const PART_OF_IT: [About; 2] = rows! {
    "cora": "part of the program: 2,708 papers, 5,278 citations, the public split",
    "minesweeper": "part of the program: 10,000 cells of a board, 39,402 pairs of neighbours, a published split",
};

pub(super) const FORMATS: [About; 16] = rows! {
    "planetoid": "format: ind.NAME.{x,y,tx,ty,allx,ally,graph,test.index}",
    "linqs": "format: NAME.content and NAME.cites",
    "npz-csr": "format: one .npz with two CSR matrices (Amazon, Coauthor, ...)",
    "npz-edges": "format: one .npz with an edge list and ten splits",
    "csv-json": "format: edge and target CSV with a JSON of features (Facebook pages)",
    "csv": "format: *edges.csv and *target.csv or *nodes.csv, which may have features (LastFM Asia)",
    "edge-list": "format: two node ids a line (SNAP); topology only",
    "metis": "format: METIS graph file; topology only",
    "ogb": "format: the folder of an Open Graph Benchmark node data set, CSV or binary",
    "dgl-reddit": "format: NAME_graph.npz, a SciPy matrix, and NAME_data.npz (Reddit)",
    "graphsaint": "format: adj_full.npz, feats.npy, class_map.json and role.json (Flickr, Yelp)",
    "ppi": "format: {train,valid,test}_{graph.json,feats.npy,labels.npy} (PPI)",
    "igb": "format: the folder of a homogeneous graph of the Illinois Graph Benchmark",
    "wiki-cs": "format: the JSON file of Wiki-CS",
    "matrix-market": "format: a sparse matrix in coordinates, .mtx; topology only",
    "parquet": "format: a Parquet table of nodes and one of edges, columns by name",
};

const GENERATORS: [About; 3] = rows! {
    "sbm": "synthetic: stochastic block model with class features, or several labels of a node",
    "csbm": "synthetic: contextual stochastic block model: how much of the class is in neighbours and in features (Deshpande et al., NeurIPS 2018)",
    "rmat": "synthetic: recursive matrix graph with learnable labels",
};

const MODELS: [About; 5] = rows! {
    "gcn": "graph convolution with self-loops and symmetric normalisation (Kipf and Welling, ICLR 2017)",
    "sage": "GraphSAGE with mean aggregation, rows not divided by their norm (Hamilton, Ying and Leskovec, NeurIPS 2017)",
    "sage-pool": "GraphSAGE with max-pooling aggregation (Hamilton, Ying and Leskovec, NeurIPS 2017)",
    "gat": "attention over neighbours, `heads` of it in each layer, which share `hidden` columns (Veličković et al., ICLR 2018)",
    "gin": "sum of neighbours through a perceptron, epsilon = 0 (Xu, Hu, Leskovec and Jegelka, ICLR 2019)",
};

const EXCHANGES: [About; 3] = rows! {
    "direct": "all messages of an exchange at once, sharing the links",
    "pairwise": "in P-1 rounds: to worker r+s and from worker r-s in round s (Thakur, Rabenseifner and Gropp, IJHPCA 2005)",
    "hierarchical": "inside machines (or racks, regions, switches, groups) first, then one message from each worker to each other machine: 2 a + ((G-1) M + (M-1) G) m b (as Tutel)",
};

pub(super) const PARTITIONERS: [About; 6] = rows! {
    "random": "balanced and uniformly random",
    "metis": "multilevel k-way (Karypis and Kumar, JPDC 1998), vendored; `objective` is the edge cut or the boundary rows",
    "ldg": "linear deterministic greedy, one pass over the nodes (Stanton and Kliot, KDD 2012)",
    "fennel": "one pass over the nodes, parts at most a tenth above the mean (Tsourakakis and others, WSDM 2014)",
    "dirichlet": "each class shared out by a Dirichlet draw: clients that differ in their classes (as FedGCN's code; Yao and others, NeurIPS 2023)",
    "given": "read from a file: one worker number per node and line, as METIS and ParMETIS write it, or what DGL writes (`.npy`, `.json`)",
};

pub(super) fn run(args: &Args, registry: &Registry) -> anyhow::Result<Verdict> {
    let shown = shown(args, registry)?;
    if args.json {
        print_json(&document(args.what, &shown))?;
        return Ok(Verdict::Good);
    }
    match (args.what, named(args.what)) {
        (What::Strategies, _) => print(&strategies(&shown))?,
        (What::Networks, _) => {
            let header = ["network", "bandwidth", "latency", "overhead", "source"];
            let header = header.map(str::to_owned);
            let presets = PRESETS.iter().map(|preset| {
                [
                    preset.name.to_owned(),
                    preset.bandwidth.to_string(),
                    preset.latency.to_string(),
                    preset.overhead.to_string(),
                    preset.source.to_owned(),
                ]
            });
            let rows: Vec<Vec<String>> = std::iter::once(header)
                .chain(presets)
                .map(Vec::from)
                .collect();
            print(&left_columns(&rows))?;
            print("\n")?;
            pairs(
                &["topology", "how workers are wired"],
                owned(&TopologyKind::ALL),
            )?;
            print("\nlatency a, 1/b bytes a second, P workers, S bytes:\n")?;
            let header = ["all_reduce", "what it is, and its time on equal links"];
            pairs(&header, owned(&ALL_REDUCE_CHOICES))?;
            print("\n")?;
            pairs(&["exchange", "what it is"], owned(&EXCHANGES))?;
        }
        (What::Datasets, rows) => {
            pairs(&["data set", "what it is"], rows)?;
            print("\n")?;
            print(&datasets::published())?;
        }
        (What::Models, rows) => pairs(&["model", "what it is"], rows)?,
        (What::Partitioners, rows) => pairs(&["method", "what it is"], rows)?,
        (What::Columns, rows) => pairs(&["column", "what it says"], rows)?,
        (What::Devices, rows) => {
            let rows: Vec<Vec<String>> = rows.into_iter().map(Vec::from).collect();
            print(&left_columns(&rows))?;
        }
    }
    Ok(Verdict::Good)
}

/// The strategies to list: all, or the one that is named.
fn shown(args: &Args, registry: &Registry) -> Result<Vec<StrategyInfo>, BadArgument> {
    let all: Vec<StrategyInfo> = registry.all().iter().map(|one| one.info).collect();
    let Some(name) = &args.name else {
        return Ok(all);
    };
    let bad = |what| BadArgument { flag: "NAME", what };
    if !matches!(args.what, What::Strategies) {
        let what = format!("\"{name}\" is too much: only of `strategies` one is shown by name");
        return Err(bad(what));
    }
    if let Some(one) = all.iter().find(|info| info.name == name) {
        return Ok(vec![*one]);
    }
    let names = registry.names();
    let meant = closest(name, &names)
        .map_or_else(|| ".".to_owned(), |near| format!("; did you mean {near}?"));
    let what = format!(
        "no strategy is called \"{name}\"{meant} There are {}",
        names.join(", ")
    );
    Err(bad(what))
}

/// A name, and what it stands for.
type Named = [String; 2];

fn owned(rows: &[(&str, &str)]) -> Vec<Named> {
    let rows = rows.iter();
    rows.map(|&(name, what)| [name.to_owned(), what.to_owned()])
        .collect()
}

/// What is a name and a sentence about it, and no more.
fn named(what: What) -> Vec<Named> {
    match what {
        What::Datasets => [
            owned(&PART_OF_IT),
            owned(&FORMATS),
            owned(&GENERATORS),
            published(),
        ]
        .concat(),
        What::Models => owned(&MODELS),
        What::Partitioners => owned(&PARTITIONERS),
        What::Columns => columns::all(),
        What::Devices => devices(),
        What::Strategies | What::Networks => Vec::new(),
    }
}

/// Published graphs that are known in numbers.
fn published() -> Vec<Named> {
    let row = |graph: &PublishedSize| {
        let numbers = format!(
            "counts, for project: the size of a published graph, {} nodes and {} edges",
            graph.nodes, graph.edges
        );
        [format!("like {}", graph.name), numbers]
    };
    PUBLISHED.iter().map(row).collect()
}

fn pairs(header: &[&str; 2], rows: Vec<Named>) -> Result<(), Unwritten> {
    let header = header.map(str::to_owned);
    let rows = std::iter::once(header).chain(rows);
    print(&left_columns(&rows.map(Vec::from).collect::<Vec<_>>()))
}

/// Tensor backends of this build, the adapters that wgpu finds, and profiles.
fn devices() -> Vec<Named> {
    let mut rows = vec![("backend flex".to_owned(), "burn-flex on the CPU".to_owned())];
    let mut add = |name: &str, what: &str| rows.push((name.to_owned(), what.to_owned()));
    if cfg!(feature = "ndarray") {
        add("backend ndarray", "burn-ndarray on the CPU");
    }
    #[cfg(feature = "wgpu")]
    {
        let adapters = crate::sim::adapter_names();
        if adapters.is_empty() {
            add("backend wgpu", "no adapter on this machine");
        }
        for name in adapters {
            add("backend wgpu", &name);
        }
    }
    for profile in DEVICE_PROFILES {
        add(&format!("profile {}", profile.name), profile.source);
    }
    rows.into_iter().map(<[String; 2]>::from).collect()
}

fn strategies(shown: &[StrategyInfo]) -> String {
    let mut text = String::new();
    for info in shown {
        let about = [("  paper", info.paper), ("  sends", info.sends)];
        let options = info.options.iter().map(|option| {
            let meaning = format!("{} [default: {}]", option.meaning, option.default);
            vec![format!("  option {}", option.name), meaning]
        });
        text.push_str(&format!("{}\n", info.name));
        text.push_str(&left_columns(
            &about.map(|(name, what)| vec![name.to_owned(), what.to_owned()]),
        ));
        text.push_str(&left_columns(&options.collect::<Vec<_>>()));
        text.push('\n');
    }
    text
}

fn document(what: What, shown: &[StrategyInfo]) -> Value {
    match what {
        What::Networks => PRESETS
            .iter()
            .map(|preset| {
                json!({
                    "name": preset.name,
                    "bandwidth_bps": preset.bandwidth.bps(),
                    "latency_seconds": preset.latency.0,
                    "overhead_seconds": preset.overhead.0,
                    "source": preset.source,
                })
            })
            .collect(),
        What::Strategies => json!(shown),
        _ => {
            let row = |[name, about]: Named| {
                let mut row = json!({ "name": name, "what": about });
                if matches!(what, What::Datasets) {
                    row["bundled"] = BUNDLED.contains(&&*name).into();
                }
                row
            };
            let rows = named(what).into_iter().map(row);
            if matches!(what, What::Datasets) {
                rows.chain(datasets::document()).collect()
            } else {
                rows.collect()
            }
        }
    }
}
