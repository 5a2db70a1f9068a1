//! The invariants of a result folder: what follows from something else in the tables must agree
//! with it.
//!
//! Rows of finished runs are held to everything; of a failed run only its row is checked. Counts
//! must agree to the byte, times to rounding (one part in 10⁹).

mod manifest;
mod plan;
mod rules;
mod timeline;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::claims::{ClaimSpec, judge};
use super::rows::{
    ClaimRow, ColumnKind, ColumnSpec, EpochRow, OfRun, Row, RunKey, RunRow, TrafficRow, Values,
};
use super::statistics::Statistics;
use super::tables;

pub use manifest::verify_manifest;
pub use plan::verify_plan;
pub use timeline::verify_timeline;

/// One broken invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// The table: `runs`, `epochs`, `traffic`, `claims` or `timeline`; or `manifest`.
    pub table: &'static str,
    /// The row of the table, counted from 0; `None` for what concerns no single row.
    pub row: Option<usize>,
    /// What was found and what was expected.
    pub what: String,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.row {
            Some(row) => write!(f, "{}, row {row}: {}", self.table, self.what),
            None => write!(f, "{}: {}", self.table, self.what),
        }
    }
}

/// Rows with their places in the table, by the run they belong to.
type ByRun<'a, R> = BTreeMap<RunKey<'a>, Vec<(usize, &'a R)>>;

fn by_run<R: OfRun>(rows: &[R]) -> ByRun<'_, R> {
    let mut by_run = ByRun::new();
    for (place, row) in rows.iter().enumerate() {
        by_run.entry(row.key()).or_default().push((place, row));
    }
    by_run
}

/// Everything that does not hold, in the order of the tables; empty if the tables are sound.
///
/// `claims` are the experiment's, and how they are judged, to judge them again; none if it did not
/// finish, so that not all its runs and verdicts are there.
pub fn verify(
    runs: &[RunRow],
    epochs: &[EpochRow],
    traffic: &[TrafficRow],
    claim_rows: &[ClaimRow],
    claims: Option<(&[ClaimSpec], &Statistics)>,
) -> Vec<Breach> {
    let mut checker = Checker::default();
    let by_key = checker.grid(
        runs,
        claims.is_some_and(|(_, statistics)| statistics.looks.is_none()),
    );
    let (epochs_of, traffic_of) = (by_run(epochs), by_run(traffic));
    checker.known(&epochs_of, &by_key);
    checker.known(&traffic_of, &by_key);
    for (row, run) in runs.iter().enumerate() {
        checker.ensure::<RunRow>(run.is_ok() == (run.status == RunRow::OK), row, || {
            let what = if run.is_ok() { "is" } else { "is not" };
            format!(
                "status is `{}`, but what was to be measured {what} there",
                run.status
            )
        });
        let Some(measured) = &run.measured else {
            continue;
        };
        let epochs = epochs_of.get(&run.key()).map_or(&[][..], Vec::as_slice);
        let traffic = traffic_of.get(&run.key()).map_or(&[][..], Vec::as_slice);
        checker.run(row, run, measured);
        checker.epochs(row, run, epochs);
        checker.best(row, measured, epochs);
        checker.traffic(row, run, measured, traffic);
        checker.cumulative(epochs, traffic);
    }
    let judged = claims.map(|(claims, statistics)| judge(claims, runs, statistics));
    checker.claims(claim_rows, judged.as_deref());
    checker
        .breaches
        .sort_by_key(|breach| (order(breach.table), breach.row));
    checker.breaches
}

fn order(table: &str) -> usize {
    let mut all = tables::ALL.into_iter();
    all.position(|name| name == table).unwrap_or_default()
}

#[derive(Default)]
struct Checker {
    breaches: Vec<Breach>,
}

impl Checker {
    fn breach<R: Row>(&mut self, row: impl Into<Option<usize>>, what: String) {
        self.breaches.push(Breach {
            table: R::TABLE,
            row: row.into(),
            what,
        });
    }

    /// Notes a breach unless `holds`.
    fn ensure<R: Row>(&mut self, holds: bool, row: usize, what: impl FnOnce() -> String) {
        if !holds {
            self.breach::<R>(row, what());
        }
    }

