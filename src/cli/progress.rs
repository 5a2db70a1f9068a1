//! A bar on a terminal, a line per run elsewhere; nothing with `--quiet`.

use std::io::IsTerminal;
use std::sync::OnceLock;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::output::tell;
use crate::experiment::{Finished, Progress};
use crate::sim::EpochRecord;

/// Progress on standard error.
pub struct Terminal {
    quiet: bool,
    bar: OnceLock<ProgressBar>,
}

impl Terminal {
    /// Progress, or silence.
    #[must_use]
    pub const fn new(quiet: bool) -> Self {
        Self {
            quiet,
            bar: OnceLock::new(),
        }
    }
}

impl Progress for Terminal {
    fn begin(&self, _runs: usize, epochs: usize) {
        if self.quiet || !std::io::stderr().is_terminal() {
            return;
        }
        let bar = ProgressBar::with_draw_target(Some(epochs as u64), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template(
            "{bar:24} {percent:>3}%  {msg}  {elapsed} gone, {eta} left",
        );
        // The template is a constant that the tests of this module parse.
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let _ = self.bar.set(bar);
    }

    fn skipped(&self, note: &str) {
        match self.bar.get() {
            _ if self.quiet => {}
            Some(bar) => bar.println(note),
            None => eprintln!("{note}"),
        }
    }

    fn epoch(&self, cell: &str, seed: u64, record: &EpochRecord) {
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
            None => tell(&format!("{line}\n")),
        }
        if run.number == run.of
            && let Some(bar) = self.bar.get()
        {
            bar.finish_and_clear();
        }
    }
}
