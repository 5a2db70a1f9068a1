//! Exact means and variances over all draws.

use super::*;
use crate::graph::Features;

/// Two owned nodes, five of worker 1 and four of worker 2 in the halo; node 0 reads all of worker
/// 1, node 1 some of either.
fn shard() -> Shard {
    let edges = [
        (1, 0),
        (2, 0),
        (3, 0),
        (4, 0),
        (5, 0),
        (6, 0),
        (0, 1),
        (3, 1),
        (6, 1),
        (7, 1),
        (9, 1),
        (10, 1),
    ];
    let mut receives = Peers::default();
    *receives.of(1) = 0..5;
    *receives.of(2) = 5..9;
    Shard {
        nodes: vec![0, 1, 10, 12, 14, 16, 18, 20, 21, 25, 29],
        owned: 2,
        halo_rows: vec![0; 9],
        sends: Peers::default(),
        receives,
        adjacency: Csr::rectangular(2, 11, edges.into_iter()),
        degrees: vec![6, 6, 3, 4, 1, 2, 9, 1, 2, 3, 4],
        features: Features::none(2),
        labels: vec![None; 2].into(),
        train: Vec::new(),
        validation: Vec::new(),
        test: Vec::new(),
    }
}

/// All subsets of `count` of `0..rows`.
fn subsets(rows: usize, count: usize) -> Vec<Vec<usize>> {
    let all = 0_u32..1 << rows;
    all.filter(|set| set.count_ones() as usize == count)
        .map(|set| (0..rows).filter(|&at| set >> at & 1 == 1).collect())
        .collect()
}

/// Every outcome of drawing three of five rows of worker 1 and two of four of worker 2.
fn outcomes(shard: &Shard) -> Vec<Readable> {
    let message = |peer: usize, start: usize, chosen: &[usize]| {
        let ids = chosen.iter().map(|at| u64::from(shard.nodes[start + at]));
        let payload = ids.flat_map(u64::to_le_bytes).collect();
        Message { peer, payload }
    };
    let mut all = Vec::new();
    for one in subsets(5, 3) {
        for two in subsets(4, 2) {
            let inbox = vec![message(1, 2, &one), message(2, 7, &two)];
            all.push(Readable::new(shard, &inbox));
        }
    }
    all
}

fn value(row: u32) -> f64 {
    f64::from(row * row) - 7.0 * f64::from(row)
}

/// Aggregates of both nodes; `rows` are those that the block's inputs stand for.
fn aggregates(block: &Block, rows: &[u32]) -> [f64; 2] {
    let by_row = block.matrix.by_row();
    [0, 1].map(|node| {
        let entries = by_row.entries(node);
        let terms = entries.map(|entry| {
            let row = rows[by_row.columns[entry] as usize];
            f64::from(block.matrix.values()[entry]) * value(row)
        });
        terms.sum()
    })
}

#[test]
fn over_all_subsets_the_mean_aggregate_is_the_full_one() {
    let shard = shard();
    let all: Vec<u32> = (0..11).collect();
    for aggregation in [
        Aggregation::Mean,
        Aggregation::MeanWithSelf,
        Aggregation::SymmetricWithSelf,
        Aggregation::NeighboursAndSelf,
    ] {
        let full = Block::new(&shard.adjacency, &shard.degrees, aggregation);
        let full = aggregates(&full, &all);
        let outcomes = outcomes(&shard);
        assert_eq!(outcomes.len(), 10 * 6);
        let mut mean = [0.0; 2];
        for drawn in &outcomes {
            let found = aggregates(&drawn.block(&shard, aggregation), &drawn.rows);
            mean[0] += found[0] / 60.0;
            mean[1] += found[1] / 60.0;
        }
        for (found, full) in mean.iter().zip(full) {
            assert!(
                (found - full).abs() < 1e-5,
                "{aggregation:?}: {found}, {full}"
            );
        }
    }
}

#[test]
fn a_sum_over_a_whole_boundary_has_the_variance_of_sampling_without_replacement() {
    let shard = shard();
    // Node 0 reads itself, node 1 and all five rows of worker 1 (6 neighbours are rows 1 to 6).
    let values: Vec<f64> = (2..7).map(value).collect();
    let (b, s) = (5.0, 3.0);
    let mean = values.iter().sum::<f64>() / b;
    let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    let expected = b * b * (1.0 - s / b) * (squares / (b - 1.0)) / s;
    let aggregation = Aggregation::NeighboursAndSelf;
    let sums: Vec<f64> = outcomes(&shard)
        .iter()
        .map(|drawn| aggregates(&drawn.block(&shard, aggregation), &drawn.rows)[0])
        .collect();
    let mean = sums.iter().sum::<f64>() / 60.0;
    let variance = sums.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / 60.0;
    assert!(
        (variance / expected - 1.0).abs() < 1e-5,
        "{variance}, {expected}"
    );
}

#[test]
fn every_row_is_drawn_equally_often_and_an_epoch_has_a_draw_of_its_own() {
    let mut sends = Peers::default();
    *sends.of(1) = (0..20).map(|row| 2 * row).collect::<Vec<u32>>();
    *sends.of(3) = vec![1, 2, 3];
    let share = BoundaryShare(0.3);
    let mut hits = [0.0_f64; 20];
    for epoch in 0..20_000 {
        let drawn = share.draw(&sends, 5, 0, epoch);
        assert_eq!(drawn.ranks().collect::<Vec<_>>(), [1], "⌊0.3 · 3⌋ is none");
        assert!(drawn[1].len() == 6 && drawn[1].is_sorted());
        for row in &drawn[1] {
            hits[*row as usize / 2] += 1.0 / 20_000.0;
        }
    }
    // Standard deviation of a share: √(0.3 · 0.7 / 20,000) = 0.0032.
    assert!(
        hits.iter().all(|hit| (hit - 0.3).abs() < 5.0 * 0.0033),
        "{hits:?}"
    );
    let draw = |seed, owner, epoch| share.draw(&sends, seed, owner, epoch)[1].clone();
    assert_eq!(draw(5, 0, 7), draw(5, 0, 7));
    for other in [(6, 0, 7), (5, 1, 7), (5, 0, 8)] {
        assert_ne!(draw(5, 0, 7), draw(other.0, other.1, other.2));
    }
}

#[test]
fn all_of_the_boundary_is_the_boundary() {
    let shard = shard();
    let inbox = [(1, 2..7), (2, 7..11)].map(|(peer, range)| {
        let ids = shard.nodes[range].iter().map(|&node| u64::from(node));
        let payload = ids.flat_map(u64::to_le_bytes).collect();
        Message { peer, payload }
    });
    let readable = Readable::new(&shard, &inbox.to_vec());
    assert_eq!(readable.rows, (0..11).collect::<Vec<_>>());
    assert_eq!(readable.receives, shard.receives);
    let full = Block::new(&shard.adjacency, &shard.degrees, Aggregation::Mean);
    let block = readable.block(&shard, Aggregation::Mean);
    assert_eq!(block.matrix.values(), full.matrix.values());
}
