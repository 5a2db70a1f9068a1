//! `grapevine partition`: how good a partition is, before training on it, and the partition as a
//! file.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use serde::Deserialize;
use serde_json::Value;

use super::Verdict;
use super::list::{FORMATS, PARTITIONERS};
use super::output::{BadArgument, columns, print, print_json};
use crate::Error;
use crate::experiment::atomic;
use crate::graph::{
    BoundaryPlan, DatasetSpec, GraphError, Partition, PartitionSpec, PartitionStats, SyntheticSpec,
    dataset_names,
};

/// Arguments of `partition`.
#[derive(ClapArgs)]
pub(super) struct Args {
    /// A bundled or fetched data set, the path of files with --format, or a generated graph as
    /// experiment files write it: '{ kind = "rmat", scale = 12, classes = 4, features = 16 }'
    dataset: String,
    /// Number of workers
    #[arg(long, short)]
    workers: usize,
    /// How nodes are assigned to workers
    #[arg(long, short, default_value = "metis", value_parser = PARTITIONERS.map(|(name, _)| name))]
    method: String,
    /// Format of the files
    #[arg(long, value_parser = FORMATS.map(|(name, _)| name))]
    format: Option<String>,
    /// For --method given: a file with one worker number per line
    #[arg(long)]
    file: Option<PathBuf>,
    /// Seed of the partitioner
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Write the partition to a file, one worker number per line, as `method = "given"` reads it
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
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
    // By way of JSON, so that the table and --json call everything the same.
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

/// The data set that the arguments name, and no other.
fn source(args: &Args) -> anyhow::Result<DatasetSpec> {
    let dataset = &args.dataset;
    let bad = |flag, what| Err(BadArgument { flag, what }.into());
    if dataset.trim_start().starts_with('{') {
        if args.format.is_some() {
            return bad(
                "--format",
                "a generated graph has none; remove it".to_owned(),
            );
        }
        return Ok(DatasetSpec {
            synthetic: Some(synthetic(dataset)?),
            ..DatasetSpec::default()
        });
    }
    let named = dataset_names().contains(&dataset.as_str());
    if named && args.format.is_some() {
        let what = format!(
            "\"{dataset}\" is a known data set and needs no format; remove it, or write ./{dataset} for \
             files of yours"
        );
        return bad("--format", what);
    }
    if !named && args.format.is_none() {
        let what = format!(
            "\"{dataset}\" is not a known data set (`grapevine list datasets` has those); for files of yours, \
             say how they are written"
        );
        return bad("--format", what);
    }
    Ok(DatasetSpec {
        name: named.then(|| dataset.clone()),
        path: (!named).then(|| PathBuf::from(dataset)),
        format: args.format.as_deref().map(named_value).transpose()?,
        ..DatasetSpec::default()
    })
}

/// A generated graph from an inline table.
fn synthetic(text: &str) -> anyhow::Result<SyntheticSpec> {
    let value = toml::de::ValueDeserializer::parse(text);
    value.and_then(SyntheticSpec::deserialize).map_err(|error| {
        let what = format!(
            "{}; write a generated graph as `synthetic` of [dataset], for example {}",
            error.message(),
            "'{ kind = \"rmat\", scale = 12, classes = 4, features = 16 }'"
        );
        BadArgument {
            flag: "DATASET",
            what,
        }
        .into()
    })
}

fn statistics(args: &Args) -> anyhow::Result<PartitionStats> {
    let here = PathBuf::new();
    if (args.method == "given") != args.file.is_some() {
        let what = "and --method given need each other; the file has one worker number per line, for each node";
        return Err(BadArgument {
            flag: "--file",
            what: what.to_owned(),
        }
        .into());
    }
    let data = source(args)?.read(&here).map_err(Error::from)?;
    let partition = PartitionSpec {
        method: named_value(&args.method)?,
        workers: args.workers,
        file: args.file.clone(),
        seed: None,
        balance: Vec::new(),
    }
    .partition(&data.graph, &[], &here, args.seed)
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
    if let Some(path) = &args.out {
        write(&partition, path).map_err(|error| BadArgument {
            flag: "--out",
            what: format!(
                "cannot write {}: {error}; give another path",
                path.display()
            ),
        })?;
    }
    let boundary = BoundaryPlan::new(&data.graph, &partition);
    Ok(PartitionStats::new(&data.graph, &partition, &boundary))
}

/// Writes the worker of each node, one per line.
fn write(partition: &Partition, path: &Path) -> io::Result<()> {
    atomic::write(path, |file| {
        (partition.assignment.iter()).try_for_each(|worker| writeln!(file, "{worker}"))
    })
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
        for (name, _) in PARTITIONERS {
            named_value::<PartitionMethod>(name).unwrap();
        }
        for (name, _) in FORMATS {
            named_value::<Format>(name).unwrap();
        }
    }
}
