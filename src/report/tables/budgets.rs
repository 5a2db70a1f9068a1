//! Accuracy at equal budgets of node data: who is ahead when a given number of bytes is spent, and
//! by how much.

use std::collections::BTreeMap;

use super::{Entry, Table, columns};
use crate::experiment::rows::{Sweep, TrafficRow};
use crate::experiment::statistics::{IntervalMethod, Sample, Summary};
use crate::report::format;
use crate::report::series::{Entrant, metric, shared_seeds};
use crate::report::settings;

/// Budgets as shares of what the yardstick sends in its whole run.
const SHARES: [f64; 5] = [0.05, 0.1, 0.25, 0.5, 1.0];

/// Node data sent up to the end of each epoch, by cell and seed.
type Spent<'a> = BTreeMap<(&'a str, u64), BTreeMap<u64, u64>>;

/// Accuracy of each seed.
type BySeed = Vec<(u64, f64)>;

/// What one strategy reaches in one setting: by budget, the accuracy of each seed.
struct Contender<'a> {
    label: &'a str,
    is_reference: bool,
    reached: Vec<Option<BySeed>>,
}

/// All strategies of one setting of a sweep.
struct Contest<'a> {
    setting: &'a Sweep,
    /// Bytes of each budget.
    budgets: Vec<f64>,
    contenders: Vec<Contender<'a>>,
}

/// Two tables: the accuracy of each strategy at each budget, and who is ahead. Nothing where no two
/// strategies of a setting send node data.
///
/// A budget is a share of the node data that the reference sends in its whole run with the same
/// seed (where there is none, the strategy that sends most), over the seeds that all strategies of
/// a setting have. What is reached within it is the test accuracy at the best validation accuracy
/// among the epochs that end within the budget, seed by seed.
pub(crate) fn budgets(cells: &[Entrant], traffic: &[TrafficRow]) -> Option<[Table; 2]> {
    let contests = contests(cells, &spent(traffic));
    if contests.is_empty() {
        return None;
    }
    let metric = metric(cells);
    let reference = settings::reference_name(cells);
    Some([
        matrix(&contests, &metric, reference),
        winners(&contests, &metric, reference),
    ])
}

fn spent(traffic: &[TrafficRow]) -> Spent<'_> {
    let mut spent = Spent::new();
    for row in traffic.iter().filter(|row| row.kind.is_node_data()) {
        let epochs = spent.entry((&row.cell, row.seed)).or_default();
        *epochs.entry(row.epoch).or_default() += row.payload_bytes;
    }
    for epochs in spent.values_mut() {
        let mut sum = 0;
        for bytes in epochs.values_mut() {
            sum += *bytes;
            *bytes = sum;
        }
    }
    spent
}

fn contests<'a>(cells: &'a [Entrant], spent: &Spent) -> Vec<Contest<'a>> {
    let sends = |cell: &&Entrant| cell.node_data().is_some_and(|data| data.mean > 0.0);
    let mut settings = settings::settings(cells.iter().filter(sends));
    settings.retain(|(_, members)| members.len() > 1);
    settings
        .into_iter()
        .filter_map(|(setting, members)| {
            let data = |cell: &&Entrant| cell.node_data().map_or(0.0, |data| data.mean);
            let full = members.iter().find(|cell| cell.is_reference);
            let most = members.iter().max_by(|a, b| data(a).total_cmp(&data(b)))?;
            // Of a seed that some do not have the others would be compared with nobody. Partitions
            // differ between seeds, and what crosses them with them.
            let shared = shared_seeds(members.iter().copied());
            let runs = full.unwrap_or(most).runs.iter();
            let whole: BTreeMap<u64, f64> = runs
                .filter(|(run, _)| shared.contains(&run.seed))
                .map(|(run, measured)| (run.seed, measured.node_data_bytes() as f64))
                .collect();
            let mean = Summary::of(whole.values().copied())?.mean;
            let budgets = SHARES.iter().map(|share| share * mean).collect();
            let contenders = members.iter().map(|cell| Contender {
                label: cell.strategy,
                is_reference: cell.is_reference,
                reached: SHARES
                    .iter()
                    .map(|share| {
                        reached(cell, spent, whole.iter().map(|(&s, all)| (s, share * all)))
                    })
                    .collect(),
            });
            Some(Contest {
                setting,
                contenders: contenders.collect(),
                budgets,
            })
        })
        .collect()
}

