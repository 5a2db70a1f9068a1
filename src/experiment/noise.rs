//! Whether the machine was its own while a run was timed.
//!
//! With measured compute, what other programs do decides simulated times. Two things are watched
//! around each run: how busy others kept the processors, and how long a calculation takes that is
//! always the same. A run beside which either was amiss decides no claim about time.

use std::fs;
use std::hint::black_box;
use std::time::Instant;

use super::rows::{Measured, RunRow};

/// Share of all processors' time that others may take.
const OTHERS: f64 = 0.1;

/// How much longer the slowest calibration may take than the fastest of the process.
const SPREAD: f64 = 1.25;

/// Ticks of all processors below which a share says nothing.
const ENOUGH: u64 = 25;

impl Measured {
    /// Whether its times were taken beside other programs, or on a machine that changed its speed.
    pub fn is_noisy(&self) -> bool {
        let beyond = |value: Option<f64>, most: f64| value.is_some_and(|value| value > most);
        beyond(self.load_before, OTHERS)
            || beyond(self.load_during, OTHERS)
            || beyond(self.calibration_spread, SPREAD)
    }
}

/// What to say of runs that were timed beside other programs.
pub(super) fn note(runs: &[RunRow]) -> Option<String> {
    let measured = runs
        .iter()
        .filter_map(|run| Some((run, run.measured.as_ref()?)));
    let noisy: Vec<_> = measured
        .filter(|(_, measured)| measured.is_noisy())
        .collect();
    let (run, first) = noisy.first()?;
    let share = |value: Option<f64>| {
        value.map_or("–".to_owned(), |value| format!("{:.0} %", value * 100.0))
    };
    let spread = first
        .calibration_spread
        .map_or("–".to_owned(), |spread| format!("{spread:.2} times"));
    Some(format!(
        "the machine was not idle: {} of {} runs were timed beside other programs (first {}, seed {}: others took {} of the processors \
         before and {} during it, a fixed calculation took up to {spread} its best), so that claims about time are inconclusive; let \
         [compute] timing = {{ profile = \"…\" }} model compute, which no other program disturbs, or run on an idle machine",
        noisy.len(),
        runs.len(),
        run.cell,
        run.seed,
        share(first.load_before),
        share(first.load_during),
    ))
}

/// Processor time so far, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ticks {
    /// Of all processors.
    all: u64,
    /// Of that, not idle.
    busy: u64,
    /// Of that, of this process.
    own: u64,
}

impl Ticks {
    fn now() -> Option<Self> {
        let machine = fs::read_to_string("/proc/stat").ok()?;
        let process = fs::read_to_string("/proc/self/stat").ok()?;
        Self::read(&machine, &process)
    }

    /// From the texts of `/proc/stat` and `/proc/self/stat` (proc(5)).
    fn read(machine: &str, process: &str) -> Option<Self> {
        let line = machine.lines().next()?.strip_prefix("cpu ")?;
        let fields: Vec<u64> = line
            .split_whitespace()
            .map_while(|field| field.parse().ok())
            .collect();
        // user, nice, system, idle, waiting, two kinds of interrupts, stolen; guests are among the
        // users.
        let all: u64 = fields.iter().take(8).sum();
        let idle = fields.get(3)? + fields.get(4)?;
        // The name of the program, in brackets, may hold blanks.
        let rest = process.rsplit_once(')')?.1;
        // Behind the name comes the third field. User and system time are the 14th and 15th
        // (proc(5)).
        let mut times = rest.split_whitespace().skip(11);
        let own = times.next()?.parse::<u64>().ok()? + times.next()?.parse::<u64>().ok()?;
        Some(Self {
            all,
            busy: all.saturating_sub(idle),
            own,
        })
    }

    /// Share of the processors that others took since; none after too short a time.
    fn others_since(self, before: Self) -> Option<f64> {
        let all = self.all.saturating_sub(before.all);
        let busy = self.busy.saturating_sub(before.busy);
        let own = self.own.saturating_sub(before.own);
        (all >= ENOUGH).then(|| busy.saturating_sub(own) as f64 / all as f64)
    }
}

/// Watches the machine from run to run.
pub(super) struct Watch {
    last: Option<Ticks>,
    before: Option<f64>,
    /// The fastest calibration so far, and the slowest around this run, in seconds.
    fastest: f64,
    slowest: f64,
}

