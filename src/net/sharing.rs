//! Max-min fair sharing of links by progressive filling.
//!
//! Raise the rates of all flows together until a link is full; the flows on it keep their rate; go
//! on with the others (Bertsekas and Gallager, *Data Networks*, 2nd ed., §6.5.2). The result is the
//! one allocation in which no flow can get more without taking from a flow that has no more than
//! it.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::LinkId;

/// Links that fill at rates closer than this, relatively, fill together: rounding must not split
/// what is symmetric into many rounds.
const SAME_LEVEL: f64 = 1e-12;

/// Flows over links, and each flow's fair rate.
///
/// A flow lives in a numbered slot that is reused after it left. With F flows of at most R links on
/// L links, [`Sharing::solve`] takes O(F·R + L log L) time when few links fill at different rates
/// and at most O(F·R·log L); memory is O(F·R + L). The rates are functions of the set of routes
/// alone: neither the order in which flows came nor the numbers of their slots change a bit.
#[derive(Clone, Debug)]
pub struct Sharing {
    capacity: Vec<f64>,
    /// Slots of the flows on each link.
    crossing: Vec<Vec<u32>>,
    /// By slot, `stride` entries each: the links of its flow, then [`NONE`]. Flat arrays, because a
    /// solve visits every flow.
    links: Vec<u32>,
    stride: usize,
    /// By slot: the last solve that settled its rate.
    settled: Vec<u64>,
    rates: Vec<f64>,
    free: Vec<u32>,
    solves: u64,
}

/// No link.
const NONE: u32 = u32::MAX;

/// When a link fills, as an ordered number.
#[derive(Clone, Copy, Debug)]
struct Level(f64);

/// What progressive filling knows of the links between two rounds.
struct Filling {
    /// Capacity that settled flows leave, and number of flows not settled.
    spare: Vec<f64>,
    open: Vec<u32>,
    /// A lower bound of when each link fills. A link's level only rises as flows elsewhere settle,
    /// so an outdated entry is too low, never too high: it is put right when it comes to the top.
    levels: BinaryHeap<Reverse<(Level, usize)>>,
}

impl Filling {
    fn level(&self, link: usize) -> f64 {
        self.spare[link] / f64::from(self.open[link])
    }

    /// Takes from the heap the links that fill next, and the level at which they do.
    fn next(&mut self, full: &mut Vec<usize>) -> Option<f64> {
        full.clear();
        let mut lowest = f64::INFINITY;
        while let Some(&Reverse((Level(bound), link))) = self.levels.peek()
            && bound <= lowest * (1.0 + SAME_LEVEL)
        {
            self.levels.pop();
            if self.open[link] == 0 {
                continue;
            }
            let level = self.level(link);
            if full.is_empty() && level > bound {
                // Outdated: other links may fill before it.
                self.levels.push(Reverse((Level(level), link)));
            } else if level <= lowest * (1.0 + SAME_LEVEL) {
                lowest = lowest.min(level);
                full.push(link);
            } else {
                self.levels.push(Reverse((Level(level), link)));
            }
        }
        (!full.is_empty()).then_some(lowest)
    }
}

impl Sharing {
    /// No flows over links of these capacities, in bytes per second.
    #[must_use]
    pub fn new(capacity: Vec<f64>) -> Self {
        Self {
            crossing: vec![Vec::new(); capacity.len()],
            capacity,
            links: Vec::new(),
            stride: 1,
            settled: Vec::new(),
            rates: Vec::new(),
            free: Vec::new(),
            solves: 0,
        }
    }