/// Of each seed that has a budget, the test accuracy at the best validation accuracy within it;
/// nothing unless every seed has one.
fn reached(
    cell: &Entrant,
    spent: &Spent,
    budgets: impl Iterator<Item = (u64, f64)>,
) -> Option<BySeed> {
    let of_seed = |(seed, budget): (u64, f64)| {
        let bytes = spent.get(&(cell.name(), seed));
        let mut best: Option<(f64, f64)> = None;
        for epoch in cell.epochs_of(seed) {
            // An epoch without a row of traffic sent nothing: what was spent is what was spent
            // before it.
            let so_far = bytes.and_then(|bytes| bytes.range(..=epoch.epoch).next_back());
            let within = so_far.is_none_or(|(_, &bytes)| bytes as f64 <= budget);
            if let (true, Some(validation), Some(test)) =
                (within, epoch.val_accuracy, epoch.test_accuracy)
                // Of equals the first stays, as in all tables.
                && best.is_none_or(|(so_far, _)| validation > so_far)
            {
                best = Some((validation, test));
            }
        }
        best.map(|(_, test)| (seed, test))
    };
    budgets.map(of_seed).collect()
}

fn summary(reached: Option<&BySeed>) -> Option<Summary> {
    Summary::of(reached?.iter().map(|&(_, accuracy)| accuracy))
}

fn matrix(contests: &[Contest], metric: &str, reference: &str) -> Table {
    let mut rows = Vec::new();
    for contest in contests {
        let best: Vec<Option<f64>> = (0..SHARES.len())
            .map(|at| {
                let means = contest
                    .contenders
                    .iter()
                    .filter_map(|contender| summary(contender.reached[at].as_ref()));
                means.map(|sum| sum.mean).max_by(f64::total_cmp)
            })
            .collect();
        for contender in &contest.contenders {
            let mut row = vec![
                Entry::new(contest.setting.to_string()),
                Entry::new(contender.label),
            ];
            row.extend(contender.reached.iter().zip(&best).map(|(reached, best)| {
                summary(reached.as_ref()).map_or(Entry::new("–"), |sum| Entry {
                    text: format::percent_summary(&sum),
                    // The same mean of the same numbers, equal to the last bit.
                    best: Some(sum.mean) == *best,
                })
            }));
            rows.push(row);
        }
    }
    Table {
        name: "budgets",
        caption: format!(
            "Test {metric} within a budget of node data: a share of what {reference} sends in its whole run with the same seed (without \
             it, of what the strategy that sends most does), at the best validation {metric} of the epochs that fit; – where not \
             even the first evaluated epoch of every seed fits. In bold the best of its setting. Strategies that send no node data \
             are left out."
        ),
        columns: columns(&[
            "setting", "strategy", "#5 %", "#10 %", "#25 %", "#50 %", "#100 %",
        ]),
        rows,
    }
}

fn winners(contests: &[Contest], metric: &str, reference: &str) -> Table {
    let mut rows = Vec::new();
    for contest in contests {
        for (at, &budget) in contest.budgets.iter().enumerate() {
            let mut ranked: Vec<(&Contender, Summary, &BySeed)> = contest
                .contenders
                .iter()
                .filter_map(|contender| {
                    let reached = contender.reached[at].as_ref()?;
                    Some((contender, summary(Some(reached))?, reached))
                })
                .collect();
            ranked.sort_by(|a, b| b.1.mean.total_cmp(&a.1.mean));
            let Some((winner, accuracy, mine)) = ranked.first() else {
                continue;
            };
            let (runner, lead) = ranked.get(1).map_or_else(
                || ("–".to_owned(), "alone within it".to_owned()),
                |(runner, _, theirs)| (runner.label.to_owned(), lead(mine, theirs)),
            );
            let full = ranked.iter().find(|(contender, ..)| contender.is_reference);
            rows.push(vec![
                Entry::new(contest.setting.to_string()),
                Entry::new(format!("{:.0} %", SHARES[at] * 100.0)),
                Entry::new(format::bytes(budget)),
                Entry::new(winner.label),
                Entry::new(format::percent_summary(accuracy)),
                Entry::new(runner),
                Entry::new(lead),
                Entry::new(full.map_or("–".to_owned(), |(_, sum, _)| format::percent_summary(sum))),
            ]);
        }
    }
    Table {
        name: "budget-winners",
        caption: "Who is ahead within each budget of node data, and by how many points over the runner-up: mean of the differences \
                  seed by seed, with its 95 % Student-t interval. An interval around 0 says that the two cannot be told apart, and \
                  equal that they are the same with every seed, so that neither is ahead."
            .into(),
        columns: columns(&[
            "setting",
            "#budget",
            "#bytes",
            "ahead",
            &format!("#its {metric}"),
            "runner-up",
            "#points ahead",
            &format!("#{reference}"),
        ]),
        rows,
    }
}

