//! Max-min fair sharing of links by progressive filling.
//!
//! Raise the rates of all flows together until a link is full; the flows on it keep their rate; go
//! on with the others (Bertsekas and Gallager, *Data Networks*, 2nd ed., §6.5.2). The result is the
//! one allocation in which no flow can get more without taking from a flow that has no more than
//! it: every flow has a full link on which none is faster, its *bottleneck* here.
//!
//! Flows on the same route always have the same rate and are kept together, as a *bundle* with a
//! count. Every link knows the bundles that it holds back, and one number, its level, is the rate
//! of them all. A change is worked out in one of three ways:
//!
//! * the links that flows connect with it are few: they are filled from nothing (`fill.rs`), so
//!   that rates are functions of the flows alone, to the bit. A ring of any length is such pairs;
//! * they are many: only those are filled again that the change concerns (`refill.rs`);
//! * many pairs of two sides of links talk, as in an all-to-all over a star: flows are kept as a
//!   table, and a solve reads rows of it (`bipartite.rs`).
//!
//! **Cost**, with B bundles over at most R links each and L links among those that a change
//! concerns: O(B·R + L log L) when few links fill at different levels and at most O(B·R·log L). As
//! a table: O(L²) from nothing; after a change O(L'·L), with L' the links that fill no earlier than
//! the first that is concerned, but 16 pairs of links at a time. Memory is O(B·R + L) over all
//! links; the tables have at most 16 entries of 8 bytes a bundle.
//!
//! An all-to-all of P workers whose messages all end at different times is P² − P solves, one for
//! each end: O(P⁴) in all.

mod bipartite;
mod bundle;
mod fill;
mod refill;
mod table;
#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::{brute_force, max_min};

use std::collections::BTreeMap;

use super::LinkId;
use bundle::{Bundle, Crossing};
use fill::Scratch;
use refill::Refill;
use table::{Bipartite, Shape};

/// Links that fill at rates closer than this, relatively, fill together: rounding must not split
/// what is symmetric into many levels.
const SAME_LEVEL: f64 = 1e-12;

/// Links that fill one after another at levels closer than this, relatively, fill together. Links
/// of hundreds of flows each, which do so by symmetry, are that far apart by rounding.
const SAME: f64 = 1e-11;

/// A share of its capacity by which rounding may overfill a link.
const OVERFULL: f64 = 1e-10;

/// Below so many bundles no table is kept: filling what hangs together from nothing costs no more.
// The three ways of solving differ in last bits, so that another number may change times there.
const FEW: usize = 256;

/// Links that so many bundles cross, each counted on each of its links, are filled from nothing
/// after every change. Rates are then functions of the set of flows alone, to the bit.
const SMALL: usize = 2 * FEW;

/// With more links of changed flows than this a table is filled from nothing.
const FEW_LINKS: usize = 24;

/// No link, no bundle, no place.
const NONE: u32 = u32::MAX;

/// Stands for the other links of a bundle that has not exactly one.
const MANY: u32 = u32::MAX;

/// Number of a bundle: all flows on one route with one cap. Used again after its last flow left.
pub(crate) type BundleId = usize;

/// Flows over links, and each flow's fair rate.
#[derive(Clone, Debug)]
pub(crate) struct Sharing {
    /// Bytes per second. After the links of the network come those that stand for caps.
    capacity: Vec<f64>,
    /// Of the links of the network, what they had at first: never less than they have.
    most: Vec<f64>,
    /// Flows on each link.
    total: Vec<f64>,
    /// Bundles on each link; first the `own[link]` whose bottleneck it is.
    crossing: Vec<Crossing>,
    own: Vec<usize>,
    bundles: Vec<Bundle>,
    by_route: BTreeMap<(Vec<LinkId>, u64), u32>,
    in_use: usize,
    free: Vec<u32>,
    free_links: Vec<u32>,
    solution: Solution,
    scratch: Scratch,
    refill: Refill,
    changes: Changes,
    shape: Shape,
    /// The flows as a table, where that pays. Bottlenecks are not kept in `bundles` then.
    bipartite: Option<Box<Bipartite>>,
    /// Bundles whose bottleneck may be another since they were last asked for.
    moved: Vec<u32>,
    /// Links with a new rate since they were last asked for.
    rated: Vec<u32>,
    effort: Effort,
}

