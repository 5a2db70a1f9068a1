//! What to know of a network: messages that pass by `NVLink`, and servers that are clients.

use std::collections::BTreeSet;

use super::{Experiment, Settings};
use crate::net::{Seconds, TopologyKind};
use crate::sim::ComputeTiming;

impl Settings {
    /// Whether messages are copied through a host's memory though `NVLink` joins the accelerators.
    fn passes_by_nvlink(&self) -> bool {
        let workers = self.partition.workers;
        let copied = |timing: ComputeTiming| {
            let mut devices = (0..workers).filter_map(|rank| timing.device(rank));
            devices.any(|device| device.copy_per_byte() > Seconds::ZERO)
        };
        workers > 1
            && self.network.has_nvlink()
            && ComputeTiming::new(&self.compute, workers).is_ok_and(copied)
    }
}

impl Experiment {
    /// What to know of networks with `NVLink` if messages do not go by it.
    pub(crate) fn note_on_nvlink(&self) -> Option<String> {
        let passed_by = self.cells.iter().map(|cell| &cell.settings);
        let passed_by = passed_by.filter(|settings| settings.passes_by_nvlink());
        let presets = passed_by.filter_map(|settings| settings.network.preset.as_deref());
        let presets: Vec<&str> = presets.collect::<BTreeSet<_>>().into_iter().collect();
        (!presets.is_empty()).then(|| {
            format!(
                "{}: each message is copied through the host's memory, as compute.timing does unless it is told \
                 otherwise; with staging = false beside the profile messages go by NVLink",
                presets.join(", ")
            )
        })
    }

    /// What to know of networks of clients around a server that is none of the workers, or another
    /// one than strategies have theirs at.
    pub(crate) fn note_on_server(&self) -> Option<String> {
        let mut networks = self.cells.iter().map(|cell| &cell.settings.network);
        let elsewhere = networks.any(|network| {
            let rank = network.server.as_ref().and_then(|server| server.rank);
            network.topology == TopologyKind::Edge && rank != Some(0)
        });
        elsewhere.then(|| {
            "edge: servers of strategies, and the worker at which a tree or a parameter server sums, are worker 0, \
             a client here; network.server.rank = 0 puts it at the server"
                .to_owned()
        })
    }
}
