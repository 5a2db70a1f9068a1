//! Which strategy for which setting: time and accuracy of all strategies in all of them, against
//! exact training.

use super::multiples::left_out;
use super::seeds;
use crate::experiment::rows::Sweep;
use crate::report::format;
use crate::report::plot::{Figure, Heat, Panel, Tint};
use crate::report::series::{Entrant, metric};
use crate::report::settings::{self, Setting};

/// More columns are not shown; with more than so many, panels stand one below the other.
const MOST: usize = 24;
const BESIDE: usize = 12;
/// The scales of colours end here, so that a few extremes do not make all the rest look alike: a
/// factor, and points.
const FACTOR: f64 = 10.0;
const POINTS: f64 = 10.0;

/// Time, and accuracy: strategies are rows and settings columns. `None` without two settings and
/// two strategies.
pub(super) fn figure(cells: &[Entrant]) -> Option<Figure> {
    let mut settings = settings::settings(cells);
    let strategies = settings::strategies(cells);
    let yardstick = settings::yardstick(cells)?;
    if settings.len() < 2 || strategies.len() < 2 {
        return None;
    }
    let names: Vec<String> = settings.iter().map(|(name, _)| name.to_string()).collect();
    let note = left_out(&names, MOST);
    let common = settings::common(&settings);
    settings.truncate(MOST);
    let matrix = Matrix {
        settings,
        common,
        strategies,
        yardstick,
    };
    let (time, accuracy) = (matrix.time(), matrix.accuracy());
    let metric = metric(cells);
    let headings = [
        format!("(a) time to finish, over that of {yardstick}"),
        format!("(b) test {metric} minus that of {yardstick}, points"),
    ];
    let panels = headings.into_iter().zip([time, accuracy].map(Panel::Heat));
    let rows = if matrix.settings.len() > BESIDE {
        panels.map(|panel| vec![panel]).collect()
    } else {
        vec![panels.collect()]
    };
    let told = matrix.told();
    let common = settings::said_of_all(&matrix.common);
    let more = if note.is_empty() {
        String::new()
    } else {
        format!(" {note}.")
    };
    Some(Figure {
        kind: "heatmap",
        title: "Which strategy where".into(),
        caption: format!(
            "Simulated time of a whole run as a multiple of that of {yardstick}, and test {metric} (at the epoch of best \
             validation {metric}) as a difference from it in percentage points, in each setting of the sweep; {}, of those that \
             both have. Bright is better, grey the same. Hatched: no finished run.{common}{more}",
            seeds(cells)
        ),
        alt: format!("Time to finish as a multiple of that of {yardstick}: {told}."),
        rows,
        note,
    })
}

/// Strategies by settings.
struct Matrix<'c, 'a> {
    settings: Vec<Setting<'c, 'a>>,
    /// What all settings share.
    common: Sweep,
    strategies: Vec<&'a str>,
    yardstick: &'a str,
}

impl Matrix<'_, '_> {
    /// A number of every strategy in every setting, from its own cell and the yardstick's.
    fn compare(&self, number: impl Fn(&Entrant, &Entrant) -> Option<f64>) -> Vec<Vec<Option<f64>>> {
        let of = |strategy: &str, (_, cells): &Setting| {
            let cell = |label: &str| cells.iter().find(|cell| cell.strategy == label);
            number(cell(strategy)?, cell(self.yardstick)?)
        };
        let row = |strategy: &&str| self.settings.iter().map(|s| of(strategy, s)).collect();
        self.strategies.iter().map(row).collect()
    }

    fn times(&self) -> Vec<Vec<Option<f64>>> {
        self.compare(|mine, full| {
            let [mine, full] = mine.beside(full, |run| Some(run.simulated_seconds))?;
            let factor = mine / full;
            // A yardstick that takes no time makes no factor.
            (factor.is_finite() && factor > 0.0).then_some(factor)
        })
    }

    /// Times on a logarithmic scale around 1.
    fn time(&self) -> Heat {
        let tint = |factor: f64| Tint {
            // By logarithms, so that twice and half the time lie equally far from the middle.
            at: 0.5 + factor.log(FACTOR) / 2.0,
            text: short(factor),
        };
        let ends = [format!("≤ {}×", 1.0 / FACTOR), format!("≥ {FACTOR}×")];
        self.heat(&self.times(), tint, ends)
    }

    /// Differences in percentage points on a linear scale around 0.
    fn accuracy(&self) -> Heat {
        let points = self.compare(|mine, full| {
            let [mine, full] = mine.beside(full, |run| run.test_accuracy)?;
            Some(100.0 * (mine - full))
        });
        let tint = |point: f64| Tint {
            // More is better here and worse above, so the sign turns: one scale of colours serves
            // both.
            at: 0.5 - point / (2.0 * POINTS),
            text: difference(point),
        };
        let ends = [format!("≥ +{POINTS}"), format!("≤ −{POINTS}")];
        self.heat(&points, tint, ends)
    }

    fn heat(
        &self,
        numbers: &[Vec<Option<f64>>],
        tint: impl Fn(f64) -> Tint,
        ends: [String; 2],
    ) -> Heat {
        // What every column's key is stands once, below; the columns have the values.
        let values = |(setting, _): &Setting| {
            let own = setting.beyond(&self.common);
            let values = own.values().map(|(_, value)| value);
            values.collect::<Vec<String>>().join(", ")
        };
        let first = self.settings[0].0.beyond(&self.common);
        let keys = first.values().map(|(key, _)| key);
        Heat {
            rows: self.strategies.iter().map(|&label| label.into()).collect(),
            columns: self.settings.iter().map(values).collect(),
            name: keys.collect::<Vec<&str>>().join(", "),
            tints: (numbers.iter())
                .map(|row| row.iter().map(|number| number.map(&tint)).collect())
                .collect(),
            ends,
        }
    }

