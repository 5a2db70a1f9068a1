//! Which links a message crosses from one worker to another.
//!
//! ```text
//!   star:   worker 0 ──out──▶ ┌────────┐ ──in──▶ worker 0
//!           worker 1 ──out──▶ │ switch │ ──in──▶ worker 1        the switch never blocks
//!           worker 2 ──out──▶ └────────┘ ──in──▶ worker 2
//! ```
//!
//! The rest of this folder sees links and routes only; another wiring is another builder and
//! another arm of [`Topology::route`].

use std::collections::BTreeSet;

use super::presets::{self, Preset};
use super::{
    Framing, FramingKind, Link, LinkId, LinkSpec, NetError, NetworkSpec, Seconds, TopologyKind,
};

/// The way from one worker to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// Links in order of travel; none from a worker to itself.
    pub links: Vec<LinkId>,
    /// One-way latency, paid once per message.
    pub latency: Seconds,
}

/// Workers, directed links, and the route of every pair.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    kind: TopologyKind,
    links: Vec<Link>,
    compute: Vec<f64>,
}

impl Topology {
    /// One switch that never blocks, and for each worker, with its own figures, a link to the
    /// switch and one back.
    #[must_use]
    pub fn star(ends: &[LinkSpec]) -> Self {
        let direction = |way: &'static str| {
            ends.iter().enumerate().map(move |(rank, end)| Link {
                name: format!("worker {rank} {way}"),
                bandwidth: end.bandwidth,
                latency: end.latency,
            })
        };
        Self {
            kind: TopologyKind::Star,
            links: direction("out").chain(direction("in")).collect(),
            compute: vec![1.0; ends.len()],
        }
    }

    /// Number of workers.
    #[must_use]
    pub const fn workers(&self) -> usize {
        self.compute.len()
    }

    /// All links; a [`LinkId`] is an index into them.
    #[must_use]
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// The way of a message. In a star: the sender's `out`, the receiver's `in`, and the larger of
    /// the two ends' latencies, so that a worker's own latency holds for all messages from and to
    /// it.
    ///
    /// # Panics
    /// If a rank is not below [`Topology::workers`]; check what comes from a file with
    /// [`Topology::check_rank`].
    #[must_use]
    pub fn route(&self, from: usize, to: usize) -> Route {
        let workers = self.workers();
        assert!(
            from < workers && to < workers,
            "workers {from} and {to} of {workers}"
        );
        if from == to {
            return Route {
                links: Vec::new(),
                latency: Seconds::ZERO,
            };
        }
        match self.kind {
            TopologyKind::Star => {
                let (out, into) = (from, workers + to);
                Route {
                    links: vec![LinkId(out), LinkId(into)],
                    latency: self.links[out].latency.max(self.links[into].latency),
                }
            }
        }
    }

    /// The worker's factor on computing speed: 0.5 computes half as fast. 1 unless the file says
    /// otherwise.
    ///
    /// # Panics
    /// If the rank is not below [`Topology::workers`].
    #[must_use]
    pub fn compute_factor(&self, rank: usize) -> f64 {
        self.compute[rank]
    }

    /// Refuses a rank that is not below [`Topology::workers`]; `what` says where it stood.
    ///
    /// # Errors
    /// [`NetError::Rank`].
    pub const fn check_rank(&self, what: &'static str, rank: usize) -> Result<(), NetError> {
        let workers = self.workers();
        if rank < workers {
            Ok(())
        } else {
            Err(NetError::Rank {
                what,
                rank,
                workers,
            })
        }
    }
}

impl NetworkSpec {
    /// The network described, for this many workers: the preset's figures, replaced by `link`,
    /// replaced by each `[[network.worker]]`.
    ///
    /// # Errors
    /// All are input errors: no worker, neither preset nor link, an unknown preset, an override of
    /// a worker that does not exist or is overridden twice, or a `compute` that is not a number
    /// greater than zero.
    pub fn topology(&self, workers: usize) -> Result<Topology, NetError> {
        if workers == 0 {
            return Err(NetError::description(
                "partition.workers",
                "at least one worker is needed",
            ));
        }
        let preset = self.preset.as_deref().map(presets::find).transpose()?;
        let base = self.link.or_else(|| preset.map(Preset::link)).ok_or_else(|| {
            NetError::description(
                "network",
                "say how fast it is: preset = \"ethernet-10g\", or link = { bandwidth = \"10Gbps\", latency = \"100us\" }",
            )
        })?;
        let mut ends = vec![base; workers];
        let mut compute = vec![1.0; workers];
        let mut seen = BTreeSet::new();
        for (index, own) in self.workers.iter().enumerate() {
            let key = |field: &str| format!("network.worker[{index}].{field}");
            if own.rank >= workers {
                return Err(NetError::Rank {
                    what: "[[network.worker]]",
                    rank: own.rank,
                    workers,
                });
            }
            if !seen.insert(own.rank) {
                let reason = format!("worker {} has an entry already; merge the two", own.rank);
                return Err(NetError::description(key("rank"), reason));
            }
            let end = &mut ends[own.rank];
            end.bandwidth = own.bandwidth.unwrap_or(end.bandwidth);
            end.latency = own.latency.unwrap_or(end.latency);
            if let Some(factor) = own.compute {
                if !(factor.is_finite() && factor > 0.0) {
                    let reason = format!("{factor} is not a number greater than zero");
                    return Err(NetError::description(key("compute"), reason));
                }
                compute[own.rank] = factor;
            }
        }
        let topology = match self.topology {
            TopologyKind::Star => Topology::star(&ends),
        };
        Ok(Topology {
            compute,
            ..topology
        })
    }