    /// Adds a flow and returns its slot. Its rate is 0 until the next [`Sharing::solve`].
    ///
    /// # Panics
    /// If the route has no links (then nothing limits the flow) or a link that does not exist.
    #[allow(clippy::cast_possible_truncation)] // far fewer than 2³² flows and links fit into memory
    pub fn insert(&mut self, route: &[LinkId]) -> usize {
        assert!(!route.is_empty(), "a flow over no links has no fair rate");
        if route.len() > self.stride {
            self.widen(route.len());
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.links.extend(std::iter::repeat_n(NONE, self.stride));
            self.settled.push(0);
            self.rates.push(0.0);
            (self.rates.len() - 1) as u32
        });
        let begin = slot as usize * self.stride;
        for (own, link) in self.links[begin..].iter_mut().zip(route) {
            *own = link.0 as u32;
            self.crossing[link.0].push(slot);
        }
        slot as usize
    }

    /// Removes the flow in a slot. The others keep their rates until the next [`Sharing::solve`].
    pub fn remove(&mut self, slot: usize) {
        let own = &mut self.links[slot * self.stride..][..self.stride];
        for link in own.iter_mut().take_while(|link| **link != NONE) {
            self.crossing[*link as usize].retain(|&other| other as usize != slot);
            *link = NONE;
        }
        self.rates[slot] = 0.0;
        self.free.extend(u32::try_from(slot));
    }

    /// The links of the flow in a slot.
    pub fn links(&self, slot: usize) -> impl Iterator<Item = LinkId> {
        let own = &self.links[slot * self.stride..][..self.stride];
        own.iter()
            .take_while(|link| **link != NONE)
            .map(|&link| LinkId(link as usize))
    }

    /// Rates by slot in bytes per second, as of the last [`Sharing::solve`]; 0 in free slots.
    #[must_use]
    pub fn rates(&self) -> &[f64] {
        &self.rates
    }

    fn widen(&mut self, stride: usize) {
        let mut wider = vec![NONE; self.rates.len() * stride];
        for (new, old) in wider.chunks_mut(stride).zip(self.links.chunks(self.stride)) {
            new[..old.len()].copy_from_slice(old);
        }
        (self.links, self.stride) = (wider, stride);
    }

    /// Computes all rates.
    #[allow(clippy::cast_possible_truncation)] // far fewer than 2³² flows fit into memory
    pub fn solve(&mut self) {
        self.solves += 1;
        let open: Vec<u32> = self
            .crossing
            .iter()
            .map(|flows| flows.len() as u32)
            .collect();
        let mut filling = Filling {
            spare: self.capacity.clone(),
            open,
            levels: BinaryHeap::new(),
        };
        filling.levels = (0..filling.open.len())
            .filter(|&link| filling.open[link] > 0)
            .map(|link| Reverse((Level(filling.level(link)), link)))
            .collect();
        let mut settling = vec![0_u32; filling.open.len()];
        let mut touched = vec![0; filling.open.len() + 1];
        let mut full = Vec::new();
        let mut rate = 0.0_f64;
        while let Some(level) = filling.next(&mut full) {
            // Never below an earlier round, whatever rounding does: rates stay above zero.
            rate = rate.max(level);
            let mut count = 0;
            for &link in &full {
                for &slot in &self.crossing[link] {
                    let slot = slot as usize;
                    if self.settled[slot] == self.solves {
                        continue;
                    }
                    self.settled[slot] = self.solves;
                    self.rates[slot] = rate;
                    for &link in &self.links[slot * self.stride..][..self.stride] {
                        if link == NONE {
                            break;
                        }
                        // Every link is listed at its first flow; written without a branch, which
                        // would be guessed wrong.
                        let link = link as usize;
                        touched[count] = link;
                        count += usize::from(settling[link] == 0);
                        settling[link] += 1;
                    }
                }
            }
            // One subtraction a link and round, not one a flow: hundreds of roundings become one.
            for &link in &touched[..count] {
                let flows = std::mem::take(&mut settling[link]);
                filling.spare[link] = (filling.spare[link] - f64::from(flows) * rate).max(0.0);
                filling.open[link] -= flows;
            }
        }
    }
}

/// Max-min fair rates of flows over links, in the unit of the capacities; infinite for a flow over
/// no links.
///
/// `capacity[l]` is the capacity of link l, greater than zero; `routes[f]` are the links of flow f.
/// For cost see [`Sharing`].
///
/// # Panics
/// If a route names a link that does not exist.
#[must_use]
pub fn max_min(capacity: &[f64], routes: &[Vec<LinkId>]) -> Vec<f64> {
    let mut sharing = Sharing::new(capacity.to_vec());
    let slots: Vec<Option<usize>> = routes
        .iter()
        .map(|links| (!links.is_empty()).then(|| sharing.insert(links)))
        .collect();
    sharing.solve();
    slots
        .into_iter()
        .map(|slot| slot.map_or(f64::INFINITY, |slot| sharing.rates()[slot]))
        .collect()
}

impl Ord for Level {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Level {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Level {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Level {}

#[cfg(test)]
#[allow(clippy::float_cmp)] // of values that are exact
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn routes(lists: &[&[usize]]) -> Vec<Vec<LinkId>> {
        lists
            .iter()
            .map(|list| list.iter().map(|&link| LinkId(link)).collect())
            .collect()
    }

    fn load(rates: &[f64], routes: &[Vec<LinkId>], link: usize) -> f64 {
        let on = |route: &Vec<LinkId>| route.contains(&LinkId(link));
        rates
            .iter()
            .zip(routes)
            .filter(|(_, route)| on(route))
            .map(|(rate, _)| rate)
            .sum()
    }

