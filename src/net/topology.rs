//! Which links a message crosses from one worker to another.
//!
//! ```text
//!   star:     worker 0 ──out──▶ ┌────────┐ ──in──▶ worker 0
//!             worker 1 ──out──▶ │ switch │ ──in──▶ worker 1       the switch never blocks
//!             worker 2 ──out──▶ └────────┘ ──in──▶ worker 2
//!
//!   racks:    star 0 ══up══▶ ┌──────┐ ══down══▶ star 0           all workers of a rack share its
//!             star 1 ══up══▶ │ core │ ══down══▶ star 1           uplink; the core never blocks
//!
//!   regions:  star 0 ◀══0 to 1══▶ star 1                         a link each way for each pair
//!
//!   ring:     worker 0 ◀──▶ worker 1 ◀──▶ worker 2 ◀──▶ … ◀──▶ worker 0
//!
//!   fat tree, dragonfly: see `topology/`; with machines, NICs take the place of workers
//!
//!   edge:     client 0 ──out──▶ ┌─────────────────────────┐ ──in──▶ client 0
//!             client 1 ──out──▶ │ ══server in══server out═▶ │ ──in──▶ client 1
//! ```
//!
//! Routes are worked out when they are asked for, so that memory grows with links and not with
//! pairs of workers. The rest of this folder sees links and routes only.

mod dragonfly;
mod fat_tree;
mod hop;
mod machines;
mod period;
mod route;

use std::collections::BTreeMap;

pub(super) use self::dragonfly::Dragonfly;
pub(super) use self::fat_tree::FatTree;
pub(super) use self::hop::{Ends, Hop};
pub(super) use self::machines::Machines;
pub(crate) use self::period::{Period, at_home, repeats};
use super::{Bandwidth, Bytes, Impairment, Link, LinkId, Loss, NetError, Seconds};

/// The way from one worker to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// Links in order of travel; none from a worker to itself.
    pub links: Vec<LinkId>,
    /// One-way latency, paid once per message.
    pub latency: Seconds,
    /// Half a round trip: the latency without the factor of the model of TCP.
    pub(crate) half_round_trip: Seconds,
    /// What a flow gets at most, by the model of TCP.
    pub cap: Option<Bandwidth>,
}

/// Workers, directed links, and the route of every pair.
///
/// # Example
/// ```
/// use grapevine::net::{NetworkSpec, Seconds};
///
/// let text = "preset = 'ethernet-1g'\nworker = [{ rank = 2, down = '100Mbps' }]";
/// let network: NetworkSpec = toml::from_str(text).expect("it is TOML");
/// let star = network.topology(3)?;
/// // Out of worker 0, into worker 2, whose link is slower.
/// let route = star.route(0, 2);
/// assert_eq!(route.links.len(), 2);
/// assert!(route.latency > Seconds(0.0));
/// # Ok::<(), grapevine::net::NetError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    pub(super) wiring: Wiring,
    /// Where several workers are in a machine, whose NICs are what is wired.
    pub(super) machines: Option<Machines>,
    pub(super) links: Vec<Link>,
    /// Latency of each worker's own link; `None` in a custom topology where it has none.
    pub(super) latency: Vec<Option<Seconds>>,
    pub(super) compute: Vec<f64>,
    /// Whether each worker's `out` and `in`, and what else has two directions, are one link.
    pub(super) half_duplex: bool,
    pub(super) tcp: Option<Tcp>,
    pub(super) message_cost: MessageCost,
    /// One for each worker, or none.
    pub(super) devices: Vec<DeviceCost>,
    pub(super) switches: Vec<Switch>,
    pub(super) seed: u64,
}

/// How links make routes. Links are numbered: `out` of each worker, `in` of each worker (the same
/// ones if half duplex), `out` and `in` of each NIC of machines in the same way, then what is
/// shared.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Wiring {
    Star,
    /// Of each rack the uplink, then of each rack the downlink.
    Racks {
        racks: usize,
        latency: Seconds,
    },
    /// `out` is clockwise, `in` is counter-clockwise, both from the worker on.
    Ring,
    /// From region a to region b: number a · regions + b.
    Regions {
        latency: Vec<Vec<Seconds>>,
    },
    /// Of each cable between switches one direction, then of each the other.
    FatTree(FatTree),
    /// As in a fat tree.
    Dragonfly(Dragonfly),
    /// `server in`, `server out`.
    Edge {
        latency: Seconds,
        server: Option<usize>,
    },
    /// Links of routes, and the number of the NIC's links where a worker has one.
    Custom {
        routes: BTreeMap<(usize, usize), Vec<LinkId>>,
        nics: BTreeMap<usize, (LinkId, LinkId)>,
    },
}

