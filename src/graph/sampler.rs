//! Which neighbours a mini-batch sees, and the rectangular graphs that its layers compute on.

use std::ops::Range;

use rayon::prelude::*;

use super::lists::Lists;
use super::{Csr, Peers};
use crate::rng::{Purpose, mix};

/// Numbers that are worked out before any is looked at: so they do not wait for each other.
const TOGETHER: usize = 16;

/// Draws neighbours for one step of training, uniformly and without replacement (Hamilton, Ying and
/// Leskovec, 2017, algorithm 2).
///
/// Every neighbour `u` of `v` has a number that is a function of (seed, epoch, step, hop, `v`,
/// `u`), all nodes by their global numbers; the neighbours with the smallest ones are drawn. So it
/// does not matter who draws, in which order, or how the graph is divided: whoever sees the same
/// neighbours draws the same.
#[derive(Clone, Debug)]
pub struct Sampler<'a> {
    key: u64,
    fanouts: &'a [usize],
}

impl<'a> Sampler<'a> {
    /// The draws of a step; `fanouts[h]` neighbours are drawn at hop `h` from the nodes that train,
    /// or all where there are fewer.
    pub const fn new(seed: u64, epoch: usize, step: usize, fanouts: &'a [usize]) -> Self {
        let seed = mix(seed, Purpose::Sampling as u64);
        Self {
            key: mix(mix(seed, epoch as u64), step as u64),
            fanouts,
        }
    }

    /// Neighbours drawn at a hop for the node with global number `node`, in the order in which
    /// `neighbours` has them; `name` gives the global number of a neighbour. O(degree).
    pub fn draw(
        &self,
        hop: usize,
        node: u32,
        neighbours: &[u32],
        name: impl Fn(u32) -> u32,
    ) -> Vec<u32> {
        let mut drawn = Vec::new();
        let numbered = &mut Vec::new();
        self.draw_onto(hop, (node, neighbours), name, numbered, &mut drawn);
        drawn
    }

    /// As [`draw`](Self::draw), behind what `drawn` has already; `numbered` is memory to work in.
    pub(crate) fn draw_onto(
        &self,
        hop: usize,
        (node, neighbours): (u32, &[u32]),
        name: impl Fn(u32) -> u32,
        numbered: &mut Vec<(u64, usize)>,
        drawn: &mut Vec<u32>,
    ) {
        let fanout = self.fanouts[hop];
        if neighbours.len() <= fanout {
            return drawn.extend_from_slice(neighbours);
        }
        let key = mix(mix(self.key, hop as u64), u64::from(node));
        // `mix` with one key is one-to-one, so no two neighbours have the same number.
        let number = |&u: &u32| mix(key, u64::from(name(u)));
        let bound = likely_bound(fanout, neighbours.len());
        numbered.clear();
        // Of a hub's neighbours few can be among the smallest: most are not even written down.
        for (start, some) in (0..).step_by(TOGETHER).zip(neighbours.chunks(TOGETHER)) {
            let mut numbers = [u64::MAX; TOGETHER];
            for (place, u) in numbers.iter_mut().zip(some) {
                *place = number(u);
            }
            if numbers.iter().any(|&number| number < bound) {
                let below = numbers.into_iter().zip(start..);
                numbered.extend(below.filter(|&(number, _)| number < bound));
            }
        }
        if numbered.len() < fanout {
            numbered.clear();
            numbered.extend(neighbours.iter().map(number).zip(0..));
        }
        if numbered.len() > fanout {
            numbered.select_nth_unstable(fanout);
            numbered.truncate(fanout);
        }
        // Back in the order of the neighbours, which is that of sums.
        numbered.sort_unstable_by_key(|&(_, at)| at);
        drawn.extend(numbered.iter().map(|&(_, at)| neighbours[at]));
    }
}

/// A number below which some more than `wanted` of so many uniform ones lie: more than four
/// standard deviations more, so that fewer than `wanted` are rare. No draw depends on it.
fn likely_bound(wanted: usize, of: usize) -> u64 {
    let wanted = wanted as f64;
    let share = (wanted + 5.0 * wanted.sqrt() + 8.0) / of as f64;
    // Saturates where that is all of them.
    (share * 2.0_f64.powi(64)) as u64
}

/// A worker's piece of the graph that is drawn from: own rows first, then those of others.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// In-neighbours of own rows, as rows; rows beyond its own have none.
    pub adjacency: &'a Csr,
    /// Global numbers of all rows.
    pub nodes: &'a [u32],
    /// Number of own rows.
    pub own: usize,
}

