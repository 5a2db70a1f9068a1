//! How long computing takes in virtual time.

use std::time::Duration;

use super::{SimError, Timing};
use crate::model::Work;
use crate::net::Seconds;

/// A device by its published peak figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceProfile {
    /// Name in experiment files.
    pub name: &'static str,
    /// Single-precision operations per second.
    pub operations_per_second: f64,
    /// Bytes per second from and to its memory.
    pub bytes_per_second: f64,
    /// Time to start one piece of work.
    pub launch: Seconds,
    /// Its memory in bytes, where it has some of its own.
    pub memory: Option<u64>,
    /// Where the figures are from.
    pub source: &'static str,
}

/// Share of the published peak that dense products are assumed to reach, and of the bandwidth that
/// sparse ones do. One factor for all profiles, so that they can be compared; calibrate against a
/// measured run before quoting absolute times.
const EFFICIENCY: f64 = 0.5;

/// Profiles for modelled compute.
pub const DEVICE_PROFILES: [DeviceProfile; 5] = [
    DeviceProfile {
        name: "cpu-core",
        operations_per_second: 100e9,
        bytes_per_second: 10e9,
        launch: Seconds(1e-6),
        memory: None,
        source: "one x86 core with two 256-bit fused multiply-add units at 3.1 GHz (2 x 8 x 2 x 3.1e9); memory share assumed",
    },
    DeviceProfile {
        name: "t4",
        operations_per_second: 8.1e12,
        bytes_per_second: 320e9,
        launch: Seconds(10e-6),
        memory: Some(16_000_000_000),
        source: "NVIDIA T4 data sheet: 8.1 TFLOPS FP32, 320 GB/s, 16 GB",
    },
    DeviceProfile {
        name: "v100",
        operations_per_second: 15.7e12,
        bytes_per_second: 900e9,
        launch: Seconds(10e-6),
        memory: Some(32_000_000_000),
        source: "NVIDIA V100 SXM2 data sheet: 15.7 TFLOPS FP32, 900 GB/s, 32 GB",
    },
    DeviceProfile {
        name: "a100",
        operations_per_second: 19.5e12,
        bytes_per_second: 1_555e9,
        launch: Seconds(10e-6),
        memory: Some(40_000_000_000),
        source: "NVIDIA A100 40 GB data sheet: 19.5 TFLOPS FP32, 1,555 GB/s",
    },
    DeviceProfile {
        name: "h100",
        operations_per_second: 66.9e12,
        bytes_per_second: 3_350e9,
        launch: Seconds(10e-6),
        memory: Some(80_000_000_000),
        source: "NVIDIA H100 SXM data sheet: 67 TFLOPS FP32, 3.35 TB/s, 80 GB",
    },
];

impl DeviceProfile {
    /// The profile of that name.
    ///
    /// # Errors
    /// If there is none; the message names the nearest.
    pub fn named(name: &str) -> Result<Self, SimError> {
        DEVICE_PROFILES.iter().find(|profile| profile.name == name).copied().ok_or_else(|| {
            let nearest = DEVICE_PROFILES
                .iter()
                .min_by_key(|profile| strsim::damerau_levenshtein(profile.name, name))
                .map_or("", |profile| profile.name);
            SimError::Input(format!(
                "there is no device profile \"{name}\"; did you mean \"{nearest}\"? (`grapevine list devices` shows all)"
            ))
        })
    }

    /// Time for `work`: the slower of arithmetic and memory (Williams, Waterman and Patterson,
    /// 2009), each at half the published peak. What is no work is not started.
    #[must_use]
    pub fn time(&self, work: Work) -> Seconds {
        if work == Work::default() {
            return Seconds::ZERO;
        }
        let arithmetic = work.operations / (EFFICIENCY * self.operations_per_second);
        let memory = work.bytes / (EFFICIENCY * self.bytes_per_second);
        Seconds(self.launch.0 + arithmetic.max(memory))
    }
}

/// The rule that turns a piece of work into virtual time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ComputeTiming {
    /// As long as it took.
    Measured,
    /// As long as a device with this profile would take.
    Modelled(DeviceProfile),
}

impl ComputeTiming {
    /// The rule of a configuration.
    ///
    /// # Errors
    /// If the profile does not exist.
    pub fn new(timing: &Timing) -> Result<Self, SimError> {
        match timing {
            Timing::Named(_) => Ok(Self::Measured),
            Timing::Modelled(modelled) => {
                DeviceProfile::named(&modelled.profile).map(Self::Modelled)
            }
        }
    }

    /// Virtual time of a piece of work on a worker that computes `factor` times as fast as the
    /// device.
    #[must_use]
    pub fn time(&self, work: Work, took: Duration, factor: f64) -> Seconds {
        let seconds = match self {
            Self::Measured => took.as_secs_f64(),
            Self::Modelled(profile) => profile.time(work).0,
        };
        Seconds(seconds / factor)
    }
}