/// What TCP does to flows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tcp {
    /// Bytes under way at most.
    pub(crate) window: f64,
    /// Latencies are multiplied by this, after the cap was taken from them.
    pub(crate) latency_factor: f64,
}

/// What a message costs its two ends, whatever its size: o and g of the `LogGP` model (Culler et
/// al., *`LogP`*, `PPoPP` 1993; Alexandrov et al., *`LogGP`*, SPAA 1995). Its L is the latency of
/// the route here, and its G, a time per byte, the bandwidth.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MessageCost {
    /// o: how long a message occupies its sender, and then its receiver.
    pub(crate) overhead: Seconds,
    /// g: how far apart messages leave a worker, or arrive at one, at least.
    pub(crate) gap: Seconds,
    /// O of `LogGOPS` (Hoefler, Schneider and Lumsdaine, HPDC 2010): how much longer each byte
    /// occupies an end. Here the copy between an accelerator and its host.
    pub(crate) per_byte: Seconds,
}

impl MessageCost {
    /// How long a message occupies an end.
    pub(crate) fn time(&self, payload: Bytes) -> Seconds {
        self.overhead + self.per_byte * payload.0 as f64
    }
}

/// What it takes a worker to sum what arrives in a collective: γ beside the latency α and the time
/// a byte β (Thakur, Rabenseifner and Gropp, IJHPCA 2005), and a time to start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SumCost {
    /// To start.
    pub start: Seconds,
    /// For each value.
    pub(crate) per_value: Seconds,
}

/// What a worker's accelerator adds to the cost of its messages.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DeviceCost {
    /// Time to copy a byte between the accelerator and its host.
    pub(crate) copy_per_byte: Seconds,
    /// What it takes to sum what arrives in a collective.
    pub sums: SumCost,
}

/// A link gets another capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Switch {
    /// When, in virtual time.
    pub time: Seconds,
    /// Which link.
    pub link: LinkId,
    /// What becomes of it.
    pub change: Change,
}

/// What becomes of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// It is back.
    Up,
    /// It fails.
    Down,
    /// Other traffic leaves this share of its bandwidth, above 0 and at most 1.
    Left(f64),
}

/// Which of `groups` equal blocks of workers a worker is in; block sizes differ by one at most.
pub(super) const fn block_of(rank: usize, workers: usize, groups: usize) -> usize {
    rank * groups / workers
}

impl Topology {
    /// Number of workers.
    pub const fn workers(&self) -> usize {
        self.compute.len()
    }

    /// All links; a [`LinkId`] is an index into them.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// The same network, with draws of jitter and loss from this seed. It is 0 otherwise.
    pub(crate) fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// What each message costs this worker, as its sender or its receiver.
    pub(crate) fn message_cost(&self, rank: usize) -> MessageCost {
        MessageCost {
            per_byte: self.device_cost(rank).copy_per_byte,
            ..self.message_cost
        }
    }

    /// The same network between workers that copy messages from and to their accelerator, and sum
    /// what arrives in a collective, at these costs, one for each worker.
    ///
    /// # Panics
    /// If they are not as many as the workers.
    pub(crate) fn with_devices(mut self, costs: Vec<DeviceCost>) -> Self {
        assert_eq!(costs.len(), self.workers(), "a device for each worker");
        self.devices = costs;
        self
    }

    /// What a worker's device costs; nothing where it has none.
    fn device_cost(&self, rank: usize) -> DeviceCost {
        self.devices.get(rank).copied().unwrap_or_default()
    }

    /// The same network with so many times the bandwidth on every link.
    pub(crate) fn times_as_fast(mut self, factor: f64) -> Self {
        for link in &mut self.links {
            link.bandwidth = link.bandwidth.times(factor);
        }
        self
    }

    /// How long a worker takes to sum so many received values into its own.
    pub(crate) fn sum_time(&self, rank: usize, values: usize) -> Seconds {
        let SumCost { start, per_value } = self.device_cost(rank).sums;
        Seconds((start.0 + per_value.0 * values as f64) / self.compute_factor(rank))
    }

    /// The same network with more changes of links.
    pub(super) fn with_changes(mut self, changes: Vec<Switch>) -> Self {
        self.switches.extend(changes);
        self.switches.sort_by_key(|switch| switch.time);
        self
    }

    /// The same network without jitter, losses, failures and other traffic.
    pub(crate) fn without_chance(&self) -> Self {
        let mut same = Self {
            switches: Vec::new(),
            seed: 0,
            ..self.clone()
        };
        for link in &mut same.links {
            (link.jitter, link.loss) = (None, 0.0);
        }
        same
    }

