//! The sections of an experiment file that describe one training setting.

use serde::Serialize;
use toml::Value;

use crate::graph::{
    DatasetSpec, EDGE_FACTOR, PartitionSpec, SplitFractions, SplitPerClass, SyntheticSpec, TaskSpec,
};
use crate::model::{ModelConfig, OptimizerConfig};
use crate::net::NetworkSpec;
use crate::sim::{
    Backend, ComputeConfig, ComputeTiming, DEVICE_PROFILES, DeviceConfig, DeviceProfile,
    ModelledTiming, ProfileSpec, Timing, TrainingConfig,
};

use super::check::{self, Checks};
use super::data;
use super::decode::{decode, decode_tagged};
use super::error::{ConfigError, Problem};
use super::homes::SECTIONS;
use super::locate::Document;
use super::path::KeyPath;

/// Everything that a run depends on besides its strategy and its seed, checked.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Settings {
    /// `[dataset]`, required.
    pub dataset: DatasetSpec,
    /// `[task]`; default: the data set's own.
    #[serde(skip_serializing_if = "TaskSpec::is_default")]
    pub task: TaskSpec,
    /// `[model]`, required.
    pub model: ModelConfig,
    /// `[optimizer]`; default: Adam with learning rate 0.01.
    pub optimizer: OptimizerConfig,
    /// `[training]`, required.
    pub training: TrainingConfig,
    /// `[partition]`, required.
    pub partition: PartitionSpec,
    /// `[network]`.
    pub network: NetworkSpec,
    /// `[device]`; default: the `flex` backend.
    pub device: DeviceConfig,
    /// `[compute]`; default: measured.
    pub compute: ComputeConfig,
}

impl Settings {
    /// Reads and checks the sections.
    pub(super) fn read(document: &Document) -> Result<Self, ConfigError> {
        let at = KeyPath::dotted;
        for name in SECTIONS {
            // serde would take a list of values in the order of a struct's fields.
            if let Some(value) = document.get(&at(name)).filter(|value| !value.is_table()) {
                return Err(mismatch(
                    document,
                    &at(name),
                    &format!("a table [{name}]"),
                    value,
                ));
            }
        }
        let optional = |name| document.get(&at(name)).map(|value| (at(name), value));
        let settings = Self {
            dataset: dataset(document, required(document, "dataset")?)?,
            task: super::optional(document, "task")?.unwrap_or_default(),
            model: decode(document, &at("model"), required(document, "model")?)?,
            optimizer: optional("optimizer")
                .map(|(path, value)| decode_tagged(document, &path, &with_kind(value, "adam")))
                .transpose()?
                .unwrap_or_default(),
            training: decode(document, &at("training"), required(document, "training")?)?,
            partition: decode(document, &at("partition"), required(document, "partition")?)?,
            network: super::optional(document, "network")?.unwrap_or_default(),
            device: super::optional(document, "device")?.unwrap_or_default(),
            compute: optional("compute")
                .map(|(path, value)| compute(document, &path, value))
                .transpose()?
                .unwrap_or_default(),
        };
        check(&settings, document)?;
        Ok(settings)
    }
}

/// Checks every section.
///
/// # Errors
/// The first value out of range, with its place.
fn check(settings: &Settings, document: &Document) -> Result<(), ConfigError> {
    let of = |section: &str| Checks {
        document,
        section: KeyPath::dotted(section),
    };
    data::dataset(&settings.dataset, &of("dataset"))?;
    check::model(&settings.model, &of("model"))?;
    check::optimizer(&settings.optimizer, &of("optimizer"))?;
    check::training(&settings.training, settings.model.layers, &of("training"))?;
    check::partition(&settings.partition, &of("partition"))?;
    check::network(
        &settings.network,
        settings.partition.workers,
        &of("network"),
    )?;
    let device = &settings.device;
    of("device").that(
        device.backend == Backend::Wgpu || device.adapters.is_empty(),
        "adapters",
        "are for backend = \"wgpu\" only: leave them out",
    )?;
    let profiles: Vec<&str> = DEVICE_PROFILES.iter().map(|profile| profile.name).collect();
    let known = |section: &str, profile: &ProfileSpec| match profile {
        ProfileSpec::Named(name) => of(section).known(name, "profile", &profiles),
        ProfileSpec::Own(_) => DeviceProfile::of(profile)
            .map(|_| ())
            .or_else(|error| of(section).that(false, "profile", &error.to_string())),
    };
    if let Timing::Modelled(timing) = &settings.compute.timing {
        known("compute.timing", &timing.profile)?;
    }
    let compute = &settings.compute;
    for (place, one) in compute.workers.iter().enumerate() {
        known(&format!("compute.worker.{place}"), &one.profile)?;
    }
    if let Err(error) = ComputeTiming::new(compute, settings.partition.workers) {
        of("compute").that(false, "worker", &error.to_string())?;
    }
    Ok(())
}

