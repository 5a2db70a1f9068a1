//! Max-min fair sharing of links by progressive filling.
//!
//! Raise the rates of all flows together until a link is full; the flows on it keep their rate; go
//! on with the others (Bertsekas and Gallager, *Data Networks*, 2nd ed., §6.5.2). The result is the
//! one allocation in which no flow can get more without taking from a flow that has no more than
//! it: every flow has a full link on which none is faster, its *bottleneck* here.
//!
//! Flows on the same route always have the same rate and are kept together, as a *bundle* with a
//! count. Every link knows the bundles that it holds back, and one number, its level, is the rate
//! of them all. A change of one flow leaves all links alone that fill before its bottleneck; what
//! fills later is filled again, in almost the order in which it filled before.
//!
//! Where many pairs of two sides of links talk, as in an all-to-all over a star, flows are kept as
//! a table instead, and a solve reads rows of it; see `bipartite.rs`.
//!
//! **Cost**, with B bundles over at most R links each and L links in use: from nothing O(B·R + L
//! log L) when few links fill at different levels and at most O(B·R·log L); after a change of a few
//! flows O(B' + L), with B' the bundles whose bottleneck fills no earlier than the first that is
//! concerned. As a table: O(L²) from nothing; after a change O(L'·L), with L' the links that fill
//! no earlier than the first that is concerned, but 16 pairs of links at a time. Memory is O(B·R +
//! L) and a few copies of two numbers a link; the tables have at most 16 entries of 8 bytes a
//! bundle.
//!
//! An all-to-all of P workers whose messages all end at different times is P² − P solves, one for
//! each end: O(P⁴) in all. On one of two shared cores of an AVX-512 server CPU, of which AVX2 is
//! used, that took 0.93 ms, 31 ms and 2.8 s for 16, 64 and 256 workers: 260 000, 130 000 and 24 000
//! flows per second.

mod bipartite;
mod bundle;
mod fill;
mod refill;
mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::LinkId;
use bundle::{Bundle, Crossing};
use table::{Bipartite, Shape};

/// Links that fill at rates closer than this, relatively, fill together: rounding must not split
/// what is symmetric into many levels.
const SAME_LEVEL: f64 = 1e-12;

/// Links that fill one after another at levels closer than this, relatively, fill together. Links
/// of hundreds of flows each, which do so by symmetry, are that far apart by rounding.
const SAME: f64 = 1e-11;

/// A share of its capacity by which rounding may overfill a link.
const OVERFULL: f64 = 1e-10;

/// Below so many bundles, everything is filled anew after every change: it costs no more, and rates
/// are then functions of the set of flows alone, to the bit.
const FEW: usize = 256;

/// More links with changed flows than this are filled from nothing.
const FEW_LINKS: usize = 24;

/// No link, no bundle, no place.
const NONE: u32 = u32::MAX;

/// Stands for the other links of a bundle that has not exactly one.
const MANY: u32 = u32::MAX;

/// Number of a bundle: all flows on one route with one cap. Used again after its last flow left.
pub type BundleId = usize;

/// Flows over links, and each flow's fair rate.
#[derive(Clone, Debug)]
pub struct Sharing {
    /// Bytes per second. After the links of the network come those that stand for caps.
    capacity: Vec<f64>,
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
    changes: Changes,
    shape: Shape,
    /// The flows as a table, where that pays. Bottlenecks are not kept in `bundles` then.
    bipartite: Option<Box<Bipartite>>,
    /// Bundles whose bottleneck may be another since they were last asked for.
    moved: Vec<u32>,
    /// How often was filled from nothing, and how often from somewhere in between.
    fills: (u64, u64),
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
        self.spare.max(0.0) / self.open.max(1.0)
    }

    #[inline]
    fn settle(&mut self, flows: f64, rate: f64) {
        self.spare -= flows * rate;
        self.open -= flows;
    }
}

/// The order in which links filled, and from where it can be done again.
#[derive(Clone, Debug, Default)]
struct Solution {
    /// Links in the order in which they filled, then links in use that are not full.
    order: Vec<u32>,
    /// Each link's place in it; [`NONE`] if it has not filled.
    rank: Vec<u32>,
    /// The rate of the flows that a link holds back.
    level: Vec<f64>,
    filling: Vec<Filling>,
    snapshots: Vec<Snapshot>,
}

/// How things were before the link at a place of the order filled.
#[derive(Clone, Debug)]
struct Snapshot {
    at: usize,
    filling: Vec<Filling>,
}

