//! The two products an epoch is made of.

use std::hint::black_box;
use std::sync::Arc;

use burn::tensor::{Device, Tensor, TensorData};
use criterion::{BenchmarkId, Criterion, Throughput};
use grapevine::graph::{Csr, DatasetSpec};
use grapevine::model::{SparseMatrix, has_finite_squares, spmm};
use rayon::prelude::*;

/// Nodes of ogbn-arxiv (Hu et al., 2020).
const NODES: usize = 169_343;

/// A power-law graph with the nodes and distinct undirected edges of ogbn-arxiv.
const GRAPH: &str = "
    synthetic = { kind = \"rmat\", scale = 18, nodes = 169343, edges = 1166243, classes = 2, features = 1 }
    split = { train = 0.5, val = 0.2 }";

pub(crate) fn arxiv_sized() -> Arc<Csr> {
    let spec: DatasetSpec = toml::from_str(GRAPH).expect("a data set");
    let data = spec.load(std::path::Path::new("."), 0);
    data.expect("a graph of this size exists").graph
}

fn matrix(graph: &Csr) -> Arc<SparseMatrix> {
    let values = vec![0.5; graph.indices().len()];
    let columns = graph.indices().to_vec();
    Arc::new(SparseMatrix::new(
        graph.nodes(),
        graph.offsets(),
        columns,
        values,
    ))
}

fn rows(width: usize) -> Tensor<2> {
    let values: Vec<f32> = (0..NODES * width)
        .map(|i| (i % 251) as f32 / 251.0)
        .collect();
    Tensor::from_data(TensorData::new(values, [NODES, width]), &Device::flex())
}

/// Copying half a gigabyte with all threads: what memory gives, to hold the aggregation to. Bytes are those read and those written.
pub(crate) fn copy(criterion: &mut Criterion) {
    const FLOATS: usize = 1 << 27;
    let from = vec![1.0_f32; FLOATS];
    let mut to = vec![0.0_f32; FLOATS];
    let mut group = criterion.benchmark_group("copy");
    group.sample_size(10);
    group.throughput(Throughput::Bytes(8 * FLOATS as u64));
    group.bench_function("all threads", |bencher| {
        bencher.iter(|| {
            let share = FLOATS / rayon::current_num_threads();
            to.par_chunks_mut(share)
                .zip(from.par_chunks(share))
                .for_each(|(to, from)| to.copy_from_slice(black_box(from)));
        });
    });
    group.finish();
}

/// CSR × dense, forward and transposed, on a graph the size of ogbn-arxiv.
pub(crate) fn aggregation(criterion: &mut Criterion) {
    let matrix = matrix(&arxiv_sized());
    let mut group = criterion.benchmark_group("aggregation");
    group.sample_size(10);
    for width in [16, 128, 256] {
        let x = rows(width);
        // What must move at least: an index and a weight per entry, a row of x per entry, a row of
        // the result.
        let bytes = matrix.entries() * (8 + 4 * width) + NODES * 4 * width;
        group.throughput(Throughput::Bytes(bytes as u64));
        group.bench_with_input(BenchmarkId::new("forward", width), &x, |bencher, x| {
            bencher.iter(|| black_box(spmm(&matrix, x.clone())));
        });
        let x = Tensor::from_inner(x).require_grad();
        group.bench_with_input(
            BenchmarkId::new("with backward", width),
            &x,
            |bencher, x| {
                bencher.iter(|| black_box(spmm(&matrix, x.clone()).sum().backward()));
            },
        );
    }
    group.finish();
}

/// Accumulators of one thread: more than the latency of a multiply-add hides.
type Accumulators = [[f32; 16]; 10];

#[allow(clippy::inline_always)] // so that it is compiled for the instructions of its callers
#[inline(always)]
fn multiply_adds(sums: &mut Accumulators, factor: f32, rounds: usize) {
    let mut own = *sums;
    for _ in 0..rounds {
        for sum in &mut own {
            for x in sum {
                *x = x.mul_add(factor, 0.5);
            }
        }
    }
    *sums = own;
}

/// The same with the widest instructions.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,fma")]
fn wide(sums: &mut Accumulators, factor: f32, rounds: usize) {
    multiply_adds(sums, factor, rounds);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn narrow(sums: &mut Accumulators, factor: f32, rounds: usize) {
    multiply_adds(sums, factor, rounds);
}

fn fastest(sums: &mut Accumulators, factor: f32, rounds: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl") {
            // SAFETY: the processor has these instructions.
            return unsafe { wide(sums, factor, rounds) };
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the processor has these instructions.
            return unsafe { narrow(sums, factor, rounds) };
        }
    }
    multiply_adds(sums, factor, rounds);
}

/// Multiply-adds out of registers with all threads: what the arithmetic units give, to hold the dense product to. Elements are
/// operations, as there.
pub(crate) fn peak(criterion: &mut Criterion) {
    const ROUNDS: usize = 10_000_000;
    let threads = rayon::current_num_threads();
    let mut group = criterion.benchmark_group("peak");
    group.sample_size(10);
    group.throughput(Throughput::Elements((2 * 160 * ROUNDS * threads) as u64));
    group.bench_function("all threads", |bencher| {
        bencher.iter(|| {
            let one = |thread: usize| {
                let mut sums = black_box([[thread as f32; 16]; 10]);
                fastest(&mut sums, black_box(0.25), ROUNDS);
                black_box(sums)
            };
            (0..threads).into_par_iter().map(one).collect::<Vec<_>>()
        });
    });
    group.finish();
}

/// The dense product of a layer, `[nodes, width] × [width, width]`.
pub(crate) fn dense_layer(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("dense layer");
    group.sample_size(10);
    for width in [16, 256] {
        let x = rows(width);
        let weight = Tensor::<2>::ones([width, width], &Device::flex());
        group.throughput(Throughput::Elements((2 * NODES * width * width) as u64));
        group.bench_with_input(BenchmarkId::from_parameter(width), &x, |bencher, x| {
            bencher.iter(|| black_box(x.clone().matmul(weight.clone())));
        });
    }
    group.finish();
}

/// What it costs to see that nothing has become no number: a gradient of Cora's two-layer GCN in every step, and its logits at every
/// evaluation.
pub(crate) fn watch(criterion: &mut Criterion) {
    const PARAMETERS: usize = 1433 * 16 + 16 + 16 * 7 + 7;
    const LOGITS: usize = 2708 * 7;
    let mut group = criterion.benchmark_group("watch");
    for (what, count) in [("gradient", PARAMETERS), ("logits", LOGITS)] {
        let values = vec![0.01_f32; count];
        group.throughput(Throughput::Elements(count as u64));
        group.bench_function(what, |bencher| {
            bencher.iter(|| has_finite_squares(black_box(&values)));
        });
    }
    group.finish();
}
