//! How long an experiment will take: from a measured epoch of each strategy before it begins, and
//! from what its runs have taken since.

use std::collections::BTreeMap;
use std::time::Duration;

/// The runs of a cell that are to be done.
#[derive(Clone, Debug, Default)]
struct Runs {
    strategy: String,
    /// Of each of them.
    epochs: usize,
    left: usize,
    done: Spent,
}

/// What runs took that have finished.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    seconds: f64,
    epochs: usize,
}

impl Spent {
    fn add(&mut self, seconds: f64, epochs: usize) {
        self.seconds += seconds;
        self.epochs += epochs;
    }

    /// Seconds of so many epochs; none if none has been done.
    fn of(self, epochs: usize) -> Option<f64> {
        (self.epochs > 0).then(|| self.seconds / self.epochs as f64 * epochs as f64)
    }
}

/// What a trial of a strategy took.
#[derive(Clone, Copy, Debug)]
struct Trial {
    /// Seconds until its first epoch had ended.
    first: f64,
    /// Seconds of an epoch after that.
    epoch: f64,
}

/// What is known of the time that is left.
#[derive(Clone, Debug, Default)]
pub(super) struct Outlook {
    /// By the cell's name.
    cells: BTreeMap<String, Runs>,
    /// By the strategy's label.
    strategies: BTreeMap<String, Spent>,
    trials: BTreeMap<String, Trial>,
}

impl Outlook {
    /// Adds a run.
    pub(super) fn add(&mut self, cell: &str, strategy: &str, epochs: usize) {
        let runs = self.cells.entry(cell.to_owned()).or_default();
        strategy.clone_into(&mut runs.strategy);
        runs.epochs = epochs;
        runs.left += 1;
    }

    /// Notes when the epochs of a trial ended, in seconds from its start.
    pub(super) fn tried(&mut self, strategy: &str, ends: &[f64]) {
        let (Some(&first), Some(&last)) = (ends.first(), ends.last()) else {
            return;
        };
        let epoch = match ends.len() {
            1 => first,
            count => (last - first) / (count - 1) as f64,
        };
        let trial = Trial { first, epoch };
        self.trials.entry(strategy.to_owned()).or_insert(trial);
    }

    /// Notes that a run of the cell, which was one to be done, has ended, and what it took if it
    /// has finished and not failed. Returns the seconds that are left.
    pub(super) fn ended(&mut self, cell: &str, took: Option<Duration>) -> Option<f64> {
        if let Some(runs) = self.cells.get_mut(cell) {
            runs.left = runs.left.saturating_sub(1);
            if let Some(took) = took {
                let (seconds, epochs) = (took.as_secs_f64(), runs.epochs);
                runs.done.add(seconds, epochs);
                let all = self.strategies.entry(runs.strategy.clone()).or_default();
                all.add(seconds, epochs);
            }
        }
        self.left()
    }

    /// Seconds that are left; none where nothing is known of one of the runs.
    pub(super) fn left(&self) -> Option<f64> {
        let to_come = self.cells.values().filter(|runs| runs.left > 0);
        let expected = |runs: &Runs| Some(self.expected(runs)? * runs.left as f64);
        to_come.map(expected).sum()
    }

    /// What a run will take: as runs of its cell did; else as those of its strategy, by the epoch;
    /// else as its trial says.
    fn expected(&self, runs: &Runs) -> Option<f64> {
        let (strategy, epochs) = (&runs.strategy, runs.epochs);
        let alike = || self.strategies.get(strategy)?.of(epochs);
        let trial = || {
            let known = self.trials.get(strategy)?;
            Some(known.first + known.epoch * epochs.saturating_sub(1) as f64)
        };
        runs.done.of(epochs).or_else(alike).or_else(trial)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_say_it_first_and_what_runs_took_corrects_them() {
        let mut outlook = Outlook::default();
        for (cell, strategy) in [
            ("2 full", "full"),
            ("2 full", "full"),
            ("4 full", "full"),
            ("4 grappa", "grappa"),
        ] {
            outlook.add(cell, strategy, 11);
        }
        outlook.tried("full", &[3.0, 4.0]);
        assert_eq!(outlook.left(), None, "nothing is known of one strategy");
        outlook.tried("grappa", &[1.0, 1.5, 2.0]);
        assert_eq!(outlook.left(), Some(3.0 * 13.0 + 6.0));
        let after = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(outlook.ended("2 full", after(22)), Some(22.0 + 22.0 + 6.0));
        outlook.ended("2 full", after(44));
        // The other cell is not known yet: by the mean epoch of the strategy.
        assert_eq!(outlook.left(), Some(33.0 + 6.0));
        assert_eq!(
            outlook.left(),
            outlook.ended("a cell of no run to be done", None)
        );
        let mut failing = outlook.clone();
        assert_eq!(
            failing.ended("4 full", None),
            Some(6.0),
            "it says nothing of others"
        );
        outlook.ended("4 grappa", after(1));
        outlook.ended("4 full", after(1));
        assert_eq!(outlook.left(), Some(0.0));
    }
}
