//! Claims where seeds are added until they are decided.

use std::collections::{BTreeMap, BTreeSet};

use super::compare::Named;
use super::evidence::Evidence;
use super::{ClaimSpec, Found, judge};
use crate::experiment::rows::{ClaimRow, ClaimVerdict, RunRow};
use crate::experiment::statistics::{Looks, Statistics};

/// The looks that were taken at a claim.
#[derive(Clone, Copy, Debug)]
pub(super) struct Looked {
    /// How many.
    pub count: usize,
    /// The share of the level that they have together.
    pub spent: f64,
    /// The share of the last of them.
    pub share: f64,
}

/// The runs with the seeds of each look.
pub(super) fn at_looks(runs: &[RunRow], looks: Looks) -> Vec<Vec<RunRow>> {
    let within = |count: usize| runs.iter().filter(move |run| run.seed < count as u64);
    let counts = looks.counts().into_iter();
    counts
        .map(|count| within(count).cloned().collect())
        .collect()
}

/// What the runs say of a claim after each of the looks, as far as all its cells have the seeds.
pub(super) fn found(
    claim: &ClaimSpec,
    at_looks: &[Vec<RunRow>],
    (looks, tail): (Looks, f64),
    statistics: &Statistics,
) -> Vec<Found> {
    let mut found = Found {
        expected: claim.expected(),
        evidence: Evidence::NOTHING,
        p_value: None,
        verdict: ClaimVerdict::Inconclusive,
        looked: None,
    };
    let all = at_looks.last().map_or(&[][..], Vec::as_slice);
    let cells = claim.compare.cells(all.iter().map(Named::from));
    let (mut spent, mut after) = (0.0, Vec::new());
    for (look, (runs, seeds)) in at_looks.iter().zip(looks.counts()).enumerate() {
        let has = |cell: &&str| runs.iter().filter(|run| run.cell == **cell).count() == seeds;
        if !cells.iter().all(has) {
            break;
        }
        let share = looks.share(look);
        let (expected, evidence) = claim.evidence(runs, statistics, tail * share);
        spent += share;
        let p_value = evidence.p_value().map(|p| (p / share).min(1.0));
        let clearer = p_value.is_some_and(|p| found.p_value.is_none_or(|least| p < least));
        if clearer {
            found.p_value = p_value;
            found.verdict = evidence.verdict();
        }
        found.looked = Some(Looked {
            count: look + 1,
            spent,
            share,
        });
        // Figures are those of all seeds so far.
        (found.expected, found.evidence) = (expected, evidence);
        after.push(found.clone());
    }
    // Without further seeds it stays as it is.
    after.resize(at_looks.len(), found);
    after
}

/// Cells of the claims that the seeds of a look, counted from 0, leave open.
pub(in crate::experiment) fn open_cells(
    claims: &[ClaimSpec],
    runs: &[RunRow],
    statistics: &Statistics,
    looks: Looks,
    look: usize,
) -> BTreeSet<String> {
    let seeds = looks.counts()[look] as u64;
    let runs: Vec<RunRow> = runs
        .iter()
        .filter(|run| run.seed < seeds)
        .cloned()
        .collect();
    let rows = judge(claims, &runs, statistics);
    // Where runs failed, so that a claim had no such look, more seeds give it no other.
    let looked = Some(look as u64 + 1);
    let open = claims.iter().zip(rows);
    let open = open.filter(|(_, row)| is_open(row) && row.looks == looked);
    let cells = open.flat_map(|(claim, _)| claim.compare.cells(runs.iter().map(Named::from)));
    cells.map(str::to_owned).collect()
}

/// Whether more seeds may decide it: there is something to measure.
fn is_open(row: &ClaimRow) -> bool {
    row.verdict == ClaimVerdict::Inconclusive && row.seeds > 0
}

/// The number of seeds that each cell has by the rule.
pub(in crate::experiment) fn seeds_by_rule(
    claims: &[ClaimSpec],
    runs: &[RunRow],
    statistics: &Statistics,
    looks: Looks,
) -> BTreeMap<String, usize> {
    let cells = runs.iter().map(|run| (run.cell.clone(), looks.first));
    let mut seeds: BTreeMap<String, usize> = cells.collect();
    for (look, &count) in looks.counts().iter().enumerate().skip(1) {
        for cell in open_cells(claims, runs, statistics, looks, look - 1) {
            seeds.insert(cell, count);
        }
    }
    seeds
}

/// How many seeds each cell took, and why no more.
pub(in crate::experiment) fn seeds_taken(
    claims: &[ClaimSpec],
    runs: &[RunRow],
    statistics: &Statistics,
    looks: Looks,
) -> String {
    let rows = judge(claims, runs, statistics);
    let about = |claim: &ClaimSpec| claim.compare.cells(runs.iter().map(Named::from));
    let mut reasons: BTreeMap<(usize, String), Vec<String>> = BTreeMap::new();
    for (cell, seeds) in seeds_by_rule(claims, runs, statistics, looks) {
        let own = claims.iter().zip(&rows);
        let own: Vec<_> = own
            .filter(|(claim, _)| about(claim).contains(cell.as_str()))
            .map(|(_, row)| row)
            .collect();
        let open: Vec<&str> = (own.iter())
            .filter(|row| is_open(row))
            .map(|row| row.id.as_str())
            .collect();
        let why = if own.is_empty() {
            "in no claim".to_owned()
        } else if open.is_empty() {
            "its claims decided".to_owned()
        } else {
            format!("the most; open: {}", open.join(", "))
        };
        reasons.entry((seeds, why)).or_default().push(cell);
    }
    let told = reasons
        .into_iter()
        .map(|((seeds, why), cells)| format!("{seeds} seeds of {} ({why})", cells.join(", ")));
    let told: Vec<String> = told.collect();
    let counts: Vec<String> = looks.counts().iter().map(ToString::to_string).collect();
    format!(
        "seeds until decided, with looks after {}: {}",
        counts.join(", "),
        told.join("; ")
    )
}
