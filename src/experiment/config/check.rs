//! The values that make sense: ranges, and keys that need or exclude each other.

use crate::graph::{
    DatasetSpec, FeatureSource, Format, NodeOrder, PartitionMethod, PartitionSpec, SplitSpec,
    SyntheticSpec,
};
use crate::model::{ModelConfig, ModelKind, OptimizerConfig};
use crate::net::{Bytes, NetError, NetworkSpec, PRESETS, Seconds};
use crate::sim::TrainingConfig;

use super::Vocabulary;
use super::error::{ConfigError, Problem};
use super::locate::Document;
use super::path::KeyPath;

/// More columns than any layer has had: a slip of the hand beyond, that would ask for all memory
/// there is.
const WIDEST: usize = 1 << 16;

/// Most workers: what is kept for each pair of neighbours must have room.
pub(super) const MOST_WORKERS: usize = 1 << 20;

/// Most edges that are drawn, repeated ones included.
const MOST_DRAWS: usize = 1 << 40;

/// Most layers: beyond that nothing trains.
const DEEPEST: usize = 1 << 10;

/// Most features of all nodes together: 256 GiB.
const MOST_VALUES: usize = 1 << 36;

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

    pub(super) fn columns(&self, hidden: usize) -> Result<(), ConfigError> {
        self.positive(hidden, "hidden")?;
        let message = format!("must be at most {WIDEST} columns, not {hidden}");
        self.that(hidden <= WIDEST, "hidden", &message)
    }

    pub(super) fn above_zero(&self, value: f64, key: &str) -> Result<(), ConfigError> {
        self.range(value > 0.0 && value.is_finite(), key, "more than 0", value)
    }

    fn not_negative(&self, value: f64, key: &str) -> Result<(), ConfigError> {
        self.range(value >= 0.0 && value.is_finite(), key, "0 or more", value)
    }

    fn below_one(&self, value: f64, key: &str) -> Result<(), ConfigError> {
        let holds = (0.0..1.0).contains(&value);
        self.range(holds, key, "0 or more and less than 1", value)
    }

    fn share(&self, value: f64, key: &str) -> Result<(), ConfigError> {
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
    fn section(&self, message: &str) -> ConfigError {
        let problem = Problem::Other {
            message: message.to_owned(),
        };
        // A key of the section, so that the message says which section it is in.
        self.document.error(&self.section.join("*"), problem)
    }

    fn key(&self, key: &str) -> KeyPath {
        key.split('.')
            .fold(self.section.clone(), |path, segment| path.join(segment))
    }
}

pub(super) fn dataset(
    spec: &DatasetSpec,
    check: &Checks<'_>,
    vocabulary: &Vocabulary<'_>,
) -> Result<(), ConfigError> {
    let sources = [
        spec.name.is_some(),
        spec.path.is_some(),
        spec.synthetic.is_some(),
        spec.counts.is_some(),
    ];
    match sources.into_iter().filter(|&given| given).count() {
        0 => {
            return Err(check.section(
                "no data; give one of `name`, `path` (with `format`), `synthetic` and `counts`",
            ));
        }
        1 => {}
        _ => {
            return Err(check.section(
                "`name`, `path`, `synthetic` and `counts` exclude each other; keep the one you mean",
            ));
        }
    }
    if let Some(name) = &spec.name {
        check.known(name, "name", vocabulary.datasets)?;
    }
    check.that(
        spec.path.is_none() || spec.format.is_some(),
        "path",
        "needs `format` beside it: how the files are written",
    )?;
    check.that(
        spec.path.is_some() || spec.format.is_none(),
        "format",
        "goes with `path`; remove it",
    )?;
    columns(spec, check)?;
    check.that(
        spec.path.is_some() || spec.fetched() || !spec.optional,
        "optional",
        "goes with `path` and the `name` of a data set that is fetched: nothing else can be missing; remove it",
    )?;
    if spec.counts.is_some() {
        let only = [
            (spec.split == SplitSpec::default(), "split"),
            (spec.normalise_features.is_none(), "normalise_features"),
            (spec.order == NodeOrder::default(), "order"),
        ];
        for (absent, key) in only {
            check.that(
                absent,
                key,
                "needs the nodes themselves, and `counts` has only how many; remove it",
            )?;
        }
    }
    match spec.split {
        SplitSpec::Named(_) => {}
        SplitSpec::Fractions(split) => {
            check.share(split.train, "split.train")?;
            check.share(split.val, "split.val")?;
            check.that(
                split.train + split.val < 1.0,
                "split",
                "leaves no test nodes: `train` and `val` must add up to less than 1",
            )?;
        }
        SplitSpec::PerClass(split) => {
            check.positive(split.train_per_class, "split.train_per_class")?;
            check.that(
                split.val_per_class.is_some() != split.val.is_some(),
                "split",
                "needs either `val_per_class` or `val`: the validation nodes of each class or of all",
            )?;
            check.positive(split.val_per_class.unwrap_or(1), "split.val_per_class")?;
            check.positive(split.val.unwrap_or(1), "split.val")?;
        }
    }
    let inside = Checks {
        document: check.document,
        section: check.section.join("synthetic"),
    };
    spec.synthetic
        .as_ref()
        .map_or(Ok(()), |spec| synthetic(spec, &inside))
}

