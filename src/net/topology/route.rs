//! The links of a worker's messages, worked out when they are asked for.

use super::{Hop, Route, Topology, Wiring, block_of};
use crate::net::{Bandwidth, LinkId, Seconds};

impl Topology {
    /// The way of a message.
    ///
    /// * In a star: the sender's `out`, the receiver's `in`, and the larger of the two ends'
    ///   latencies, so that a worker's own latency holds for all messages from and to it.
    /// * In racks and regions: as a star within; between, also the sender's rack's uplink and the
    ///   receiver's rack's downlink and the latencies of both, or the link and the latency between
    ///   the regions.
    /// * In a fat tree and a dragonfly: as a star at one switch; else also the cables between
    ///   switches and their latencies.
    /// * Where workers share machines: as a star within one; between, also `out` and `in` of the
    ///   two workers' NICs, their latencies, and what is between NICs by the wiring above.
    /// * In a ring: all cables on the shorter way, the one to higher ranks where both are equally
    ///   long, and the sum of their latencies.
    /// * In an edge network: the sender's `out`, the server side's `in` and `out`, the receiver's
    ///   `in`, and the sum of the clients' latencies and the server side's.
    /// * In a custom topology: the links of the route between those of the workers' own that they
    ///   have; the sum of the links' latencies, or an end's own if it is larger.
    ///
    /// # Panics
    /// If a rank is not below [`Topology::workers`] or a custom topology has no such route; of
    /// what comes from a file, `check_rank` and `check_route` say so first.
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
                half_round_trip: Seconds::ZERO,
                cap: None,
            };
        }
        let own = |rank: usize| self.latency[rank].unwrap_or_default();
        let ends = own(from).max(own(to));
        let (out, into) = (LinkId(from), self.into(to));
        let (links, latency) = match &self.wiring {
            Wiring::Ring => self.around(from, to),
            Wiring::Edge { latency, server } => {
                let (first, back) = self.shared(1);
                let back = if self.half_duplex { 1 } else { back };
                let mut links = Vec::with_capacity(4);
                if *server != Some(from) {
                    links.push(out);
                }
                if *server != Some(from) {
                    links.push(LinkId(first));
                }
                if *server != Some(to) {
                    links.extend([LinkId(first + back), into]);
                }
                (links, own(from) + *latency + own(to))
            }
            Wiring::Custom { routes, nics } => {
                let between = &routes[&(from, to)];
                let latency = between.iter().map(|link| self.links[link.0].latency);
                let latency = latency.sum::<Seconds>().max(ends);
                let first = nics.get(&from).map(|nic| nic.0);
                let last = nics.get(&to).map(|nic| nic.1);
                let links = first.into_iter().chain(between.iter().copied());
                (links.chain(last).collect(), latency)
            }
            Wiring::Star
            | Wiring::Racks { .. }
            | Wiring::Regions { .. }
            | Wiring::FatTree(_)
            | Wiring::Dragonfly(_) => {
                let (between, latency) = self.between(from, to);
                let links = [out].into_iter().chain(between).chain([into]);
                (links.collect(), ends + latency)
            }
        };
        let capped = self.tcp.filter(|_| latency > Seconds::ZERO);
        let cap = capped.and_then(|tcp| Bandwidth::new(8.0 * tcp.window / (2.0 * latency.0)).ok());
        let factor = self.tcp.map_or(1.0, |tcp| tcp.latency_factor);
        Route {
            links,
            latency: latency * factor,
            half_round_trip: latency,
            cap,
        }
    }

    /// What is between the own links of two workers, and its latency.
    fn between(&self, from: usize, to: usize) -> (Vec<LinkId>, Seconds) {
        let Some(machines) = self.machines else {
            return self.wired(from, to, (from, to));
        };
        if machines.machine(from) == machines.machine(to) {
            return (Vec::new(), Seconds::ZERO);
        }
        let nics = (machines.nic(from), machines.nic(to));
        let (first, back) = if self.half_duplex {
            (self.workers(), 0)
        } else {
            (2 * self.workers(), machines.all_nics())
        };
        let (out, into) = (LinkId(first + nics.0), LinkId(first + back + nics.1));
        let (between, latency) = self.wired(from, to, nics);
        let latency = self.links[out.0].latency + self.links[into.0].latency + latency;
        let links = [out].into_iter().chain(between).chain([into]);
        (links.collect(), latency)
    }

    /// What is between two workers, or their NICs, by the wiring; these have the numbers `ports`.
    fn wired(&self, from: usize, to: usize, ports: (usize, usize)) -> (Vec<LinkId>, Seconds) {
        match &self.wiring {
            Wiring::Racks { racks, latency } => {
                let (a, b) = (self.group_of(from, *racks), self.group_of(to, *racks));
                if a == b {
                    return (Vec::new(), Seconds::ZERO);
                }
                let (first, back) = self.shared(*racks);
                (
                    vec![LinkId(first + a), LinkId(first + back + b)],
                    *latency * 2.0,
                )
            }
            Wiring::Regions { latency } => {
                let regions = latency.len();
                let (a, b) = (self.group_of(from, regions), self.group_of(to, regions));
                if a == b {
                    return (Vec::new(), Seconds::ZERO);
                }
                let (first, _) = self.shared(0);
                // Half duplex: both directions are the one of the lower region.
                let (low, high) = if self.half_duplex {
                    (a.min(b), a.max(b))
                } else {
                    (a, b)
                };
                (vec![LinkId(first + low * regions + high)], latency[a][b])
            }
            Wiring::FatTree(tree) => {
                self.over(&tree.way(ports.0, ports.1, self.seed), 2 * tree.ports())
            }
            Wiring::Dragonfly(fly) => self.over(&fly.way(ports.0, ports.1), fly.cable_count()),
            Wiring::Star | Wiring::Ring | Wiring::Edge { .. } | Wiring::Custom { .. } => {
                (Vec::new(), Seconds::ZERO)
            }
        }
    }

    /// A way over cables between switches, of which there are `count`.
    fn over(&self, way: &[Hop], count: usize) -> (Vec<LinkId>, Seconds) {
        let (first, back) = self.shared(count);
        let link = |hop: &Hop| LinkId(first + hop.cable + if hop.back { back } else { 0 });
        let links: Vec<LinkId> = way.iter().map(link).collect();
        let latency = links.iter().map(|link| self.links[link.0].latency).sum();
        (links, latency)
    }

    /// The shorter way around a ring.
    fn around(&self, from: usize, to: usize) -> (Vec<LinkId>, Seconds) {
        let workers = self.workers();
        let ahead = (to + workers - from) % workers;
        let back = workers - ahead;
        let links: Vec<LinkId> = if ahead <= back {
            (0..ahead)
                .map(|hop| LinkId((from + hop) % workers))
                .collect()
        } else {
            // Half duplex: a cable is that of its end with the lower number, going round.
            let own = usize::from(self.half_duplex);
            (0..back)
                .map(|hop| self.into((from + workers - hop - own) % workers))
                .collect()
        };
        let latency = links.iter().map(|link| self.links[link.0].latency).sum();
        (links, latency)
    }

    fn into(&self, rank: usize) -> LinkId {
        let first = if self.half_duplex { 0 } else { self.workers() };
        LinkId(first + rank)
    }

    /// The number of the first link that neither a worker nor a NIC has for itself, and how far its
    /// two directions are apart in `count` pairs of them.
    fn shared(&self, count: usize) -> (usize, usize) {
        let nics = self.machines.map_or(0, |machines| machines.all_nics());
        if self.half_duplex {
            (self.workers() + nics, 0)
        } else {
            (2 * (self.workers() + nics), count)
        }
    }

    /// A worker's place in what is wired, and how many places there are: its machine, or itself.
    fn place(&self, rank: usize) -> (usize, usize) {
        match self.machines {
            Some(machines) => (machines.machine(rank), machines.count),
            None => (rank, self.workers()),
        }
    }

    /// Which of `groups` equal blocks of places a worker is in.
    pub(super) fn group_of(&self, rank: usize, groups: usize) -> usize {
        let (place, places) = self.place(rank);
        block_of(place, places, groups)
    }
}
