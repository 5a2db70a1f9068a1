//! What an experiment file may say about training, devices and the timing of compute.

use serde::{Deserialize, Serialize};

use crate::graph::BatchSpec;
use crate::net::{Bytes, Seconds};

/// The `[training]` section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainingConfig {
    /// Passes over the training nodes.
    pub epochs: usize,
    /// Evaluate after every so many epochs, and after the last. Default 1.
    #[serde(default = "one")]
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
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub score_isolated: bool,
}

const fn yes() -> bool {
    true
}

// The signature is serde's.
#[allow(clippy::trivially_copy_pass_by_ref)]
const fn is_yes(value: &bool) -> bool {
    *value
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

const fn one() -> usize {
    1
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
    #[serde(default, skip_serializing_if = "is_measured")]
    pub timing: Timing,
    /// `[[compute.worker]]`: workers on another device than the one of `timing`, each once.
    #[serde(default, rename = "worker", skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<WorkerProfile>,
}

/// A worker that computes on a device of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerProfile {
    /// Which worker.
    pub rank: usize,
    /// Name of its profile; see `grapevine list devices`.
    pub profile: String,
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

fn is_measured(timing: &Timing) -> bool {
    matches!(timing, Timing::Named(_))
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelledTiming {
    /// Name of a profile; see `grapevine list devices`.
    pub profile: String,
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
