//! Against a solver from the definition, and refilling against filling.

use super::*;
use proptest::prelude::*;

impl Sharing {
    /// The fair rate of every flow of a bundle in bytes per second, as of the last
    /// [`Sharing::solve`].
    fn rate(&self, bundle: BundleId) -> f64 {
        self.solution.level[self.bottleneck(bundle)]
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
pub(crate) fn max_min(capacity: &[f64], routes: &[Vec<LinkId>]) -> Vec<f64> {
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
pub(crate) fn brute_force(capacity: &[f64], routes: &[Vec<LinkId>]) -> Vec<f64> {
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
fn who_leaves_makes_room() {
    let mut sharing = Sharing::new(vec![6.0, 1.0]);
    let slots: Vec<usize> = (0..3).map(|_| sharing.insert(&[LinkId(0)], None)).collect();
    sharing.solve();
    assert_eq!(sharing.rate(slots[0]), 2.0);
    sharing.remove(slots[1]);
    sharing.solve();
    assert_eq!(sharing.rate(slots[0]), 3.0);
    assert_eq!(sharing.insert(&[LinkId(1)], None), slots[0] + 1);
}

fn instance() -> impl Strategy<Value = (Vec<f64>, Vec<Vec<LinkId>>)> {
    (2_usize..7).prop_flat_map(|links| {
        // Few distinct capacities, so that ties are common.
        let capacity = prop::collection::vec((1..5_u8).prop_map(f64::from), links);
        let route =
            prop::sample::subsequence((0..links).map(LinkId).collect::<Vec<_>>(), 1..=links.min(4));
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
    fn a_cap_is_a_link_of_the_flow_s_own(
        (capacity, routes) in instance(),
        caps in prop::collection::vec(prop::option::of((1..7_u8).prop_map(|cap| f64::from(cap) / 3.0)), 12),
    ) {
        let mut sharing = Sharing::new(capacity.clone());
        let flows = routes.iter().zip(&caps);
        let bundles: Vec<BundleId> = flows.map(|(links, cap)| sharing.insert(links, *cap)).collect();
        sharing.solve();
        let (mut all, mut longer) = (capacity, routes);
        for (route, cap) in longer.iter_mut().zip(&caps) {
            if let Some(cap) = cap {
                route.push(LinkId(all.len()));
                all.push(*cap);
            }
        }
        for (bundle, slow) in bundles.into_iter().zip(brute_force(&all, &longer)) {
            let fast = sharing.rate(bundle);
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

fn bundles_lie_where_they_are_held_back(sharing: &Sharing) -> bool {
    (0..sharing.links()).all(|link| {
        let own = sharing.crossing[link].bundles.iter().enumerate();
        let mut own = own.filter(|(_, one)| sharing.bottleneck(**one as usize) == link);
        own.clone().count() == sharing.own[link] && own.all(|(place, _)| place < sharing.own[link])
    })
}

/// What a change concerns, however few links hang together.
fn fill_concerned(sharing: &mut Sharing) {
    if sharing.changes.everything {
        sharing.fill_all();
    } else {
        sharing.fill_again(&sharing.changed_links());
    }
}

/// What hangs together, however many flows there are.
fn fill_component(sharing: &mut Sharing) {
    match sharing.component(&sharing.changed_links()) {
        Some(component) if !sharing.changes.everything => sharing.fill(&component),
        _ => sharing.fill_all(),
    }
}

/// As a table, if at all possible.
fn fill_as_table(sharing: &mut Sharing) {
    if sharing.in_use == 0 {
        sharing.leave_bipartite();
        sharing.fill_all();
    } else if sharing.use_bipartite() {
        sharing.fill_bipartite();
    } else {
        fill_concerned(sharing);
    }
}

/// Flows come and go; after each change the rates of refilling are those of filling.
fn refilled_as_filled(
    capacity: &[f64],
    steps: &[(Vec<LinkId>, Option<f64>)],
    refill: fn(&mut Sharing),
) -> Effort {
    let (mut fast, mut plain) = (
        Sharing::new(capacity.to_vec()),
        Sharing::new(capacity.to_vec()),
    );
    let mut present = Vec::new();
    let (mut held_back, mut levels) = (Vec::new(), Vec::new());
    for (number, (route, cap)) in steps.iter().enumerate() {
        // Two come, one goes, until half of them are there; then they leave.
        let leaving = number % 3 == 2 || number > steps.len() / 2;
        if leaving && !present.is_empty() {
            let (a, b) = present.swap_remove(number * 7 % present.len());
            fast.remove(a);
            plain.remove(b);
        } else {
            present.push((fast.insert(route, *cap), plain.insert(route, *cap)));
        }
        refill(&mut fast);
        fast.changes = Changes::none();
        plain.fill_all();
        plain.changes = Changes::none();
        let rated = fast.take_rated();
        let moved = fast.take_moved();
        held_back.resize(fast.most_bundles(), usize::MAX);
        levels.resize(fast.links(), f64::NAN);
        for &(a, b) in &present {
            let before = std::mem::replace(&mut held_back[a], fast.bottleneck(a));
            assert!(before == held_back[a] || moved.contains(&(a as u32)));
            let (rate, expected) = (fast.rate(a), plain.rate(b));
            assert!(
                (rate - expected).abs() <= 1e-12 * expected,
                "{rate} instead of {expected}"
            );
            let link = fast.bottleneck(a);
            let told = match &rated {
                Rated::Some(links) => links.contains(&(link as u32)),
                Rated::All => true,
            };
            assert!(
                told || levels[link] == rate,
                "a new rate that nobody hears of"
            );
        }
        levels.copy_from_slice(fast.levels());
        assert!(fast.bipartite.is_some() || bundles_lie_where_they_are_held_back(&fast));
    }
    fast.effort
}

#[test]
fn most_changes_among_many_flows_refill() {
    // A star of 24 workers with slightly different links; flows between all pairs.
    let capacity: Vec<f64> = (0..48)
        // 37 and 48 have no common factor, so that all 48 differ.
        .map(|link| 1000.0 + f64::from(link * 37 % 48))
        .collect();
    let pairs = (0..24).flat_map(|from| (0..24).map(move |to| (from, to)));
    let mut steps: Vec<_> = pairs
        .filter(|(from, to)| from != to)
        .map(|(from, to)| (vec![LinkId(from), LinkId(24 + to)], None))
        .collect();
    // Primes: an order in which neighbours have nothing in common.
    steps.sort_by_key(|(route, _)| (route[0].0 * 31 + route[1].0 * 17) % 97);
    let effort = refilled_as_filled(&capacity, &steps, fill_concerned);
    assert_eq!(effort.whole, 1, "{effort:?}");
    assert_eq!(effort.concerned, steps.len() as u64 - 1, "{effort:?}");
}

#[test]
fn a_flow_on_links_of_its_own_costs_the_same_among_thousands() {
    // A ring of workers on a star: each sends to the next, one after another.
    let workers = 2000;
    let mut sharing = Sharing::new(vec![1000.0; 2 * workers]);
    let route = |from: usize| [LinkId(from), LinkId(workers + (from + 1) % workers)];
    let bundles: Vec<usize> = (0..workers)
        .map(|from| sharing.insert(&route(from), None))
        .collect();
    sharing.solve();
    let before = sharing.effort;
    sharing.remove(bundles[7]);
    sharing.solve();
    sharing.insert(&route(7), None);
    sharing.solve();
    let after = sharing.effort;
    assert_eq!(after.components - before.components, 2);
    assert!(after.visits - before.visits <= 4, "{before:?}, {after:?}");
}

#[test]
fn a_change_among_many_flows_leaves_links_alone_that_fill_before() {
    // A chain of links, each wider than the one before, that flows hang together two by two: what
    // happens at the end of the chain concerns its last links only.
    let links = 600;
    let mut sharing = Sharing::new((1..=links).map(|link| (link * link) as f64).collect());
    let route = |link: usize| [LinkId(link), LinkId(link + 1)];
    let bundles: Vec<usize> = (0..links - 1)
        .map(|link| sharing.insert(&route(link), None))
        .collect();
    sharing.solve();
    let before = sharing.effort;
    sharing.remove(bundles[links - 3]);
    sharing.solve();
    let after = sharing.effort;
    assert_eq!(after.concerned - before.concerned, 1);
    assert!(after.links - before.links <= 4, "{before:?}, {after:?}");
}

#[test]
fn in_an_all_to_all_every_end_refills() {
    // A star of 24 workers with slightly different links.
    let capacity = |link: usize| 1000.0 + (link * 37 % 48) as f64;
    let mut fast = Sharing::new((0..48).map(capacity).collect());
    let mut plain = fast.clone();
    let pairs = (0..24).flat_map(|from| (0..24).map(move |to| [LinkId(from), LinkId(24 + to)]));
    let mut present: Vec<usize> = pairs.map(|route| fast.insert(&route, None)).collect();
    let pairs = (0..24).flat_map(|from| (0..24).map(move |to| [LinkId(from), LinkId(24 + to)]));
    pairs.for_each(|route| _ = plain.insert(&route, None));
    for end in 0..500 {
        fill_as_table(&mut fast);
        fast.changes = Changes::none();
        plain.fill_all();
        for &bundle in &present {
            let (rate, expected) = (fast.rate(bundle), plain.rate(bundle));
            assert!((rate - expected).abs() <= 1e-12 * expected);
        }
        let ended = present.swap_remove(end * 331 % present.len());
        fast.remove(ended);
        plain.remove(ended);
    }
    assert_eq!((fast.effort.whole, fast.effort.tables), (1, 499));
}

proptest! {
    #[test]
    fn a_table_gives_what_filling_gives(
        capacity in prop::collection::vec(0.0..9.0_f64, 20),
        pairs in prop::collection::vec((0..10_usize, 10..20_usize), 1..300),
    ) {
        let steps: Vec<_> = pairs.iter().map(|&(a, b)| (vec![LinkId(a), LinkId(b)], None)).collect();
        refilled_as_filled(&capacity, &steps, fill_as_table);
    }

    #[test]
    fn a_table_gives_what_filling_gives_where_many_fill_together(
        capacity in prop::collection::vec((0..4_u8).prop_map(f64::from), 12),
        pairs in prop::collection::vec((0..6_usize, 6..12_usize), 1..200),
    ) {
        let steps: Vec<_> = pairs.iter().map(|&(a, b)| (vec![LinkId(a), LinkId(b)], None)).collect();
        refilled_as_filled(&capacity, &steps, fill_as_table);
    }

    #[test]
    fn refilling_gives_what_filling_gives(
        capacity in prop::collection::vec((0..5_u8).prop_map(f64::from), 7),
        steps in prop::collection::vec(
            (
                prop::sample::subsequence((0..7).map(LinkId).collect::<Vec<_>>(), 1..=4),
                prop::option::of((1..4_u8).prop_map(|cap| 0.4 * f64::from(cap))),
            ),
            1..60,
        ),
    ) {
        refilled_as_filled(&capacity, &steps, fill_concerned);
        refilled_as_filled(&capacity, &steps, fill_component);
    }

    #[test]
    fn refilling_gives_what_filling_gives_without_ties(
        capacity in prop::collection::vec(1.0..9.0_f64, 12),
        steps in prop::collection::vec(
            (
                prop::sample::subsequence((0..12).map(LinkId).collect::<Vec<_>>(), 2..=3),
                Just(None),
            ),
            1..120,
        ),
    ) {
        refilled_as_filled(&capacity, &steps, fill_concerned);
        refilled_as_filled(&capacity, &steps, fill_component);
    }

    #[test]
    fn whatever_the_topology_and_however_flows_come_and_go_solving_is_filling(
        capacity in prop::collection::vec(0.1..9.0_f64, 8..40),
        few in any::<bool>(),
        steps in prop::collection::vec(
            (any::<[prop::sample::Index; 4]>(), 1..=4_usize, prop::option::of(0.05..2.0_f64)), 1..150,
        ),
    ) {
        // Few distinct capacities and caps, so that ties are common; or none twice.
        let capacity: Vec<f64> = capacity.iter().map(|one| if few { one.ceil() } else { *one }).collect();
        let steps: Vec<_> = steps.iter().map(|(links, hops, cap)| {
            let mut route: Vec<LinkId> =
                links[..*hops].iter().map(|link| LinkId(link.index(capacity.len()))).collect();
            route.sort_unstable();
            route.dedup();
            (route, cap.map(|cap| if few { (4.0 * cap).ceil() / 4.0 } else { cap }))
        }).collect();
        for refill in [fill_concerned, fill_component, Sharing::solve] {
            refilled_as_filled(&capacity, &steps, refill);
        }
    }
}
