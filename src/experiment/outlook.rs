//! How long an experiment will take: from a measured epoch of each strategy before it begins, and
//! from what its runs have taken since.

use std::time::Duration;

/// One run that is to be done.
#[derive(Clone, Debug)]
struct Run {
    cell: String,
    strategy: String,
    epochs: usize,
    /// Seconds that it took; none before it has ended.
    took: Option<f64>,
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
    runs: Vec<Run>,
    trials: Vec<(String, Trial)>,
}

impl Outlook {
    /// Adds a run at the end.
    pub(super) fn add(&mut self, cell: &str, strategy: &str, epochs: usize) {
        self.runs.push(Run {
            cell: cell.to_owned(),
            strategy: strategy.to_owned(),
            epochs,
            took: None,
        });
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
        self.trials
            .push((strategy.to_owned(), Trial { first, epoch }));
    }

    /// Notes what a run of the cell took, if it was one to be done, and returns the seconds that
    /// are left.
    pub(super) fn ended(&mut self, cell: &str, took: Option<Duration>) -> Option<f64> {
        let mut runs = self.runs.iter_mut();
        let run = runs.find(|run| run.cell == cell && run.took.is_none());
        if let (Some(run), Some(took)) = (run, took) {
            run.took = Some(took.as_secs_f64());
        }
        self.left()
    }

    /// Seconds that are left; none where nothing is known of one of the runs.
    pub(super) fn left(&self) -> Option<f64> {
        let to_come = self.runs.iter().filter(|run| run.took.is_none());
        to_come.map(|run| self.expected(run)).sum()
    }

    /// What a run will take: as runs of its cell did; else as those of its strategy, by the epoch;
    /// else as its trial says.
    fn expected(&self, run: &Run) -> Option<f64> {
        let mean = |of: &dyn Fn(&Run) -> bool| {
            let (mut seconds, mut epochs) = (0.0, 0);
            for done in self.runs.iter().filter(|done| of(done)) {
                seconds += done.took.unwrap_or(0.0);
                epochs += if done.took.is_some() { done.epochs } else { 0 };
            }
            (epochs > 0).then(|| seconds / epochs as f64 * run.epochs as f64)
        };
        let trial = || {
            let known = self
                .trials
                .iter()
                .find(|(strategy, _)| *strategy == run.strategy);
            known.map(|(_, trial)| trial.first + trial.epoch * run.epochs.saturating_sub(1) as f64)
        };
        mean(&|done| done.cell == run.cell)
            .or_else(|| mean(&|done| done.strategy == run.strategy))
            .or_else(trial)
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
        assert_eq!(
            outlook.ended("2 full", None),
            Some(50.0),
            "a run that was kept"
        );
        outlook.ended("2 full", after(44));
        // The other cell is not known yet: by the mean epoch of the strategy.
        assert_eq!(outlook.left(), Some(33.0 + 6.0));
        outlook.ended("4 grappa", after(1));
        outlook.ended("4 full", after(1));
        assert_eq!(outlook.left(), Some(0.0));
    }
}
