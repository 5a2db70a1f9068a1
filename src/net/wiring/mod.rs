//! From the `[network]` section to a [`Topology`].

mod background;
mod check;
mod custom;
mod failures;
mod shared;
mod switched;
#[cfg(test)]
mod switched_tests;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use self::switched::Ports;
use super::error::did_you_mean;
use super::presets::{self, Preset};
use super::topology::{MessageCost, Tcp, Wiring};
use super::{
    Bandwidth, Duplex, Framing, FramingKind, Jitter, Link, LinkSpec, Links, Loss, NetError,
    NetworkSpec, Seconds, Topology, TopologyKind, WorkerLinkSpec,
};

/// A worker's own link.
#[derive(Clone, Copy, Debug)]
struct End {
    up: Bandwidth,
    down: Bandwidth,
    latency: Seconds,
}

fn wrong(key: impl Into<String>, reason: impl Into<String>) -> NetError {
    NetError::description(key, reason)
}

impl Topology {
    /// One switch that never blocks, and for each worker, with its own figures, a link to the
    /// switch and one back.
    pub fn star(ends: &[LinkSpec]) -> Self {
        let end = |link: &LinkSpec| End {
            up: link.bandwidth,
            down: link.bandwidth,
            latency: link.latency,
        };
        let ends: Vec<End> = ends.iter().map(end).collect();
        let mut star = Self::bare(Wiring::Star, &ends);
        star.links = nics(&ends, false);
        star
    }

    /// A topology that has no links yet.
    fn bare(wiring: Wiring, ends: &[End]) -> Self {
        Self {
            wiring,
            machines: None,
            links: Vec::new(),
            latency: ends.iter().map(|end| Some(end.latency)).collect(),
            compute: vec![1.0; ends.len()],
            half_duplex: false,
            tcp: None,
            message_cost: MessageCost::default(),
            devices: Vec::new(),
            switches: Vec::new(),
            seed: 0,
        }
    }
}

fn link(name: String, bandwidth: Bandwidth, latency: Seconds) -> Link {
    Link {
        name,
        bandwidth,
        latency,
        jitter: None,
        loss: 0.0,
    }
}

/// The workers' own links: all `out`, then all `in`; or one for both.
fn nics(ends: &[End], half: bool) -> Vec<Link> {
    let ranks = || ends.iter().enumerate();
    if half {
        return ranks()
            .map(|(rank, end)| link(format!("worker {rank}"), end.up, end.latency))
            .collect();
    }
    let out = ranks().map(|(rank, end)| link(format!("worker {rank} out"), end.up, end.latency));
    let into = ranks().map(|(rank, end)| link(format!("worker {rank} in"), end.down, end.latency));
    out.chain(into).collect()
}

/// The cables of a ring, as fast as the slower and as far as the farther of their ends.
fn cables(ends: &[End], half: bool) -> Vec<Link> {
    let workers = ends.len();
    let cable = |from: usize, to: usize, name: String| {
        let (a, b) = (ends[from], ends[to]);
        // Bandwidths are floats without a total order, hence no `min`.
        let bandwidth = if a.up < b.down { a.up } else { b.down };
        link(name, bandwidth, a.latency.max(b.latency))
    };
    let ranks = || 0..workers;
    let next = |rank| (rank + 1) % workers;
    let last = |rank| (rank + workers - 1) % workers;
    if half {
        let name = |rank| format!("worker {rank} and {}", next(rank));
        return ranks()
            .map(|rank| cable(rank, next(rank), name(rank)))
            .collect();
    }
    let name = |from, to| format!("worker {from} to {to}");
    let ahead = ranks().map(|rank| cable(rank, next(rank), name(rank, next(rank))));
    let back = ranks().map(|rank| cable(rank, last(rank), name(rank, last(rank))));
    ahead.chain(back).collect()
}

