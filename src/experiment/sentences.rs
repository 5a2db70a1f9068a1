//! What is said of results beside the figures, in sentences.

use super::claims::ClaimSpec;
use super::rows::{Measured, RunRow};
use super::{Tables, alike, noise, resent, resolution, rising};

/// What a reader of the figures should not miss; `smoke` if they are of the size that only shows
/// that everything runs.
pub(super) fn of_results(tables: &Tables, smoke: bool) -> Vec<String> {
    let runs = &tables.runs[..];
    let mut notes = Vec::new();
    // Runs of one cell stand next to each other; of their means, as the report has it.
    let outweighed: Vec<(&str, f64)> = runs
        .chunk_by(|a, b| a.cell == b.cell)
        .filter_map(|runs| {
            let sum = |bytes: fn(&Measured) -> u64| -> u64 {
                let measured = runs.iter().filter_map(|run| run.measured.as_ref());
                measured.map(bytes).sum()
            };
            let (node, gradients) = (
                sum(Measured::node_data_bytes),
                sum(|run| run.parameter_gradient_bytes),
            );
            (0 < node && node < gradients).then(|| (&*runs[0].cell, gradients as f64 / node as f64))
        })
        .collect();
    if let Some((cell, factor)) = outweighed.iter().max_by(|a, b| a.1.total_cmp(&b.1)) {
        let others = match outweighed.len() - 1 {
            0 => String::new(),
            1 => " (and in one other cell)".to_owned(),
            more => format!(" (and in {more} other cells)"),
        };
        notes.push(format!(
            "{cell}: parameter gradients outweigh node data {factor:.1} times{others}; compare node data apart from totals"
        ));
    }
    notes.extend(resent::note(tables));
    notes.extend(diverged(runs));
    notes.extend(noise::note(runs));
    notes.extend(alike::who_learnt_nothing(runs));
    if !smoke {
        notes.extend(rising::note(tables));
    }
    notes
}

/// What to know of claims on these runs. Data sets are names and numbers of test nodes.
pub(super) fn on_claims<'a>(
    claims: &[ClaimSpec],
    runs: &[RunRow],
    sets: impl Iterator<Item = (&'a str, usize)>,
) -> Vec<String> {
    let mut notes = resolution::notes(claims, runs, sets);
    notes.extend(alike::notes_on_claims(claims, runs));
    notes
}

/// Which runs diverged, and since when.
fn diverged(runs: &[RunRow]) -> Option<String> {
    const NAMED: usize = 5;
    let mut named: Vec<String> = runs
        .iter()
        .filter_map(|run| {
            let epoch = run.measured?.diverged_at?;
            Some(format!(
                "{}, seed {}, from epoch {epoch} on",
                run.cell, run.seed
            ))
        })
        .collect();
    let more = named.len().saturating_sub(NAMED);
    named.truncate(NAMED);
    match more {
        0 => {}
        1 => named.push("and one other run".to_owned()),
        more => named.push(format!("and {more} other runs")),
    }
    (!named.is_empty()).then(|| {
        format!(
            "training diverged, and accuracies count as unknown in claims: the loss is not a number in {}",
            named.join("; ")
        )
    })
}