/// What sharing has cost so far, in numbers that do not depend on the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Effort {
    /// Solutions of all links from nothing.
    pub whole: u64,
    /// Solutions of the links that hang together with a change, from nothing.
    pub components: u64,
    /// Solutions of the links that a change concerns, among many that hang together.
    pub concerned: u64,
    /// Solutions of a table.
    pub tables: u64,
    /// Links given a rate.
    pub links: u64,
    /// Bundles looked at, once for each link on which they were.
    pub visits: u64,
}

/// Which links have a new rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Rated {
    /// These, some of them more than once.
    Some(Vec<u32>),
    /// Any may have.
    All,
}

/// What filling knows of a link: the capacity that settled flows leave, and the flows not settled.
#[derive(Clone, Copy, Debug, Default)]
struct Filling {
    spare: f64,
    open: f64,
}

impl Filling {
    /// 0 if no flows are open.
    fn level(self) -> f64 {
        // Rounding may leave a little less than nothing, and a negative rate would run backwards.
        self.spare.max(0.0) / self.open.max(1.0)
    }

    #[inline]
    fn settle(&mut self, flows: f64, rate: f64) {
        self.spare -= flows * rate;
        self.open -= flows;
    }
}

/// What became of each link.
#[derive(Clone, Debug, Default)]
struct Solution {
    /// In a table: links in the order in which they filled, then links in use that are not full.
    order: Vec<u32>,
    /// Each link's place among those that filled with it; [`NONE`] if it has not.
    rank: Vec<u32>,
    /// The rate of the flows that a link holds back.
    level: Vec<f64>,
}

/// What has changed since the last solution.
#[derive(Clone, Debug, Default)]
struct Changes {
    /// Links of flows that came or left.
    links: Vec<u32>,
    /// Links of flows that came.
    joined: Vec<u32>,
    /// In a table: everything before this place of the order stays, as far as flows that left are
    /// concerned.
    left_at: usize,
    /// Nothing of the last solution can be used.
    everything: bool,
}

impl Changes {
    fn none() -> Self {
        Self {
            left_at: usize::MAX,
            ..Self::default()
        }
    }
}

impl Sharing {
    /// No flows over links of these capacities, in bytes per second; 0 where nothing passes.
    pub(crate) fn new(capacity: Vec<f64>) -> Self {
        let links = capacity.len();
        let mut sharing = Self {
            shape: Shape::new(links),
            bipartite: None,
            total: vec![0.0; links],
            crossing: vec![Crossing::default(); links],
            own: vec![0; links],
            solution: Solution {
                rank: vec![NONE; links],
                level: vec![0.0; links],
                order: Vec::new(),
            },
            scratch: Scratch::default(),
            most: capacity.clone(),
            refill: Refill::default(),
            capacity,
            bundles: Vec::new(),
            by_route: BTreeMap::new(),
            in_use: 0,
            free: Vec::new(),
            free_links: Vec::new(),
            changes: Changes {
                everything: true,
                ..Changes::none()
            },
            moved: Vec::new(),
            rated: Vec::new(),
            effort: Effort::default(),
        };
        sharing.scratch.grow(links);
        sharing.refill.grow(links);
        sharing
    }

    /// Adds a flow that never gets more than `cap` bytes per second, and returns its bundle.
    ///
    /// # Panics
    /// If the route has no links (then nothing limits the flow) or a link that does not exist.
    pub(crate) fn insert(&mut self, route: &[LinkId], cap: Option<f64>) -> BundleId {
        assert!(!route.is_empty(), "a flow over no links has no fair rate");
        // A cap above what a link on the way ever has holds nobody back.
        let of = |capacity: &[f64]| {
            let links = route.iter().map(|link| capacity[link.0]);
            links.fold(f64::INFINITY, f64::min)
        };
        let cap = cap.filter(|cap| *cap < of(&self.most) || of(&self.capacity) == 0.0);
        // By its bits, because a float cannot be a key.
        let key = (route.to_vec(), cap.unwrap_or(f64::INFINITY).to_bits());
        let id = match self.by_route.get(&key) {
            Some(&id) => id,
            None => self.new_bundle(key, cap),
        };
        self.count(id, 1);
        let links = &self.bundles[id as usize].links;
        self.changes.joined.extend(links);
        id as usize
    }

