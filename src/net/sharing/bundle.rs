//! Flows on one route, and where they cross links.

use super::{LinkId, MANY, NONE, Sharing};

/// The bundles on a link, `[bundles]` each. Apart from each other, because filling again mostly
/// visits the first only.
#[derive(Clone, Debug, Default)]
pub(super) struct Crossing {
    /// The other link of each route, or [`MANY`].
    pub(super) others: Vec<u32>,
    /// Number of flows of each.
    pub(super) flows: Vec<u32>,
    pub(super) bundles: Vec<u32>,
}

impl Crossing {
    pub(super) fn push(&mut self, other: u32, bundle: u32) {
        self.others.push(other);
        self.flows.push(0);
        self.bundles.push(bundle);
    }

    pub(super) fn pop(&mut self) {
        self.others.pop();
        self.flows.pop();
        self.bundles.pop();
    }

    pub(super) fn swap(&mut self, a: usize, b: usize) {
        self.others.swap(a, b);
        self.flows.swap(a, b);
        self.bundles.swap(a, b);
    }
}

#[derive(Clone, Debug)]
pub(super) struct Bundle {
    pub(super) links: Vec<u32>,
    /// Where in `crossing` it is, link by link.
    pub(super) places: Vec<u32>,
    pub(super) flows: u32,
    /// Its bottleneck; [`NONE`], which is no link, until it was part of a solution.
    pub(super) bottleneck: u32,
    pub(super) key: (Vec<LinkId>, u64),
    pub(super) cap: Option<f64>,
}

impl Sharing {
    pub(super) fn new_bundle(&mut self, key: (Vec<LinkId>, u64), cap: Option<f64>) -> u32 {
        let mut links: Vec<u32> = key.0.iter().map(|link| link.0 as u32).collect();
        if cap.is_some() {
            links.push(self.link_for_cap());
        }
        let id = self.free.pop().unwrap_or(self.bundles.len() as u32);
        let mut places = Vec::with_capacity(links.len());
        for &link in &links {
            // Kept beside the bundle, as filling mostly needs no more of a route than its other
            // link.
            let other = match links[..] {
                // Of two links the one that is not this: what is there twice cancels.
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
        // New: whoever follows bottlenecks has to ask for its first one.
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
            let links = self.capacity.len();
            self.scratch.grow(links);
            self.refill.grow(links);
            (links - 1) as u32
        })
    }

    /// Adds or takes a flow, in all places where flows are counted.
    pub(super) fn count(&mut self, id: u32, change: i32) {
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
            if let Some(cap) = bundle.cap
                && at + 1 == bundle.links.len()
            {
                self.capacity[link as usize] = cap * f64::from(bundle.flows);
            }
            self.changes.links.push(link);
        }
    }

    pub(super) fn drop_bundle(&mut self, id: u32) {
        self.set_bottleneck(id, NONE);
        for at in 0..self.bundles[id as usize].links.len() {
            let bundle = &self.bundles[id as usize];
            let (link, place) = (bundle.links[at] as usize, bundle.places[at] as usize);
            let last = self.crossing[link].others.len() - 1;
            // To the end first: taking from the middle would move all behind it.
            self.swap(link, place, last);
            self.crossing[link].pop();
        }
        let bundle = &mut self.bundles[id as usize];
        self.shape.count(&bundle.links, false);
        let key = std::mem::take(&mut bundle.key);
        if bundle.cap.is_some() {
            // A cap's link is the last of its bundle.
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
    pub(super) fn set_bottleneck(&mut self, id: u32, link: u32) {
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