/// A section that says what `kind` it is: the default one where it does not say.
fn with_kind(section: &Value, default: &str) -> Value {
    let mut section = section.clone();
    if let Value::Table(table) = &mut section {
        table.entry("kind").or_insert_with(|| default.into());
    }
    section
}

pub(super) fn required<'a>(document: &'a Document, name: &str) -> Result<&'a Value, ConfigError> {
    let path = KeyPath::dotted(name);
    document.get(&path).ok_or_else(|| {
        document.error(
            &path,
            Problem::MissingSection {
                section: name.to_owned(),
            },
        )
    })
}

/// serde tries the forms of `split` one after the other and only says that none fits; which form
/// is meant shows from the keys, and that form is tried first, for its message.
fn dataset(document: &Document, value: &Value) -> Result<DatasetSpec, ConfigError> {
    let path = KeyPath::dotted("dataset");
    if let Some(synthetic) = value.get("synthetic") {
        decode_tagged::<SyntheticSpec>(document, &path.join("synthetic"), synthetic)?;
    }
    if let Some(split) = value.get("split") {
        let path = path.join("split");
        match split {
            Value::String(_) => {}
            Value::Table(keys) if keys.keys().any(|key| key.ends_with("_per_class")) => {
                decode::<SplitPerClass>(document, &path, split)?;
            }
            Value::Table(_) => {
                decode::<SplitFractions>(document, &path, split)?;
            }
            other => {
                let expected = "\"public\", { train = …, val = … } or { train_per_class = …, \
                                val_per_class = … } (or val = …)";
                return Err(mismatch(document, &path, expected, other));
            }
        }
    }
    let mut spec: DatasetSpec = decode(document, &path, value)?;
    // Said only where it is used, so that what is resolved can be read again.
    if let Some(SyntheticSpec::Rmat {
        edge_factor,
        edges: None,
        ..
    }) = &mut spec.synthetic
    {
        edge_factor.get_or_insert(EDGE_FACTOR);
    }
    Ok(spec)
}

/// As [`dataset`], for the forms of `timing`.
fn compute(
    document: &Document,
    path: &KeyPath,
    value: &Value,
) -> Result<ComputeConfig, ConfigError> {
    if let Some(timing) = value.get("timing") {
        let path = path.join("timing");
        match timing {
            Value::String(name) if name == "measured" => {}
            Value::String(name) => {
                return Err(document.unknown(&path, name, ["measured", "{ profile = … }"]));
            }
            Value::Table(_) => {
                decode::<ModelledTiming>(document, &path, timing)?;
            }
            other => {
                return Err(mismatch(
                    document,
                    &path,
                    "\"measured\" or { profile = … }",
                    other,
                ));
            }
        }
    }
    decode(document, path, value)
}

pub(super) fn mismatch(
    document: &Document,
    path: &KeyPath,
    expected: &str,
    found: &Value,
) -> ConfigError {
    let problem = Problem::WrongType {
        key: path.key().to_owned(),
        expected: expected.to_owned(),
        found: if found.is_array() {
            "a list".to_owned()
        } else {
            found.to_string()
        },
    };
    document.error(path, problem)
}
