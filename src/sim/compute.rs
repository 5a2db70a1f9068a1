//! How long computing takes in virtual time.

use std::sync::Arc;
use std::time::Duration;

use super::spec::LAUNCH;
use super::{ComputeConfig, ProfileSpec, SimError, Timing};
use crate::model::Work;
use crate::net::{DeviceCost, Seconds, SumCost, Topology, repeats};

/// A device by its published peak figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceProfile {
    /// Name in experiment files.
    pub name: &'static str,
    /// Single-precision operations per second.
    pub(crate) operations_per_second: f64,
    /// Bytes per second from and to its memory.
    pub(crate) bytes_per_second: f64,
    /// Time to start one kernel.
    pub launch: Seconds,
    /// Bytes per second between its memory and its host's, each way; nothing where these are one.
    pub(crate) host_bytes_per_second: Option<f64>,
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
pub(crate) const DEVICE_PROFILES: [DeviceProfile; 5] = [
    DeviceProfile {
        name: "cpu-core",
        // 99.2 by the source, rounded.
        operations_per_second: 100e9,
        bytes_per_second: 10e9,
        launch: Seconds(1e-6),
        host_bytes_per_second: None,
        memory: None,
        source: "one x86 core with two 256-bit fused multiply-add units at 3.1 GHz (2 x 8 x 2 x 3.1e9); memory share assumed",
    },
    DeviceProfile {
        name: "t4",
        operations_per_second: 8.1e12,
        bytes_per_second: 320e9,
        launch: LAUNCH,
        host_bytes_per_second: Some(15.75e9),
        memory: Some(16_000_000_000),
        source: "NVIDIA T4 data sheet: 8.1 TFLOPS FP32, 16 GB, PCIe 3.0 x16 (8 GT/s x 16 lanes x 128/130); product brief: up to 320 GB/s (256 bits at 10 Gb/s; the data sheet says 300)",
    },
    DeviceProfile {
        name: "v100",
        operations_per_second: 15.7e12,
        bytes_per_second: 900e9,
        launch: LAUNCH,
        host_bytes_per_second: Some(15.75e9),
        memory: Some(32_000_000_000),
        source: "NVIDIA V100 SXM2 data sheet: 15.7 TFLOPS FP32, 900 GB/s, 32 GB, PCIe 3.0 x16",
    },
    DeviceProfile {
        name: "a100",
        operations_per_second: 19.5e12,
        bytes_per_second: 1_555e9,
        launch: LAUNCH,
        host_bytes_per_second: Some(31.5e9),
        memory: Some(40_000_000_000),
        source: "NVIDIA A100 40 GB data sheet: 19.5 TFLOPS FP32, 1,555 GB/s, PCIe 4.0 x16",
    },
    DeviceProfile {
        name: "h100",
        operations_per_second: 67e12,
        bytes_per_second: 3_350e9,
        launch: LAUNCH,
        host_bytes_per_second: Some(63e9),
        memory: Some(80_000_000_000),
        source: "NVIDIA H100 SXM data sheet: 67 TFLOPS FP32, 3.35 TB/s, 80 GB, PCIe 5.0 x16",
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
                // Of five names one is always the nearest, so that no threshold is needed.
                .min_by_key(|profile| strsim::damerau_levenshtein(profile.name, name))
                .map_or("", |profile| profile.name);
            SimError::Input(format!(
                "there is no device profile \"{name}\"; did you mean \"{nearest}\"? (`grapevine list devices` shows all)"
            ))
        })
    }

    /// The device that an experiment file asks for.
    ///
    /// # Errors
    /// If there is no profile of that name, or a figure is no positive number or no size of a
    /// memory.
    pub(crate) fn of(spec: &ProfileSpec) -> Result<Self, SimError> {
        let sheet = match spec {
            ProfileSpec::Named(name) => return Self::named(name),
            ProfileSpec::Own(sheet) => sheet,
        };
        for (key, figure) in [
            ("operations_per_second", Some(sheet.operations_per_second)),
            ("bytes_per_second", Some(sheet.bytes_per_second)),
            ("host_bytes_per_second", sheet.host_bytes_per_second),
            ("memory", sheet.memory.map(|memory| memory.0 as f64)),
        ] {
            if figure.is_some_and(|figure| !(figure > 0.0 && figure.is_finite())) {
                let what = format!("`{key}` of a device must be a number above 0");
                return Err(SimError::Input(what));
            }
        }
        // A number whose unit was left out.
        if sheet.memory.is_some_and(|memory| memory.0 < 1_000_000) {
            let what =
                "`memory` of a device must be 1 MB or more; a number without a unit is bytes";
            return Err(SimError::Input(what.to_owned()));
        }
        Ok(Self {
            name: "of the experiment file",
            operations_per_second: sheet.operations_per_second,
            bytes_per_second: sheet.bytes_per_second,
            launch: sheet.launch,
            host_bytes_per_second: sheet.host_bytes_per_second,
            memory: sheet.memory.map(|memory| memory.0),
            source: "the experiment file",
        })
    }

    /// Time for `work`: the slower of arithmetic and memory (Williams, Waterman and Patterson,
    /// 2009), each at half the published peak, and a launch for each of its kernels.
    pub fn time(&self, work: Work) -> Seconds {
        let arithmetic = work.operations / (EFFICIENCY * self.operations_per_second);
        let memory = work.bytes / (EFFICIENCY * self.bytes_per_second);
        Seconds(self.launch.0 * work.launches + arithmetic.max(memory))
    }

    /// Time to copy a byte to the host or back, at half the published peak.
    pub(crate) fn copy_per_byte(&self) -> Seconds {
        let bandwidth = self.host_bytes_per_second;
        bandwidth.map_or(Seconds::ZERO, |peak| Seconds(1.0 / (EFFICIENCY * peak)))
    }

    /// What summing received values takes.
    pub(crate) fn sums(&self) -> SumCost {
        let (none, one) = (
            Work {
                launches: 1.0,
                ..Work::default()
            },
            Work::sum(1),
        );
        let start = self.time(none);
        SumCost {
            start,
            per_value: Seconds(self.time(one).0 - start.0),
        }
    }
}