    /// The headers to count: what the file says, else what the preset says, else Ethernet.
    #[must_use]
    pub fn framing(&self) -> Framing {
        let preset = self
            .preset
            .as_deref()
            .and_then(|name| presets::find(name).ok());
        match self
            .framing
            .or(preset.map(|preset| preset.framing))
            .unwrap_or_default()
        {
            FramingKind::Ethernet => Framing::ethernet(),
            FramingKind::None => Framing::none(),
        }
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // of values that are exact
mod tests {
    use super::*;
    use crate::net::Bandwidth;

    fn spec(text: &str) -> NetworkSpec {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_star_route_leaves_one_nic_and_enters_the_other() {
        let star = spec("preset = \"ethernet-1g\"").topology(3).unwrap();
        let route = star.route(2, 0);
        let names: Vec<_> = route
            .links
            .iter()
            .map(|link| star.links()[link.0].name.as_str())
            .collect();
        assert_eq!(names, ["worker 2 out", "worker 0 in"]);
        assert!(star.route(1, 1).links.is_empty());
    }

    #[test]
    fn a_straggler_has_its_own_bandwidth_latency_and_speed() {
        let text = "link = { bandwidth = \"1Gbps\", latency = \"100us\" }\n\
            [[worker]]\nrank = 1\nbandwidth = \"100Mbps\"\nlatency = \"1ms\"\ncompute = 0.5";
        let star = spec(text).topology(3).unwrap();
        assert_eq!(star.route(0, 2).latency, Seconds(1e-4));
        assert_eq!(star.route(0, 1).latency, Seconds(1e-3));
        assert_eq!(star.route(1, 0).latency, Seconds(1e-3));
        for link in star
            .route(1, 0)
            .links
            .into_iter()
            .chain(star.route(0, 1).links)
        {
            let own = star.links()[link.0].name.contains("worker 1");
            let expected = if own { 1e8 } else { 1e9 };
            assert_eq!(
                star.links()[link.0].bandwidth,
                Bandwidth::new(expected).unwrap()
            );
        }
        assert_eq!(
            [0, 1, 2].map(|rank| star.compute_factor(rank)),
            [1.0, 0.5, 1.0]
        );
    }

    #[test]
    fn a_link_in_the_file_replaces_the_presets_and_keeps_its_framing() {
        let text = "preset = \"nvlink\"\nlink = { bandwidth = \"1Gbps\", latency = \"1us\" }";
        assert_eq!(
            spec(text).topology(1).unwrap().links()[0].bandwidth.bps(),
            1e9
        );
        assert_eq!(spec(text).framing(), Framing::none());
        assert_eq!(
            spec("framing = \"ethernet\"\npreset = \"nvlink\"").framing(),
            Framing::ethernet()
        );
        assert_eq!(spec("").framing(), Framing::ethernet());
    }

    #[test]
    fn descriptions_that_make_no_network_are_refused_by_key() {
        for (text, workers, expected) in [
            ("", 2, "network: say how fast"),
            ("preset = \"wan\"", 0, "at least one worker"),
            ("preset = \"lan\"", 2, "did you mean \"wan\"?"),
            (
                "preset = \"wan\"\n[[worker]]\nrank = 2",
                2,
                "names worker 2, but the workers are numbered 0 to 1",
            ),
            (
                "preset = \"wan\"\n[[worker]]\nrank = 1\n[[worker]]\nrank = 1",
                2,
                "network.worker[1].rank",
            ),
            (
                "preset = \"wan\"\n[[worker]]\nrank = 1\ncompute = -1.0",
                2,
                "network.worker[0].compute",
            ),
        ] {
            let error = spec(text).topology(workers).expect_err(text);
            assert!(
                error.is_input() && error.to_string().contains(expected),
                "{text}: {error}"
            );
        }
    }
}
