//! `grapevine kernels`: what the operations of an epoch take of a device.

use clap::Args as ClapArgs;
use serde_json::json;

use super::Verdict;
use super::datasets::thousands;
use super::output::{BadArgument, columns, print, print_json, tell};
use crate::Error;
use crate::graph::{DatasetSpec, SyntheticSpec};
use crate::sim::{Backend, DeviceConfig, OperationTime, most_nodes, open_devices, time_operations};

/// Undirected edges of ogbn-arxiv for each of its nodes (Hu et al., 2020).
const EDGES_A_NODE: f64 = 1_166_243.0 / 169_343.0;

/// Arguments of `kernels`.
#[derive(ClapArgs)]
pub(super) struct Args {
    /// `device.backend` of experiment files
    #[arg(long, value_name = "BACKEND", default_value = "flex")]
    backend: String,
    /// Part of an adapter's name, for wgpu [default: the best adapter]
    #[arg(long, value_name = "NAME")]
    adapter: Option<String>,
    /// Nodes of the power-law graph over which rows are aggregated; the default is ogbn-arxiv's
    #[arg(long, default_value_t = 169_343, value_parser = clap::value_parser!(u32).range(64..))]
    nodes: u32,
    /// Readings of the clock for each operation
    #[arg(long, default_value_t = 11, value_parser = clap::value_parser!(u32).range(1..))]
    readings: u32,
    /// Print one JSON document with all readings
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Verdict> {
    let backend: Backend = toml::Value::String(args.backend.clone())
        .try_into()
        .map_err(|_| BadArgument {
            flag: "--backend",
            what: format!(
                "there is no \"{}\"; take flex, ndarray or wgpu",
                args.backend
            ),
        })?;
    let config = DeviceConfig {
        backend,
        adapters: args.adapter.iter().cloned().collect(),
    };
    let devices = open_devices(&config, 1).map_err(Error::from)?;
    let device = &devices[0];
    let nodes = most_nodes(device).min(args.nodes as usize);
    if nodes < args.nodes as usize {
        tell(&format!(
            "note: {} holds rows of {} nodes in one piece; the graph has so many instead of {}\n",
            device.description,
            thousands(nodes as u64),
            thousands(u64::from(args.nodes)),
        ));
    }
    let graph = power_law(nodes)?;
    let edges = graph.graph.indices().len() / 2;
    if !args.json {
        tell(&format!(
            "{}, R-MAT graph of {} nodes and {} edges\n",
            device.description,
            thousands(nodes as u64),
            thousands(edges as u64),
        ));
    }
    let times = time_operations(device, &graph.graph, args.readings as usize, |time| {
        tell(&format!("{} {}\n", time.operation, time.width));
    });
    if args.json {
        print_json(&json!({
            "device": device.description,
            "nodes": nodes,
            "edges": edges,
            "operations": times,
        }))?;
    } else {
        let header = [
            "operation",
            "columns",
            "median",
            "lowest",
            "highest",
            "bandwidth",
            "of copying",
            "rate",
        ];
        print(&columns(&header, &rows(&times)))?;
    }
    Ok(Verdict::Good)
}

/// A graph of so many nodes with ogbn-arxiv's number of edges for each.
fn power_law(nodes: usize) -> anyhow::Result<crate::graph::Dataset> {
    let edges = (nodes as f64 * EDGES_A_NODE).round();
    let scale = nodes.next_power_of_two().trailing_zeros();
    let synthetic: SyntheticSpec = toml::from_str(&format!(
        "kind = \"rmat\"\nscale = {scale}\nnodes = {nodes}\nedges = {edges}\nclasses = 2\nfeatures = 1"
    ))?;
    let spec = DatasetSpec {
        synthetic: Some(synthetic),
        ..DatasetSpec::default()
    };
    Ok(spec
        .load(std::path::Path::new(""), 0)
        .map_err(Error::from)?)
}

/// What is printed, a row each.
fn rows(times: &[OperationTime]) -> Vec<Vec<String>> {
    let copying = times.first().map_or(f64::NAN, OperationTime::bandwidth);
    let of = |time: &OperationTime| {
        let seconds = |seconds: Option<&f64>| {
            seconds.map_or_else(String::new, |seconds| format!("{:.3} ms", 1e3 * seconds))
        };
        vec![
            time.operation.to_owned(),
            time.width.to_string(),
            seconds(Some(&time.median())),
            seconds(time.seconds.first()),
            seconds(time.seconds.last()),
            format!("{:.1} GB/s", time.bandwidth() / 1e9),
            format!("{:.0} %", 100.0 * time.bandwidth() / copying),
            if time.operations > 0.0 {
                format!("{:.1} GFLOP/s", time.rate() / 1e9)
            } else {
                "-".to_owned()
            },
        ]
    };
    times.iter().map(of).collect()
}
