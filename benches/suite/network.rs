//! What the emulation itself costs.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, Throughput};
use grapevine::net::{
    AllReduceKind, BF16, Bits, Bytes, Codec, CodecKey, Communicator, F16, FirstColumns, FlowSpec,
    Framing, Identity, Message, NetworkSpec, Outbox, Qsgd, Quantise, QuantiseRows, RandomColumns,
    RandomEntries, Reduce, RowBits, Rows, Seconds, Signs, TopK, Topology, TrafficKind, run_flows,
};
use grapevine::sim::{Cluster, run_workers};

fn star(workers: usize) -> (Arc<Topology>, Framing) {
    let spec = NetworkSpec {
        preset: Some("ethernet-10g".to_owned()),
        ..NetworkSpec::default()
    };
    let topology = spec.topology(workers).expect("the preset exists");
    (Arc::new(topology), spec.framing())
}

/// Messages handed over at the start, `[workers, partners]`; to `partners` next ranks each.
fn messages(workers: usize, partners: usize, bytes: impl Fn(usize, usize) -> u64) -> Vec<FlowSpec> {
    let pairs = (0..workers).flat_map(|from| (1..=partners).map(move |step| (from, step)));
    pairs
        .map(|(from, step)| {
            let to = (from + step) % workers;
            FlowSpec {
                from,
                to,
                bytes: Bytes(bytes(from, to)),
                start: Seconds::ZERO,
            }
        })
        .collect()
}

/// Virtual time of messages that all start at once over a star, where each shares two links with others:
/// an all-to-all of unequal messages, of which each ends on its own among 256 workers; an all-to-all of one
/// size; unequal messages to the next two ranks.
pub(crate) fn sharing(criterion: &mut Criterion) {
    let unequal = |from: usize, to: usize| 100_000 + (from * 7_919 + to * 104_729) as u64 % 900_001;
    let all_to_all =
        [4, 16, 64, 256].map(|workers| (workers, messages(workers, workers - 1, unequal)));
    let one_size =
        [16, 256].map(|workers| (workers, messages(workers, workers - 1, |_, _| 500_000)));
    let neighbours = [256, 4096].map(|workers| (workers, messages(workers, 2, unequal)));
    over_a_star(criterion, "all-to-all", &all_to_all);
    over_a_star(criterion, "all-to-all of one size", &one_size);
    over_a_star(criterion, "neighbours", &neighbours);
}

fn over_a_star(criterion: &mut Criterion, name: &str, cases: &[(usize, Vec<FlowSpec>)]) {
    let mut group = criterion.benchmark_group(name);
    group.sample_size(10);
    for (workers, flows) in cases {
        let (topology, framing) = star(*workers);
        group.throughput(Throughput::Elements(flows.len() as u64));
        group.bench_with_input(
            BenchmarkId::from_parameter(workers),
            flows,
            |bencher, flows| {
                bencher.iter(|| black_box(run_flows(&topology, framing, flows)));
            },
        );
    }
    group.finish();
}

/// Thousands of clients that each send one message through a server side.
pub(crate) fn edge(criterion: &mut Criterion) {
    let spec: NetworkSpec = toml::from_str(
        "topology = \"edge\"\npreset = \"broadband\"\n\
         server = { bandwidth = \"10Gbps\", latency = \"1ms\" }",
    )
    .expect("a network");
    let mut group = criterion.benchmark_group("edge");
    group.sample_size(10);
    for clients in [256, 4096] {
        let topology = Arc::new(spec.topology(clients).expect("an edge network"));
        let flows: Vec<FlowSpec> = (0..clients)
            .map(|from| FlowSpec {
                from,
                to: (from * 31 + 7) % clients,
                bytes: Bytes(100_000 + (from * 7_919) as u64 % 90_001),
                start: Seconds::ZERO,
            })
            .collect();
        group.throughput(Throughput::Elements(flows.len() as u64));
        group.bench_with_input(
            BenchmarkId::from_parameter(clients),
            &flows,
            |bencher, flows| {
                bencher.iter(|| black_box(run_flows(&topology, spec.framing(), flows)));
            },
        );
    }
    group.finish();
}

/// A thousand rows of 256 from each of four workers to each other, threads included; what is sent is there already.
pub(crate) fn exchange(criterion: &mut Criterion) {
    const WORKERS: usize = 4;
    const BYTES: usize = 1_000 * 256 * 4;
    let (topology, framing) = star(WORKERS);
    let mut group = criterion.benchmark_group("exchange");
    group.throughput(Throughput::Bytes((WORKERS * (WORKERS - 1) * BYTES) as u64));
    group.bench_function("all to all, 4 workers", |bencher| {
        bencher.iter(|| {
            let cluster = Cluster::new(Arc::clone(&topology), framing);
            run_workers(&cluster, WORKERS, |mut communicator| {
                let mut outbox = Outbox::new(TrafficKind::Activation, 0);
                for peer in (0..WORKERS).filter(|&peer| peer != communicator.rank()) {
                    outbox.messages.push(Message {
                        peer,
                        payload: vec![0; BYTES],
                    });
                    outbox.expect.push(peer);
                }
                communicator.exchange(outbox)?;
                Ok(())
            })
            .expect("nobody fails")
        });
    });
    group.finish();
}