impl NetworkSpec {
    /// The network described, for this many workers: the preset's figures, or those of `link`,
    /// replaced by `up` and `down`, replaced by each `[[network.worker]]`.
    ///
    /// # Errors
    /// All are input errors, and name a key of the section: no worker, neither preset nor link, an
    /// unknown preset, keys of another topology or none of this one, a worker or a link that does
    /// not exist or is described twice, figures out of range.
    pub fn topology(&self, workers: usize) -> Result<Topology, NetError> {
        if workers == 0 {
            return Err(wrong("partition.workers", "at least one worker is needed"));
        }
        self.check_keys()?;
        let mut topology = match self.topology {
            TopologyKind::Custom => self.custom(workers)?,
            _ => self.wired(workers)?,
        };
        topology.compute = self.compute(workers)?;
        topology.tcp = self.tcp(&mut topology.links)?;
        topology.message_cost = MessageCost {
            overhead: self
                .overhead
                .or(self.preset_overhead()?)
                .unwrap_or_default(),
            gap: self.gap.unwrap_or_default(),
            per_byte: Seconds::ZERO,
        };
        topology.switches = self.switches(&topology)?;
        // Last, as only the finished topology knows whether workers have neighbours.
        self.check_hierarchy(&topology)?;
        Ok(topology)
    }

