//! Dragonflies.
//!
//! ```text
//!   group 0                     group 1                a routers in each group, all joined with
//!   (0.0)───(0.1)               (1.0)───(1.1)          all; p ports and h global cables at each;
//!     │  ╲ ╱  │ ═══ global ════▶  │  ╲ ╱  │            one global cable between any two groups
//!   (0.2)───(0.3)               (1.2)───(1.3)
//! ```
//!
//! Kim, Dally, Scott and Abts (*Technology-driven, highly-scalable dragonfly topology*, ISCA 2008).
//! There are up to a·h + 1 groups, so up to p·a·(a·h + 1) ports; balanced is a = 2p = 2h. Cable k
//! of group i, of its router ⌊k/h⌋, leads to group i + k + 1 modulo the number of groups. Routes
//! are minimal: to the router that has the cable to the other group, over it, and on to the
//! receiver's router, three cables at most.

use super::hop::{Ends, Hop};

/// A dragonfly of fully joined groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::net) struct Dragonfly {
    /// p: ports at each router.
    pub(crate) terminals: usize,
    /// a: routers in a group.
    pub(crate) routers: usize,
    /// h: global cables of a router, at most.
    pub(crate) global_links: usize,
    /// g: groups.
    pub groups: usize,
}

impl Dragonfly {
    /// The smallest balanced one that has so many ports, with all its groups.
    pub(in crate::net) const fn smallest(ports: usize) -> Self {
        let mut fly = Self::balanced(1);
        while fly.ports() < ports {
            fly = Self::balanced(fly.global_links + 1);
        }
        fly
    }

    /// The one of a = 2p = 2h, with all its groups.
    const fn balanced(global_links: usize) -> Self {
        Self {
            terminals: global_links,
            routers: 2 * global_links,
            global_links,
            groups: 2 * global_links * global_links + 1,
        }
    }

    /// p·a·g.
    pub(in crate::net) const fn ports(&self) -> usize {
        self.group_ports() * self.groups
    }

    /// Ports of a group.
    pub(in crate::net) const fn group_ports(&self) -> usize {
        self.terminals * self.routers
    }

    /// Cables between the routers of a group.
    const fn inside(&self) -> usize {
        self.routers * (self.routers - 1) / 2
    }

    /// How many cables are local: they come first.
    pub(in crate::net) const fn local(&self) -> usize {
        self.groups * self.inside()
    }

    /// How many cables there are.
    pub(in crate::net) const fn cable_count(&self) -> usize {
        self.local() + self.groups * (self.groups - 1) / 2
    }

    /// The cables between routers: local ones, group by group, then global ones, lower group first.
    pub(in crate::net) fn cables(&self) -> Vec<Ends> {
        let pairs =
            |count: usize| (1..count).flat_map(|high| (0..high).map(move |low| (low, high)));
        let local = (0..self.groups).flat_map(|group| {
            pairs(self.routers).map(move |(a, b)| {
                Ends(format!("router {group}.{a}"), format!("router {group}.{b}"))
            })
        });
        let global =
            pairs(self.groups).map(|(a, b)| Ends(format!("group {a}"), format!("group {b}")));
        local.chain(global).collect()
    }

    /// The minimal way from one port to another, over three cables at most.
    pub(in crate::net) fn way(&self, from: usize, to: usize) -> Vec<Hop> {
        let router = |port: usize| port / self.terminals % self.routers;
        let group = |port: usize| port / self.group_ports();
        let (home, away) = (group(from), group(to));
        let mut way = Vec::with_capacity(3);
        if home == away {
            way.extend(self.within(home, router(from), router(to)));
        } else {
            way.extend(self.within(home, router(from), self.exit(home, away)));
            way.push(hop(self.local(), home, away));
            way.extend(self.within(away, self.exit(away, home), router(to)));
        }
        way
    }

    /// The router of a group that has the cable to another.
    const fn exit(&self, home: usize, away: usize) -> usize {
        let cable = (away + self.groups - home - 1) % self.groups;
        cable / self.global_links
    }

    /// Between two routers of a group; nothing if they are one.
    fn within(&self, group: usize, from: usize, to: usize) -> Option<Hop> {
        (from != to).then(|| hop(group * self.inside(), from, to))
    }
}

/// The cable between two of several that are all joined, whose cables begin with number `first`.
fn hop(first: usize, from: usize, to: usize) -> Hop {
    let (low, high) = (from.min(to), from.max(to));
    Hop {
        cable: first + high * (high - 1) / 2 + low,
        back: from > to,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_balanced_ones_have_the_sizes_of_the_paper() {
        // Figure 5 of the paper: p = h = 2, a = 4, 72 nodes in 9 groups; section 4: p = h = 4, a =
        // 8, 1,056 nodes in 33 groups.
        let (small, large) = (Dragonfly::smallest(72), Dragonfly::smallest(1_000));
        assert_eq!((small.groups, small.ports(), small.routers), (9, 72, 4));
        assert_eq!((large.groups, large.ports(), large.routers), (33, 1_056, 8));
        // g·a·(a−1)/2 local cables and g·(g−1)/2 = g·a·h/2 global ones.
        assert_eq!(small.local(), 54);
        assert_eq!(small.cables().len(), 54 + 36);
    }

    #[test]
    fn ways_are_minimal_and_no_router_has_too_many_global_cables() {
        let fly = Dragonfly::smallest(72);
        let cables = fly.cables();
        let (mut longest, mut global) = (0, BTreeMap::new());
        for (from, to) in (0..72).flat_map(|from| (0..72).map(move |to| (from, to))) {
            let router = |port: usize| format!("router {}.{}", port / 8, port / 2 % 4);
            let way = fly.way(from, to);
            longest = longest.max(way.len());
            let mut at = router(from);
            for hop in &way {
                let Ends(a, b) = &cables[hop.cable];
                let (leaves, reaches) = if hop.back { (b, a) } else { (a, b) };
                if hop.cable < fly.local() {
                    assert_eq!(*leaves, at);
                    at.clone_from(reaches);
                } else {
                    // A global cable joins routers: which ones follows from the way.
                    let other = fly.exit(to / 8, from / 8);
                    let cable: &mut std::collections::BTreeSet<usize> =
                        global.entry(at).or_default();
                    cable.insert(hop.cable);
                    assert_eq!(
                        (leaves, reaches),
                        (&format!("group {}", from / 8), &format!("group {}", to / 8),)
                    );
                    at = format!("router {}.{other}", to / 8);
                }
            }
            assert_eq!(at, router(to));
        }
        assert_eq!(longest, 3, "the diameter in cables between routers");
        assert_eq!(global.len(), 36, "all routers have global cables");
        assert!(global.values().all(|cables| cables.len() == 2), "h of them");
    }
}
