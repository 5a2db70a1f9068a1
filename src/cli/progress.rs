//! A bar on a terminal, a line per run elsewhere; nothing with `--quiet`.

use std::io::IsTerminal;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::output::tell;
use crate::digits::counted;
use crate::experiment::{Finished, Progress, Projected};
use crate::sim::EpochRecord;

/// Progress on standard error.
pub(super) struct Terminal {
    quiet: bool,
    // Made when the number of epochs is known, by way of a shared reference: workers on several
    // threads tell it.
    bar: OnceLock<ProgressBar>,
    /// Seconds that are left, and when that was said.
    left: Mutex<Option<(f64, Instant)>>,
}

impl Terminal {
    /// Progress, or silence.
    pub(super) const fn new(quiet: bool) -> Self {
        Self {
            quiet,
            bar: OnceLock::new(),
            left: Mutex::new(None),
        }
    }

    /// `, about 40 s left`; nothing where little is left, or not known.
    fn left(&self) -> String {
        let said = *self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let seconds = said.map_or(0.0, |(left, when)| left - when.elapsed().as_secs_f64());
        about(seconds).map_or(String::new(), |about| format!(", about {about} left"))
    }
}

/// Progress of projecting: a bar for each cell on a terminal, a line elsewhere.
pub(super) struct Projecting {
    quiet: bool,
    bar: Option<ProgressBar>,
}

impl Projecting {
    /// Progress, or silence.
    pub(super) fn new(quiet: bool) -> Self {
        let shown = !quiet && std::io::stderr().is_terminal();
        Self {
            quiet,
            bar: shown.then(|| bar("{bar:24} {percent:>3}%  {msg}  {eta} left")),
        }
    }

    /// Tells how far it has come.
    pub(super) fn tell(&self, done: &Projected) {
        let Projected {
            cell,
            end,
            number,
            of,
            epoch,
            epochs,
        } = *done;
        let end = end.map_or_else(String::new, |end| format!(", {end}"));
        match &self.bar {
            Some(bar) => {
                if epoch == 0 {
                    bar.reset();
                    bar.set_length(epochs as u64);
                    bar.set_message(format!("{number}/{of} {cell}{end}"));
                }
                bar.set_position(epoch as u64);
            }
            None if !self.quiet && epoch == epochs => {
                tell(&format!("{number:>3}/{of} {cell}{end}\n"));
            }
            None => {}
        }
    }

    /// Tells of something else that takes a while.
    pub(super) fn note(&self, note: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(note.to_owned()),
            None if !self.quiet => tell(&format!("{note}\n")),
            None => {}
        }
    }

    /// Takes the bar away.
    pub(super) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A bar on standard error.
pub(super) fn bar(template: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    // The templates are constants.
    let style = ProgressStyle::with_template(template);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// A time as people say it; none below three seconds.
fn about(seconds: f64) -> Option<String> {
    let minutes = seconds / 60.0;
    match minutes {
        _ if seconds < 3.0 => None,
        minutes if minutes < 1.5 => Some(format!("{seconds:.0} s")),
        minutes if minutes < 99.5 => Some(format!("{minutes:.0} min")),
        minutes if minutes < 99.5 * 60.0 => Some(format!("{:.1} h", minutes / 60.0)),
        minutes if minutes < 1e6 => Some(format!("{:.0} days", minutes / 1440.0)),
        minutes => Some(format!("{:.0} years", minutes / 525_960.0)),
    }
}

impl Progress for Terminal {
    fn begin(&self, runs: usize, epochs: usize) {
        if self.quiet {
            return;
        }
        if epochs == 0 {
            // All that was asked for is there.
            return;
        }
        let (runs, in_all) = (counted(runs as u64, "run"), counted(epochs as u64, "epoch"));
        tell(&format!(
            "Training {runs}, {in_all} in all; one line for each run that ends, and --resume keeps those after an interruption\n"
        ));
        if !std::io::stderr().is_terminal() {
            return;
        }
        let bar = bar("{bar:24} {percent:>3}%  {msg}  {elapsed} gone{prefix}");
        bar.set_length(epochs as u64);
        let _ = self.bar.set(bar);
    }

    // Trials take time, and with --quiet nobody reads what they say.
    fn wants_outlook(&self) -> bool {
        !self.quiet
    }

    fn outlook(&self, seconds: f64) {
        let said = Some((seconds, Instant::now()));
        let before = {
            let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *left, said)
        };
        // Before the first run it is said by itself, and later with each run.
        if let (None, Some(about)) = (before, about(seconds)) {
            self.note(&format!(
                "this will take about {about}, by what is measured so far"
            ));
        }
    }

    fn note(&self, note: &str) {
        // The bar prints it above itself. A line from elsewhere would tear the bar apart.
        match self.bar.get() {
            _ if self.quiet => {}
            Some(bar) => bar.println(note),
            None => tell(&format!("{note}\n")),
        }
    }

    fn epoch(&self, cell: &str, seed: u64, record: &EpochRecord) {
        let Some(bar) = self.bar.get() else { return };
        bar.inc(1);
        bar.set_prefix(self.left());
        if let Some(accuracy) = record.scores.and_then(|scores| scores.validation) {
            let percent = accuracy * 100.0;
            bar.set_message(format!(
                "{cell}, seed {seed}: {percent:.1} % validation accuracy"
            ));
        } else if record.epoch == 0 {
            bar.set_message(format!("{cell}, seed {seed}"));
        }
    }

    fn finished(&self, run: &Finished<'_>) {
        if self.quiet {
            return;
        }
        let row = run.row;
        let result = match row.measured.map(|measured| measured.test_accuracy) {
            // Why is the program's last word.
            None => "failed".to_owned(),
            Some(Some(score)) => {
                format!("{:.1} % test {}", score * 100.0, row.metric().title())
            }
            Some(None) => "done".to_owned(),
        };
        let line = format!(
            "{:>3}/{} {}, seed {}: {result}, {:.1} s{}",
            run.number,
            run.of,
            row.cell,
            row.seed,
            row.measured
                .map_or(0.0, |measured| measured.measured_seconds),
            if run.kept { ", kept" } else { "" }
        );
        match self.bar.get() {
            Some(bar) => bar.println(line),
            None => tell(&format!("{line}{}\n", self.left())),
        }
    }

    fn more(&self, epochs: usize) {
        if let Some(bar) = self.bar.get() {
            bar.inc_length(epochs as u64);
        }
    }

    fn end(&self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_in_the_unit_that_people_use() {
        for (seconds, said) in [
            (540.0, "9 min"),
            (10_800.0, "3.0 h"),
            (1e6, "12 days"),
            (1e9, "32 years"),
        ] {
            assert_eq!(about(seconds).as_deref(), Some(said));
        }
        assert_eq!(about(40.0).as_deref(), Some("40 s"));
        assert_eq!(about(2.0), None);
    }

    #[test]
    fn what_is_left_is_what_was_said_last() {
        let progress = Terminal::new(true);
        assert_eq!(progress.left(), "");
        progress.outlook(3600.0);
        progress.outlook(605.0);
        assert_eq!(progress.left(), ", about 10 min left");
    }
}