    /// The preset, if the section names one.
    fn found_preset(&self) -> Result<Option<&'static Preset>, NetError> {
        self.preset.as_deref().map(presets::find).transpose()
    }

    /// Every worker's own link.
    fn ends(&self, workers: usize) -> Result<Vec<End>, NetError> {
        let mut ends = vec![self.end()?; workers];
        for own in self.overrides(workers)? {
            let end = &mut ends[own.rank];
            end.up = own.up.or(own.bandwidth).unwrap_or(end.up);
            end.down = own.down.or(own.bandwidth).unwrap_or(end.down);
            end.latency = own.latency.unwrap_or(end.latency);
        }
        Ok(ends)
    }

    /// The own link of a worker without an entry of its own.
    fn end(&self) -> Result<End, NetError> {
        let preset = self.found_preset()?;
        let given = match self.link {
            Some(Links::Each(link)) => Some(link),
            _ => None,
        };
        let base = given.or_else(|| preset.map(Preset::link)).ok_or_else(|| {
            wrong(
                "network",
                "say how fast it is: preset = \"ethernet-10g\", or link = { bandwidth = \"10Gbps\", latency = \"100us\" }",
            )
        })?;
        // Where clients do not talk to each other directly, the faster way down counts too.
        let edge = self.topology == TopologyKind::Edge && given.is_none();
        let down = preset.and_then(|preset| preset.down).filter(|_| edge);
        Ok(End {
            up: self.up.unwrap_or(base.bandwidth),
            down: self.down.or(down).unwrap_or(base.bandwidth),
            latency: base.latency,
        })
    }

    /// The overrides of single workers, each of a worker of its own.
    fn overrides(&self, workers: usize) -> Result<&[WorkerLinkSpec], NetError> {
        let mut seen = BTreeSet::new();
        for (index, own) in self.workers.iter().enumerate() {
            let key = |field: &str| format!("network.worker.{index}.{field}");
            if own.rank >= workers {
                return Err(NetError::Rank {
                    what: "[[network.worker]]",
                    rank: own.rank,
                    workers,
                });
            }
            if !seen.insert(own.rank) {
                let reason = format!("worker {} has an entry already; merge the two", own.rank);
                return Err(wrong(key("rank"), reason));
            }
        }
        Ok(&self.workers)
    }

    fn compute(&self, workers: usize) -> Result<Vec<f64>, NetError> {
        let mut compute = vec![1.0; workers];
        for (index, own) in self.overrides(workers)?.iter().enumerate() {
            let Some(factor) = own.compute else { continue };
            if !(factor.is_finite() && factor > 0.0) {
                let reason = format!("{factor} is not a number greater than zero");
                return Err(wrong(format!("network.worker.{index}.compute"), reason));
            }
            compute[own.rank] = factor;
        }
        Ok(compute)
    }

    fn wired(&self, workers: usize) -> Result<Topology, NetError> {
        let ends = self.ends(workers)?;
        let half = self.duplex == Some(Duplex::Half);
        if half && let Some(rank) = ends.iter().position(|end| end.up != end.down) {
            let reason = format!(
                "\"half\" shares one capacity, but worker {rank} has {} up and {} down; give it \
                 one bandwidth",
                ends[rank].up, ends[rank].down
            );
            return Err(wrong("network.duplex", reason));
        }
        let mut links = match self.topology {
            TopologyKind::Ring => cables(&ends, half),
            _ => nics(&ends, half),
        };
        let loss = checked_loss("network.loss", self.loss)?;
        check_jitter("network.jitter", self.jitter.as_ref())?;
        // Outgoing links come first. Chance meets a message once, where it leaves; in a ring at
        // each cable, for each is the next one's sender.
        let drawing = match self.topology {
            TopologyKind::Ring => links.len(),
            _ => workers,
        };
        for link in &mut links[..drawing] {
            (link.jitter, link.loss) = (self.jitter, loss);
        }
        let machines = self.machines(workers, half, &mut links)?;
        let places = machines.map_or(workers, |machines| machines.count);
        let ports = Ports {
            count: machines.map_or(workers, |machines| machines.all_nics()),
            bandwidth: match self.machine_spec() {
                Some(machine) => machine.nic.bandwidth,
                None => self.end()?.up,
            },
            half,
        };
        let wiring = match self.topology {
            TopologyKind::Ring => Wiring::Ring,
            TopologyKind::Racks => self.racks(places, half, &mut links)?,
            TopologyKind::Regions => self.regions(places, half, &mut links)?,
            TopologyKind::FatTree => self.fat_tree(ports, &mut links)?,
            TopologyKind::Dragonfly => self.dragonfly(ports, &mut links)?,
            TopologyKind::Edge => self.edge(workers, &mut links)?,
            TopologyKind::Star | TopologyKind::Custom => Wiring::Star,
        };
        let bare = Topology::bare(wiring, &ends);
        Ok(without_the_servers_own_latency(Topology {
            links,
            machines,
            half_duplex: half,
            ..bare
        }))
    }

    fn tcp(&self, links: &mut [Link]) -> Result<Option<Tcp>, NetError> {
        let Some(spec) = self.tcp else {
            return Ok(None);
        };
        if spec.window.0 == 0 {
            return Err(wrong("network.tcp.window", "must be more than 0"));
        }
        for (key, factor, most) in [
            ("network.tcp.latency_factor", spec.latency_factor, 1000.0),
            // Nothing carries more than there is.
            ("network.tcp.bandwidth_factor", spec.bandwidth_factor, 1.0),
        ] {
            if !(factor > 0.0 && factor <= most) {
                return Err(wrong(
                    key,
                    format!("must be above 0 and at most {most}, not {factor}"),
                ));
            }
        }
        // When all links are there, so that the factor is on shared ones, too.
        for link in links {
            link.bandwidth = Bandwidth::new(link.bandwidth.bps() * spec.bandwidth_factor)?;
        }
        Ok(Some(Tcp {
            window: spec.window.0 as f64,
            latency_factor: spec.latency_factor,
        }))
    }

    /// Whether its preset joins accelerators by `NVLink`: all workers, or those of a machine.
    pub(crate) fn has_nvlink(&self) -> bool {
        let preset = self.found_preset().ok().flatten();
        preset.is_some_and(|preset| preset.name == "nvlink" || preset.machine.is_some())
    }

    /// What a message costs its ends by the preset, where the preset's links are used.
    fn preset_overhead(&self) -> Result<Option<Seconds>, NetError> {
        Ok(self.found_preset()?.map(|preset| preset.overhead))
    }

    /// The headers to count: what the file says, else what the preset says, else Ethernet.
    pub fn framing(&self) -> Framing {
        // An unknown name is refused where the topology is made; here it only has no framing to
        // offer.
        let preset = self.found_preset().ok().flatten();
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

/// A worker on the server side has no link of its own, and no latency of it.
fn without_the_servers_own_latency(mut topology: Topology) -> Topology {
    if let Wiring::Edge {
        server: Some(rank), ..
    } = topology.wiring
    {
        topology.latency[rank] = None;
    }
    topology
}

fn no_such_link(name: &str, known: &[&str]) -> String {
    let advice = did_you_mean(name, known).unwrap_or_else(|| {
        let some: Vec<&str> = known.iter().copied().take(6).collect();
        let more = if known.len() > some.len() {
            ", …"
        } else {
            ""
        };
        format!("links are {}{more}", some.join(", "))
    });
    format!("there is no link \"{name}\"; {advice}")
}

fn checked_loss(key: &str, loss: Option<f64>) -> Result<f64, NetError> {
    let loss = loss.unwrap_or(0.0);
    if (0.0..Loss::LIMIT).contains(&loss) {
        return Ok(loss);
    }
    let limit = Loss::LIMIT;
    let reason = format!(
        "must be at least 0 and below {limit}, where the expected delay becomes infinite, not \
         {loss}"
    );
    Err(wrong(key, reason))
}

fn check_jitter(key: &str, jitter: Option<&Jitter>) -> Result<(), NetError> {
    match jitter.and_then(Jitter::fault) {
        Some(fault) => Err(wrong(key, fault)),
        None => Ok(()),
    }
}