/// A ring all-reduce of a 256-wide model's gradient among four workers, threads included.
pub(crate) fn all_reduce(criterion: &mut Criterion) {
    const PARAMETERS: usize = 108_608;
    let (topology, framing) = star(4);
    let mut group = criterion.benchmark_group("all-reduce");
    group.throughput(Throughput::Bytes(4 * PARAMETERS as u64));
    group.bench_function("ring, 4 workers", |bencher| {
        bencher.iter(|| {
            let cluster = Cluster::new(Arc::clone(&topology), framing);
            run_workers(&cluster, 4, |mut communicator| {
                let mut values = vec![1.0; PARAMETERS];
                let kind = TrafficKind::ParameterGradient;
                communicator.all_reduce(&mut values, Reduce::Sum, kind)?;
                Ok(())
            })
            .expect("nobody fails")
        });
    });
    group.finish();
}

/// An epoch of many workers with parts of unequal size, threads included: each computes for another
/// time, sends rows to sixteen others, and all sum the gradients of a model of 17,000 parameters. Once
/// with parts as skewed as METIS leaves those of graphs with hubs, the largest ten times the smallest.
pub(crate) fn epochs_of_many(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("epoch of many workers");
    group.sample_size(10);
    for (name, all_reduce, workers, skew) in [
        ("ring", AllReduceKind::Ring, 256, 0),
        ("ring", AllReduceKind::Ring, 1024, 0),
        ("ring, skewed", AllReduceKind::Ring, 1024, 9),
        ("tree", AllReduceKind::Tree, 4096, 0),
    ] {
        let (topology, framing) = star(workers);
        let cluster = Cluster {
            all_reduce: all_reduce.clone(),
            ..Cluster::new(topology, framing)
        };
        group.bench_function(BenchmarkId::new(name, workers), |bencher| {
            bencher.iter(|| {
                run_workers(&cluster, workers, |mut worker| {
                    unequal_epoch(worker.as_mut(), skew);
                    Ok(())
                })
                .expect("nobody fails")
            });
        });
    }
    group.finish();
}

/// Parts are up to `1 + skew` times as large as the smallest, few of them much larger.
fn unequal_epoch(worker: &mut dyn Communicator, skew: usize) {
    const PARAMETERS: usize = 17_000;
    let (rank, size) = (worker.rank(), worker.size());
    let part = |rank: usize| 1 + skew * (rank * 7_919 % 101).pow(3) / 1_000_000;
    let peers = (1..=8).flat_map(|step| [rank + step * step, rank + size - step * step]);
    let mut peers: Vec<usize> = peers.map(|peer| peer % size).collect();
    peers.sort_unstable();
    let mut outbox = Outbox::new(TrafficKind::Activation, 0);
    for &peer in &peers {
        let rows = (1 + (rank * 7 + peer * 7) % 5) * part(rank) * part(peer);
        outbox.messages.push(Message {
            peer,
            payload: vec![0; 64 * rows],
        });
    }
    outbox.expect = peers;
    let work =
        |draw: usize| Seconds(part(rank) as f64 * (1e-4 + 1e-6 * (draw * 7_919 % 101) as f64));
    worker.elapse(work(rank));
    worker.exchange(outbox).expect("nobody fails");
    worker.elapse(work(rank + 31));
    let mut values = vec![1.0; PARAMETERS];
    let kind = TrafficKind::ParameterGradient;
    let summed = worker.all_reduce(&mut values, Reduce::Sum, kind);
    summed.expect("nobody fails");
    assert_eq!(values[0], size as f32);
}

/// Encoding and decoding a thousand rows of 256, through each codec.
pub(crate) fn codecs(criterion: &mut Criterion) {
    const ROWS: usize = 1_000;
    const WIDTH: usize = 256;
    // As spread as activations are, without a cycle that a predictor of branches could learn.
    let value = |at: usize| (at as f32 * 0.618_034).fract() * 2.0 - 0.9;
    let values: Vec<f32> = (0..ROWS * WIDTH).map(value).collect();
    let key = CodecKey::new(1, 0, 0);
    let mut group = criterion.benchmark_group("codec");
    group.throughput(Throughput::Bytes(4 * (ROWS * WIDTH) as u64));
    for codec in all_codecs() {
        let id = |way| BenchmarkId::new(way, codec.name());
        group.bench_function(id("encode"), |bencher| {
            bencher.iter(|| codec.encode(&Rows::new(black_box(&values), WIDTH), key));
        });
        let bytes = codec.encode(&Rows::new(&values, WIDTH), key);
        group.bench_function(id("decode"), |bencher| {
            bencher.iter(|| {
                codec
                    .decode(black_box(&bytes), [ROWS, WIDTH], key)
                    .expect("what was encoded")
            });
        });
    }
    group.finish();
}

fn all_codecs() -> Vec<Box<dyn Codec>> {
    let (ratio, rescale) = (8.0, false);
    let mut codecs: Vec<Box<dyn Codec>> = vec![
        Box::new(Identity),
        Box::new(F16),
        Box::new(BF16),
        Box::new(Signs),
        Box::new(FirstColumns { ratio }),
        Box::new(RandomColumns { ratio, rescale }),
        Box::new(RandomEntries { ratio, rescale }),
        Box::new(TopK::new(ratio)),
        Box::new(Qsgd {
            levels: 7,
            bucket: 128,
        }),
        Box::new(QuantiseRows {
            bits: RowBits::Random,
        }),
    ];
    for bits in Bits::ALL {
        codecs.push(Box::new(Quantise { bits }));
    }
    codecs
}