    /// The fastest strategy of every setting.
    fn told(&self) -> String {
        let times = self.times();
        let fastest = |(column, (setting, _)): (usize, &Setting)| {
            let times = self.strategies.iter().zip(&times);
            let known = times.filter_map(|(label, row)| Some((label, row[column]?)));
            // Of equally fast ones the first, as in the rows above each other.
            let (label, factor) = known.min_by(|a, b| a.1.total_cmp(&b.1))?;
            let factor = format::factor(factor);
            Some(format!(
                "with {setting} {label} is the fastest with {factor}"
            ))
        };
        let clauses = self.settings.iter().enumerate().filter_map(fastest);
        clauses.collect::<Vec<String>>().join("; ")
    }
}

/// A factor in as few signs as tell it: `0.04`, `0.87`, `4.3`, `120`.
fn short(factor: f64) -> String {
    match factor {
        // From here on one decimal would make it `10.0`.
        f if f >= 9.95 => format!("{f:.0}"),
        f if f >= 1.995 => format!("{f:.1}"),
        f if f >= 0.0095 => format!("{f:.2}"),
        f => format::digits(f),
    }
}

/// A difference with its sign: `+0.3`, `−12`, `0.0`.
fn difference(points: f64) -> String {
    let size = points.abs();
    let text = if size >= 9.95 {
        format!("{size:.0}")
    } else {
        format!("{size:.1}")
    };
    format::signed(points, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::rows::{Measured, RunRow, Sweep};
    use crate::report::series;

    fn run(preset: &str, strategy: &str, seconds: f64, accuracy: f64) -> RunRow {
        RunRow {
            cell: format!("preset={preset} {strategy}"),
            strategy: strategy.into(),
            sweep: Sweep::default().with("preset", preset.into()),
            ..RunRow::finished(Measured {
                simulated_seconds: seconds,
                test_accuracy: Some(accuracy),
                ..Measured::default()
            })
        }
    }

    fn texts(runs: &[RunRow]) -> Option<Vec<Vec<Vec<String>>>> {
        let figure = figure(&series::cells(runs, &[]))?;
        let heats = figure.rows.into_iter().flatten();
        let text = |tint: &Option<Tint>| tint.as_ref().map_or("–".into(), |t| t.text.clone());
        let heat = |(_, panel): (String, Panel)| match panel {
            Panel::Heat(heat) => (heat.tints.iter())
                .map(|row| row.iter().map(text).collect())
                .collect(),
            _ => Vec::new(),
        };
        Some(heats.map(heat).collect())
    }

    #[test]
    fn every_strategy_is_compared_with_full_in_its_own_setting() {
        let texts = texts(&[
            run("lte", "varco", 2.0, 0.81),
            run("lte", "full", 8.0, 0.80),
            run("nvlink", "full", 0.5, 0.80),
            run("nvlink", "varco", 2.0, 0.80),
        ]);
        let [time, accuracy] = <[_; 2]>::try_from(texts.unwrap()).unwrap();
        assert_eq!(time, [["0.25", "4.0"], ["1.00", "1.00"]]);
        assert_eq!(accuracy, [["+1.0", "0.0"], ["0.0", "0.0"]]);
    }

    #[test]
    fn a_strategy_with_more_seeds_is_compared_over_those_that_both_have() {
        let seeded = |seed, run: RunRow| RunRow { seed, ..run };
        let mut runs = Vec::new();
        for preset in ["lte", "wan"] {
            runs.extend([
                seeded(0, run(preset, "full", 8.0, 0.80)),
                seeded(1, run(preset, "full", 8.0, 0.82)),
                // An easy and slow third seed, which `varco` does not have.
                seeded(2, run(preset, "full", 80.0, 0.99)),
                seeded(1, run(preset, "varco", 2.0, 0.81)),
                seeded(0, run(preset, "varco", 2.0, 0.79)),
            ]);
        }
        let cells = series::cells(&runs, &[]);
        let caption = figure(&cells).unwrap().caption;
        assert!(caption.contains("mean of 2 to 3 seeds"), "{caption}");
        let [time, accuracy] = <[_; 2]>::try_from(texts(&runs).unwrap()).unwrap();
        assert_eq!(time, [["1.00", "1.00"], ["0.25", "0.25"]]);
        assert_eq!(accuracy, [["0.0", "0.0"], ["−1.0", "−1.0"]]);
    }

    #[test]
    fn a_strategy_without_a_finished_run_leaves_its_cell_open() {
        let mut failed = run("lan", "varco", 2.0, 0.8);
        failed.measured = None;
        let texts = texts(&[
            run("wan", "full", 8.0, 0.80),
            run("wan", "varco", 2.0, 0.81),
            run("lan", "full", 8.0, 0.80),
            failed,
        ]);
        assert_eq!(texts.unwrap()[0], [["1.00", "1.00"], ["0.25", "–"]]);
    }

    #[test]
    fn without_a_sweep_there_is_no_map() {
        assert!(texts(&[run("", "full", 1.0, 0.8), run("", "varco", 1.0, 0.8)]).is_none());
    }

    #[test]
    fn numbers_are_short_and_have_a_real_minus() {
        assert_eq!(
            [0.0123, 0.5, 1.0, 4.26, 1234.0].map(short).join(" "),
            "0.01 0.50 1.00 4.3 1234"
        );
        assert_eq!(
            [-0.04, -1.26, 12.4].map(difference).join(" "),
            "0.0 −1.3 +12"
        );
    }
}
