//! The rows agree with the experiment itself: prepared again from the manifest's configuration, it
//! says what every run was, every message that its strategy had planned, and, where computing is
//! modelled, how long all of it takes.

use std::collections::{BTreeMap, BTreeSet};

use super::{Breach, ByRun, Checker, by_run, no_more, order};
use crate::experiment::Error;
use crate::experiment::Tables;
use crate::experiment::config::{Cell, Experiment};
use crate::experiment::decisions::decisions_of;
use crate::experiment::prepare::{Fitted, Preparation, data_turns};
use crate::experiment::row_maker::{RowMaker, milestones};
use crate::experiment::rows::{
    ColumnKind, ColumnSpec, DecisionRow, EpochRow, OfRun, Row, RunKey, RunRow, TrafficRow, Values,
};
use crate::net::{Framing, Ledger, Seconds, TrafficKind};
use crate::sim::{Course, DeviceConfig, Engine, Played, WorkerTimes, play};

/// Columns of `runs` that follow from the configuration, the data and the partition.
const KNOWN: [&str; 18] = [
    "experiment",
    "strategy",
    "dataset",
    "model",
    "layers",
    "hidden",
    "partitioner",
    "workers",
    "network",
    "backend",
    "epochs",
    "edge_cut",
    "boundary_rows",
    "strategy_kind",
    "metric",
    "epoch_kind",
    "largest_class",
    "sweep",
];

/// Columns of `runs` that follow from the epochs, given the target and the budgets of the
/// configuration.
const MILESTONES: [&str; 5] = [
    "diverged_at",
    "seconds_to_target",
    "bytes_to_target",
    "accuracy_at_byte_budget",
    "accuracy_at_time_budget",
];

/// Messages, payload and wire bytes by epoch, layer, sender, receiver and kind.
type Lanes = BTreeMap<(u64, u64, u64, u64, TrafficKind), (u64, u64, u64)>;

/// What of the tables does not agree with the experiment, and notes on what could not be checked.
/// If it did not `finish`, runs may be missing.
pub fn verify_plan(
    experiment: &Experiment,
    preparation: &mut Preparation<'_>,
    tables: &Tables,
    finished: bool,
) -> (Vec<Breach>, Vec<String>) {
    let mut check = PlanCheck {
        experiment,
        epochs: by_run(&tables.epochs),
        traffic: by_run(&tables.traffic),
        decisions: by_run(&tables.decisions),
        found: Checker::default(),
    };
    // A set: what cannot be checked is the same sentence for every cell on the same data.
    let mut notes = BTreeSet::new();
    let (present, absent) = match preparation.present(experiment) {
        Ok(found) => found,
        Err(error) => {
            return (
                Vec::new(),
                vec![format!("not checked against the plan: {error}")],
            );
        }
    };
    notes.extend(
        absent
            .iter()
            .map(|note| format!("not checked against the plan: {note}")),
    );
    for (row, run) in tables.runs.iter().enumerate() {
        if !experiment.cells().iter().any(|cell| cell.name == run.cell) {
            let what = format!("the experiment has no cell `{}`", run.cell);
            check.found.breach::<RunRow>(row, what);
        }
    }
    let ran: BTreeSet<RunKey<'_>> = tables.runs.iter().map(OfRun::key).collect();
    let mut missing = Vec::new();
    for cell in &present {
        let name = &cell.name;
        for &seed in &experiment.seeds {
            if ran.contains(&(name.as_str(), seed)) {
                continue;
            }
            let what = format!("cell `{name}` with seed {seed} has no row");
            // Optional data may have come later.
            if finished && !cell.settings.dataset.optional {
                check.found.breach::<RunRow>(None, what);
            } else {
                missing.push(what);
            }
        }
    }
    for (cell, row, run) in in_turn(&present, &tables.runs) {
        if let Err(error) = check.against_plan((row, run), cell, preparation) {
            notes.insert(format!("not checked against the plan: {error}"));
        }
    }
    match &missing[..] {
        [first, _, _, _, ..] => {
            notes.insert(format!(
                "{} runs are not there, the first of them: {first}",
                missing.len()
            ));
        }
        few => notes.extend(few.iter().cloned()),
    }
    (check.found.breaches).sort_by_key(|breach| (order(breach.table), breach.row));
    (check.found.breaches, notes.into_iter().collect())
}

