//! Networks by name, each figure with its source.
//!
//! A worker's link in a [`star`](super::Topology::star), the same both ways. Where a source gives a
//! round trip, the latency here is half of it; where access is asymmetric, the slower way counts,
//! because in an exchange between equals every transfer passes somebody's uplink. In an edge
//! network, where clients only have to do with the server side, the faster way down counts beside
//! it. Machines are several workers with links of their own inside, who share NICs. The latency of
//! a NIC is half of that from machine to machine, with what the software at both ends takes, for
//! messages inside a machine do without.
//!
//! The overhead of a message at its ends comes from measurements of the software that carries it.
//! Where a latency was measured between programs, the overheads of both ends are in it, and are
//! taken off here. No source states a gap beyond the overhead.

use super::error::did_you_mean;
use super::{Bandwidth, FramingKind, LinkSpec, MachineSpec, NetError, Seconds};

/// A named network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Preset {
    /// The name in experiment files.
    pub name: &'static str,
    /// Of each worker's link, each way.
    pub bandwidth: Bandwidth,
    /// Towards a client of an edge network, where that is faster.
    pub down: Option<Bandwidth>,
    /// One way, between any two workers, beside what the message costs its ends.
    pub latency: Seconds,
    /// o of the `LogGP` model: how long a message occupies its sender, and then its receiver.
    pub overhead: Seconds,
    /// Of machines: how many workers share one, whose links are then those inside, and the NICs.
    pub machine: Option<MachineSpec>,
    /// Headers that its traffic carries. `None` where it is neither IP nor Ethernet, or where the
    /// bandwidth is what remains for payload.
    pub framing: FramingKind,
    /// Where the figures come from, one sentence.
    pub source: &'static str,
}

impl Preset {
    /// Its figures as an experiment file would give them.
    pub(crate) const fn link(&self) -> LinkSpec {
        LinkSpec {
            bandwidth: self.bandwidth,
            latency: self.latency,
        }
    }
}

/// What a message costs either end where the kernel's TCP or UDP carries it: half of the 3.36 us
/// that Linux takes to receive a packet and send one (Peter et al., Arrakis, OSDI 2014, table 1).
const KERNEL_STACK: Seconds = Seconds(1.7e-6);

/// Between two GPUs of a machine. No source states it.
const NVLINK: Seconds = Seconds(2e-6);

/// Half of 600 ns between the adapters and 2.1 us of MPI's overheads at both ends, as of
/// `infiniband-200g`.
// With the overhead of that preset, which is rounded: (0.6 + 2 · 1) / 2.
const INFINIBAND_NIC: Seconds = Seconds(1.3e-6);

/// Half of 15 us between virtual machines over TCP, as of `ethernet-100g`.
const KERNEL_NIC: Seconds = Seconds(7.5e-6);

/// Machines of so many GPUs and NICs.
const fn machine(gpus: usize, nics: usize, kbps: u32, latency: Seconds) -> MachineSpec {
    MachineSpec {
        gpus,
        nics,
        nic: LinkSpec {
            bandwidth: Bandwidth::from_kbps(kbps),
            latency,
        },
    }
}

/// The GPUs of a machine. Machines have its latency inside; others share that neither end costs
/// anything and that there is no IP, unless they say otherwise.
const NVLINK_PRESET: Preset = Preset {
    name: "nvlink",
    bandwidth: Bandwidth::from_kbps(3_600_000_000),
    down: None,
    latency: NVLINK,
    overhead: Seconds::ZERO,
    machine: None,
    framing: FramingKind::None,
    source: "NVIDIA H100 data sheet: NVLink 900 GB/s per GPU, both ways together, thus 3.6 \
             Tbps each way; it states no latency, 2 us is our assumption.",
};

