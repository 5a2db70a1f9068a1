//! `grapevine partition`: how good a partition is, before training on it.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use serde_json::Value;

use super::Verdict;
use super::output::{BadArgument, columns, print, print_json};
use crate::Error;
use crate::graph::{BUNDLED, BoundaryPlan, DatasetSpec, GraphError, PartitionSpec, PartitionStats};

const METHODS: [&str; 5] = ["random", "metis", "ldg", "fennel", "given"];

const FORMATS: [&str; 9] = [
    "planetoid",
    "linqs",
    "npz-csr",
    "npz-edges",
    "csv-json",
    "csv",
    "edge-list",
    "metis",
    "ogb",
];

/// Arguments of `partition`.
#[derive(ClapArgs)]
pub(super) struct Args {
    /// A bundled data set, or the path of one with --format
    dataset: String,
    /// Number of workers
    #[arg(long, short)]
    workers: usize,
    /// How nodes are assigned to workers
    #[arg(long, short, default_value = "metis", value_parser = METHODS)]
    method: String,
    /// Format of the files
    #[arg(long, value_parser = FORMATS)]
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
    let stats = statistics(args)?;
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
    print(&columns(&["", &args.dataset], &rows))?;
    Ok(Verdict::Good)
}

fn statistics(args: &Args) -> anyhow::Result<PartitionStats> {
    let here = PathBuf::new();
    let dataset = &args.dataset;
    let named = BUNDLED.contains(&dataset.as_str());
    let given = args.method == "given";
    let bad = |flag, what| Err(BadArgument { flag, what }.into());
    if named && args.format.is_some() {
        let what = format!(
            "\"{dataset}\" is bundled and has no format; remove it, or write ./{dataset} for files \
             of yours"
        );
        return bad("--format", what);
    }
    if !named && args.format.is_none() {
        let bundled = BUNDLED.join(", ");
        let what = format!(
            "\"{dataset}\" is not bundled ({bundled} is); for files of yours, say how they are \
             written"
        );
        return bad("--format", what);
    }
    if given != args.file.is_some() {
        let what =
            "goes with --method given, and that with it: one worker number per node and line";
        return bad("--file", what.to_owned());
    }
    let spec = DatasetSpec {
        name: named.then(|| dataset.clone()),
        path: (!named).then(|| PathBuf::from(dataset)),
        format: args.format.as_deref().map(named_value).transpose()?,
        ..DatasetSpec::default()
    };
    let data = spec.read(&here).map_err(Error::from)?;
    let partition = PartitionSpec {
        method: named_value(&args.method)?,
        workers: args.workers,
        file: args.file.clone(),
        seed: None,
    }
    .partition(&data.graph, &here, args.seed)
    .map_err(|error| match error {
        GraphError::Key {
            key: "partition.workers",
            what,
        } => BadArgument {
            flag: "--workers",
            what,
        }
        .into(),
        other => anyhow::Error::from(Error::from(other)),
    })?;
    let boundary = BoundaryPlan::new(&data.graph, &partition);
    Ok(PartitionStats::new(&data.graph, &partition, &boundary))
}

/// A value of an enumeration by the name that experiment files use.
fn named_value<T: serde::de::DeserializeOwned>(name: &str) -> serde_json::Result<T> {
    serde_json::from_value(Value::String(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Format, PartitionMethod};

    #[test]
    fn every_name_that_is_offered_has_a_value() {
        for name in METHODS {
            named_value::<PartitionMethod>(name).unwrap();
        }
        for name in FORMATS {
            named_value::<Format>(name).unwrap();
        }
    }
}