/// The runs of cells with their rows, so that what one needs is not prepared anew for the next.
fn in_turn<'c, 'r>(cells: &[&'c Cell], runs: &'r [RunRow]) -> Vec<(&'c Cell, usize, &'r RunRow)> {
    let turns = data_turns(cells.iter().copied());
    let mut found = Vec::new();
    for (cell, turn) in cells.iter().zip(turns) {
        let rows = runs
            .iter()
            .enumerate()
            .filter(|(_, run)| run.cell == cell.name);
        found.extend(rows.map(|(row, run)| (turn, *cell, row, run)));
    }
    found.sort_by_key(|(turn, _, _, run)| (*turn, run.seed));
    let found = found.into_iter();
    found.map(|(_, cell, row, run)| (cell, row, run)).collect()
}

struct PlanCheck<'a> {
    experiment: &'a Experiment,
    epochs: ByRun<'a, EpochRow>,
    traffic: ByRun<'a, TrafficRow>,
    decisions: ByRun<'a, DecisionRow>,
    found: Checker,
}

impl PlanCheck<'_> {
    fn against_plan(
        &mut self,
        (row, run): (usize, &RunRow),
        cell: &Cell,
        preparation: &mut Preparation<'_>,
    ) -> Result<(), Error> {
        // Whatever it ran on and started from: nothing is trained here.
        let mut planned = cell.clone();
        planned.settings.device = DeviceConfig::default();
        planned.settings.model.weights = None;
        // Versions that had no such column knew accuracy alone, whatever the data.
        if run.metric.is_none() {
            planned.settings.task.metric = Some(run.metric());
        }
        preparation.turn_to(&cell.settings.dataset, run.seed);
        let fitted = preparation.fit(&planned, run.seed)?;
        self.run(row, run, cell, &fitted)
    }

    fn run(&mut self, row: usize, run: &RunRow, cell: &Cell, fitted: &Fitted) -> Result<(), Error> {
        let mut expected = RowMaker {
            experiment: &self.experiment.name,
            cell,
            fitted,
        }
        .blank();
        // Tables of earlier versions have no such columns.
        expected.metric = run.metric.and(expected.metric);
        expected.epoch_kind = run.epoch_kind.and(expected.epoch_kind);
        expected.largest_class = run.largest_class.and(expected.largest_class);
        self.columns(row, run, &expected, &KNOWN, "the experiment says");
        if !run.is_ok() {
            return Ok(());
        }
        let epochs = self.epochs.get(&run.key()).into_iter().flatten();
        let epochs: Vec<EpochRow> = epochs.map(|(_, row)| (*row).clone()).collect();
        expected.measured = Some(milestones(&fitted.setting.training, &epochs));
        self.columns(row, run, &expected, &MILESTONES, "its epochs say");
        self.plan(row, run, fitted)
    }

    /// The named columns of a run are those of another row.
    fn columns(&mut self, row: usize, run: &RunRow, other: &RunRow, names: &[&str], who: &str) {
        let found = RunRow::to_columns(std::slice::from_ref(run));
        let expected = RunRow::to_columns(std::slice::from_ref(other));
        let all = RunRow::COLUMNS.iter().zip(found.iter().zip(&expected));
        let differs = |(column, (found, expected)): &(&ColumnSpec, (&Values, &Values))| {
            names.contains(&column.name) && found != expected
        };
        for (column, (found, expected)) in all.filter(differs) {
            let text = |values: &Values| match (column.kind, values.text(0)) {
                (_, None) => "null".to_owned(),
                (ColumnKind::Text, Some(text)) => format!("`{text}`"),
                (_, Some(number)) => number,
            };
            let (found, expected) = (text(found), text(expected));
            self.found.breach::<RunRow>(
                row,
                format!("{} is {found}, but {who} {expected}", column.name),
            );
        }
    }

    /// The run is what its plan gives when it is played, given what the training decided: every
    /// message, and where computing is modelled all times, too.
    fn plan(&mut self, row: usize, run: &RunRow, fitted: &Fitted) -> Result<(), Error> {
        let setting = &fitted.setting;
        let decided = self.decisions.get(&run.key()).into_iter().flatten();
        let decisions = decisions_of(decided.map(|(_, row)| *row));
        let course = Course {
            together: fitted.needs.together,
            ..Course::whole(fitted.training.epochs())
        };
        let played = play(
            &setting.cluster(),
            &setting.timing,
            fitted.training.planner().as_mut(),
            course,
            &decisions,
            |_| (),
        )?;
        self.messages(row, run, &played.ledger, &setting.framing);
        // Processes take the time that they take.
        if setting.models_compute() && run.engine == Engine::Simulated.name() {
            self.times(row, run, &played);
        }
        Ok(())
    }

    /// Times are those of the played plan, but for rounding.
    fn times(&mut self, row: usize, run: &RunRow, played: &Played) {
        if run.measured.is_none() {
            return;
        }
        let differ =
            |found: f64, planned: f64| !(no_more(found, planned) && no_more(planned, found));
        let mean = |of: fn(&WorkerTimes) -> Seconds| {
            let sum: f64 = played.times.iter().map(|times| of(times).0).sum();
            sum / played.times.len() as f64
        };
        let last = played.times.iter().map(|times| times.clock.0);
        for (name, planned) in [
            ("simulated_seconds", last.fold(0.0, f64::max)),
            ("compute_seconds", mean(|times| times.compute)),
            ("communication_seconds", mean(|times| times.communication)),
            ("exposed_communication_seconds", mean(|times| times.exposed)),
            ("waiting_seconds", mean(|times| times.waiting)),
        ] {
            if let Some(found) = run.number(name)
                && differ(found, planned)
            {
                let what = format!("{name} is {found}, but its plan takes {planned}");
                self.found.breach::<RunRow>(row, what);
            }
        }
        for (place, epoch) in self.epochs.get(&run.key()).into_iter().flatten() {
            let found = epoch.simulated_seconds;
            // An epoch that the plan does not have is a breach by itself.
            let planned = played.epochs.get(epoch.epoch as usize);
            if let Some(planned) = planned
                && differ(found, planned.0)
            {
                let what = format!(
                    "simulated_seconds is {found}, but its plan takes {}",
                    planned.0
                );
                self.found.breach::<EpochRow>(*place, what);
            }
        }
    }

    /// Every message had been planned, and no other.
    fn messages(&mut self, row: usize, run: &RunRow, plans: &Ledger, framing: &Framing) {
        let mut sent = Lanes::new();
        for (_, traffic) in self.traffic.get(&run.key()).into_iter().flatten() {
            let (from, to) = (traffic.from, traffic.to);
            let lane = (traffic.epoch, traffic.layer, from, to, traffic.kind);
            let bytes = (traffic.messages, traffic.payload_bytes, traffic.wire_bytes);
            // A lane that is there twice is a breach by itself, which the rules of traffic find.
            sent.insert(lane, bytes);
        }
        let mut planned = Lanes::new();
        for (epoch, plan) in plans.iter() {
            for (lane, count) in plan.by_lane(framing) {
                let (layer, from, to) = (lane.layer.into(), lane.from.into(), lane.to.into());
                planned.insert(
                    (epoch as u64, layer, from, to, lane.kind),
                    (count.messages, count.payload.0, count.wire.0),
                );
            }
        }
        let lanes: BTreeSet<_> = planned.keys().chain(sent.keys()).copied().collect();
        let of = |lanes: &Lanes, lane| lanes.get(lane).copied().unwrap_or_default();
        let differ: Vec<_> = lanes
            .iter()
            .filter(|lane| of(&planned, lane) != of(&sent, lane))
            .collect();
        if let [first, ..] = differ[..] {
            let ((messages, payload, wire), found) = (of(&planned, first), of(&sent, first));
            let (epoch, layer, from, to, kind) = first;
            let more = match differ.len() {
                1 => String::new(),
                count => format!(", and {} others", count - 1),
            };
            self.found.breach::<RunRow>(
                row,
                format!(
                    "in traffic, {kind} of layer {layer} from worker {from} to {to} in epoch {epoch} is {} messages, {} bytes and {} \
                     with framing, but {messages}, {payload} and {wire} were planned{more}",
                    found.0, found.1, found.2
                ),
            );
        }
    }
}
