//! Networks that look the same from every machine.
//!
//! ```text
//!   machine 0 ═══▶ ┌────────┐ ═══▶ machine 0      move all workers on by one machine, the last
//!   machine 1 ═══▶ │ switch │ ═══▶ machine 1      to the place of the first: nothing changes
//!   machine 2 ═══▶ └────────┘ ═══▶ machine 2
//! ```
//!
//! Where workers do the same, too, each link of machine 1 then carries at any time what the same
//! link of machine 0 carries.

use super::super::{Link, LinkId};
use super::{Topology, Wiring};

/// By how many ranks all workers can move on and find the network as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Period {
    /// How many ranks; fewer than there are workers.
    pub workers: usize,
    /// Of each link the one of the first workers that it is like.
    links: Vec<LinkId>,
}

/// Between whom a message is that the first of so many workers see arrive: what one of them sends k
/// blocks on stands for what comes to the first block from k before it. With all workers there is
/// one block.
pub(crate) const fn at_home(
    (first, workers): (usize, usize),
    (from, to): (usize, usize),
) -> (usize, usize) {
    let home = to % first;
    ((from + workers - (to - home)) % workers, home)
}

impl Period {
    /// The link of the first workers that this one is like.
    pub(crate) fn link(&self, link: LinkId) -> LinkId {
        self.links[link.0]
    }
}

impl Topology {
    /// The shortest period of this network: one worker in a star of equal links and equally fast
    /// computers, the workers of a machine in a star of equal machines, those of a rack where racks
    /// are equal. Nothing where there is none, or where chance, failures or other traffic tell
    /// times or places apart.
    pub(crate) fn period(&self) -> Option<Period> {
        let (workers, places) = (self.workers(), self.places());
        let turns = match &self.wiring {
            Wiring::Star => places,
            Wiring::Racks { racks, .. } => *racks,
            _ => return None,
        };
        let gpus = self.machines.map_or(1, |machines| machines.gpus);
        let whole = places * gpus == workers && places.is_multiple_of(turns);
        let steady = !self.is_uncertain() && self.switches.is_empty() && !self.half_duplex;
        if turns < 2 || !whole || !steady {
            return None;
        }
        let period = workers / turns;
        let alike = repeats(&self.latency, period)
            && repeats(&self.compute, period)
            && repeats(&self.devices, period);
        let links: Vec<LinkId> = self.stand_ins(turns);
        let equal = |(link, stand_in): (&Link, &LinkId)| {
            let stand_in = &self.links[stand_in.0];
            (link.bandwidth, link.latency) == (stand_in.bandwidth, stand_in.latency)
        };
        (alike && self.links.iter().zip(&links).all(equal)).then_some(Period {
            workers: period,
            links,
        })
    }

    /// Of each link the one of the first of so many equal blocks of workers: of those that workers,
    /// NICs and racks have, each way, so many belong to a block.
    fn stand_ins(&self, turns: usize) -> Vec<LinkId> {
        let nics = self.machines.map_or(0, |machines| machines.all_nics());
        let racks = match &self.wiring {
            Wiring::Racks { racks, .. } => *racks,
            _ => 0,
        };
        let mut links = Vec::with_capacity(self.links.len());
        for count in [self.workers(), nics, racks] {
            for _way in 0..2 {
                let first = links.len();
                let of_block = (count / turns).max(1);
                links.extend((0..count).map(|link| LinkId(first + link % of_block)));
            }
        }
        links
    }
}

/// Whether each value is the one so many before it.
pub(crate) fn repeats<T: PartialEq>(values: &[T], period: usize) -> bool {
    let mut pairs = values.iter().zip(values.iter().skip(period));
    pairs.all(|(first, later)| first == later)
}
