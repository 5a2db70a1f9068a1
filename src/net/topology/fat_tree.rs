//! Fat trees of equal switches.
//!
//! ```text
//!   core           ┌ 0 ┐ ┌ 1 ┐         ┌ 2 ┐ ┌ 3 ┐          (k/2)² switches, a pod at each port
//!                    │ └───┼─ … ─┐       │ └─ …
//!   aggregation    [ 0.0 ] [ 0.1 ]     [ 1.0 ] [ 1.1 ] …    k pods of k/2 and k/2 switches,
//!                     │  ╳   │            │  ╳   │           all of a pod joined with all
//!   edge           [ 0.0 ] [ 0.1 ]     [ 1.0 ] [ 1.1 ] …
//!                   │  │    │  │        │  │    │  │
//!   ports           0  1    2  3        4  5    6  7  …      k/2 at each edge switch: k³/4
//! ```
//!
//! A *k*-ary fat tree of Al-Fares, Loukissas and Vahdat (SIGCOMM 2008): 5k²/4 switches of k ports
//! each. Each level has as many cables up as down, so with cables as fast as the ports' the tree
//! has full bisection bandwidth. Where two ways differ is only in which switches they go up to: the
//! way down follows from them.

use super::hop::{Ends, Hop};
use crate::net::Routing;
use crate::rng::mix;

/// A k-ary fat tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::net) struct FatTree {
    /// k/2.
    half: usize,
    routing: Routing,
}

impl FatTree {
    /// The tree of switches of `2 · half` ports.
    pub(in crate::net) const fn new(half: usize, routing: Routing) -> Self {
        Self { half, routing }
    }

    /// k³/4.
    pub(in crate::net) const fn ports(&self) -> usize {
        2 * self.half.pow(3)
    }

    /// Ports at one edge switch.
    pub(in crate::net) const fn beside(&self) -> usize {
        self.half
    }

    /// The smallest that has so many ports.
    pub(in crate::net) const fn smallest(ports: usize, routing: Routing) -> Self {
        let mut tree = Self::new(1, routing);
        while tree.ports() < ports {
            tree.half += 1;
        }
        tree
    }

    /// The cables between switches, lower end first: k³/4 from edge to aggregation, pod by pod and
    /// switch by switch, then as many from aggregation to core.
    pub(in crate::net) fn cables(&self) -> Vec<Ends> {
        let half = self.half;
        let up = |number: usize| (number / (half * half), number / half % half, number % half);
        let edges = (0..self.ports()).map(|number| {
            let (pod, edge, aggregation) = up(number);
            Ends(
                format!("edge {pod}.{edge}"),
                format!("aggregation {pod}.{aggregation}"),
            )
        });
        let cores = (0..self.ports()).map(|number| {
            let (pod, aggregation, port) = up(number);
            Ends(
                format!("aggregation {pod}.{aggregation}"),
                format!("core {}", aggregation * half + port),
            )
        });
        edges.chain(cores).collect()
    }

    /// The way from one port to another, over no, two or four cables.
    pub(in crate::net) fn way(&self, from: usize, to: usize, seed: u64) -> Vec<Hop> {
        let half = self.half;
        let (edge, pod) = (
            |port: usize| port / half,
            |port: usize| port / (half * half),
        );
        if edge(from) == edge(to) {
            return Vec::new();
        }
        let (aggregation, core) = self.up(from, to, seed);
        let hop = |cable: usize, back: bool| Hop { cable, back };
        // Switches of one level are numbered through all pods.
        let first = hop(edge(from) * half + aggregation, false);
        let last = hop(edge(to) * half + aggregation, true);
        if pod(from) == pod(to) {
            return vec![first, last];
        }
        let over = |port: usize| self.ports() + (pod(port) * half + aggregation) * half + core;
        vec![first, hop(over(from), false), hop(over(to), true), last]
    }

    /// Which aggregation switch of a pod, and which of its ports to the core.
    fn up(&self, from: usize, to: usize, seed: u64) -> (usize, usize) {
        let half = self.half;
        match self.routing {
            Routing::Destination => (to % half, to / half % half),
            Routing::Ecmp => {
                let hash = mix(seed, mix(from as u64, to as u64));
                // Remainders of 32 bits each.
                let pick = |bits: u64| (bits % half as u64) as usize;
                (pick(hash & 0xFFFF_FFFF), pick(hash >> 32))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn tree(k: usize) -> FatTree {
        FatTree::new(k / 2, Routing::Destination)
    }

    #[test]
    fn it_has_the_switches_and_cables_of_the_paper() {
        // k = 4, their figure 3: 16 hosts, 20 switches. k = 48: 27,648 hosts.
        for (k, ports, switches) in [(4, 16, 20), (6, 54, 45), (48, 27_648, 2_880)] {
            let tree = tree(k);
            assert_eq!(tree.ports(), ports);
            let cables = tree.cables();
            assert_eq!(cables.len(), 2 * ports);
            let ends = cables.iter().flat_map(|Ends(a, b)| [a, b]);
            let names: BTreeSet<_> = ends.clone().collect();
            assert_eq!(names.len(), switches, "5k²/4");
            // Each switch has k ports, half of an edge switch's those of hosts.
            let first = ends.clone().filter(|name| *name == "aggregation 0.0");
            assert_eq!(first.count(), k);
            assert_eq!(ends.filter(|name| *name == "core 0").count(), k);
        }
        assert_eq!(
            FatTree::smallest(17, Routing::Ecmp),
            FatTree::new(3, Routing::Ecmp)
        );
    }

    #[test]
    fn ways_lead_from_one_port_to_the_other() {
        for routing in [Routing::Destination, Routing::Ecmp] {
            let tree = FatTree::new(3, routing);
            let cables = tree.cables();
            for (from, to) in (0..54).flat_map(|from| (0..54).map(move |to| (from, to))) {
                let mut at = format!("edge {}.{}", from / 9, from / 3 % 3);
                let way = tree.way(from, to, 5);
                for hop in &way {
                    let Ends(a, b) = &cables[hop.cable];
                    let (leaves, reaches) = if hop.back { (b, a) } else { (a, b) };
                    assert_eq!(*leaves, at);
                    at.clone_from(reaches);
                }
                assert_eq!(at, format!("edge {}.{}", to / 9, to / 3 % 3));
                let expected = match () {
                    () if from / 3 == to / 3 => 0,
                    () if from / 9 == to / 9 => 2,
                    () => 4,
                };
                assert_eq!(way.len(), expected);
            }
        }
    }

    #[test]
    fn by_destination_no_shift_of_all_ports_shares_a_cable() {
        // Zahavi, D-Mod-K routing (2010): every shift permutation is free of contention.
        let tree = tree(6);
        for shift in 1..54 {
            let mut used = BTreeSet::new();
            for from in 0..54 {
                for hop in tree.way(from, (from + shift) % 54, 0) {
                    assert!(used.insert((hop.cable, hop.back)), "shift {shift}");
                }
            }
        }
    }

    #[test]
    fn by_hash_ways_depend_on_the_seed_and_spread() {
        let tree = FatTree::new(4, Routing::Ecmp);
        let first = |seed| -> Vec<usize> {
            let ways = (0..64).map(|to| tree.way(127, to, seed));
            ways.map(|way| way[1].cable).collect()
        };
        assert_eq!(first(1), first(1));
        assert_ne!(first(1), first(2));
        // 64 draws of 16 cables to the core.
        let different: BTreeSet<usize> = first(1).into_iter().collect();
        assert!(different.len() > 12, "{different:?}");
    }
}