/// What one layer computes on in a step: the rows that it makes and the rows that it reads for
/// that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledLayer {
    /// Inputs, as rows of the view: first the outputs, then other own rows, ascending, then rows of
    /// others, ascending.
    pub rows: Vec<u32>,
    /// Number of rows whose new representation is computed.
    pub outputs: usize,
    /// Number of inputs that are own rows.
    pub own: usize,
    /// Neighbours drawn, `[outputs, inputs]`, as places in `rows`.
    pub adjacency: Csr,
    /// Number of neighbours that each output has in the view, `[outputs]`.
    pub degrees: Vec<usize>,
}

impl SampledLayer {
    /// Draws for distinct own rows `outputs`. O(view rows + edges of the outputs).
    pub fn draw(sampler: &Sampler<'_>, hop: usize, view: &View<'_>, outputs: Vec<u32>) -> Self {
        let name = |row: u32| view.nodes[row as usize];
        let neighbours = |row: u32| view.adjacency.neighbours(row as usize);
        let drawn = Lists::make(outputs.len(), Vec::new, |numbered, at, drawn| {
            let row = outputs[at];
            let near = (name(row), neighbours(row));
            sampler.draw_onto(hop, near, name, numbered, drawn);
        });
        let degrees = outputs.iter().map(|&row| neighbours(row).len()).collect();
        Self::of(outputs, &drawn, degrees, view.own, view.nodes.len())
    }

    /// The layer of distinct rows `outputs` for each of which these neighbours, of so many, were
    /// `drawn`, each once: rows of a view of `all` rows, of which the first `own` are own ones.
    /// Where there are no lists, nothing was drawn of any. O(all + neighbours drawn).
    pub(crate) fn of(
        outputs: Vec<u32>,
        drawn: &Lists,
        degrees: Vec<usize>,
        own: usize,
        all: usize,
    ) -> Self {
        const NOWHERE: u32 = u32::MAX;
        let count = outputs.len();
        let mut place = vec![NOWHERE; all];
        for (at, &row) in (0_u32..).zip(&outputs) {
            place[row as usize] = at;
        }
        let mut rows = outputs;
        for &u in drawn.values() {
            if place[u as usize] == NOWHERE {
                place[u as usize] = 0; // its place is known when all are
                rows.push(u);
            }
        }
        // Rows differ, so that an unstable sort has one outcome.
        rows[count..].par_sort_unstable();
        for (at, &row) in (0_u32..).zip(&rows) {
            place[row as usize] = at;
        }
        let each = Lists::make(
            count,
            || (),
            |(), at, places| {
                let start = places.len();
                places.extend(drawn.get(at).iter().map(|&u| place[u as usize]));
                places[start..].sort_unstable();
            },
        );
        let (offsets, places) = each.into_parts();
        let adjacency = Csr::from_rows(rows.len(), offsets, places)
            .expect("places are sorted, and within the rows");
        let others = rows[count..].partition_point(|&row| (row as usize) < own);
        Self {
            own: count + others,
            outputs: count,
            rows,
            adjacency,
            degrees,
        }
    }

    /// Inputs that are rows of others, as rows of the view.
    pub fn others(&self) -> &[u32] {
        &self.rows[self.own..]
    }

    /// What the message to output `v` is multiplied by so that a sum over the neighbours drawn is,
    /// on average over all draws, the sum over all of them: `d_v / s_v`.
    pub fn scale(&self, v: usize) -> f32 {
        let drawn = self.adjacency.degree(v).max(1);
        (self.degrees[v].max(1) as f64 / drawn as f64) as f32
    }

    /// For rows of others, ascending: where those of each owner are, `receives` being where the
    /// owners' rows are in the halo.
    pub(crate) fn by_owner(
        others: &[u32],
        own: usize,
        receives: &Peers<Range<usize>>,
    ) -> Peers<Range<usize>> {
        let mut found = Peers::default();
        let mut start = 0;
        for (owner, range) in receives.iter() {
            let rest = &others[start..];
            let end = start + rest.partition_point(|&row| (row as usize) < own + range.end);
            if end > start {
                *found.of(owner) = start..end;
            }
            // Rows ascend as owners do in the halo, so that each search begins where the last
            // ended.
            start = end;
        }
        found
    }

