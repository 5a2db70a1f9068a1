//! Schedules carried out in memory. That they take the time of their closed forms is tested where
//! they are carried out in virtual time.

use std::collections::{BTreeMap, VecDeque};

use super::step::{Combine, Step, chunks};
use super::*;
use crate::net::{Bytes, Lane, Traffic, TrafficKind, f32_bytes};
use proptest::prelude::*;

const KINDS: [AllReduceKind; 4] = [
    AllReduceKind::Ring,
    AllReduceKind::HalvingDoubling,
    AllReduceKind::Tree,
    AllReduceKind::ParameterServer,
];

/// All messages of one all-reduce of `len` floats among `size` workers, on layer 0.
pub(crate) fn all_reduce_traffic(
    algorithm: &AllReduceKind,
    size: usize,
    len: usize,
    kind: TrafficKind,
) -> Traffic {
    let mut traffic = Traffic::new();
    for from in 0..size {
        for step in all_reduce_steps(algorithm, from, size, len) {
            if let Some((to, elements)) = step.send {
                traffic.add(Lane::new(0, from, to, kind), f32_bytes(elements.len()));
            }
        }
    }
    traffic
}

/// Carries out everybody's steps, as a sum; messages between two workers keep their order.
fn execute(mut steps: Vec<VecDeque<Step>>, mut values: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let mut flying: BTreeMap<(usize, usize), VecDeque<Vec<f64>>> = BTreeMap::new();
    loop {
        let mut moved = false;
        for rank in 0..steps.len() {
            while let Some(step) = steps[rank].front_mut() {
                if let Some((to, elements)) = step.send.take() {
                    assert!(
                        !elements.is_empty() && to != rank,
                        "worker {rank}: {step:?}"
                    );
                    let payload = values[rank][elements].to_vec();
                    flying.entry((rank, to)).or_default().push_back(payload);
                    moved = true;
                }
                if let Some((from, elements, combine)) = step.receive.clone() {
                    let queue = flying.entry((from, rank)).or_default();
                    let Some(payload) = queue.pop_front() else {
                        break;
                    };
                    assert_eq!(payload.len(), elements.len(), "from {from} to {rank}");
                    for (element, value) in elements.zip(payload) {
                        match combine {
                            Combine::Reduce => values[rank][element] += value,
                            Combine::Replace => values[rank][element] = value,
                        }
                    }
                }
                steps[rank].pop_front();
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    assert!(steps.iter().all(VecDeque::is_empty), "stuck: {steps:?}");
    assert!(
        flying.values().all(VecDeque::is_empty),
        "nobody takes these: {flying:?}"
    );
    values
}

fn all_reduce(kind: &AllReduceKind, values: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let (size, len) = (values.len(), values[0].len());
    let steps = (0..size).map(|rank| all_reduce_steps(kind, rank, size, len).collect());
    execute(steps.collect(), values)
}

/// Values that no sum rounds away and whose sums in another order have other last bits.
fn values(size: usize, len: usize, seed: u32) -> Vec<Vec<f64>> {
    let value = |rank: usize, at: usize| {
        let hash = crate::rng::mix(u64::from(seed), (rank * 1000 + at) as u64);
        (hash % 2001) as f64 / 7.0 - 143.0
    };
    let worker = |rank| (0..len).map(|at| value(rank, at)).collect();
    (0..size).map(worker).collect()
}

fn sent(traffic: &Traffic, rank: usize) -> u64 {
    traffic
        .iter()
        .filter(|(lane, _, _)| lane.from as usize == rank)
        .map(|(_, payload, count)| payload.0 * count)
        .sum()
}

#[test]
fn the_first_chunks_are_the_longer_ones() {
    let found: Vec<_> = (0..4).map(|index| chunks(index, index + 1, 4, 6)).collect();
    assert_eq!(found, [0..2, 2..4, 4..5, 5..6]);
    assert_eq!(chunks(1, 3, 4, 6), 2..5);
}

#[test]
fn one_worker_or_no_elements_have_nothing_to_do() {
    for kind in KINDS {
        assert_eq!(all_reduce_steps(&kind, 0, 1, 10).count(), 0, "{kind:?}");
        for rank in 0..5 {
            assert_eq!(all_reduce_steps(&kind, rank, 5, 0).count(), 0, "{kind:?}");
        }
        assert!(all_reduce_traffic(&kind, 1, 10, TrafficKind::Control).is_empty());
    }
}

#[test]
fn fewer_elements_than_workers_send_no_empty_message() {
    let traffic = all_reduce_traffic(&AllReduceKind::Ring, 5, 2, TrafficKind::Control);
    assert!(traffic.iter().all(|(_, payload, _)| payload == Bytes(4)));
    assert_eq!(
        traffic.payload_of(TrafficKind::Control),
        Bytes(2 * 4 * 4 * 2)
    );
}

#[test]
fn halving_and_doubling_of_five_workers_folds_the_fifth_into_the_first() {
    let steps = halving_doubling_all_reduce(0, 5, 8);
    let text: Vec<String> = steps
        .iter()
        .map(|step| {
            let sends = step
                .send
                .as_ref()
                .map(|(to, range)| format!("{range:?} to {to}"));
            let receives = step.receive.as_ref();
            let receives =
                receives.map(|(from, range, how)| format!("{how:?} {range:?} of {from}"));
            [sends, receives]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join(", ")
        })
        .collect();
    assert_eq!(
        text,
        [
            "Reduce 0..8 of 4",
            "4..8 to 2, Reduce 0..4 of 2",
            "2..4 to 1, Reduce 0..2 of 1",
            "0..2 to 1, Replace 2..4 of 1",
            "0..4 to 2, Replace 4..8 of 2",
            "0..8 to 4",
        ]
    );
}

#[test]
fn a_broadcast_reaches_everybody_from_any_root() {
    for size in 1..=17 {
        for root in 0..size {
            let start = values(size, 3, 5);
            let steps = (0..size).map(|rank| broadcast_steps(rank, size, root, 3).into());
            let end = execute(steps.collect(), start.clone());
            assert!(
                end.iter().all(|values| *values == start[root]),
                "{size} from {root}"
            );
        }
    }
}

#[test]
fn a_gather_brings_pieces_of_any_length_into_the_order_of_ranks() {
    let lens = [3, 0, 2, 1];
    for root in 0..4 {
        let piece = |rank: usize| vec![rank as f64; lens[rank]];
        let all: Vec<f64> = (0..4).flat_map(piece).collect();
        let start = (0..4).map(|rank| {
            if rank == root {
                let own = |&v: &f64| if v == root as f64 { v } else { -1.0 };
                all.iter().map(own).collect()
            } else {
                piece(rank)
            }
        });
        let steps = (0..4).map(|rank| gather_steps(rank, root, &lens).into());
        let end = execute(steps.collect(), start.collect());
        assert_eq!(end[root], all);
    }
}

#[test]
fn an_all_gather_brings_pieces_of_any_length_to_everybody_in_the_order_of_ranks() {
    let hierarchical = AllReduceKind::Hierarchical(Hierarchy::new(&[1], false));
    for kind in KINDS.iter().chain([&hierarchical]) {
        for size in 1..=9_usize {
            for equal in [true, false] {
                let lens: Vec<usize> = (0..size)
                    .map(|r| if equal { 3 } else { r * 5 % 4 })
                    .collect();
                let owner = lens.iter().enumerate();
                let all: Vec<f64> = owner.flat_map(|(r, len)| vec![r as f64; *len]).collect();
                let own = |rank: usize| {
                    let mine = |&v: &f64| if v == rank as f64 { v } else { -1.0 };
                    all.iter().map(mine).collect()
                };
                let steps = (0..size).map(|rank| all_gather_steps(kind, rank, &lens).into());
                let steps: Vec<VecDeque<Step>> = steps.collect();
                let sent = |steps: &VecDeque<Step>| -> usize {
                    let sends = steps.iter().filter_map(|step| step.send.as_ref());
                    sends.map(|(_, elements)| elements.len()).sum()
                };
                if equal && matches!(kind, AllReduceKind::Ring) {
                    assert!(steps.iter().all(|steps| sent(steps) == 3 * (size - 1)));
                }
                if equal && *kind == AllReduceKind::HalvingDoubling && size.is_power_of_two() {
                    assert!(steps.iter().all(|steps| sent(steps) == 3 * (size - 1)));
                    assert!(
                        steps
                            .iter()
                            .all(|steps| steps.len() == size.ilog2() as usize)
                    );
                }
                let end = execute(steps, (0..size).map(own).collect());
                assert!(end.iter().all(|values| *values == all), "{kind:?} {lens:?}");
            }
        }
    }
}

#[test]
fn in_the_rounds_of_an_exchange_everybody_meets_everybody_once() {
    for size in 1..=9 {
        let mut pairs = Vec::new();
        let rounds: Vec<Vec<_>> = (0..size)
            .map(|rank| pairwise_rounds(rank, size).collect())
            .collect();
        for (rank, mine) in rounds.iter().enumerate() {
            assert_eq!(mine.len(), size - 1);
            for (round, &(to, from)) in mine.iter().enumerate() {
                assert_eq!(rounds[to][round].1, rank, "round {round} of {size}");
                assert_eq!(rounds[from][round].0, rank, "round {round} of {size}");
                pairs.push((rank, to));
            }
        }
        pairs.sort_unstable();
        pairs.dedup();
        assert_eq!(pairs.len(), size * (size - 1));
    }
}

#[test]
fn choices_are_listed_under_the_names_of_experiment_files() {
    #[derive(serde::Deserialize)]
    struct File {
        all_reduce: AllReduceChoice,
    }
    let found = ALL_REDUCE_CHOICES.map(|(name, _)| {
        let file: File = toml::from_str(&format!("all_reduce = \"{name}\"")).unwrap();
        file.all_reduce
    });
    let expected = [
        AllReduceChoice::Ring,
        AllReduceChoice::HalvingDoubling,
        AllReduceChoice::Tree,
        AllReduceChoice::ParameterServer,
        AllReduceChoice::Hierarchical,
        AllReduceChoice::HierarchicalHalvingDoubling,
        AllReduceChoice::Auto,
    ];
    assert_eq!(found, expected);
}

proptest! {
    #[test]
    fn every_worker_ends_with_the_same_bits_of_the_sum(
        kind in 0..KINDS.len(), size in 1..18_usize, len in 0..80_usize, seed in any::<u32>(),
    ) {
        let start = values(size, len, seed);
        let end = all_reduce(&KINDS[kind], start.clone());
        let at_once = all_reduce_result(&KINDS[kind], start.clone(), |own, received| own + received);
        prop_assert!(at_once.iter().zip(&end[0]).all(|(a, b)| a.to_bits() == b.to_bits()));
        for result in &end {
            prop_assert!(result.iter().zip(&end[0]).all(|(a, b)| a.to_bits() == b.to_bits()));
        }
        for at in 0..len {
            let sum: f64 = start.iter().map(|mine| mine[at]).sum();
            prop_assert!((end[0][at] - sum).abs() < 1e-9);
        }
    }

    #[test]
    fn bytes_of_each_worker_are_exact_for_any_number_of_elements(
        size in 2..18_usize, len in 0..80_usize,
    ) {
        let bytes = |kind, rank| sent(&all_reduce_traffic(&kind, size, len, TrafficKind::Parameter), rank);
        let core = 1_usize << size.ilog2();
        for rank in 0..size {
            // Ring: every chunk twice, but two of them once.
            let once = |ahead: usize| {
                let index = (rank + ahead) % size;
                chunks(index, index + 1, size, len).len()
            };
            let ring = bytes(AllReduceKind::Ring, rank);
            prop_assert_eq!(ring, 4 * (2 * len - once(1) - once(2)) as u64);
            if len % size == 0 {
                prop_assert_eq!(ring, (4 * len / size * 2 * (size - 1)) as u64);
            }
            // Halving: all but the own chunk. Doubling: for each distance what is then held. And
            // what is folded.
            let folded = if rank >= core || rank + core < size { len } else { 0 };
            let halving = if rank < core { len - chunks(rank, rank + 1, core, len).len() } else { 0 };
            let doubling: usize = (0..core.ilog2())
                .filter(|_| rank < core)
                .map(|bit| {
                    let first = rank & !((1 << bit) - 1);
                    chunks(first, first + (1 << bit), core, len).len()
                })
                .sum();
            let found = bytes(AllReduceKind::HalvingDoubling, rank);
            prop_assert_eq!(found, 4 * (folded + halving + doubling) as u64);
            if size == core && len % size == 0 {
                prop_assert_eq!(found, (4 * len / size * 2 * (size - 1)) as u64);
            }
            // Tree: to the parent, and to every child.
            let reach = if rank == 0 { size.next_power_of_two() } else { 1 << rank.trailing_zeros() };
            let children = (0..usize::BITS).map(|bit| 1_usize.checked_shl(bit).unwrap_or(0))
                .filter(|&distance| distance > 0 && distance < reach && rank + distance < size)
                .count();
            let messages = children + usize::from(rank > 0);
            prop_assert_eq!(bytes(AllReduceKind::Tree, rank), (4 * len * messages) as u64);
            let server = if rank == 0 { size - 1 } else { 1 };
            prop_assert_eq!(bytes(AllReduceKind::ParameterServer, rank), (4 * len * server) as u64);
        }
    }
}

/// Groups of unequal sizes, and both ways between them.
fn hierarchies() -> impl Iterator<Item = (usize, AllReduceKind)> {
    let sizes: [&[usize]; 6] = [
        &[1],
        &[5],
        &[4, 4],
        &[2, 2, 2, 2],
        &[3, 2, 4],
        &[4, 1, 4, 4, 4],
    ];
    sizes.into_iter().flat_map(|sizes| {
        let kind = |halving| AllReduceKind::Hierarchical(Hierarchy::new(sizes, halving));
        [false, true].map(|halving| (sizes.iter().sum(), kind(halving)))
    })
}

#[test]
fn sums_in_two_levels_are_the_same_on_all_workers_and_the_sum_up_to_rounding() {
    for (size, kind) in hierarchies() {
        for len in [0, 1, 3, 17, 64] {
            let values = values(size, len, 3);
            let found = all_reduce(&kind, values.clone());
            let result = all_reduce_result(&kind, values.clone(), |a, b| a + b);
            for found in &found {
                assert_eq!(*found, result, "{kind:?} of {len}");
            }
            for (at, sum) in result.into_iter().enumerate() {
                let plain: f64 = values.iter().map(|values| values[at]).sum();
                assert!((sum - plain).abs() < 1e-9, "{kind:?}: {sum} for {plain}");
            }
        }
    }
}

#[test]
fn two_levels_send_between_machines_what_halving_and_doubling_sends_by_the_gpus_less() {
    // 32 workers in machines of 8, 3,200 values: 12,800 bytes.
    let machines = |traffic: &Traffic| -> [u64; 2] {
        let mut bytes = [0; 2];
        for (lane, payload, count) in traffic.iter() {
            bytes[usize::from(lane.from / 8 != lane.to / 8)] += payload.0 * count;
        }
        bytes
    };
    let of = |kind: &AllReduceKind| {
        machines(&all_reduce_traffic(
            kind,
            32,
            3_200,
            TrafficKind::ParameterGradient,
        ))
    };
    // Inside 2·7/8·S from each of 32; out of each of four machines 2·3/4·S.
    let expected = [32 * 2 * 7 * 12_800 / 8, 4 * 2 * 3 * 12_800 / 4];
    for halving in [false, true] {
        let kind = AllReduceKind::Hierarchical(Hierarchy::new(&[8; 4], halving));
        assert_eq!(of(&kind), expected);
    }
    assert_eq!(of(&AllReduceKind::HalvingDoubling)[1], 8 * expected[1]);
}

#[test]
fn a_sum_of_nothing_is_nothing_though_others_have_not_come() {
    let hierarchical = AllReduceKind::Hierarchical(Hierarchy::new(&[2, 2], false));
    for kind in KINDS.iter().chain([&hierarchical]) {
        let sum = all_reduce_result(kind, vec![Vec::<f32>::new()], |own, other| own + other);
        assert!(sum.is_empty(), "{kind:?}");
    }
}
