//! Rows and a manifest that nobody measured.

use serde_json::{Value, json};

use crate::experiment::Tables;
use crate::experiment::rows::{
    Activity, ClaimRow, ClaimVerdict, EpochRow, Measured, RunRow, Sweep, TimelineRow, TrafficRow,
};
use crate::net::TrafficKind;

/// A strategy as made up here: name, kind, final accuracy, node-data and gradient bytes an epoch,
/// seconds an epoch.
const STRATEGIES: [(&str, &str, f64, u64, u64, f64); 7] = [
    ("full", "full", 0.815, 610_000, 276_000, 0.021),
    ("isolated", "isolated", 0.742, 0, 276_000, 0.009),
    ("fixed(ratio=4)", "fixed", 0.806, 152_000, 276_000, 0.013),
    ("fixed(ratio=16)", "fixed", 0.781, 38_000, 276_000, 0.011),
    ("varco", "varco", 0.812, 90_000, 276_000, 0.012),
    ("grappa", "grappa", 0.799, 4_000, 276_000, 0.010),
    ("retexo", "retexo", 0.808, 9_000, 276_000, 0.008),
];

const EPOCHS: u64 = 100;

/// Noise in −1 to 1 without a generator.
fn wobble(a: u64, b: u64) -> f64 {
    (((a * 7919 + b * 104_729 + 13) % 1009) as f64 / 504.5) - 1.0
}

/// One made-up run.
struct Made {
    number: u64,
    seed: u64,
}

impl Made {
    fn strategy(&self) -> String {
        STRATEGIES[usize::try_from(self.number).unwrap()].0.into()
    }

    fn kind(&self) -> &'static str {
        STRATEGIES[usize::try_from(self.number).unwrap()].1
    }

    /// Final accuracy, node-data and gradient bytes an epoch, seconds an epoch.
    fn costs(&self) -> (f64, u64, u64, f64) {
        let (_, _, accuracy, node_data, gradients, seconds) =
            STRATEGIES[usize::try_from(self.number).unwrap()];
        (
            accuracy + wobble(self.seed, self.number) * 0.006,
            node_data,
            gradients,
            seconds,
        )
    }

    fn run(&self) -> RunRow {
        let (accuracy, node_data, gradients, seconds) = self.costs();
        let total = seconds * EPOCHS as f64;
        RunRow {
            experiment: "made-up".into(),
            cell: self.strategy(),
            strategy: self.strategy(),
            dataset: "cora".into(),
            model: "gcn".into(),
            layers: 2,
            hidden: 16,
            partitioner: "metis".into(),
            workers: 4,
            network: "ethernet-1g".into(),
            seed: self.seed,
            epochs: EPOCHS,
            parameters: Some(23_063),
            edge_cut: 401,
            boundary_rows: 633,
            strategy_kind: Some(self.kind().into()),
            ..RunRow::finished(Measured {
                test_accuracy: Some(accuracy),
                payload_bytes: (node_data + gradients) * EPOCHS,
                activation_bytes: node_data * EPOCHS / 2,
                activation_gradient_bytes: node_data * EPOCHS / 2,
                parameter_gradient_bytes: gradients * EPOCHS,
                simulated_seconds: total,
                compute_seconds: 0.55,
                exposed_communication_seconds: total - 0.62,
                ..Measured::default()
            })
        }
    }

    fn epoch(&self, epoch: u64) -> EpochRow {
        let (accuracy, node_data, gradients, seconds) = self.costs();
        let done = epoch + 1;
        let learned = 1.0 - (-(done as f64) / 11.0).exp();
        let noise = wobble(self.seed * 17 + epoch, self.number) * 0.02 / (done as f64).sqrt();
        let only = |strategy: &str, value: f64| (self.strategy() == strategy).then_some(value);
        EpochRow {
            cell: self.strategy(),
            strategy: self.strategy(),
            seed: self.seed,
            epoch,
            simulated_seconds: seconds * done as f64,
            payload_bytes: (node_data + gradients) * done,
            test_accuracy: Some(0.2 + (accuracy - 0.2) * learned + noise),
            compression_ratio: only("varco", (128.0 - 5.0 * epoch as f64).max(1.0)),
            coverage: only("grappa", 0.62 + 0.1 * wobble(epoch / 10, self.seed)),
            ..EpochRow::default()
        }
    }

    /// Four workers compute, send and wait, one longer than the others.
    fn timeline(&self) -> Vec<TimelineRow> {
        let seconds = self.costs().3;
        let span = |worker: u64, activity, start: f64, end: f64| TimelineRow {
            cell: self.strategy(),
            strategy: self.strategy(),
            seed: self.seed,
            epoch: 2,
            worker,
            activity,
            start_seconds: seconds * (2.0 + start),
            end_seconds: seconds * (2.0 + end),
            ..TimelineRow::default()
        };
        let spans = |worker: u64| {
            let half = 0.4 + 0.05 * worker as f64;
            [
                span(worker, Activity::Compute, 0.0, half),
                span(worker, Activity::Send, half, 1.0),
                span(worker, Activity::Wait, half, 1.0),
            ]
        };
        (0..4).flat_map(spans).collect()
    }

    fn traffic(&self, kind: TrafficKind, bytes: u64) -> TrafficRow {
        TrafficRow {
            cell: self.strategy().into(),
            seed: self.seed,
            kind,
            to: 1,
            messages: 12 * EPOCHS,
            payload_bytes: bytes * EPOCHS,
            // Twelve messages an epoch, each with the headers of one Ethernet frame.
            wire_bytes: (bytes + 78 * 12) * EPOCHS,
            ..TrafficRow::default()
        }
    }
}