    /// What the layer below has to compute, as own rows: the own inputs of this layer, and after
    /// them the rows that others `asked` for; with the places among these of what goes to each of
    /// those who asked.
    pub fn below(&self, asked: &Peers<Vec<u32>>) -> (Vec<u32>, Peers<Vec<u32>>) {
        let mut known: Vec<(u32, u32)> = (0_u32..)
            .zip(&self.rows[..self.own])
            .map(|(place, &row)| (row, place))
            .collect();
        known.sort_unstable();
        let mine = |row: u32| {
            let found = known.binary_search_by_key(&row, |&(known, _)| known);
            found.ok().map(|at| known[at].1)
        };
        let mut rows = self.rows[..self.own].to_vec();
        let new = asked.iter().flat_map(|(_, rows)| rows).copied();
        let mut new: Vec<u32> = new.filter(|&row| mine(row).is_none()).collect();
        new.sort_unstable();
        new.dedup();
        let mut sends: Peers<Vec<u32>> = Peers::default();
        for (peer, wanted) in asked.iter() {
            let place = |&row: &u32| {
                mine(row).unwrap_or_else(|| (self.own + new.partition_point(|&n| n < row)) as u32)
            };
            *sends.of(peer) = wanted.iter().map(place).collect();
        }
        rows.extend(&new);
        (rows, sends)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{
        BatchForm, BatchSpec, Batches, BoundaryPlan, Partition, Rehearsal, StepDraws, Steps,
    };
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};
    use std::sync::Arc;

    const FANOUTS: [usize; 3] = [2, 3, 2];

    fn whole(graph: &Csr) -> Vec<u32> {
        (0_u32..).take(graph.nodes()).collect()
    }

    #[test]
    fn where_the_fan_out_is_no_smaller_all_neighbours_are_drawn() {
        let graph = Csr::undirected(5, [(0, 1), (0, 2), (0, 4), (3, 4)].into_iter());
        let nodes = whole(&graph);
        let view = View {
            adjacency: &graph,
            nodes: &nodes,
            own: 5,
        };
        let layer = SampledLayer::draw(&Sampler::new(1, 0, 0, &[3]), 0, &view, vec![4, 0]);
        assert_eq!(layer.rows, [4, 0, 1, 2, 3]);
        assert_eq!((layer.outputs, layer.own), (2, 5));
        assert_eq!(layer.adjacency.neighbours(0), [1, 4]);
        assert_eq!(layer.adjacency.neighbours(1), [0, 2, 3]);
        assert_eq!(
            (layer.degrees.as_slice(), layer.scale(0)),
            (&[2, 3][..], 1.0)
        );
    }

    #[test]
    fn every_set_of_neighbours_is_drawn_equally_often() {
        let neighbours: Vec<u32> = vec![3, 8, 9, 20, 21];
        let rounds = 20_000;
        let mut met: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
        for step in 0..rounds {
            let sampler = Sampler::new(7, step / 10, step % 10, &[1, 2]);
            let drawn = sampler.draw(1, 5, &neighbours, |u| u);
            *met.entry(drawn).or_default() += 1;
        }
        assert_eq!(met.len(), 10, "pairs of five");
        // Chi-squared with 9 degrees of freedom: 27.9 has probability 0.001.
        let expected = f64::from(rounds as u32) / 10.0;
        let apart = |count: &u32| (f64::from(*count) - expected).powi(2) / expected;
        let chi: f64 = met.values().map(apart).sum();
        assert!(chi < 27.9, "{chi}: {met:?}");
    }

    #[test]
    fn draws_of_other_seeds_epochs_steps_hops_and_nodes_differ() {
        let neighbours: Vec<u32> = (0..40).collect();
        let draw = |seed, epoch, step, hop, node| {
            Sampler::new(seed, epoch, step, &[9, 9]).draw(hop, node, &neighbours, |u| u)
        };
        let base = draw(1, 0, 0, 0, 0);
        assert_eq!(base, draw(1, 0, 0, 0, 0));
        for other in [
            draw(2, 0, 0, 0, 0),
            draw(1, 1, 0, 0, 0),
            draw(1, 0, 1, 0, 0),
            draw(1, 0, 0, 1, 0),
            draw(1, 0, 0, 0, 1),
        ] {
            assert_ne!(base, other);
        }
    }