/// Other networks of IP share its overhead and framing.
const ETHERNET_1G: Preset = Preset {
    name: "ethernet-1g",
    bandwidth: Bandwidth::from_kbps(1_000_000),
    down: None,
    // 100 us less KERNEL_STACK at both ends.
    latency: Seconds(96.6e-6),
    overhead: KERNEL_STACK,
    machine: None,
    framing: FramingKind::Ethernet,
    source: "Rate: IEEE 802.3ab; latency and both overheads: half of a median round trip of \
             about 0.2 ms over TCP within a pod (Guo et al., Pingmesh, SIGCOMM 2015), rounded.",
};

/// All presets, fastest first; machines by their links inside.
pub(crate) const PRESETS: [Preset; 14] = [
    NVLINK_PRESET,
    Preset {
        name: "dgx-h100",
        bandwidth: Bandwidth::from_kbps(3_600_000_000),
        machine: Some(machine(8, 8, 400_000_000, INFINIBAND_NIC)),
        source: "NVIDIA DGX H100 user guide: 8 GPUs joined by NVSwitch, NVLink 900 GB/s each, both ways \
                 together, and a ConnectX-7 of 400 Gb/s for each GPU; latencies as of nvlink and of \
                 infiniband-200g with both overheads.",
        ..NVLINK_PRESET
    },
    Preset {
        name: "dgx-a100",
        bandwidth: Bandwidth::from_kbps(2_400_000_000),
        machine: Some(machine(8, 8, 200_000_000, INFINIBAND_NIC)),
        source: "NVIDIA DGX A100 user guide: 8 GPUs joined by NVSwitch, NVLink 600 GB/s each, both ways \
                 together, and a ConnectX-6 of 200 Gb/s for each GPU; latencies as of nvlink and of \
                 infiniband-200g with both overheads.",
        ..NVLINK_PRESET
    },
    Preset {
        name: "ec2-p4d.24xlarge",
        bandwidth: Bandwidth::from_kbps(2_400_000_000),
        machine: Some(machine(8, 4, 100_000_000, KERNEL_NIC)),
        framing: FramingKind::Ethernet,
        source: "Amazon EC2 P4d: 8 A100 joined by NVSwitch, NVLink 600 GB/s each, both ways together, and 400 \
                 Gb/s on 4 network cards; latencies as of nvlink and, without EFA, of ethernet-100g with \
                 both overheads.",
        ..NVLINK_PRESET
    },
    Preset {
        name: "ec2-p3.16xlarge",
        bandwidth: Bandwidth::from_kbps(1_200_000_000),
        machine: Some(machine(8, 1, 25_000_000, KERNEL_NIC)),
        framing: FramingKind::Ethernet,
        source: "Amazon EC2 P3: 8 V100, NVLink 300 GB/s each, both ways together (a mesh, here a switch), and \
                 one NIC of 25 Gb/s for all; latencies as of nvlink and of ethernet-25g with both \
                 overheads.",
        ..NVLINK_PRESET
    },
    Preset {
        name: "infiniband-200g",
        bandwidth: Bandwidth::from_kbps(200_000_000),
        latency: Seconds(600e-9),
        overhead: Seconds(1e-6),
        source: "NVIDIA ConnectX-6 VPI user manual: ports of 200 Gb/s, latency below 600 ns \
                 (adapters alone, without a switch or software); overhead: 1.10 and 1.14 us at \
                 sender and receiver (0.98 and 1.14 in the first version of the file), MPI over \
                 InfiniBand on a cluster of 2013, by netgauge (codes-org/codes, \
                 tests/conf/ng-mpi-tukey.dat).",
        ..NVLINK_PRESET
    },
    Preset {
        name: "ethernet-100g",
        bandwidth: Bandwidth::from_kbps(100_000_000),
        // 15 us less KERNEL_STACK at both ends.
        latency: Seconds(11.6e-6),
        source: "Rate: IEEE 802.3ba; latency and both overheads: below 15 us between virtual machines \
                 over TCP with offload (Firestone et al., Azure Accelerated Networking, NSDI 2018), read as \
                 one way, for the paper does not say.",
        ..ETHERNET_1G
    },
    Preset {
        name: "ethernet-25g",
        bandwidth: Bandwidth::from_kbps(25_000_000),
        latency: Seconds(11.6e-6),
        source: "Rate: IEEE 802.3by; latency and both overheads: below 15 us between virtual machines \
                 over TCP with offload (Firestone et al., Azure Accelerated Networking, NSDI 2018).",
        ..ETHERNET_1G
    },
    Preset {
        name: "ethernet-10g",
        bandwidth: Bandwidth::from_kbps(10_000_000),
        latency: Seconds(96.6e-6),
        source: "Rate: IEEE 802.3ae; latency and both overheads: half of a median round trip of \
                 about 0.2 ms over TCP within a pod (Guo et al., Pingmesh, SIGCOMM 2015), rounded.",
        ..ETHERNET_1G
    },
    ETHERNET_1G,
    Preset {
        name: "wan",
        bandwidth: Bandwidth::from_kbps(5_000_000),
        latency: Seconds(45e-3),
        source: "Rate: 5 Gbps to other regions (Amazon EC2 user guide, instance network \
                 bandwidth, fewer than 32 vCPUs); latency: half of the 90 ms round trip New \
                 York to London of Verizon's service level agreement.",
        ..ETHERNET_1G
    },
    Preset {
        name: "broadband",
        bandwidth: Bandwidth::from_kbps(20_000),
        down: Some(Bandwidth::from_kbps(100_000)),
        latency: Seconds(12e-3),
        source: "Rate: uplink of the FCC's 100/20 Mbps benchmark (2024 Section 706 Report); \
                 latency: two half round trips of about 12 ms on fibre (FCC, Measuring \
                 Broadband America 2016, Verizon Fios).",
        ..ETHERNET_1G
    },
    Preset {
        name: "lte",
        bandwidth: Bandwidth::from_kbps(6_000),
        down: Some(Bandwidth::from_kbps(13_000)),
        latency: Seconds(35e-3),
        source: "Median uplink of 6 Mbps, downlink of 13 Mbps and round trip of about 70 ms (Huang et al., A Close \
                 Examination of Performance and Power Characteristics of 4G LTE Networks, \
                 MobiSys 2012).",
        ..ETHERNET_1G
    },
    Preset {
        name: "bluetooth",
        bandwidth: Bandwidth::from_kbps(1_306),
        down: None,
        // Six slots of 625 us.
        latency: Seconds(3.75e-3),
        overhead: Seconds::ZERO,
        machine: None,
        framing: FramingKind::None,
        source: "Bluetooth Core Specification, EDR, 3-DH5 packets: 1021 bytes of payload in 5 \
                 slots of 625 us, answered by 5, thus 1306.9 kbps each way; latency: one packet \
                 and a reply slot, 6 slots.",
    },
];

