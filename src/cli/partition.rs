//! `grapevine partition`: how good a partition is, before training on it, and the partition as a
//! file, or the divided graph as a folder of shards.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use serde_json::Value;

use super::Verdict;
use super::list::PARTITIONERS;
use super::output::{BadArgument, columns, print, print_json, tell};
use super::source::{DataArgs, asked_split, named_value};
use crate::Error;
use crate::atomic;
use crate::experiment::can_be_made;
use crate::graph::{
    BoundaryPlan, DatasetSpec, Divided, GraphError, Known, Partition, PartitionSpec,
    PartitionStats, RawDataset, Room, Sharding,
};
use crate::memory;

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
    /// For --method given: a file with one worker number per line, a `.npy` array of them, or the
    /// configuration (`.json`) that DGL writes
    #[arg(long)]
    file: Option<PathBuf>,
    /// For --method metis: what is kept small [default: cut]
    #[arg(long, value_parser = ["cut", "volume"])]
    objective: Option<String>,
    /// For --method dirichlet: the smaller, the more workers differ in their classes
    #[arg(long)]
    concentration: Option<f64>,
    /// Seed of the partitioner
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Write the partition to a file, one worker number per line, as `method = "given"` reads it;
    /// with --shards the folder for these
    #[arg(long, value_name = "PATH")]
    out: Option<PathBuf>,
    /// Write the divided graph itself, a folder for each worker, as `[dataset] shards` reads it.
    /// With --memory, what is larger than memory is sorted there, and that much is held
    #[arg(long, requires = "out")]
    shards: bool,
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

/// What the flags ask for.
fn asked(args: &Args) -> anyhow::Result<PartitionSpec> {
    let spec = PartitionSpec {
        method: named_value(&args.method)?,
        workers: args.workers,
        file: args.file.clone(),
        objective: args.objective.as_deref().map(named_value).transpose()?,
        concentration: args.concentration,
        ..PartitionSpec::default()
    };
    match spec.check() {
        Ok(()) => Ok(spec),
        Err((key, what)) => {
            let flag = flag(key).unwrap_or("--method");
            Err(BadArgument { flag, what }.into())
        }
    }
}

/// The flag for a key of `[partition]`.
fn flag(key: &str) -> Option<&'static str> {
    Some(match key {
        "workers" => "--workers",
        "method" => "--method",
        "file" => "--file",
        "objective" => "--objective",
        "concentration" => "--concentration",
        _ => return None,
    })
}

/// What is wrong with a flag, where a partition cannot be by it.
fn refused(error: GraphError) -> anyhow::Error {
    if let GraphError::Key { key, what } = &error
        && let Some(flag) = key.strip_prefix("partition.").and_then(flag)
    {
        let what = what.clone();
        return BadArgument { flag, what }.into();
    }
    Error::from(error).into()
}

fn statistics(args: &Args) -> anyhow::Result<PartitionStats> {
    let here = PathBuf::new();
    let asked = asked(args)?;
    if let (true, Some(folder)) = (args.shards, &args.out) {
        can_be_made(folder)?;
    }
    let spec = args.data.spec()?;
    let data = match (args.shards, &args.out, memory::by_hand()) {
        (true, Some(folder), Some(bytes)) => {
            let room = Room::new(folder, bytes).map_err(Error::from)?;
            spec.read_within(&here, &room)
        }
        _ => spec.read(&here),
    };
    let data = data.map_err(Error::from)?;
    // Of shards alone the sets are written, but what is asked for is to be possible.
    asked_split(&spec, &data, args.seed)?;
    let known = Known {
        train: &[],
        labels: Some(&data.labels),
    };
    let partition = asked
        .partition(&data.graph, known, &here, args.seed)
        .map_err(refused)?;
    let boundary = BoundaryPlan::new(&data.graph, &partition);
    let stats = PartitionStats::new(&data.graph, &partition, &boundary);
    let out = args.out.as_deref();
    if let (true, Some(folder)) = (args.shards, out) {
        let divided = Divided {
            method: asked.method,
            seed: args.seed,
            objective: asked.objective,
            concentration: asked.concentration,
        };
        shards(&data, &spec, (&partition, boundary), divided, folder)?;
    } else if let Some(path) = out {
        write(&partition, path).map_err(|error| BadArgument {
            flag: "--out",
            what: format!(
                "cannot write {}: {error}; give another path",
                path.display()
            ),
        })?;
    }
    Ok(stats)
}

/// Writes a divided graph as shards, with the split of the section.
fn shards(
    data: &RawDataset,
    spec: &DatasetSpec,
    (partition, boundary): (&Partition, BoundaryPlan),
    divided: Divided,
    folder: &Path,
) -> Result<(), Error> {
    let dataset = data.split(&spec.split, divided.seed)?;
    let dataset = dataset.measured_by(data.metric)?;
    let sharding = Sharding {
        boundary: &boundary.with_training(&dataset.split.train),
        dataset: &dataset,
        spec,
        partition,
        divided,
    };
    let bytes = sharding.write(folder)?;
    let (parts, folder) = (partition.parts, folder.display());
    tell(&format!(
        "wrote {parts} shards to {folder} ({:.1} MB)\n",
        bytes as f64 / 1e6
    ));
    Ok(())
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