    /// (node, its neighbours drawn) of a layer, by global numbers.
    fn named(layer: &SampledLayer, nodes: &[u32]) -> BTreeMap<u32, BTreeSet<u32>> {
        let name = |place: u32| nodes[layer.rows[place as usize] as usize];
        (0..layer.outputs)
            .map(|v| {
                let drawn = layer.adjacency.neighbours(v).iter();
                (name(v as u32), drawn.map(|&u| name(u)).collect())
            })
            .collect()
    }

    proptest! {
        #[test]
        fn the_neighbours_with_the_smallest_numbers_are_drawn_in_their_order(
            degree in prop_oneof![0_u32..60, 0_u32..4000],
            fanout in 1_usize..40,
            seed in any::<u64>(),
            node in 0_u32..9,
        ) {
            let neighbours: Vec<u32> = (0..degree).map(|at| 3 * at + 1).collect();
            let fanouts = [fanout];
            let sampler = Sampler::new(seed, 2, 5, &fanouts);
            let key = mix(mix(sampler.key, 0), u64::from(node));
            let name = |u: u32| u + 7;
            let mut smallest = neighbours.clone();
            smallest.sort_by_key(|&u| mix(key, u64::from(name(u))));
            smallest.truncate(fanout);
            smallest.sort_unstable();
            prop_assert_eq!(sampler.draw(0, node, &neighbours, name), smallest);
        }

        #[test]
        fn the_mean_over_all_samples_of_a_scaled_sum_is_the_sum(
            values in prop::collection::vec(-4.0_f64..4.0, 1..7), fanout in 1_usize..7,
        ) {
            let d = values.len();
            let s = fanout.min(d);
            let samples = (0_u32..1 << d).filter(|set| set.count_ones() as usize == s);
            let (mut mean, mut count) = (0.0, 0.0);
            for set in samples {
                let drawn = (0..d).filter(|u| set & (1 << u) != 0);
                let layer = SampledLayer {
                    rows: (0..=s as u32).collect(),
                    outputs: 1,
                    own: 1 + s,
                    adjacency: Csr::rectangular(1, 1 + s, (1..=s as u32).map(|u| (u, 0))),
                    degrees: vec![d],
                };
                mean += f64::from(layer.scale(0)) * drawn.map(|u| values[u]).sum::<f64>();
                count += 1.0;
            }
            let sum: f64 = values.iter().sum();
            prop_assert!((mean / count - sum).abs() < 1e-6 * sum.abs().max(4.0));
        }

        #[test]
        fn workers_that_ask_each_other_compute_every_row_once_and_what_one_would_for_all(
            edges in prop::collection::vec((0_u32..30, 0_u32..30), 20..120),
            assignment in prop::collection::vec(0_u32..3, 30),
            train in prop::collection::btree_set(0_u32..30, 6..20),
            size in 1_usize..6,
        ) {
            let graph = Arc::new(Csr::undirected(30, edges.into_iter()));
            let partition = Partition { parts: 3, assignment };
            let train: Vec<u32> = train.into_iter().collect();
            let spec = BatchSpec { size, fanouts: FANOUTS.to_vec() };
            let plan = Arc::new(BoundaryPlan::new(&graph, &partition).with_training(&train));
            let batches = Arc::new(Batches {
                spec,
                graph: Arc::clone(&graph),
                train: train.clone(),
                seed: 5,
            });
            let steps = Steps::of(&plan, Some(&batches));
            let sampler = Sampler::new(5, 1, 0, &FANOUTS);
            let locals: Vec<Csr> = plan.parts.iter().map(|part| part.local_graph(&graph)).collect();
            let nodes: Vec<Vec<u32>> =
                plan.parts.iter().map(|part| [&part.owned[..], &part.halo].concat()).collect();
            let mut outputs: Vec<Vec<u32>> = plan.parts.iter().enumerate().map(|(rank, part)| {
                let order = crate::graph::shuffled(5, 1, rank, &part.training_rows(&train));
                crate::graph::seeds_of(&order, &steps, rank, 0)
            }).collect();
            let everything = whole(&graph);
            let one = View { adjacency: &graph, nodes: &everything, own: 30 };
            let mut union: Vec<u32> = outputs.iter().zip(&nodes)
                .flat_map(|(rows, nodes)| rows.iter().map(|&row| nodes[row as usize])).collect();
            prop_assert_eq!(union.len(), steps.seeds(0));
            let mut rehearsal = Rehearsal::new(Arc::clone(&plan), batches, BatchForm::Together);
            let draws = rehearsal.play(1, 0);
            for hop in 0..3 {
                let central = SampledLayer::draw(&sampler, hop, &one, union.clone());
                let mut together = BTreeMap::new();
                let mut asked: Vec<Peers<Vec<u32>>> = vec![Peers::default(); 3];
                let mut layers = Vec::new();
                for (rank, part) in plan.parts.iter().enumerate() {
                    let own = part.owned.len();
                    let view = View { adjacency: &locals[rank], nodes: &nodes[rank], own };
                    let layer =
                        SampledLayer::draw(&sampler, hop, &view, std::mem::take(&mut outputs[rank]));
                    for (node, drawn) in named(&layer, &nodes[rank]) {
                        prop_assert!(together.insert(node, drawn).is_none(), "{} twice", node);
                    }
                    let owners = SampledLayer::by_owner(layer.others(), own, &part.receives);
                    let mut covered = 0;
                    for (owner, range) in owners.iter() {
                        prop_assert_eq!(range.start, covered);
                        covered = range.end;
                        prop_assert_eq!(draws.layers[2 - hop][rank].asks[owner], range.len());
                        prop_assert!(draws.asked_of(2 - hop, owner).any(|(reader, _)| reader == rank));
                        let ids: Vec<u32> = layer.others()[range.clone()].iter()
                            .map(|&row| nodes[rank][row as usize]).collect();
                        let rows = plan.parts[owner].rows_of(&ids);
                        prop_assert_eq!(rows.len(), ids.len(), "an owner owns what it is asked for");
                        *asked[owner].of(rank) = rows;
                    }
                    prop_assert_eq!(covered, layer.others().len());
                    let planned = &draws.layers[2 - hop][rank];
                    prop_assert_eq!(planned.asks.ranks().count(), owners.ranks().count());
                    let found = (layer.outputs, layer.rows.len(), layer.own, layer.adjacency.edges());
                    prop_assert_eq!(found, (planned.outputs, planned.inputs, planned.own, planned.edges));
                    layers.push(layer);
                }
                prop_assert_eq!(together, named(&central, &everything));
                for (rank, layer) in layers.iter().enumerate() {
                    let (rows, sends) = layer.below(&asked[rank]);
                    prop_assert_eq!(&rows[..layer.own], &layer.rows[..layer.own]);
                    for (peer, places) in sends.iter() {
                        let sent: Vec<u32> = places.iter().map(|&at| rows[at as usize]).collect();
                        prop_assert_eq!(&sent, &asked[rank][peer]);
                    }
                    outputs[rank] = rows;
                }
                union = central.rows.clone();
                union.sort_unstable();
            }
        }

        #[test]
        fn features_that_are_kept_are_asked_for_once(
            edges in prop::collection::vec((0_u32..20, 0_u32..20), 20..60),
            assignment in prop::collection::vec(0_u32..3, 20),
        ) {
            let graph = Arc::new(Csr::undirected(20, edges.into_iter()));
            let train = whole(&graph);
            let partition = Partition { parts: 3, assignment };
            let plan = Arc::new(BoundaryPlan::new(&graph, &partition).with_training(&train));
            let batches = Arc::new(Batches {
                spec: BatchSpec { size: 4, fanouts: vec![2, 1] },
                graph,
                train,
                seed: 3,
            });
            let played = |form| {
                let mut rehearsal = Rehearsal::new(Arc::clone(&plan), Arc::clone(&batches), form);
                let steps = rehearsal.steps();
                let all = (0..3).flat_map(|epoch| (0..steps).map(move |step| (epoch, step)));
                all.map(|(epoch, step)| rehearsal.play(epoch, step)).collect::<Vec<StepDraws>>()
            };
            let asked = |draws: &StepDraws, rank: usize| -> usize {
                draws.layers[0][rank].asks.iter().map(|(_, rows)| rows).sum()
            };
            let (fresh, kept) = (played(BatchForm::Together), played(BatchForm::KeepingFeatures));
            for (rank, part) in plan.parts.iter().enumerate() {
                let all: usize = kept.iter().map(|draws| asked(draws, rank)).sum();
                prop_assert!(all <= part.halo.len(), "each row of the halo comes once");
                for (fresh, kept) in fresh.iter().zip(&kept) {
                    prop_assert!(asked(kept, rank) <= asked(fresh, rank));
                    prop_assert_eq!(&fresh.layers[1], &kept.layers[1]);
                }
            }
        }
    }
}
