//! What an experiment file may say about training, devices and the timing of compute.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::defaults::{count, is_default};
use crate::graph::BatchSpec;
use crate::net::{Bytes, Seconds};

/// The `[training]` section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainingConfig {
    /// Passes over the training nodes.
    pub epochs: usize,
    /// Evaluate after every so many epochs, and after the last. Default 1.
    #[serde(default = "count::<1>")]
    pub evaluate_every: usize,
    /// Validation accuracy for `seconds_to_target` and `bytes_to_target`, in (0, 1].
    pub target_accuracy: Option<f64>,
    /// Payload for `accuracy_at_byte_budget`: `"480MB"`, or a number of bytes.
    pub byte_budget: Option<Bytes>,
    /// Simulated time for `accuracy_at_time_budget`: `"250ms"`, or a number of seconds.
    pub time_budget: Option<Seconds>,
    /// Mini-batches with sampled neighbours. Default: each epoch is one step with all training
    /// nodes and neighbours.
    pub batch: Option<BatchSpec>,
    /// Write a checkpoint after every so many epochs, from which `--resume` goes on. Default: none.
    pub checkpoint_every: Option<usize>,
    /// Whether nodes without neighbours count in accuracies; the code of RETEXO's authors leaves
    /// them out. Default true.
    // Left out where it is the default, so that folders from before it can be resumed.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub score_isolated: bool,
    /// Whether workers know the training nodes and the edges between them alone. Models are scored
    /// on the whole graph. Default false; `--inductive` of BNS-GCN and `PipeGCN`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub inductive: bool,
}

const fn yes() -> bool {
    true
}

impl ComputeConfig {
    /// Whether mini-batches are drawn and gathered beside the devices.
    pub(crate) const fn samples_beside(&self) -> bool {
        matches!(&self.timing, Timing::Modelled(timing) if !timing.sampling)
    }
}

impl TrainingConfig {
    /// Whether the model is evaluated after this epoch of so many.
    pub(crate) const fn evaluates(&self, epoch: usize, epochs: usize) -> bool {
        (epoch + 1).is_multiple_of(self.evaluate_every) || epoch + 1 == epochs
    }
}

/// The `[device]` section.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceConfig {
    /// Which tensor backend. Default `flex`.
    #[serde(default)]
    pub backend: Backend,
    /// For `wgpu`: parts of adapter names, one per worker in turn. Default: the best adapter for
    /// all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub adapters: Vec<String>,
}

/// Tensor backends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backend {
    /// burn-flex on the CPU.
    #[default]
    Flex,
    /// burn-ndarray on the CPU; needs the cargo feature `ndarray`.
    Ndarray,
    /// burn-wgpu on a graphics device or a software adapter; needs the cargo feature `wgpu`.
    Wgpu,
}

/// The `[compute]` section.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComputeConfig {
    /// How long computing takes in virtual time. Default `"measured"`.
    // Left out where it is the default, so that a sweep can put a profile there.
    #[serde(default, skip_serializing_if = "is_default")]
    pub timing: Timing,
    /// `[[compute.worker]]`: workers on another device than the one of `timing`, each once.
    #[serde(default, rename = "worker", skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<WorkerProfile>,
}

/// A worker that computes on a device of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerProfile {
    /// Which worker.
    pub rank: usize,
    /// Its device.
    pub profile: ProfileSpec,
}

/// A device by the name of its profile, or by its data sheet.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ProfileSpec {
    /// One of those that `grapevine list devices` shows.
    Named(String),
    /// `{ operations_per_second = …, bytes_per_second = … }`: one that has none.
    Own(OwnProfile),
}

/// A device by the peak figures of its data sheet.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnProfile {
    /// Single-precision operations per second.
    pub operations_per_second: f64,
    /// Bytes per second from and to its memory.
    pub bytes_per_second: f64,
    /// Bytes per second between its memory and its host's, each way. Default: these are one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_bytes_per_second: Option<f64>,
    /// Its memory. Default: not known, so that nothing is said of what fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Bytes>,
    /// Time to start one kernel. Default 10 us, as assumed for all accelerators that have a name.
    #[serde(default = "launch")]
    pub launch: Seconds,
}

/// Time to start one kernel of an accelerator. Assumed: data sheets state none.
pub(super) const LAUNCH: Seconds = Seconds(10e-6);

fn launch() -> Seconds {
    LAUNCH
}

// Not derived, as of several forms serde says no more than that none fits.
impl<'de> Deserialize<'de> for ProfileSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameOrSheet;
        impl<'de> Visitor<'de> for NameOrSheet {
            type Value = ProfileSpec;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a profile, or a table with `operations_per_second` and `bytes_per_second`")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<ProfileSpec, E> {
                Ok(ProfileSpec::Named(name.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, sheet: A) -> Result<ProfileSpec, A::Error> {
                let sheet = OwnProfile::deserialize(MapAccessDeserializer::new(sheet));
                sheet.map(ProfileSpec::Own)
            }
        }
        deserializer.deserialize_any(NameOrSheet)
    }
}

/// How long computing takes in virtual time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Timing {
    /// `"measured"`: as long as it took on the device.
    // An enumeration of one name, not a text, so that serde refuses any other.
    Named(MeasuredTiming),
    /// `{ profile = "a100" }`: from operations and bytes against a device profile, the same on
    /// every machine.
    Modelled(ModelledTiming),
}

impl Default for Timing {
    fn default() -> Self {
        Self::Named(MeasuredTiming::Measured)
    }
}

/// The one named way of timing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MeasuredTiming {
    /// As long as it took on the device.
    Measured,
}

/// Timing from a device profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelledTiming {
    /// The device of all workers.
    pub profile: ProfileSpec,
    /// Whether messages are copied through the host's memory, as in BNS-GCN and `PipeGCN`, whose
    /// programs communicate by Gloo. Default true; false where accelerators talk to each other
    /// directly.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub staging: bool,
    /// Whether mini-batches are drawn and gathered by the device that trains. Default true; false
    /// where processors beside it do that and keep ahead of it, as `DistDGL`'s sampler processes
    /// are to: it then takes none of a worker's time, only its messages do.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub sampling: bool,
}