    /// Sizes of the smallest groups of neighbouring workers that are closer to each other than to
    /// others: machines, else racks, regions, those at an edge switch of a fat tree, groups of a
    /// dragonfly. Nothing where all are equally close.
    pub(crate) fn groups(&self) -> Option<Vec<usize>> {
        let group: Box<dyn Fn(usize) -> usize> = match (&self.machines, &self.wiring) {
            (Some(machines), _) => Box::new(|rank| machines.machine(rank)),
            (None, Wiring::Racks { racks, .. }) => Box::new(|rank| self.group_of(rank, *racks)),
            (None, Wiring::Regions { latency }) => {
                Box::new(|rank| self.group_of(rank, latency.len()))
            }
            (None, Wiring::FatTree(tree)) => Box::new(|rank| rank / tree.beside()),
            (None, Wiring::Dragonfly(fly)) => Box::new(|rank| rank / fly.group_ports()),
            _ => return None,
        };
        let mut sizes = vec![0; group(self.workers() - 1) + 1];
        (0..self.workers()).for_each(|rank| sizes[group(rank)] += 1);
        Some(sizes)
    }

    /// Whether chance has a part in anything here.
    pub(crate) fn is_uncertain(&self) -> bool {
        let chance = |link: &Link| link.jitter.is_some() || link.loss > 0.0;
        self.links.iter().any(chance)
    }

    /// Number of machines: as many as there are workers, where none has several.
    pub(crate) fn places(&self) -> usize {
        self.machines
            .map_or(self.workers(), |machines| machines.count)
    }

    /// What chance does to message number `message`, of so many packets: the jitter of every link
    /// of the route that has some, and the packets that get lost on any.
    pub(crate) fn impairment(&self, route: &Route, packets: u64, message: u64) -> Impairment {
        let mut impairment = Impairment::default();
        let mut through = 1.0;
        let mut first_lossy = None;
        for &id in &route.links {
            let link = &self.links[id.0];
            if let Some(jitter) = &link.jitter {
                impairment.delay += jitter.draw(self.seed, id, message);
            }
            if link.loss > 0.0 {
                through *= 1.0 - link.loss;
                first_lossy.get_or_insert(id);
            }
        }
        if let Some(link) = first_lossy {
            let loss = Loss::new(1.0 - through, route.half_round_trip);
            let drawn = loss.draw(packets, self.seed, link, message);
            impairment.delay += drawn.delay;
            impairment.lost = drawn.lost;
        }
        impairment
    }

    /// When which links fail, come back and are shared with other traffic, in the order of time.
    pub(crate) fn switches(&self) -> &[Switch] {
        &self.switches
    }

    /// When the outage began that a link is in at this time.
    pub(crate) fn down_since(&self, link: LinkId, now: Seconds) -> Seconds {
        let fails = |switch: &&Switch| {
            switch.link == link && switch.change == Change::Down && switch.time <= now
        };
        let last = self.switches.iter().rfind(fails);
        last.map_or(Seconds::ZERO, |switch| switch.time)
    }

    /// The worker's factor on computing speed: 0.5 computes half as fast. 1 unless the file says
    /// otherwise.
    ///
    /// # Panics
    /// If the rank is not below [`Topology::workers`].
    pub(crate) fn compute_factor(&self, rank: usize) -> f64 {
        self.compute[rank]
    }

    /// Refuses a rank that is not below [`Topology::workers`]; `what` says where it stood.
    ///
    /// # Errors
    /// [`NetError::Rank`].
    pub(crate) const fn check_rank(&self, what: &'static str, rank: usize) -> Result<(), NetError> {
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

    /// Refuses a pair of workers between which a custom topology has no route. Both ranks exist.
    ///
    /// # Errors
    /// [`NetError::Description`].
    pub(crate) fn check_route(&self, from: usize, to: usize) -> Result<(), NetError> {
        match &self.wiring {
            Wiring::Custom { routes, .. } if from != to && !routes.contains_key(&(from, to)) => {
                Err(NetError::description(
                    "network.route",
                    format!("has no way from worker {from} to worker {to}; add one"),
                ))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a topology in which not every worker can reach every other one.
    ///
    /// # Errors
    /// As [`Topology::check_route`].
    pub(crate) fn check_all_routes(&self) -> Result<(), NetError> {
        if !matches!(self.wiring, Wiring::Custom { .. }) {
            return Ok(());
        }
        let ranks = || 0..self.workers();
        ranks().try_for_each(|from| ranks().try_for_each(|to| self.check_route(from, to)))
    }
}
