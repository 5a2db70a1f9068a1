//! `grapevine partition`: how good a partition is, before training on it, and the partition as a
//! file.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use serde_json::Value;

use super::Verdict;
use super::list::PARTITIONERS;
use super::output::{BadArgument, columns, print, print_json};
use super::source::{DataArgs, named_value};
use crate::Error;
use crate::experiment::atomic;
use crate::graph::{BoundaryPlan, GraphError, Partition, PartitionSpec, PartitionStats};

/// Arguments of `partition`.
#[derive(ClapArgs)]
pub(super) struct Args {
    #[command(flatten)]
    data: DataArgs,
    /// Number of workers
    #[arg(long, short)]
    workers: usize,
    /// How nodes are assigned to workers
    #[arg(long, short, default_value = "metis", value_parser = PARTITIONERS.map(|(name, _)| name))]
    method: String,
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
    print(&columns(&["", &args.data.dataset], &rows))?;
    Ok(Verdict::Good)
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
    let data = args.data.spec()?.read(&here).map_err(Error::from)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::PartitionMethod;

    #[test]
    fn every_name_that_is_offered_has_a_value() {
        for (name, _) in PARTITIONERS {
            named_value::<PartitionMethod>(name).unwrap();
        }
    }
}