/// What has changed since the last solution.
#[derive(Clone, Debug, Default)]
struct Changes {
    /// Link by link: by how much its capacity and its number of flows have changed.
    links: Vec<(u32, Filling)>,
    /// Links of flows that came.
    joined: Vec<u32>,
    /// Everything before this place of the order stays, as far as flows that left are concerned.
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
    #[must_use]
    pub fn new(capacity: Vec<f64>) -> Self {
        let links = capacity.len();
        Self {
            shape: Shape::new(links),
            bipartite: None,
            total: vec![0.0; links],
            crossing: vec![Crossing::default(); links],
            own: vec![0; links],
            solution: Solution {
                rank: vec![NONE; links],
                level: vec![0.0; links],
                filling: vec![Filling::default(); links],
                ..Solution::default()
            },
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
            fills: (0, 0),
        }
    }

    /// Adds a flow that never gets more than `cap` bytes per second, and returns its bundle.
    ///
    /// # Panics
    /// If the route has no links (then nothing limits the flow) or a link that does not exist.
    pub fn insert(&mut self, route: &[LinkId], cap: Option<f64>) -> BundleId {
        assert!(!route.is_empty(), "a flow over no links has no fair rate");
        // A cap above the capacity of a link on the way holds nobody back.
        let narrowest = route
            .iter()
            .map(|link| self.capacity[link.0])
            .fold(f64::INFINITY, f64::min);
        let cap = cap.filter(|cap| *cap < narrowest || narrowest == 0.0);
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
    pub fn remove(&mut self, bundle: BundleId) {
        match self.solution.rank.get(self.bottleneck(bundle)) {
            Some(&rank) => self.changes.left_at = self.changes.left_at.min(rank as usize),
            // It came and went without ever being shared.
            None => self.changes.everything = true,
        }
        let flows = self.bundles[bundle].flows;
        self.count(bundle as u32, -1);
        if flows == 1 {
            self.drop_bundle(bundle as u32);
        }
    }

    /// Changes the capacity of a link, in bytes per second; nothing passes at 0.
    pub fn set_capacity(&mut self, link: LinkId, capacity: f64) {
        self.capacity[link.0] = capacity;
        self.changes.everything = true;
    }

    /// The fair rate of every flow of a bundle in bytes per second, as of the last
    /// [`Sharing::solve`].
    #[must_use]
    pub fn rate(&self, bundle: BundleId) -> f64 {
        self.solution.level[self.bottleneck(bundle)]
    }

    /// The link that holds a bundle back, as of the last [`Sharing::solve`]; caps count as links
    /// after those of the network.
    #[must_use]
    pub fn bottleneck(&self, bundle: BundleId) -> usize {
        if let Some(bipartite) = &self.bipartite {
            let [a, b] = bipartite.ends(bundle).map(|link| link as usize);
            let rank = &self.solution.rank;
            return if rank[a] <= rank[b] { a } else { b };
        }
        self.bundles[bundle].bottleneck as usize
    }

    /// By link: the rate of the flows that it holds back, as of the last [`Sharing::solve`].
    #[must_use]
    pub fn levels(&self) -> &[f64] {
        &self.solution.level
    }

    /// Links of the network and links that stand for caps.
    #[must_use]
    pub fn links(&self) -> usize {
        self.capacity.len()
    }

    /// Bundles that may have another bottleneck since the last call, some of them more than once.
    pub fn take_moved(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.moved)
    }

    /// How often was filled from nothing and how often was refilled; for tests and measurements.
    #[must_use]
    pub const fn fills(&self) -> (u64, u64) {
        self.fills
    }

    /// Most bundles that have been in use at once: what memory grows with.
    #[must_use]
    pub const fn most_bundles(&self) -> usize {
        self.bundles.len()
    }

    /// Computes all rates.
    pub fn solve(&mut self) {
        if self.changes.links.is_empty() && !self.changes.everything {
            return;
        }
        if self.in_use < FEW {
            self.fill_anew();
        } else if self.use_bipartite() {
            self.fill_bipartite();
        } else {
            self.fill_again();
        }
        self.changes = Changes::none();
    }

    fn fill_anew(&mut self) {
        self.leave_bipartite();
        self.fill();
        self.fills.0 += 1;
    }

    fn fill_again(&mut self) {
        if self.refill() {
            self.fills.1 += 1;
        } else {
            self.fill_anew();
        }
    }

    fn new_bundle(&mut self, key: (Vec<LinkId>, u64), cap: Option<f64>) -> u32 {
        let mut links: Vec<u32> = key.0.iter().map(|link| link.0 as u32).collect();
        if cap.is_some() {
            links.push(self.link_for_cap());
        }
        let id = self.free.pop().unwrap_or(self.bundles.len() as u32);
        let mut places = Vec::with_capacity(links.len());
        for &link in &links {
            let other = match links[..] {
                [a, b] => a ^ b ^ link,
                _ => MANY,
            };
            let on = &mut self.crossing[link as usize];
            places.push(on.others.len() as u32);
            on.push(other, id);
        }
        self.shape.count(&links, true);
        let bundle = Bundle {
            links,
            places,
            flows: 0,
            bottleneck: NONE,
            key: key.clone(),
            cap,
        };
        if id as usize == self.bundles.len() {
            self.bundles.push(bundle);
        } else {
            self.bundles[id as usize] = bundle;
        }
        self.by_route.insert(key, id);
        self.in_use += 1;
        self.moved.push(id);
        id
    }