/// The lead in points, paired by seed, with its interval where there are several seeds; `equal`
/// where there is none with any seed.
fn lead(mine: &[(u64, f64)], theirs: &[(u64, f64)]) -> String {
    let differences: Vec<f64> = mine
        .iter()
        .filter_map(|(seed, accuracy)| {
            let (_, other) = theirs.iter().find(|(other, _)| other == seed)?;
            Some((accuracy - other) * 100.0)
        })
        .collect();
    let Some(sample) = Sample::of(&differences, IntervalMethod::StudentT) else {
        return "–".to_owned();
    };
    if differences.iter().all(|difference| *difference == 0.0) {
        return "equal".to_owned();
    }
    // To a tenth of a point; no zero is negative.
    let points = |value: f64| format!("{:.1}", (value * 10.0).round() / 10.0 + 0.0);
    match sample.interval(0.95) {
        Some((low, high)) => format!(
            "{} [{}, {}]",
            points(sample.mean),
            points(low),
            points(high)
        ),
        None => points(sample.mean),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::rows::{EpochRow, Measured, RunRow};
    use crate::net::TrafficKind;
    use crate::report::series;

    /// Two seeds of two epochs; the second epoch is better, and each epoch sends `bytes`.
    fn strategy(
        name: &str,
        bytes: u64,
        accuracy: f64,
    ) -> (Vec<RunRow>, Vec<EpochRow>, Vec<TrafficRow>) {
        let cell = format!("workers=2 {name}");
        let (mut runs, mut epochs, mut traffic) = (vec![], vec![], vec![]);
        for seed in [0, 1] {
            runs.push(RunRow {
                cell: cell.clone(),
                strategy: name.into(),
                sweep: Sweep::default().with("workers", 2.into()),
                seed,
                ..RunRow::finished(Measured {
                    activation_bytes: 2 * bytes,
                    ..Measured::default()
                })
            });
            for epoch in [0, 1] {
                let value = accuracy + 0.1 * epoch as f64 + 0.01 * seed as f64;
                epochs.push(EpochRow {
                    cell: cell.clone(),
                    strategy: name.into(),
                    seed,
                    epoch,
                    val_accuracy: Some(value),
                    test_accuracy: Some(value),
                    ..EpochRow::default()
                });
                for (kind, payload_bytes) in [
                    (TrafficKind::Activation, bytes),
                    (TrafficKind::Control, 9999),
                ] {
                    traffic.push(TrafficRow {
                        cell: cell.as_str().into(),
                        seed,
                        epoch,
                        kind,
                        payload_bytes,
                        ..TrafficRow::default()
                    });
                }
            }
        }
        (runs, epochs, traffic)
    }

    fn tables(strategies: &[(&str, u64, f64)]) -> Option<[Table; 2]> {
        let (mut runs, mut epochs, mut traffic) = (vec![], vec![], vec![]);
        for &(name, bytes, accuracy) in strategies {
            let (r, e, t) = strategy(name, bytes, accuracy);
            runs.extend(r);
            epochs.extend(e);
            traffic.extend(t);
        }
        budgets(&series::cells(&runs, &epochs), &traffic)
    }

    #[test]
    fn a_budget_counts_node_data_only_and_takes_the_epochs_that_fit() {
        let [matrix, winners] = tables(&[("full", 1000, 0.7), ("thrifty", 100, 0.6)]).unwrap();
        let text = |row: usize| {
            let entries = matrix.rows[row].iter().map(|entry| entry.text.as_str());
            entries.collect::<Vec<_>>()
        };
        // 2,000 bytes in all: one epoch of full takes half of them, one of the other a twentieth.
        let (one, two) = ("70.5 ± 0.7 %", "80.5 ± 0.7 %");
        assert_eq!(text(0), ["workers=2", "full", "–", "–", "–", one, two]);
        let (first, both) = ("60.5 ± 0.7 %", "70.5 ± 0.7 %");
        assert_eq!(
            text(1),
            ["workers=2", "thrifty", first, both, both, both, both]
        );
        let ahead: Vec<&str> = winners
            .rows
            .iter()
            .map(|row| row[3].text.as_str())
            .collect();
        assert_eq!(ahead[..3], ["thrifty"; 3]);
        assert_eq!(ahead[4], "full");
        assert_eq!(winners.rows[0][6].text, "alone within it");
        assert_eq!(winners.rows[4][6].text, "10.0 [10.0, 10.0]");
        let [_, winners] = tables(&[("full", 1000, 0.7), ("same", 1000, 0.7)]).unwrap();
        assert!(winners.rows.iter().all(|row| row[6].text == "equal"));
    }

    #[test]
    fn a_budget_is_a_share_of_what_full_sends_with_the_same_seed() {
        let (mut runs, mut epochs, mut traffic) = strategy("full", 1000, 0.7);
        let (r, e, t) = strategy("thrifty", 100, 0.6);
        runs.extend(r);
        epochs.extend(e);
        traffic.extend(t);
        // The second partition has a larger cut.
        for run in runs.iter_mut().filter(|run| run.seed == 1) {
            run.measured.as_mut().unwrap().activation_bytes *= 2;
        }
        for row in traffic.iter_mut().filter(|row| row.seed == 1) {
            row.payload_bytes *= 2;
        }
        let [matrix, _] = budgets(&series::cells(&runs, &epochs), &traffic).unwrap();
        let full: Vec<&str> = matrix.rows[0]
            .iter()
            .map(|entry| entry.text.as_str())
            .collect();
        assert_eq!(full[5..], ["70.5 ± 0.7 %", "80.5 ± 0.7 %"]);
    }

    #[test]
    fn strategies_are_compared_over_the_seeds_that_all_have() {
        let (mut runs, mut epochs, mut traffic) = strategy("full", 1000, 0.7);
        let (r, e, t) = strategy("thrifty", 100, 0.6);
        // A third seed, which only one has, and which would put it ahead.
        let third = |seed: u64| seed == 1;
        runs.extend(r.iter().filter(|run| third(run.seed)).map(|run| RunRow {
            seed: 2,
            ..run.clone()
        }));
        epochs.extend(e.iter().filter(|row| third(row.seed)).map(|row| EpochRow {
            seed: 2,
            test_accuracy: Some(1.0),
            ..row.clone()
        }));
        traffic.extend(
            t.iter()
                .filter(|row| third(row.seed))
                .map(|row| TrafficRow {
                    seed: 2,
                    ..row.clone()
                }),
        );
        runs.extend(r);
        epochs.extend(e);
        traffic.extend(t);
        let [matrix, winners] = budgets(&series::cells(&runs, &epochs), &traffic).unwrap();
        let [expected, ahead] = tables(&[("full", 1000, 0.7), ("thrifty", 100, 0.6)]).unwrap();
        let texts = |table: &Table| -> Vec<Vec<String>> {
            let text = |row: &Vec<Entry>| row.iter().map(|entry| entry.text.clone()).collect();
            table.rows.iter().map(text).collect()
        };
        assert_eq!(texts(&matrix), texts(&expected));
        assert_eq!(texts(&winners), texts(&ahead));
    }

    #[test]
    fn one_strategy_alone_is_no_contest() {
        assert!(tables(&[("full", 1000, 0.7)]).is_none());
    }
}
