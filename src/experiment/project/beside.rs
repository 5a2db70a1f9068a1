//! Projections beside what was trained.

use super::Projection;
use crate::experiment::rows::{BesideRow, Measured, RunRow};
use crate::experiment::statistics::Summary;
use crate::graph::DataSummary;

/// A measure: its name and its value.
type Measure = (&'static str, fn(&Measured) -> f64);

/// What is held against each other.
const MEASURES: [Measure; 6] = [
    (BYTES, |run| run.payload_bytes as f64),
    ("wire_bytes", |run| run.wire_bytes as f64),
    ("node_data_bytes", |run| run.node_data_bytes() as f64),
    ("messages", |run| run.messages as f64),
    (SECONDS, |run| run.simulated_seconds),
    ("compute_seconds", |run| run.compute_seconds),
];
/// What is held against each other where each worker was a process: its memory, which has the
/// program in it, and no times, which are those of real clocks there.
const OF_PROCESSES: [Measure; 5] = [
    MEASURES[0],
    MEASURES[1],
    MEASURES[2],
    MEASURES[3],
    (PEAK, |run| run.peak_memory_bytes as f64),
];
const BYTES: &str = "payload_bytes";
const SECONDS: &str = "simulated_seconds";
const PEAK: &str = "peak_memory_bytes";

/// Runs that stand beside projections.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Beside {
    /// One row for each measure of each cell that is on both sides.
    pub rows: Vec<BesideRow>,
    /// The runs of these cells.
    pub runs: Vec<RunRow>,
}

/// Joins projections with runs, by the strategy's label and what the sweep gives a cell; runs stand
/// for the mean over their seeds. `data` says what they were trained on, as far as that is known.
///
/// # Errors
/// If no cell is on both sides, or one has another graph, model or setting there.
pub(crate) fn beside(
    projections: &[Projection],
    runs: &[RunRow],
    data: &[DataSummary],
) -> Result<Beside, String> {
    let mut found = Beside::default();
    for projection in projections {
        let same = |run: &&RunRow| {
            run.is_ok() && run.strategy == projection.strategy && run.sweep == projection.run.sweep
        };
        let trained: Vec<&RunRow> = runs.iter().filter(same).collect();
        let Some(first) = trained.first() else {
            continue;
        };
        // What columns say of a setting; the rest is the file's own.
        let setting = |run: &RunRow| {
            format!(
                "{} of {} × {}, {} workers on {}, {} epochs, {} parts",
                run.model,
                run.layers,
                run.hidden,
                run.workers,
                run.network,
                run.epochs,
                run.partitioner
            )
        };
        let (there, here) = (setting(first), setting(&projection.run));
        if there != here {
            return Err(format!(
                "is of another setting: cell \"{}\" was trained with {there}, and is projected with {here}; give the folder of a \
                 run of the same file",
                first.cell
            ));
        }
        let set = data.iter().find(|set| set.name == first.dataset);
        let there = set.map(|set| [set.nodes, set.features, set.classes]);
        if let Some(there) = there.filter(|there| *there != projection.sizes) {
            let of = |[nodes, features, classes]: [usize; 3]| {
                format!("{nodes} nodes, {features} features and {classes} classes")
            };
            return Err(format!(
                "is of another graph: cell \"{}\" was trained on one of {}, and is projected on one of {}",
                first.cell,
                of(there),
                of(projection.sizes)
            ));
        }
        found.runs.extend(trained.iter().copied().cloned());
        let Some(projected) = projection.run.measured else {
            continue;
        };
        let measures = match first.engine.as_str() {
            "mpi" => &OF_PROCESSES[..],
            _ => &MEASURES[..],
        };
        for &(measure, of) in measures {
            let values = trained
                .iter()
                .filter_map(|run| run.measured.as_ref().map(of));
            let Some(trained) = Summary::of(values).map(|values| values.mean) else {
                continue;
            };
            let projected = match measure {
                // A process holds the most in one or the other.
                PEAK => of(&projected).max(projection.evaluation_memory_bytes.unwrap_or(0) as f64),
                _ => of(&projected),
            };
            // Of nothing, nothing else is a share; and nothing is 0 that a plan does not say.
            let known = measure != PEAK || projection.memory_bytes.is_some();
            let error = (trained > 0.0 && known).then(|| projected / trained - 1.0);
            found.rows.push(BesideRow {
                cell: projection.cell.clone(),
                strategy: projection.strategy.clone(),
                measure: measure.to_owned(),
                trained,
                projected,
                error,
            });
        }
    }
    if found.rows.is_empty() {
        return Err(
            "has no run of a cell that is projected here: strategy labels and sweep values have to be the same".to_owned(),
        );
    }
    Ok(found)
}

impl Beside {
    /// The largest errors of a strategy's bytes and time, signed, wherever it was trained.
    pub(crate) fn worst(&self, strategy: &str) -> [Option<f64>; 2] {
        [BYTES, SECONDS].map(|measure| {
            let rows = self.rows.iter();
            let mine = rows.filter(|row| row.strategy == strategy && row.measure == measure);
            mine.filter_map(|row| row.error)
                .max_by(|a, b| a.abs().total_cmp(&b.abs()))
        })
    }
}
