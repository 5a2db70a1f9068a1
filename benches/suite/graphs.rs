//! What dividing a graph costs, and what drawing from it does.

use std::hint::black_box;
use std::path::Path;

use criterion::{BenchmarkId, Criterion, Throughput};
use grapevine::graph::{Known, NodeOrder, PartitionSpec, SampledLayer, Sampler, View};

use crate::kernels::arxiv_sized;

/// Cutting a graph the size of ogbn-arxiv into eight parts, boundary plan included.
pub(crate) fn partitioners(criterion: &mut Criterion) {
    let graph = arxiv_sized();
    let mut group = criterion.benchmark_group("partition");
    group.sample_size(10);
    for method in ["random", "metis"] {
        let spec = format!("method = \"{method}\"\nworkers = 8");
        let spec: PartitionSpec = toml::from_str(&spec).expect("a partition");
        group.bench_function(method, |bencher| {
            bencher.iter(|| {
                spec.divide(&graph, Known::default(), Path::new("."), black_box(0), 8)
                    .expect("it can be cut")
            });
        });
    }
    group.finish();
}

/// Numbering the nodes of that graph anew.
pub(crate) fn orders(criterion: &mut Criterion) {
    let graph = arxiv_sized();
    let mut group = criterion.benchmark_group("order");
    group.sample_size(10);
    for (name, order) in [("degree", NodeOrder::Degree), ("rcm", NodeOrder::Rcm)] {
        group.bench_function(name, |bencher| bencher.iter(|| order.of(black_box(&graph))));
    }
    group.finish();
}

/// The neighbourhood of a thousand nodes, three hops deep, as a mini-batch draws it.
pub(crate) fn sampler(criterion: &mut Criterion) {
    const BATCH: u32 = 1_000;
    const FANOUTS: [usize; 3] = [15, 10, 5];
    let graph = arxiv_sized();
    let nodes: Vec<u32> = (0..graph.nodes()).map(|node| node as u32).collect();
    let view = View {
        adjacency: &graph,
        nodes: &nodes,
        own: nodes.len(),
    };
    let mut group = criterion.benchmark_group("sampler");
    group.sample_size(20);
    let draw = |step: usize| {
        let sampler = Sampler::new(0, 0, step, &FANOUTS);
        let mut rows: Vec<u32> = (0..BATCH).map(|i| i * 169 + step as u32 % 169).collect();
        let mut edges = 0;
        for hop in 0..FANOUTS.len() {
            let layer = SampledLayer::draw(&sampler, hop, &view, rows);
            edges += layer.adjacency.edges();
            rows = layer.rows;
        }
        edges
    };
    // Every step draws other nodes, and about as many edges.
    let edges = (0..20).map(&draw).sum::<usize>() / 20;
    group.throughput(Throughput::Elements(edges as u64));
    group.bench_function(BenchmarkId::from_parameter("15, 10, 5"), |bencher| {
        let mut step = 0;
        bencher.iter(|| {
            step += 1;
            draw(step)
        });
    });
    group.finish();
}
