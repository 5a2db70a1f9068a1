//! What the emulation itself costs.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, Throughput};
use grapevine::net::{
    Bytes, Codec, CodecKey, FlowSpec, Framing, Identity, NetworkSpec, RandomColumns, Reduce, Rows,
    Seconds, Topology, TrafficKind, run_flows,
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

/// Virtual time of an all-to-all of unequal messages: every flow starts at once and shares two links
/// with others. Among 256 workers all sizes differ; there each flow ends on its own.
pub fn sharing(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("all-to-all");
    group.sample_size(10);
    for workers in [4, 16, 64, 256] {
        let (topology, framing) = star(workers);
        let pairs = (0..workers).flat_map(|from| (0..workers).map(move |to| (from, to)));
        let flows: Vec<FlowSpec> = pairs
            .filter(|(from, to)| from != to)
            .map(|(from, to)| FlowSpec {
                from,
                to,
                bytes: Bytes(100_000 + (from * 7_919 + to * 104_729) as u64 % 900_001),
                start: Seconds::ZERO,
            })
            .collect();
        group.throughput(Throughput::Elements(flows.len() as u64));
        group.bench_with_input(
            BenchmarkId::from_parameter(workers),
            &flows,
            |bencher, flows| {
                bencher.iter(|| black_box(run_flows(&topology, framing, flows)));
            },
        );
    }
    group.finish();
}

/// Thousands of clients that each send one message through a server side.
pub fn edge(criterion: &mut Criterion) {
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

/// A ring all-reduce of a 256-wide model's gradient among four workers, threads included.
pub fn all_reduce(criterion: &mut Criterion) {
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

/// Encoding and decoding a thousand rows of 256.
pub fn codecs(criterion: &mut Criterion) {
    const ROWS: usize = 1_000;
    const WIDTH: usize = 256;
    let values: Vec<f32> = (0..ROWS * WIDTH).map(|i| (i % 97) as f32 - 48.0).collect();
    let key = CodecKey::new(1, 0, 0);
    let random_columns = RandomColumns {
        ratio: 8.0,
        rescale: false,
    };
    let codecs: [&dyn Codec; 2] = [&Identity, &random_columns];
    let mut group = criterion.benchmark_group("codec");
    group.throughput(Throughput::Bytes(4 * (ROWS * WIDTH) as u64));
    for codec in codecs {
        group.bench_function(BenchmarkId::from_parameter(codec.name()), |bencher| {
            bencher.iter(|| {
                let bytes = codec.encode(&Rows::new(black_box(&values), WIDTH), key);
                codec
                    .decode(&bytes, ROWS, WIDTH, key)
                    .expect("what was encoded")
            });
        });
    }
    group.finish();
}