    /// Removes one flow of a bundle.
    pub(crate) fn remove(&mut self, bundle: BundleId) {
        match self.solution.rank.get(self.bottleneck(bundle)) {
            Some(&rank) => self.changes.left_at = self.changes.left_at.min(rank as usize),
            // It came and went without ever being shared.
            None => self.changes.left_at = 0,
        }
        let flows = self.bundles[bundle].flows;
        self.count(bundle as u32, -1);
        if flows == 1 {
            self.drop_bundle(bundle as u32);
        }
    }

    /// Changes the capacity of a link, in bytes per second, to what it had at first or less;
    /// nothing passes at 0.
    pub(crate) fn set_capacity(&mut self, link: LinkId, capacity: f64) {
        self.capacity[link.0] = capacity;
        self.changes.everything = true;
    }

    /// The link that holds a bundle back, as of the last [`Sharing::solve`]; caps count as links
    /// after those of the network.
    pub(crate) fn bottleneck(&self, bundle: BundleId) -> usize {
        if let Some(bipartite) = &self.bipartite {
            let [a, b] = bipartite.ends(bundle).map(|link| link as usize);
            let rank = &self.solution.rank;
            // The one that filled first is the one that held the flow back.
            return if rank[a] <= rank[b] { a } else { b };
        }
        self.bundles[bundle].bottleneck as usize
    }

    /// By link: the rate of the flows that it holds back, as of the last [`Sharing::solve`].
    pub(crate) fn levels(&self) -> &[f64] {
        &self.solution.level
    }

    /// Links of the network and links that stand for caps.
    pub(crate) fn links(&self) -> usize {
        self.capacity.len()
    }

    /// Bundles that may have another bottleneck since the last call, some of them more than once.
    pub(crate) fn take_moved(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.moved)
    }

    /// Which links have a new rate since the last call.
    pub(crate) fn take_rated(&mut self) -> Rated {
        if self.bipartite.is_some() {
            self.rated.clear();
            return Rated::All;
        }
        Rated::Some(std::mem::take(&mut self.rated))
    }

    /// Most bundles that have been in use at once: what memory grows with.
    #[cfg(test)]
    pub(crate) const fn most_bundles(&self) -> usize {
        self.bundles.len()
    }

    /// Computes all rates.
    pub(crate) fn solve(&mut self) {
        if self.changes.links.is_empty() && !self.changes.everything {
            return;
        }
        // So a table of few bundles is given up, and rates of few flows are functions of these
        // alone.
        if self.in_use < FEW {
            self.leave_bipartite();
        } else if self.use_bipartite() {
            self.fill_bipartite();
            self.changes = Changes::none();
            return;
        }
        let changed = self.changed_links();
        if self.changes.everything {
            self.fill_all();
        } else if let Some(component) = self.component(&changed) {
            self.effort.components += 1;
            self.fill(&component);
        } else {
            self.fill_again(&changed);
        }
        self.changes = Changes::none();
    }

    fn fill_all(&mut self) {
        self.effort.whole += 1;
        let all: Vec<u32> = (0..self.links() as u32).collect();
        self.fill(&all);
    }

    fn fill_again(&mut self, changed: &[u32]) {
        if self.refill(changed) {
            self.effort.concerned += 1;
        } else {
            self.fill_all();
        }
    }

    /// Links with changed flows, each once.
    fn changed_links(&self) -> Vec<u32> {
        let mut links = self.changes.links.clone();
        links.sort_unstable();
        // Sorted first: each link once, and in an order that does not depend on how flows came.
        links.dedup();
        links
    }
}
