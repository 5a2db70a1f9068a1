//! Which keys of `[network]` go together.

use super::wrong;
use crate::net::{
    AllReduceChoice, ExchangeKind, Links, NetError, NetworkSpec, Topology, TopologyKind,
};

impl NetworkSpec {
    /// Refuses keys that the topology does not have or that say what others say, and misses those
    /// that it needs.
    pub(super) fn check_keys(&self) -> Result<(), NetError> {
        use TopologyKind::Custom;
        let is = |kind| self.topology == kind;
        self.check_keys_of_topologies()?;
        self.check_machines()?;
        if self.preset.is_some() && matches!(self.link, Some(Links::Each(_))) {
            let reason = "has all the figures that `preset` has, which would do nothing: keep one of the two (with --set, \
                          put in the section as a whole: network={ link = { bandwidth = …, latency = … } })";
            return Err(wrong("network.link", reason));
        }
        for (index, own) in self.workers.iter().enumerate() {
            if own.bandwidth.is_some() && own.up.is_some() && own.down.is_some() {
                let reason =
                    "is that of both directions, and `up` and `down` say both: leave it out";
                return Err(wrong(format!("network.worker.{index}.bandwidth"), reason));
            }
        }
        let named = matches!(self.link, Some(Links::Named(_)));
        if named && !is(Custom) {
            let reason = "a list of links goes with topology = \"custom\"; write link = { \
                          bandwidth = …, latency = … }";
            return Err(wrong("network.link", reason));
        }
        if is(Custom) {
            let not_here = [
                ("preset", self.preset.is_some()),
                ("up", self.up.is_some()),
                ("down", self.down.is_some()),
                ("duplex", self.duplex.is_some()),
                ("jitter", self.jitter.is_some()),
                ("loss", self.loss.is_some()),
            ];
            if let Some((key, _)) = not_here.iter().find(|(_, given)| *given) {
                let reason = "does not go with topology = \"custom\", whose links have their own \
                              figures; remove it";
                return Err(wrong(format!("network.{key}"), reason));
            }
            if !named {
                let reason = "topology = \"custom\" needs links with names: [[network.link]]";
                return Err(wrong("network.link", reason));
            }
        }
        Ok(())
    }

    fn check_keys_of_topologies(&self) -> Result<(), NetError> {
        use TopologyKind::{Custom, Dragonfly, Edge, FatTree, Racks, Regions};
        let is = |kind| self.topology == kind;
        // Whether the topology can do without it.
        let keys = [
            ("racks", self.racks.is_some(), Racks, "racks", false),
            ("regions", self.regions.is_some(), Regions, "regions", false),
            ("server", self.server.is_some(), Edge, "edge", false),
            ("route", !self.routes.is_empty(), Custom, "custom", false),
            (
                "fat_tree",
                self.fat_tree.is_some(),
                FatTree,
                "fat-tree",
                true,
            ),
            (
                "dragonfly",
                self.dragonfly.is_some(),
                Dragonfly,
                "dragonfly",
                true,
            ),
            (
                "uplink",
                // A fat tree may have one, and does without as well.
                self.uplink.is_some() && !is(FatTree),
                Racks,
                "racks",
                false,
            ),
        ];
        for (key, given, kind, name, optional) in keys {
            let key = format!("network.{key}");
            if given && !is(kind) {
                let or = if key == "network.uplink" {
                    " or \"fat-tree\""
                } else {
                    ""
                };
                let reason = format!("goes with topology = \"{name}\"{or}; remove it");
                return Err(wrong(key, reason));
            }
            if !given && is(kind) && !optional {
                let reason = format!("is missing; topology = \"{name}\" needs it");
                return Err(wrong(key, reason));
            }
        }
        Ok(())
    }

    fn check_machines(&self) -> Result<(), NetError> {
        use TopologyKind::{Custom, Edge, Ring};
        let apart = matches!(self.topology, Ring | Edge | Custom);
        if !apart || self.machine_spec().is_none() {
            return Ok(());
        }
        let (key, what) = match self.machine {
            Some(_) => ("network.machine", "describes"),
            None => ("network.preset", "is of"),
        };
        let reason = format!(
            "{what} machines of several workers, which go with topology = \"star\", \"racks\", \"regions\", \
             \"fat-tree\" or \"dragonfly\"; change one of the two"
        );
        Err(wrong(key, reason))
    }

    /// Refuses what goes by groups of workers where there are none.
    pub(super) fn check_hierarchy(&self, topology: &Topology) -> Result<(), NetError> {
        use AllReduceChoice::{Hierarchical, HierarchicalHalvingDoubling};
        let (key, does) = match (self.all_reduce, self.exchange) {
            (Hierarchical | HierarchicalHalvingDoubling, _) => ("all_reduce", "sums"),
            (_, ExchangeKind::Hierarchical) => ("exchange", "exchanges"),
            _ => return Ok(()),
        };
        if topology.groups().is_some() {
            return Ok(());
        }
        let reason = format!(
            "{does} first among neighbours, and on this network nobody has any: describe a `machine`, take another \
             topology, or another {key}"
        );
        Err(wrong(format!("network.{key}"), reason))
    }
}