/// Keys that say how tables are read.
fn columns(spec: &DatasetSpec, check: &Checks<'_>) -> Result<(), ConfigError> {
    let csv = matches!(spec.format, Some(Format::Csv | Format::CsvJson));
    check.that(
        csv || spec.header.is_none(),
        "header",
        "goes with `format = \"csv\"` and \"csv-json\": other formats have none; remove it",
    )?;
    let columns = matches!(spec.features, Some(FeatureSource::Columns(_)));
    check.that(
        spec.format == Some(Format::Csv)
            || spec.features.is_none()
            || (columns && spec.format == Some(Format::Parquet)),
        "features",
        "goes with `format = \"csv\"`, and a list of columns with \"parquet\", too: other formats say where features are; remove it",
    )?;
    let table = csv || spec.format == Some(Format::Parquet);
    let label = table || spec.format == Some(Format::Igb);
    for (given, fits, key) in [
        (spec.nodes.is_some(), table, "nodes"),
        (spec.edges.is_some(), table, "edges"),
        (spec.id.is_some(), table, "id"),
        (spec.label.is_some(), label, "label"),
        (spec.source.is_some(), table, "source"),
        (spec.target.is_some(), table, "target"),
    ] {
        check.that(
            fits || !given,
            key,
            "goes with the formats of tables, \"csv\", \"csv-json\" and \"parquet\"; remove it",
        )?;
    }
    Ok(())
}

pub(super) fn synthetic(spec: &SyntheticSpec, check: &Checks<'_>) -> Result<(), ConfigError> {
    let of_features = |features: usize, nodes: usize| {
        check.positive(features, "features")?;
        let values = features.checked_mul(nodes);
        check.that(
            values.is_some_and(|values| values <= MOST_VALUES),
            "features",
            &format!("{features} of each of {nodes} nodes are more than {MOST_VALUES} values"),
        )
    };
    match spec {
        SyntheticSpec::Sbm {
            nodes,
            classes,
            features,
            degree_within,
            degree_between,
            noise,
            ..
        } => {
            check.positive(*nodes, "nodes")?;
            check.positive(*classes, "classes")?;
            of_features(*features, *nodes)?;
            check.that(nodes >= classes, "nodes", "must be at least `classes`")?;
            check.not_negative(*degree_within, "degree_within")?;
            check.not_negative(*degree_between, "degree_between")?;
            check.not_negative(*noise, "noise")
        }
        SyntheticSpec::Rmat {
            scale,
            edge_factor,
            edges,
            nodes,
            classes,
            features,
            quadrants,
            ..
        } => {
            check.that(
                (1..=31).contains(scale),
                "scale",
                &format!("must be 1 to 31 (2^scale nodes), not {scale}"),
            )?;
            check.that(
                edges.is_none() || edge_factor.is_none(),
                "edges",
                "says how many there are, and so does `edge_factor`, which would do nothing: keep one",
            )?;
            let factor = edge_factor.unwrap_or(1);
            check.positive(factor, "edge_factor")?;
            check.that(
                // Divided, not multiplied: the product may not fit into a number.
                factor <= MOST_DRAWS >> scale,
                "edge_factor",
                &format!("draws more than {MOST_DRAWS} edges with scale = {scale}"),
            )?;
            check.positive(*classes, "classes")?;
            of_features(*features, nodes.unwrap_or(1 << scale))?;
            if let Some(nodes) = nodes {
                check.positive(*nodes, "nodes")?;
                check.that(
                    *nodes as u64 <= 1 << scale,
                    "nodes",
                    "must be no more than the 2^scale nodes there are",
                )?;
            }
            // The fourth quadrant has what the three leave.
            let sum: f64 = quadrants.iter().sum();
            check.that(
                quadrants.iter().all(|&share| share >= 0.0) && sum <= 1.0,
                "quadrants",
                "must be three probabilities that add up to no more than 1",
            )
        }
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
    if let Some(dropout) = config.input_dropout {
        check.below_one(dropout, "input_dropout")?;
    }
    check.above_zero(config.gain, "gain")?;
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
    check.positive(spec.workers, "workers")?;
    check.that(
        spec.workers <= MOST_WORKERS,
        "workers",
        &format!("must be at most {MOST_WORKERS}, not {}", spec.workers),
    )?;
    let given = spec.method == PartitionMethod::Given;
    check.that(
        !given || spec.file.is_some(),
        "method",
        "\"given\" needs `file` beside it: one worker number per node and line",
    )?;
    check.that(
        given || spec.file.is_none(),
        "file",
        "goes with `method = \"given\"` only",
    )?;
    check.that(
        spec.balance.is_empty() || spec.method == PartitionMethod::Metis,
        "balance",
        "goes with `method = \"metis\"` only: the other methods know nodes alone; leave it out",
    )?;
    let twice = |(at, balance)| spec.balance[..at].contains(balance);
    check.that(
        !spec.balance.iter().enumerate().any(twice),
        "balance",
        "has an entry twice; say each of \"nodes\", \"training\" and \"edges\" once at most",
    )?;
    check.that(
        !given || spec.seed.is_none(),
        "seed",
        "does nothing with `method = \"given\"`, which draws nothing: leave it out",
    )
}

pub(super) fn network(
    spec: &NetworkSpec,
    workers: usize,
    check: &Checks<'_>,
    vocabulary: &Vocabulary<'_>,
) -> Result<(), ConfigError> {
    if let Some(preset) = &spec.preset {
        check.known(preset, "preset", vocabulary.networks)?;
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
        NetError::Description { key, reason } if key == "network" || key.ends_with(".*") => {
            let path = if key == "network" {
                at("network.*")
            } else {
                at(&key)
            };
            document.error(&path, Problem::Other { message: reason })
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
        other => document.error(
            &at("network.*"),
            Problem::Other {
                message: other.to_string(),
            },
        ),
    }
}