/// The rule that turns a piece of work into virtual time.
#[derive(Clone, Debug, PartialEq)]
pub enum ComputeTiming {
    /// As long as it took.
    Measured,
    /// As long as each worker's device would take, by its profile.
    Modelled(Arc<[DeviceProfile]>),
}

impl ComputeTiming {
    /// The rule of a configuration for so many workers.
    ///
    /// # Errors
    /// If a profile does not exist, a worker is named that does not exist or twice, or one has a
    /// profile though time is measured.
    pub fn new(config: &ComputeConfig, workers: usize) -> Result<Self, SimError> {
        let Timing::Modelled(modelled) = &config.timing else {
            return if config.workers.is_empty() {
                Ok(Self::Measured)
            } else {
                Err(SimError::Input(
                    "needs timing = { profile = … }, which the other workers have".to_owned(),
                ))
            };
        };
        let device = |spec: &ProfileSpec| {
            let profile = DeviceProfile::of(spec)?;
            Ok::<_, SimError>(DeviceProfile {
                // Without staging the device sends from its own memory, as if no bus were between.
                host_bytes_per_second: profile.host_bytes_per_second.filter(|_| modelled.staging),
                ..profile
            })
        };
        let mut devices = vec![device(&modelled.profile)?; workers];
        let mut named = vec![false; workers];
        for one in &config.workers {
            let Some(named) = named.get_mut(one.rank) else {
                return Err(SimError::Input(format!(
                    "names worker {}, but the workers are numbered 0 to {}",
                    one.rank,
                    workers - 1
                )));
            };
            if std::mem::replace(named, true) {
                return Err(SimError::Input(format!("names worker {} twice", one.rank)));
            }
            devices[one.rank] = device(&one.profile)?;
        }
        Ok(Self::Modelled(devices.into()))
    }

    /// Whether each worker computes on the device of the one so many before it.
    pub(crate) fn repeats(&self, period: usize) -> bool {
        match self {
            Self::Measured => true,
            Self::Modelled(devices) => repeats(devices, period),
        }
    }

    /// The device of a worker, where time is modelled.
    pub(crate) fn device(&self, rank: usize) -> Option<&DeviceProfile> {
        match self {
            Self::Measured => None,
            Self::Modelled(devices) => Some(&devices[rank]),
        }
    }

    /// A network between such devices: what they send is copied to the host first, what they
    /// receive is copied back, and what arrives in a collective is summed.
    pub fn between(&self, topology: Topology) -> Topology {
        match self {
            Self::Measured => topology,
            Self::Modelled(devices) => {
                let cost = |device: &DeviceProfile| DeviceCost {
                    copy_per_byte: device.copy_per_byte(),
                    sums: device.sums(),
                };
                topology.with_devices(devices.iter().map(cost).collect())
            }
        }
    }

    /// Virtual time of a piece of work on a worker that computes `factor` times as fast as its
    /// device.
    pub(crate) fn time(&self, rank: usize, work: Work, took: Duration, factor: f64) -> Seconds {
        let seconds = match self.device(rank) {
            None => took.as_secs_f64(),
            Some(device) => device.time(work).0,
        };
        // Measured time, too: the emulated worker is that much faster than the device of this
        // machine.
        Seconds(seconds / factor)
    }