/// Rows of every strategy over `seeds`.
pub(super) fn made_up(seeds: &[u64]) -> Tables {
    let mut tables = Tables {
        claims: claims(),
        ..Tables::default()
    };
    for number in 0..STRATEGIES.len() as u64 {
        for &seed in seeds {
            let made = Made { number, seed };
            let (_, node_data, gradients, _) = made.costs();
            tables.runs.push(made.run());
            if seed == seeds[0] {
                tables.timeline.extend(made.timeline());
            }
            tables
                .epochs
                .extend((0..EPOCHS).map(|epoch| made.epoch(epoch)));
            if node_data > 0 {
                tables
                    .traffic
                    .push(made.traffic(TrafficKind::Activation, node_data / 2));
                tables
                    .traffic
                    .push(made.traffic(TrafficKind::ActivationGradient, node_data / 2));
            }
            tables
                .traffic
                .push(made.traffic(TrafficKind::ParameterGradient, gradients));
        }
    }
    tables
}

/// One claim of each verdict.
fn claims() -> Vec<ClaimRow> {
    let claim = |statement: &str,
                 expected: &str,
                 measured,
                 interval: Option<(f64, f64)>,
                 verdict: ClaimVerdict| {
        ClaimRow {
            id: "made-up".into(),
            source: "arXiv 0000.00000, abstract".into(),
            statement: statement.into(),
            expected: expected.into(),
            measured: Some(measured),
            low: interval.map(|(low, _)| low),
            high: interval.map(|(_, high)| high),
            verdict,
            seeds: 3,
            ..ClaimRow::default()
        }
    };
    vec![
        claim(
            "Variable compression is as accurate as full communication",
            "within 0.01 of full",
            -0.003,
            Some((-0.007, 0.001)),
            ClaimVerdict::Reproduced,
        ),
        claim(
            "An order of magnitude fewer bytes <in total>",
            "at least 10× less than full",
            3.11,
            Some((3.05, 3.17)),
            ClaimVerdict::NotReproduced,
        ),
        claim(
            "Faster on a slow network",
            "below full",
            0.4,
            None,
            ClaimVerdict::Inconclusive,
        ),
    ]
}

/// The same rows in every setting of a sweep over numbers.
pub(super) fn swept(tables: &Tables, key: &str, values: &[f64]) -> Tables {
    let mut swept = Tables::default();
    for &value in values {
        let sweep = Sweep::default().with(key, value.into());
        let cell = |name: &str| format!("{sweep} {name}");
        swept.runs.extend(tables.runs.iter().map(|run| RunRow {
            cell: cell(&run.cell),
            sweep: sweep.clone(),
            ..run.clone()
        }));
        swept
            .epochs
            .extend(tables.epochs.iter().map(|epoch| EpochRow {
                cell: cell(&epoch.cell),
                ..epoch.clone()
            }));
    }
    swept
}

pub(super) fn manifest() -> Value {
    json!({
        "name": "made-up",
        "description": "Seven strategies on numbers nobody measured & <nobody> should quote.",
        "config_toml": "name = \"made-up\"\nseeds = [0, 1, 2]\n\n[dataset]\nname = \"cora\"\n",
        "config_hash": "5f2b1c0a9d",
        "version": "0.1.0",
        "machine": { "os": "Linux", "cpu": "A processor", "cores": 2, "memory_bytes": 25_769_803_776_u64 },
        "devices": ["CPU (flex)"],
        "command": ["grapevine", "run", "made up.toml", "--set", "seeds=[0, 1]", "--resume"],
        "finished": "2026-11-21 12:00 UTC",
        "elapsed_seconds": 93.4,
        "model_seconds": 81.2,
        "notes": ["Numbers are made up."],
        "data": { "name": "cora", "nodes": 2708, "edges": 5278, "features": 1433, "classes": 7,
                  "train": 140, "validation": 500, "test": 1000 },
    })
}