/// The preset of that name.
///
/// # Errors
/// [`NetError::UnknownPreset`] with the nearest name.
pub(crate) fn find(name: &str) -> Result<&'static Preset, NetError> {
    PRESETS
        .iter()
        .find(|preset| preset.name == name)
        .ok_or_else(|| {
            let known = PRESETS.map(|preset| preset.name);
            // Names of presets are all lower case.
            let advice = did_you_mean(&name.to_lowercase(), &known)
                .unwrap_or_else(|| format!("known are {}", known.join(", ")));
            NetError::UnknownPreset {
                name: name.into(),
                advice,
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_found_by_its_name_and_names_a_source() {
        for preset in PRESETS {
            assert_eq!(find(preset.name).unwrap().source, preset.source);
            assert!(
                preset.source.len() > 40 && preset.source.ends_with('.'),
                "{}",
                preset.name
            );
        }
    }

    #[test]
    fn a_typo_gets_the_nearest_name_and_nonsense_gets_all_names() {
        assert!(
            find("ethernet-10")
                .unwrap_err()
                .to_string()
                .contains("did you mean \"ethernet-10g\"?")
        );
        assert!(
            find("Bluetooh")
                .unwrap_err()
                .to_string()
                .contains("did you mean \"bluetooth\"?")
        );
        assert!(
            find("qqq")
                .unwrap_err()
                .to_string()
                .contains("known are nvlink, dgx-h100")
        );
    }
}