    /// The same on the slowest of all workers of a network.
    pub(crate) fn slowest(&self, topology: &Topology, work: Work, took: Duration) -> Seconds {
        let time = |rank| self.time(rank, work, took, topology.compute_factor(rank));
        let times = (0..topology.workers()).map(time);
        times.fold(Seconds::ZERO, Seconds::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::NetworkSpec;

    #[test]
    fn messages_are_copied_by_the_bus_unless_devices_talk_directly() {
        let network: NetworkSpec = toml::from_str("preset = \"nvlink\"").unwrap();
        let per_byte = |timing: &str| {
            let timing = toml::from_str(timing).unwrap();
            let timing = ComputeTiming::new(&timing, 2).unwrap();
            let topology = timing.between(network.topology(2).unwrap());
            let sums = topology.sum_time(0, 1);
            (topology.message_cost(0).per_byte.0, sums > Seconds::ZERO)
        };
        let half_of_pcie_3 = 1.0 / (0.5 * 15.75e9);
        assert_eq!(
            per_byte("timing = { profile = \"t4\" }"),
            (half_of_pcie_3, true)
        );
        let direct = "timing = { profile = \"t4\", staging = false }";
        assert_eq!(per_byte(direct), (0.0, true));
        assert_eq!(per_byte("timing = { profile = \"cpu-core\" }"), (0.0, true));
        assert_eq!(per_byte("timing = \"measured\""), (0.0, false));
    }

    #[test]
    fn a_worker_on_a_device_of_its_own_has_its_times_its_bus_and_its_memory() {
        let config = "timing = { profile = \"t4\" }\nworker = [{ rank = 1, profile = \"h100\" }]";
        let timing = ComputeTiming::new(&toml::from_str(config).unwrap(), 3).unwrap();
        let [t4, h100] = ["t4", "h100"].map(|name| DeviceProfile::named(name).unwrap());
        let work = Work::pass(1_000_000);
        for (rank, device) in [(0, t4), (1, h100), (2, t4)] {
            let time = timing.time(rank, work, Duration::ZERO, 2.0);
            assert_eq!(time, Seconds(device.time(work).0 / 2.0));
            assert_eq!(timing.device(rank).unwrap().memory, device.memory);
        }
        assert!(!timing.repeats(1) && timing.repeats(2));
        let network: NetworkSpec = toml::from_str("preset = \"ethernet-10g\"").unwrap();
        let topology = timing.between(network.topology(3).unwrap());
        let slowest = timing.slowest(&topology, work, Duration::ZERO);
        assert_eq!(slowest, t4.time(work));
        for (rank, device) in [(0, t4), (1, h100)] {
            assert_eq!(topology.message_cost(rank).per_byte, device.copy_per_byte());
            let sums = device.sums();
            let expected = sums.start.0 + 1e6 * sums.per_value.0;
            assert_eq!(topology.sum_time(rank, 1_000_000), Seconds(expected));
        }
        assert_eq!(topology.period(), None);
        let twice = config.replace("rank = 1", "rank = 0");
        let twice = twice.replace("}]", "}, { rank = 0, profile = \"a100\" }]");
        let refused = ComputeTiming::new(&toml::from_str(&twice).unwrap(), 3).unwrap_err();
        assert!(refused.to_string().contains("worker 0 twice"), "{refused}");
    }

    #[test]
    fn a_memory_without_its_unit_is_refused() {
        let sheet = "timing = { profile = { operations_per_second = 1e12, bytes_per_second = 1e12, memory = 24 } }";
        let of = |text: &str| ComputeTiming::new(&toml::from_str(text).unwrap(), 1);
        let refused = of(sheet).unwrap_err().to_string();
        assert!(refused.contains("1 MB or more"), "{refused}");
        assert!(of(&sheet.replace("24", "\"24GB\"")).is_ok());
    }

    #[test]
    fn a_data_sheet_is_as_good_as_a_name() {
        let own = "timing = { profile = { operations_per_second = 8.1e12, bytes_per_second = 320e9, \
                   host_bytes_per_second = 15.75e9, memory = \"16GB\" } }";
        let [own, named] = [own, "timing = { profile = \"t4\" }"].map(|text| {
            let config: ComputeConfig = toml::from_str(text).unwrap();
            let again: ComputeConfig = toml::from_str(&toml::to_string(&config).unwrap()).unwrap();
            assert_eq!(again, config, "as it is resolved");
            let timing = ComputeTiming::new(&config, 1).unwrap();
            *timing.device(0).unwrap()
        });
        let [name, source] = [named.name, named.source];
        assert_eq!(
            DeviceProfile {
                name,
                source,
                ..own
            },
            named
        );
        let few: Result<ComputeConfig, _> =
            toml::from_str("timing = { profile = { bytes_per_second = 1e9 } }");
        few.unwrap_err();
        let bad = "timing = { profile = { operations_per_second = 0.0, bytes_per_second = 1e9 } }";
        let refused = ComputeTiming::new(&toml::from_str(bad).unwrap(), 1).unwrap_err();
        let said = refused.to_string();
        assert!(
            said.contains("`operations_per_second` of a device"),
            "{said}"
        );
    }

    #[test]
    fn each_kernel_is_launched_by_itself() {
        let t4 = DeviceProfile::named("t4").unwrap();
        let (one, none) = (Work::pass(1_000), Work::pass(0));
        let twice = t4.time(one + one).0 - 2.0 * t4.time(one).0;
        assert!(twice.abs() < 1e-15);
        assert!(t4.time(one) > t4.launch);
        assert_eq!(t4.time(none), Seconds::ZERO);
    }
}
