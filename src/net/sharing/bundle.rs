//! Flows on one route, and where they cross links.

use super::{Filling, LinkId};

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
    /// Its bottleneck; [`NONE`] until it was part of a solution.
    pub(super) bottleneck: u32,
    pub(super) key: (Vec<LinkId>, u64),
    pub(super) cap: Option<f64>,
}

impl Bundle {
    /// Settles its flows on all its links but one.
    pub(super) fn settle_others(&self, link: u32, rate: f64, filling: &mut [Filling]) {
        for &other in self.links.iter().filter(|&&other| other != link) {
            filling[other as usize].settle(f64::from(self.flows), rate);
        }
    }
}