    fn equal<R: Row, T: Copy + PartialEq + fmt::Display>(
        &mut self,
        row: usize,
        name: &str,
        found: T,
        of: &str,
        expected: T,
    ) {
        self.ensure::<R>(found == expected, row, || {
            format!("{name} is {found}, but {of} is {expected}")
        });
    }

    /// One row per cell and seed, and every cell with the same seeds.
    fn grid<'a>(&mut self, runs: &'a [RunRow], finished: bool) -> BTreeMap<RunKey<'a>, usize> {
        let mut by_key = BTreeMap::new();
        let mut seeds = BTreeSet::new();
        for (row, run) in runs.iter().enumerate() {
            seeds.insert(run.seed);
            if let Some(first) = by_key.insert(run.key(), row) {
                self.breach::<RunRow>(
                    row,
                    format!(
                        "cell `{}` with seed {} is in row {first} too",
                        run.cell, run.seed
                    ),
                );
            }
        }
        let cells: BTreeSet<&str> = by_key.keys().map(|key| key.0).collect();
        // An experiment that was stopped lacks seeds.
        for cell in cells.into_iter().filter(|_| finished) {
            for seed in seeds
                .iter()
                .filter(|&&seed| !by_key.contains_key(&(cell, seed)))
            {
                self.breach::<RunRow>(
                    None,
                    format!("cell `{cell}` has no row for seed {seed}, which other cells have"),
                );
            }
        }
        by_key
    }

    /// Every row belongs to a run.
    fn known<R: OfRun>(&mut self, rows: &ByRun<'_, R>, runs: &BTreeMap<RunKey<'_>, usize>) {
        for ((cell, seed), rows) in rows.iter().filter(|(key, _)| !runs.contains_key(*key)) {
            for (row, _) in rows {
                let what = format!("cell `{cell}` with seed {seed} is not in the table of runs");
                self.breach::<R>(*row, what);
            }
        }
    }

    fn share<R: Row>(&mut self, row: usize, name: &str, value: Option<f64>) {
        self.ensure::<R>(
            value.is_none_or(|value| (0.0..=1.0).contains(&value)),
            row,
            || format!("{name} is {}, not in 0 to 1", value.unwrap_or_default()),
        );
    }

    /// Ids are unique, and judging again gives the same rows.
    fn claims(&mut self, rows: &[ClaimRow], judged: Option<&[ClaimRow]>) {
        for (row, claim) in rows.iter().enumerate() {
            self.ensure::<ClaimRow>(
                rows[..row].iter().all(|other| other.id != claim.id),
                row,
                || format!("claim `{}` has an earlier row", claim.id),
            );
        }
        let Some(judged) = judged else {
            return;
        };
        for (row, found) in rows.iter().enumerate() {
            self.ensure::<ClaimRow>(judged.iter().any(|claim| claim.id == found.id), row, || {
                format!("the experiment makes no claim `{}`", found.id)
            });
        }

        for again in judged {
            let Some((row, found)) = rows.iter().enumerate().find(|(_, row)| row.id == again.id)
            else {
                self.breach::<ClaimRow>(None, format!("claim `{}` has no row", again.id));
                continue;
            };
            let entries = |row: &ClaimRow| ClaimRow::to_columns(std::slice::from_ref(row));
            let entries = entries(found).into_iter().zip(entries(again));
            for (&ColumnSpec { name, kind, .. }, (one, other)) in
                ClaimRow::COLUMNS.iter().zip(entries)
            {
                let same = match (found.number(name), again.number(name)) {
                    (Some(a), Some(b)) => no_more(a, b) && no_more(b, a),
                    _ => one == other,
                };
                self.ensure::<ClaimRow>(same, row, || {
                    let show = |entry: &Values| entry.text(0).unwrap_or_else(|| "null".to_owned());
                    let who = match kind {
                        ColumnKind::Text => format!("the {name} of the claim and its runs is"),
                        ColumnKind::Count | ColumnKind::Real => "the runs give".to_owned(),
                    };
                    format!("{name} is {}, but {who} {}", show(&one), show(&other))
                });
            }
        }
    }
}

/// Whether a sum of many times is no more than another, but for rounding.
fn no_more(value: f64, limit: f64) -> bool {
    // Below a thousandth the slack stays as it is, for a share of nothing would forgive no
    // rounding.
    value <= limit + 1e-9 * limit.abs().max(1e-3)
}

#[cfg(test)]
mod tests;
