//! Draws against their plain forms, and workers that draw together against one that draws alone.

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
fn numbers_that_are_alike_in_their_upper_halves_are_told_apart_by_the_others() {
    let mut drawn = vec![1];
    // Of these the second is the smallest, by its last bit.
    assert!(!draw_of_few(1, &[7, 8, 9], &[6, 5, 1 << 40], &mut drawn));
    assert_eq!(drawn, [1]);
    // Alike, and on the same side of the border.
    assert!(draw_of_few(2, &[7, 8, 9], &[6, 5, 1 << 40], &mut drawn));
    assert_eq!(drawn, [1, 7, 8]);
    let many: Vec<u32> = (0..65).collect();
    let numbers: Vec<u64> = many.iter().map(|&node| u64::from(node) << 32).collect();
    for few in [2, 16, 17, 64] {
        let (mut drawn, wanted) = (Vec::new(), few / 2);
        assert!(draw_of_few(
            wanted,
            &many[..few],
            &numbers[..few],
            &mut drawn
        ));
        assert_eq!(drawn, many[..wanted]);
    }
    assert!(!draw_of_few(9, &many, &numbers, &mut Vec::new()), "many");
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
        fanout in 0_usize..40,
        seed in any::<u64>(),
        node in 0_u32..9,
        unlikely in any::<bool>(),
    ) {
        let fanouts = [fanout];
        let sampler = Sampler::new(seed, 2, 5, &fanouts);
        let key = mix(mix(sampler.key, 0), u64::from(node));
        let name = |u: u32| u + 7;
        let mut neighbours: Vec<u32> = (0..degree).map(|at| 3 * at + 1).collect();
        if unlikely {
            // None is below the bound under which some are expected.
            neighbours.retain(|&u| mix(key, u64::from(name(u))) >> 63 == 1);
        }
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
        for form in [BatchForm::Alone, BatchForm::Together] {
            let rehearsal = || Rehearsal::new(Arc::clone(&plan), Arc::clone(&batches), form);
            let drawn = rehearsal().play(0, 0);
            let alone = rehearsal().of_messages().play(0, 0);
            if form == BatchForm::Together {
                prop_assert_eq!(&alone, &drawn, "messages follow from what is drawn");
                continue;
            }
            for (alone, drawn) in alone.layers.iter().flatten().zip(drawn.layers.iter().flatten()) {
                prop_assert_eq!((alone.edges, alone.looked_at), (0, 0), "nothing is drawn");
                prop_assert_eq!(alone.outputs > 0, drawn.outputs > 0);
                prop_assert_eq!(alone.inputs, alone.outputs);
            }
        }
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
