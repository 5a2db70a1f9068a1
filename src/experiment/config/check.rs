//! The values that make sense: ranges, and keys that need or exclude each other.

use crate::graph::{MOST_WORKERS, PartitionSpec};
use crate::model::{Init, ModelConfig, ModelKind, OptimizerConfig};
use crate::net::{Bytes, NetError, NetworkSpec, PRESETS, Seconds};
use crate::sim::TrainingConfig;

use super::error::ConfigError;
use super::locate::Document;
use super::path::KeyPath;

/// More columns than any layer has had: a slip of the hand beyond, that would ask for all memory
/// there is.
const WIDEST: usize = 1 << 16;

/// Most layers: beyond that nothing trains.
const DEEPEST: usize = 1 << 10;

/// Checks of one section: a key, relative to the section, and what is wrong with it.
pub(super) struct Checks<'a> {
    pub document: &'a Document,
    pub section: KeyPath,
}

impl Checks<'_> {
    pub(super) fn that(&self, holds: bool, key: &str, message: &str) -> Result<(), ConfigError> {
        if holds {
            Ok(())
        } else {
            Err(self.document.bad(&self.key(key), message))
        }
    }

    pub(super) fn positive(&self, value: usize, key: &str) -> Result<(), ConfigError> {
        self.that(value >= 1, key, "must be at least 1, not 0")
    }

    /// A number of workers.
    pub(super) fn workers(&self, workers: usize) -> Result<(), ConfigError> {
        self.positive(workers, "workers")?;
        let message = format!("must be at most {MOST_WORKERS}, not {workers}");
        self.that(workers <= MOST_WORKERS, "workers", &message)
    }

    pub(super) fn columns(&self, hidden: usize) -> Result<(), ConfigError> {
        self.positive(hidden, "hidden")?;
        let message = format!("must be at most {WIDEST} columns, not {hidden}");
        self.that(hidden <= WIDEST, "hidden", &message)
    }

    pub(super) fn above_zero(&self, value: f64, key: &str) -> Result<(), ConfigError> {
        self.range(value > 0.0 && value.is_finite(), key, "more than 0", value)
    }

    pub(super) fn not_negative(&self, value: f64, key: &str) -> Result<(), ConfigError> {
        self.range(value >= 0.0 && value.is_finite(), key, "0 or more", value)
    }

    fn below_one(&self, value: f64, key: &str) -> Result<(), ConfigError> {
        let holds = (0.0..1.0).contains(&value);
        self.range(holds, key, "0 or more and less than 1", value)
    }

    pub(super) fn share(&self, value: f64, key: &str) -> Result<(), ConfigError> {
        self.range(value > 0.0 && value < 1.0, key, "between 0 and 1", value)
    }

    fn range(&self, holds: bool, key: &str, range: &str, value: f64) -> Result<(), ConfigError> {
        self.that(holds, key, &format!("must be {range}, not {value}"))
    }

    pub(super) fn known(&self, value: &str, key: &str, known: &[&str]) -> Result<(), ConfigError> {
        if known.contains(&value) {
            return Ok(());
        }
        Err(self
            .document
            .unknown(&self.key(key), value, known.iter().copied()))
    }

    /// An error about the section itself.
    pub(super) fn whole(&self, message: &str) -> ConfigError {
        // A key of the section, so that the message says which section it is in.
        self.document.refuse(&self.section.join("*"), message)
    }

    fn key(&self, key: &str) -> KeyPath {
        key.split('.')
            .fold(self.section.clone(), |path, segment| path.join(segment))
    }
}

pub(super) fn model(config: &ModelConfig, check: &Checks<'_>) -> Result<(), ConfigError> {
    check.positive(config.layers, "layers")?;
    check.that(
        config.layers <= DEEPEST,
        "layers",
        &format!("must be at most {DEEPEST}, not {}", config.layers),
    )?;
    check.columns(config.hidden)?;
    check.positive(config.heads, "heads")?;
    let (hidden, heads) = (config.hidden, config.heads);
    check.that(
        // A single layer has no hidden width to divide.
        config.kind != ModelKind::Gat || config.layers == 1 || hidden.is_multiple_of(heads),
        "heads",
        &format!(
            "must divide `hidden`, the width of all heads of a layer together: {heads} does not divide {hidden}"
        ),
    )?;
    check.below_one(config.dropout, "dropout")?;
    for (dropout, key) in [
        (config.input_dropout, "input_dropout"),
        (config.attention_dropout, "attention_dropout"),
    ] {
        check.below_one(dropout.unwrap_or(0.0), key)?;
    }
    check.above_zero(config.gain, "gain")?;
    for (key, given) in [
        ("init", config.init != Init::default()),
        ("gain", config.gain.to_bits() != 1.0_f64.to_bits()),
    ] {
        check.that(
            config.weights.is_none() || !given,
            key,
            "is of first weights that are drawn, and `weights` gives others; leave out one of the two",
        )?;
    }
    check.that(
        config.biases.suit(config.layers),
        "biases",
        "must be 1, or 2 for one of each product of a `sage` layer, or a list of such with one \
         number a layer",
    )
}

