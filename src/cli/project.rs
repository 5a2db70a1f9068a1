//! `grapevine project`: what an experiment would send, without training it.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::output::{columns, print, print_json};
use super::progress::Projecting;
use super::{ExperimentArgs, Verdict, read_experiment};
use crate::experiment::rows::ProjectionRow;
use crate::experiment::{Preparation, Projection, base_of, project, write_projection};
use crate::net::TrafficKind;
use crate::report::format::{bytes, seconds};
use crate::strategies::Registry;

/// Arguments of `project`.
#[derive(ClapArgs)]
pub(super) struct Args {
    #[command(flatten)]
    experiment: ExperimentArgs,
    /// Folder for the table of it, projection.parquet and .csv [default: none is written]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

pub(super) fn run(args: &Args, registry: &Registry) -> anyhow::Result<Verdict> {
    let experiment = read_experiment(&args.experiment, registry)?;
    let progress = Projecting::new(args.quiet);
    let preparation = Preparation::new(registry, base_of(&args.experiment.file));
    let mut preparation = preparation.for_plans().telling(|text| progress.note(text));
    let projections = project(&experiment, &mut preparation, |done| progress.tell(done));
    progress.end();
    let projections = projections?;
    if let Some(folder) = &args.out {
        let row = |projection: &Projection| projection.row(&experiment.name);
        let rows: Vec<ProjectionRow> = projections.iter().map(row).collect();
        write_projection(folder, &rows).map_err(crate::Error::from)?;
    }
    if args.json {
        print_json(&projections)?;
        return Ok(Verdict::Good);
    }
    let rows: Vec<Vec<String>> = projections
        .iter()
        .map(|cell| {
            let of = |wanted: fn(TrafficKind) -> bool| -> u64 {
                let kinds = cell.bytes_by_kind.iter();
                kinds
                    .filter(|(kind, _)| wanted(**kind))
                    .map(|(_, bytes)| bytes)
                    .sum()
            };
            let node = of(TrafficKind::is_node_data);
            let gradients = of(|kind| kind == TrafficKind::ParameterGradient);
            let most = if cell.exact { "" } else { "≤ " };
            let upper = |text: String| format!("{most}{text}");
            vec![
                cell.cell.clone(),
                cell.epochs.to_string(),
                upper(cell.messages.to_string()),
                upper(bytes(node as f64)),
                bytes(gradients as f64),
                bytes((cell.payload_bytes - node - gradients) as f64),
                upper(bytes(cell.wire_bytes as f64)),
                upper(seconds(cell.communication_seconds)),
                upper(seconds(cell.simulated_seconds)),
                memory(cell),
                between(cell),
            ]
        })
        .collect();
    let header = [
        "cell",
        "epochs",
        "messages",
        "node data",
        "gradients",
        "other",
        "on the wire",
        "network time",
        "time",
        "memory",
        "between",
    ];
    // The last column is of fitted cuts alone.
    let shown = header.len() - usize::from(projections.iter().all(|cell| cell.between.is_none()));
    let rows: Vec<Vec<String>> = (rows.into_iter())
        .map(|row| row.into_iter().take(shown).collect())
        .collect();
    let mut text = columns(&header[..shown], &rows);
    if projections.iter().any(|cell| !cell.exact) {
        text.push_str(
            "note: ≤ is the most it can be; what is sent depends on how the training goes\n",
        );
    }
    let mut assumed: Vec<&str> = (projections.iter())
        .filter_map(|cell| cell.assumed.as_deref())
        .collect();
    assumed.dedup();
    for graph in &assumed {
        text.push_str(&format!("note: {graph}\n"));
    }
    // Expected values are those of no single partition, so that seeds do not matter.
    if !assumed.is_empty() {
        print(&text)?;
        return Ok(Verdict::Good);
    }
    if let [first, _, ..] = experiment.seeds[..] {
        let seeds = experiment.seeds.len();
        text.push_str(&format!(
            "note: with seed {first} only, the first of {seeds}; other seeds may cut the graph in other ways\n"
        ));
    }
    print(&text)?;
    Ok(Verdict::Good)
}

/// The ends of bytes and time, where the cut was fitted.
fn between(cell: &Projection) -> String {
    cell.between.map_or(String::new(), |ends| {
        let (few, many) = ends.payload_bytes;
        let (short, long) = ends.simulated_seconds;
        let [few, many] = [few, many].map(|end| bytes(end as f64));
        format!("{few} and {many}, {} and {}", seconds(short), seconds(long))
    })
}

/// What the worker that needs most holds, and whether that is too much.
fn memory(cell: &Projection) -> String {
    let Some(needs) = cell.memory_bytes else {
        return "?".to_owned();
    };
    let needed = bytes(needs as f64);
    match (cell.fits, cell.device_memory_bytes) {
        (Some(false), Some(there)) => format!("{needed}, more than {}", bytes(there as f64)),
        _ => needed,
    }
}
