//! `grapevine project`: what an experiment would send, without training it.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::output::{BadArgument, BadFolder, columns, print, print_json};
use super::progress::Projecting;
use super::{ExperimentArgs, Verdict, read_experiment};
use crate::experiment::rows::ProjectionRow;
use crate::experiment::{
    Beside, Cell, Notes, Preparation, Projection, Tables, Verdicts, base_of, beside,
    free_for_projection, notes, project, verdicts, write_projection,
};
use crate::graph::DataSummary;
use crate::net::{AllReduceChoice, TrafficKind};
use crate::report::format::{bytes, seconds, upper, with_repartition};
use crate::report::{self, Projected};
use crate::strategies::Registry;

/// Arguments of `project`.
#[derive(ClapArgs)]
pub(super) struct Args {
    #[command(flatten)]
    experiment: ExperimentArgs,
    /// Folder for its tables, figures and page, projection.html [default: none is written]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Result folder of a `run` of the same file, in a size that can be trained, to be held against
    /// it
    #[arg(long, value_name = "DIR")]
    beside: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

pub(super) fn run(args: &Args, registry: &Registry) -> anyhow::Result<Verdict> {
    let experiment = read_experiment(&args.experiment, registry)?;
    if args.json && args.beside.is_some() {
        let what = "is not part of the JSON document; leave out one of the two, or read beside.csv of --out";
        return Err(BadArgument {
            flag: "--beside",
            what: what.to_owned(),
        }
        .into());
    }
    if let Some(folder) = &args.out {
        free_for_projection(folder, &experiment.name)?;
    }
    let trained = args.beside.as_deref().map(|folder| {
        let runs = Tables::read_runs(folder).map_err(|error| BadFolder::of(folder, error))?;
        let manifest = BadFolder::or_manifest(folder)?;
        let data = serde_json::from_value::<Vec<DataSummary>>(manifest["data_sets"].clone());
        // Manifests of earlier versions say nothing of data.
        Ok::<_, BadFolder>((folder, runs, data.unwrap_or_default()))
    });
    // Before what takes a while.
    let trained = trained.transpose()?;
    let progress = Projecting::new(args.quiet);
    let preparation = Preparation::new(registry, base_of(&args.experiment.file));
    let mut preparation = preparation.for_plans();
    preparation.note = Box::new(|text| progress.note(text));
    let skipped = preparation.present(&experiment)?.1;
    if let Some(workers) = experiment.cells().iter().find_map(slow) {
        progress.note(&format!(
            "{workers} workers, which are no power of two, end a sum at different times, so that each of their messages is emulated by \
             itself, which can take minutes; `network.all_reduce = \"ring\"` takes seconds"
        ));
    }
    let projections = project(&experiment, &mut preparation, |done| progress.tell(done));
    progress.end();
    let projections = projections?;
    let beside = trained.map(|(folder, runs, data)| {
        let what = |what| BadArgument {
            flag: "--beside",
            what: format!("{} {what}", folder.display()),
        };
        beside(&projections, &runs, &data).map_err(what)
    });
    let beside = beside.transpose()?;
    let verdicts = verdicts(&experiment, &projections);
    let notes = notes(&experiment, &projections, &verdicts, skipped);
    // First: what cannot be written is not lost then.
    if args.json {
        print_json(&projections)?;
    } else {
        print(&text(&projections, &verdicts, &notes, beside.as_ref()))?;
    }
    if let Some(folder) = &args.out {
        let row = |projection: &Projection| projection.row(&experiment.name);
        let rows: Vec<ProjectionRow> = projections.iter().map(row).collect();
        let errors = beside.as_ref().map_or(&[][..], |beside| &beside.rows[..]);
        write_projection(folder, &rows, errors).map_err(crate::Error::from)?;
        report::build_projection(
            folder,
            &Projected {
                experiment: &experiment,
                projections: &projections,
                verdicts: &verdicts,
                notes: &notes,
                beside: beside.as_ref(),
                command: std::env::args().collect(),
            },
        )?;
    }
    Ok(Verdict::Good)
}

/// The workers of a cell of a graph in numbers that do not stand for each other, if they are many.
fn slow(cell: &Cell) -> Option<usize> {
    let settings = &cell.settings;
    let workers = settings.partition.workers;
    let differ = !workers.is_power_of_two() && settings.network.all_reduce != AllReduceChoice::Ring;
    (settings.dataset.counts.is_some() && differ && workers > MANY).then_some(workers)
}

/// Fewer workers play all of their messages in seconds.
const MANY: usize = 64;

/// What a person wants to see first.
fn text(
    projections: &[Projection],
    verdicts: &Verdicts,
    notes: &Notes,
    beside: Option<&Beside>,
) -> String {
    let mut shown = COLUMNS.to_vec();
    // Of fitted cuts and published sizes, and of what was trained alone.
    if projections.iter().any(|cell| cell.between.is_some()) {
        shown.push(("between", between));
    }
    let mut header: Vec<&str> = shown.iter().map(|(name, _)| *name).collect();
    let trained = beside.is_some() || projections.iter().any(|cell| cell.validated.is_some());
    header.extend(trained.then_some("bytes and time where trained"));
    let row = |cell: &Projection| {
        let mut row: Vec<String> = shown.iter().map(|(_, of)| of(cell)).collect();
        row.extend(trained.then(|| report::where_trained(cell, beside)));
        row
    };
    let rows: Vec<Vec<String>> = projections.iter().map(row).collect();
    let mut text = columns(&header, &rows);
    for claim in &verdicts.claims {
        text.push_str(&format!(
            "{}, as projected: {} — {}; expected {}, found {}\n",
            claim.verdict,
            claim.id,
            claim.statement,
            claim.expected,
            report::measured(claim)
        ));
    }
    for note in notes.limits.iter().chain(&notes.assumed) {
        text.push_str(&format!("note: {note}\n"));
    }
    text
}

/// A column: its name and what it says of a cell.
type Column = (&'static str, fn(&Projection) -> String);

const COLUMNS: [Column; 10] = [
    ("cell", |cell| cell.cell.clone()),
    ("epochs", |cell| cell.epochs.to_string()),
    ("messages", |cell| upper(cell, cell.messages.to_string())),
    ("node data", node_data),
    ("gradients", |cell| {
        bytes(cell.payload_of(is_gradient) as f64)
    }),
    ("other", |cell| {
        let told = cell.payload_of(|kind| kind.is_node_data() || is_gradient(kind)) + moved(cell);
        bytes((cell.payload_bytes - told) as f64)
    }),
    ("on the wire", |cell| {
        upper(cell, bytes(cell.wire_bytes as f64))
    }),
    ("network time", |cell| {
        upper(cell, seconds(cell.communication_seconds))
    }),
    ("time", |cell| upper(cell, seconds(cell.simulated_seconds))),
    ("memory", memory),
];

fn is_gradient(kind: TrafficKind) -> bool {
    kind == TrafficKind::ParameterGradient
}

/// Bytes of graph and features that repartitioning moves.
pub(super) fn moved(cell: &Projection) -> u64 {
    cell.payload_of(|kind| kind == TrafficKind::Repartition)
}

/// Node data, and beside them what repartitioning moves.
pub(super) fn node_data(cell: &Projection) -> String {
    let node_data = bytes(cell.payload_of(TrafficKind::is_node_data) as f64);
    with_repartition(upper(cell, node_data), moved(cell) as f64)
}

/// The ends of bytes and time, where there are two.
fn between(cell: &Projection) -> String {
    cell.between.map_or(String::new(), |ends| {
        let (few, many) = ends.payload_bytes;
        let (short, long) = ends.simulated_seconds;
        let [few, many] = [few, many].map(|end| bytes(end as f64));
        format!("{few} and {many}, {} and {}", seconds(short), seconds(long))
    })
}

/// What the worker that needs most holds, and whether that is too much.
pub(super) fn memory(cell: &Projection) -> String {
    let Some(needs) = cell.memory_bytes else {
        return "?".to_owned();
    };
    let needed = bytes(needs as f64);
    let training = match (cell.fits, cell.device_memory_bytes) {
        (Some(false), Some(there)) => format!("{needed}, more than {}", bytes(there as f64)),
        (None, Some(there)) => {
            let most = cell.between.and_then(|ends| ends.memory_bytes);
            most.map_or(needed.clone(), |(least, most)| {
                let ends = [least, most, there].map(|size| bytes(size as f64));
                format!("{} to {} of {}", ends[0], ends[1], ends[2])
            })
        }
        _ => needed,
    };
    match cell.evaluation_memory_bytes {
        Some(more) if more > needs => format!("{training}; evaluating {}", bytes(more as f64)),
        _ => training,
    }
}