    /// A link that only one bundle uses. Its capacity grows with the number of flows.
    fn link_for_cap(&mut self) -> u32 {
        self.free_links.pop().unwrap_or_else(|| {
            self.capacity.push(0.0);
            self.total.push(0.0);
            self.crossing.push(Crossing::default());
            self.own.push(0);
            self.shape.ends.push([0; 2]);
            let solution = &mut self.solution;
            solution.rank.push(NONE);
            solution.level.push(0.0);
            solution.filling.push(Filling::default());
            for snapshot in &mut solution.snapshots {
                snapshot.filling.push(Filling::default());
            }
            (self.capacity.len() - 1) as u32
        })
    }

    /// Adds or takes a flow, in all places where flows are counted.
    fn count(&mut self, id: u32, change: i32) {
        let bundle = &mut self.bundles[id as usize];
        bundle.flows = bundle.flows.saturating_add_signed(change);
        if let Some(bipartite) = &mut self.bipartite
            && !bipartite.set_flows(&bundle.links, id, bundle.flows)
        {
            self.leave_bipartite();
        }
        let bundle = &self.bundles[id as usize];
        let change = f64::from(change);
        for (at, (&link, &place)) in bundle.links.iter().zip(&bundle.places).enumerate() {
            self.crossing[link as usize].flows[place as usize] = bundle.flows;
            self.total[link as usize] += change;
            let mut spare = 0.0;
            if let Some(cap) = bundle.cap
                && at + 1 == bundle.links.len()
            {
                spare = change * cap;
                self.capacity[link as usize] = cap * f64::from(bundle.flows);
            }
            let change = Filling {
                spare,
                open: change,
            };
            self.changes.links.push((link, change));
        }
    }

    fn drop_bundle(&mut self, id: u32) {
        self.set_bottleneck(id, NONE);
        for at in 0..self.bundles[id as usize].links.len() {
            let bundle = &self.bundles[id as usize];
            let (link, place) = (bundle.links[at] as usize, bundle.places[at] as usize);
            let last = self.crossing[link].others.len() - 1;
            self.swap(link, place, last);
            self.crossing[link].pop();
        }
        let bundle = &mut self.bundles[id as usize];
        self.shape.count(&bundle.links, false);
        let key = std::mem::take(&mut bundle.key);
        if bundle.cap.is_some() {
            self.free_links.extend(bundle.links.last());
        }
        self.by_route.remove(&key);
        self.free.push(id);
        self.in_use -= 1;
    }

    /// Exchanges two places among the bundles on a link.
    fn swap(&mut self, link: usize, a: usize, b: usize) {
        if a == b {
            return;
        }
        self.crossing[link].swap(a, b);
        for place in [a, b] {
            let bundle = &mut self.bundles[self.crossing[link].bundles[place] as usize];
            let at = bundle.links.iter().position(|&own| own as usize == link);
            if let Some(at) = at {
                bundle.places[at] = place as u32;
            }
        }
    }

    fn place(&self, id: u32, link: u32) -> Option<usize> {
        let bundle = &self.bundles[id as usize];
        let at = bundle.links.iter().position(|&own| own == link)?;
        Some(bundle.places[at] as usize)
    }

    /// Moves a bundle from the own ones of one link to those of another.
    fn set_bottleneck(&mut self, id: u32, link: u32) {
        let old = self.bundles[id as usize].bottleneck;
        if old == link {
            return;
        }
        if let Some(place) = self.place(id, old) {
            let old = old as usize;
            self.own[old] -= 1;
            self.swap(old, place, self.own[old]);
        }
        if let Some(place) = self.place(id, link) {
            let link = link as usize;
            self.swap(link, place, self.own[link]);
            self.own[link] += 1;
        }
        self.bundles[id as usize].bottleneck = link;
        self.moved.push(id);
    }
}

/// Max-min fair rates of flows over links, in the unit of the capacities; infinite for a flow over
/// no links.
///
/// `capacity[l]` is the capacity of link l, not negative; `routes[f]` are the links of flow f. For
/// cost see [`Sharing`].
///
/// # Panics
/// If a route names a link that does not exist.
#[must_use]
pub fn max_min(capacity: &[f64], routes: &[Vec<LinkId>]) -> Vec<f64> {
    let mut sharing = Sharing::new(capacity.to_vec());
    let bundles: Vec<Option<BundleId>> = routes
        .iter()
        .map(|links| (!links.is_empty()).then(|| sharing.insert(links, None)))
        .collect();
    sharing.solve();
    bundles
        .into_iter()
        .map(|bundle| bundle.map_or(f64::INFINITY, |bundle| sharing.rate(bundle)))
        .collect()
}