pub(super) fn optimizer(config: &OptimizerConfig, check: &Checks<'_>) -> Result<(), ConfigError> {
    let (rate, decay) = match *config {
        OptimizerConfig::Adam {
            learning_rate,
            weight_decay,
            epsilon,
        } => {
            check.above_zero(epsilon, "epsilon")?;
            (learning_rate, weight_decay)
        }
        OptimizerConfig::Sgd {
            learning_rate,
            weight_decay,
            momentum,
        } => {
            check.below_one(momentum, "momentum")?;
            (learning_rate, weight_decay)
        }
    };
    check.above_zero(rate, "learning_rate")?;
    check.not_negative(decay, "weight_decay")
}

pub(super) fn training(
    config: &TrainingConfig,
    layers: usize,
    check: &Checks<'_>,
) -> Result<(), ConfigError> {
    check.positive(config.epochs, "epochs")?;
    check.positive(config.evaluate_every, "evaluate_every")?;
    if let Some(every) = config.checkpoint_every {
        check.positive(every, "checkpoint_every")?;
    }
    if let Some(batch) = &config.batch {
        check.positive(batch.size, "batch.size")?;
        let count = batch.fanouts.len();
        check.that(
            count == layers,
            "batch.fanouts",
            &format!(
                "must have one entry for each of the model's layers, {layers} in all, not {count}"
            ),
        )?;
        for (hop, &fanout) in batch.fanouts.iter().enumerate() {
            check.positive(fanout, &format!("batch.fanouts.{hop}"))?;
        }
    }
    if let Some(bytes) = config.byte_budget {
        let holds = bytes > Bytes::ZERO;
        check.range(holds, "byte_budget", "1 or more", bytes.0 as f64)?;
    }
    if let Some(seconds) = config.time_budget {
        let holds = seconds > Seconds::ZERO;
        check.range(holds, "time_budget", "a time above 0", seconds.0)?;
    }
    config.target_accuracy.map_or(Ok(()), |target| {
        let holds = target > 0.0 && target <= 1.0;
        check.range(
            holds,
            "target_accuracy",
            "more than 0 and at most 1",
            target,
        )
    })
}

pub(super) fn partition(spec: &PartitionSpec, check: &Checks<'_>) -> Result<(), ConfigError> {
    spec.check()
        .or_else(|(key, what)| check.that(false, key, &what))
}

pub(super) fn network(
    spec: &NetworkSpec,
    workers: usize,
    check: &Checks<'_>,
) -> Result<(), ConfigError> {
    if let Some(preset) = &spec.preset {
        let presets: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
        check.known(preset, "preset", &presets)?;
    }
    for (index, worker) in spec.workers.iter().enumerate() {
        let rank = worker.rank;
        let key = |name: &str| format!("worker.{index}.{name}");
        check.that(
            rank < workers,
            &key("rank"),
            &format!(
                "must be less than the number of workers, {workers} (of [partition], a sweep or a strategy's `with`), not {rank}"
            ),
        )?;
        check.that(
            spec.workers
                .iter()
                .take(index)
                .all(|earlier| earlier.rank != rank),
            &key("rank"),
            &format!("{rank} was described before; keep one entry for it"),
        )?;
        if let Some(factor) = worker.compute {
            check.above_zero(factor, &key("compute"))?;
        }
    }
    // Without any figures there is nothing to check yet; that is said when a cell is prepared.
    if spec.preset.is_none() && spec.link.is_none() {
        return Ok(());
    }
    spec.topology(workers)
        .and_then(|topology| topology.check_all_routes())
        .map_err(|error| network_error(check.document, spec, error))
}

/// What is wrong with a network, at the key that says so.
pub(super) fn network_error(
    document: &Document,
    spec: &NetworkSpec,
    error: NetError,
) -> ConfigError {
    let at = KeyPath::dotted;
    match error {
        NetError::Description { key, .. }
            if key == "network" && document.get(&at("network")).is_none() =>
        {
            let message = "the section [network] is missing; add it, such as preset = \"ethernet-10g\", or \
                link = { bandwidth = \"10Gbps\", latency = \"100us\" }";
            document.refuse(&at("network"), message)
        }
        NetError::Description { key, reason } if key == "network" || key.ends_with(".*") => {
            let path = if key == "network" {
                at("network.*")
            } else {
                at(&key)
            };
            document.refuse(&path, reason)
        }
        NetError::Description { key, reason } => document.bad(&at(&key), reason),
        NetError::UnknownPreset { name, .. } => {
            let known = PRESETS.iter().map(|preset| preset.name);
            document.unknown(&at("network.preset"), &name, known)
        }
        NetError::Rank { rank, workers, .. } => {
            let index = spec.workers.iter().position(|own| own.rank == rank);
            let path = at(&format!("network.worker.{}.rank", index.unwrap_or(0)));
            document.bad(
                &path,
                format!("must be less than the {workers} workers, not {rank}"),
            )
        }
        other => document.refuse(&at("network.*"), other.to_string()),
    }
}
