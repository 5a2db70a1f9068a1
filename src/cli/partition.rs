//! `grapevine partition`: how good a partition is, before training on it.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use serde_json::Value;

use super::Verdict;
use super::output::{columns, print, print_json};
use crate::Error;
use crate::graph::{BUNDLED, BoundaryPlan, DatasetSpec, GraphError, PartitionSpec, PartitionStats};

/// Arguments of `partition`.
#[derive(ClapArgs)]
pub struct Args {
    /// A bundled data set, or the path of one with --format
    dataset: String,
    /// Number of workers
    #[arg(long, short)]
    workers: usize,
    /// random, metis or given
    #[arg(long, short, default_value = "metis")]
    method: String,
    /// Format of the files: planetoid, linqs, npz-csr, npz-edges, csv-json, csv, edge-list, metis, ogb
    #[arg(long)]
    format: Option<String>,
    /// For --method given: a file with one worker number per line
    #[arg(long)]
    file: Option<PathBuf>,
    /// Seed of the partitioner
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Verdict> {
    let stats = statistics(args).map_err(Error::from)?;
    if args.json {
        print_json(&stats)?;
        return Ok(Verdict::Good);
    }
    let Value::Object(fields) = serde_json::to_value(&stats)? else {
        return Ok(Verdict::Good);
    };
    let rows: Vec<Vec<String>> = fields
        .into_iter()
        .map(|(name, value)| {
            let value = match value.as_f64() {
                Some(number) if value.is_f64() => format!("{number:.4}"),
                _ => value.to_string(),
            };
            vec![name.replace('_', " "), value]
        })
        .collect();
    print(&columns(&["", &args.dataset], &rows));
    Ok(Verdict::Good)
}

fn statistics(args: &Args) -> Result<PartitionStats, GraphError> {
    let here = PathBuf::new();
    let named = BUNDLED.contains(&args.dataset.as_str());
    if !named && args.format.is_none() {
        return Err(GraphError::Key {
            key: "--format",
            what: format!(
                "\"{}\" is not bundled ({} is); for files of yours, say how they are written",
                args.dataset,
                BUNDLED.join(", ")
            ),
        });
    }
    let spec = DatasetSpec {
        name: named.then(|| args.dataset.clone()),
        path: (!named).then(|| PathBuf::from(&args.dataset)),
        format: args
            .format
            .as_deref()
            .map(|name| named_value("--format", name))
            .transpose()?,
        ..DatasetSpec::default()
    };
    let data = spec.read(&here)?;
    let partition = PartitionSpec {
        method: named_value("--method", &args.method)?,
        workers: args.workers,
        file: args.file.clone(),
        seed: None,
    }
    .partition(&data.graph, &here, args.seed)?;
    let boundary = BoundaryPlan::new(&data.graph, &partition);
    Ok(PartitionStats::new(&data.graph, &partition, &boundary))
}

/// A value of an enumeration by the name that experiment files use.
fn named_value<T: serde::de::DeserializeOwned>(
    key: &'static str,
    name: &str,
) -> Result<T, GraphError> {
    serde_json::from_value(Value::String(name.to_owned())).map_err(|error| GraphError::Key {
        key,
        what: error.to_string(),
    })
}