impl Watch {
    /// From now on.
    pub(super) fn start() -> Self {
        Self {
            last: Ticks::now(),
            before: None,
            fastest: f64::INFINITY,
            slowest: 0.0,
        }
    }

    /// To be called just before a run.
    pub(super) fn begin(&mut self) {
        // The calibrations lie outside of the two readings, so that what others take during the run
        // is of the run alone.
        self.slowest = 0.0;
        self.calibrate();
        // Where too little time has passed, what was seen last still holds.
        self.before = self.others().or(self.before);
    }

    /// To be called just after it. Returns what was seen around it: `load_before`, `load_during`
    /// and `calibration_spread` of [`Measured`].
    pub(super) fn end(&mut self) -> [Option<f64>; 3] {
        let during = self.others();
        self.calibrate();
        // What others took during this run is what they took before the next.
        let next = during.or(self.before);
        let before = std::mem::replace(&mut self.before, next);
        [before, during, Some(self.slowest / self.fastest)]
    }

    /// Share of the processors that others took since the last reading; none after too short a
    /// time.
    fn others(&mut self) -> Option<f64> {
        let now = Ticks::now();
        let last = std::mem::replace(&mut self.last, now);
        now.zip(last).and_then(|(now, last)| now.others_since(last))
    }

    fn calibrate(&mut self) {
        let took = calculation();
        self.fastest = self.fastest.min(took);
        self.slowest = self.slowest.max(took);
    }
}

/// Seconds that a fixed calculation takes, some milliseconds: the median of several.
fn calculation() -> f64 {
    const STEPS: u32 = 400_000;
    const TIMES: usize = 7;
    let mut took = [0.0_f64; TIMES];
    for took in &mut took {
        let begun = Instant::now();
        // Every step needs the one before, so that nothing can be left out or done at the same
        // time.
        let mut value = black_box(1.0_f64);
        for step in 0..STEPS {
            value = value.mul_add(0.999, f64::from(step & 1));
        }
        black_box(value);
        *took = begun.elapsed().as_secs_f64();
    }
    took.sort_by(f64::total_cmp);
    // A coarse clock may stand still, and others are divided by this.
    took[TIMES / 2].max(1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(idle: u64, busy: u64, own: u64) -> Ticks {
        let machine = format!("cpu  {busy} 0 0 {idle} 0 0 0 0 0 0\ncpu0 1 2 3\n");
        let mut fields = vec!["0".to_owned(); 11];
        fields.extend([own.to_string(), "0".to_owned(), "9".to_owned()]);
        let process = format!("17 (a (b) c) {}", fields.join(" "));
        Ticks::read(&machine, &process).unwrap()
    }

    #[test]
    fn others_are_those_who_were_busy_and_not_this_process() {
        let before = ticks(1000, 500, 100);
        // Of 100 ticks 60 were busy, 40 of them here.
        let share = ticks(1040, 560, 140).others_since(before).unwrap();
        assert!((share - 0.2).abs() < 1e-12);
        assert_eq!(
            ticks(1001, 501, 100).others_since(before),
            None,
            "too short a time"
        );
        assert_eq!(Ticks::read("nothing", ""), None);
    }

    #[test]
    fn a_run_is_noisy_by_any_of_the_three_and_the_note_says_what_to_do() {
        let quiet = Measured {
            load_before: Some(0.02),
            load_during: Some(0.05),
            calibration_spread: Some(1.1),
            ..Measured::default()
        };
        assert!(!quiet.is_noisy() && !Measured::default().is_noisy());
        let mut noisy = quiet;
        noisy.load_during = Some(0.5);
        assert!(noisy.is_noisy());
        let mut slowed = quiet;
        slowed.calibration_spread = Some(1.6);
        assert!(slowed.is_noisy());
        let runs = [quiet, noisy].map(RunRow::finished);
        assert_eq!(note(&runs[..1]), None);
        let note = note(&runs).unwrap();
        assert!(
            note.contains("1 of 2 runs")
                && note.contains("50 % during")
                && note.contains("profile"),
            "{note}"
        );
    }

    #[test]
    fn watching_says_a_spread_of_at_least_one() {
        let mut watch = Watch::start();
        watch.begin();
        let [.., spread] = watch.end();
        assert!(spread.unwrap() >= 1.0);
    }
}