    /// Raises all open flows in steps to the next full link, recomputing everything from the
    /// definition.
    fn brute_force(capacity: &[f64], routes: &[Vec<LinkId>]) -> Vec<f64> {
        let mut rates: Vec<f64> = routes
            .iter()
            .map(|route| if route.is_empty() { f64::INFINITY } else { 0.0 })
            .collect();
        let mut open: Vec<bool> = routes.iter().map(|route| !route.is_empty()).collect();
        while open.contains(&true) {
            let headroom = |link: usize, rates: &[f64], open: &[bool]| {
                let on = (0..routes.len()).filter(|&f| routes[f].contains(&LinkId(link)));
                let count = on.filter(|&f| open[f]).count();
                (count > 0).then(|| (capacity[link] - load(rates, routes, link)) / count as f64)
            };
            let step = (0..capacity.len())
                .filter_map(|link| headroom(link, &rates, &open))
                .fold(f64::INFINITY, f64::min);
            (0..routes.len())
                .filter(|&f| open[f])
                .for_each(|f| rates[f] += step);
            let full: Vec<usize> = (0..capacity.len())
                .filter(|&link| load(&rates, routes, link) >= capacity[link] * (1.0 - 1e-9))
                .collect();
            for f in 0..routes.len() {
                open[f] &= !routes[f].iter().any(|link| full.contains(&link.0));
            }
        }
        rates
    }

    #[test]
    fn a_flow_over_two_links_leaves_the_rest_to_the_others() {
        // Bertsekas and Gallager's line: one long flow, one short flow on each link, the second
        // link wider.
        let rates = max_min(&[1.0, 3.0], &routes(&[&[0, 1], &[0], &[1]]));
        assert_eq!(rates, [0.5, 0.5, 2.5]);
    }

    #[test]
    fn flows_over_no_links_are_not_limited() {
        assert_eq!(max_min(&[2.0], &routes(&[&[], &[0]])), [f64::INFINITY, 2.0]);
    }

    #[test]
    fn who_leaves_makes_room_and_its_slot_is_used_again() {
        let mut sharing = Sharing::new(vec![6.0]);
        let slots: Vec<usize> = (0..3).map(|_| sharing.insert(&[LinkId(0)])).collect();
        sharing.solve();
        assert_eq!(sharing.rates()[slots[0]], 2.0);
        sharing.remove(slots[1]);
        sharing.solve();
        assert_eq!(sharing.rates()[slots[0]], 3.0);
        assert_eq!(sharing.insert(&[LinkId(0)]), slots[1]);
    }

    fn instance() -> impl Strategy<Value = (Vec<f64>, Vec<Vec<LinkId>>)> {
        (2_usize..7).prop_flat_map(|links| {
            // Few distinct capacities, so that ties are common.
            let capacity = prop::collection::vec((1..5_u8).prop_map(f64::from), links);
            let route = prop::sample::subsequence(
                (0..links).map(LinkId).collect::<Vec<_>>(),
                1..=links.min(4),
            );
            (capacity, prop::collection::vec(route, 1..12))
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn rates_equal_those_of_a_brute_force_solver((capacity, routes) in instance()) {
            let fast = max_min(&capacity, &routes);
            for (fast, slow) in fast.iter().zip(brute_force(&capacity, &routes)) {
                prop_assert!((fast - slow).abs() <= 1e-9 * slow, "{fast} and {slow}");
            }
        }

        #[test]
        fn no_link_is_overfull_and_every_flow_has_a_full_link_on_which_none_is_faster(
            (capacity, routes) in instance()
        ) {
            let rates = max_min(&capacity, &routes);
            for (link, capacity) in capacity.iter().enumerate() {
                prop_assert!(load(&rates, &routes, link) <= capacity * (1.0 + 1e-9));
            }
            for (rate, route) in rates.iter().zip(&routes) {
                let bottleneck = route.iter().any(|link| {
                    let full = load(&rates, &routes, link.0) >= capacity[link.0] * (1.0 - 1e-9);
                    let fastest = rates.iter().zip(&routes)
                        .filter(|(_, other)| other.contains(link))
                        .fold(0.0_f64, |most, (other, _)| most.max(*other));
                    full && *rate >= fastest * (1.0 - 1e-9)
                });
                prop_assert!(bottleneck);
            }
        }

        #[test]
        fn the_order_of_flows_changes_no_bit((capacity, routes) in instance()) {
            let mut forward = max_min(&capacity, &routes);
            let reversed: Vec<_> = routes.iter().rev().cloned().collect();
            forward.reverse();
            prop_assert_eq!(forward, max_min(&capacity, &reversed));
        }
    }
}
