//! A bar on a terminal, a line per run elsewhere; nothing with `--quiet`.

use std::io::IsTerminal;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::output::tell;
use crate::experiment::{Finished, Progress, Projected};
use crate::sim::EpochRecord;

/// Progress on standard error.
pub struct Terminal {
    quiet: bool,
    bar: OnceLock<ProgressBar>,
    /// Epochs of all runs, and when the first of them began.
    whole: OnceLock<(usize, Instant)>,
    /// Epochs done.
    done: AtomicUsize,
}

impl Terminal {
    /// Progress, or silence.
    #[must_use]
    pub const fn new(quiet: bool) -> Self {
        Self {
            quiet,
            bar: OnceLock::new(),
            whole: OnceLock::new(),
            done: AtomicUsize::new(0),
        }
    }

    /// `, about 40 s left`, by what the epochs so far have taken; nothing after less than three seconds.
    fn left(&self) -> String {
        let done = self.done.load(Ordering::Relaxed);
        self.whole.get().map_or(String::new(), |(epochs, begin)| {
            left(begin.elapsed().as_secs_f64(), done, *epochs)
        })
    }
}

/// Progress of projecting: a bar for each cell on a terminal, a line elsewhere.
pub struct Projecting {
    quiet: bool,
    bar: Option<ProgressBar>,
}

impl Projecting {
    /// Progress, or silence.
    #[must_use]
    pub fn new(quiet: bool) -> Self {
        let shown = !quiet && std::io::stderr().is_terminal();
        Self {
            quiet,
            bar: shown.then(|| bar("{bar:24} {percent:>3}%  {msg}  {eta} left")),
        }
    }

    /// Tells how far it has come.
    pub fn tell(&self, done: &Projected) {
        let Projected {
            cell,
            number,
            of,
            epoch,
            epochs,
        } = *done;
        match &self.bar {
            Some(bar) => {
                if epoch == 0 {
                    bar.reset();
                    bar.set_length(epochs as u64);
                    bar.set_message(format!("{number}/{of} {cell}"));
                }
                bar.set_position(epoch as u64);
            }
            None if !self.quiet && epoch == epochs => tell(&format!("{number:>3}/{of} {cell}\n")),
            None => {}
        }
    }

    /// Takes the bar away.
    pub fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A bar on standard error.
fn bar(template: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    // The templates are constants.
    let style = ProgressStyle::with_template(template);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

fn left(elapsed: f64, done: usize, epochs: usize) -> String {
    let seconds = elapsed / done as f64 * epochs.saturating_sub(done) as f64;
    let minutes = seconds / 60.0;
    match minutes {
        _ if done == 0 || elapsed < 3.0 || seconds < 1.0 => String::new(),
        minutes if minutes < 1.5 => format!(", about {seconds:.0} s left"),
        minutes if minutes < 99.5 => format!(", about {minutes:.0} min left"),
        minutes => format!(", about {:.1} h left", minutes / 60.0),
    }
}

impl Progress for Terminal {
    fn begin(&self, runs: usize, epochs: usize) {
        let _ = self.whole.set((epochs, Instant::now()));
        if self.quiet {
            return;
        }
        let runs = match runs {
            1 => "1 run".to_owned(),
            runs => format!("{runs} runs"),
        };
        tell(&format!(
            "Training {runs}, {epochs} epochs in all; one line for each run that ends\n"
        ));
        if !std::io::stderr().is_terminal() {
            return;
        }
        let bar = bar("{bar:24} {percent:>3}%  {msg}  {elapsed} gone, {eta} left");
        bar.set_length(epochs as u64);
        let _ = self.bar.set(bar);
    }

    fn note(&self, note: &str) {
        match self.bar.get() {
            _ if self.quiet => {}
            Some(bar) => bar.println(note),
            None => eprintln!("{note}"),
        }
    }

    fn epoch(&self, cell: &str, seed: u64, record: &EpochRecord) {
        self.done.fetch_add(1, Ordering::Relaxed);
        let Some(bar) = self.bar.get() else { return };
        bar.inc(1);
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
        let result = match (row.is_ok(), row.test_accuracy) {
            // Why is the program's last word.
            (false, _) => "failed".to_owned(),
            (true, Some(accuracy)) => format!("{:.1} % test accuracy", accuracy * 100.0),
            (true, None) => "done".to_owned(),
        };
        let line = format!(
            "{:>3}/{} {}, seed {}: {result}, {:.1} s{}",
            run.number,
            run.of,
            row.cell,
            row.seed,
            row.measured_seconds,
            if run.kept { ", kept" } else { "" }
        );
        match self.bar.get() {
            Some(bar) => bar.println(line),
            None => tell(&format!("{line}{}\n", self.left())),
        }
        if run.number == run.of
            && let Some(bar) = self.bar.get()
        {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::left;

    #[test]
    fn what_is_left_is_told_in_seconds_minutes_and_hours() {
        assert_eq!(left(60.0, 10, 100), ", about 9 min left");
        assert_eq!(left(3600.0, 1, 4), ", about 3.0 h left");
        assert_eq!(left(20.0, 10, 30), ", about 40 s left");
        for nothing in [left(2.0, 1, 100), left(60.0, 99, 100), left(60.0, 0, 100)] {
            assert_eq!(nothing, "");
        }
    }
}
