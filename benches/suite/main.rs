//! What training costs and what emulating costs, piece by piece.
//!
//! `cargo bench` runs everything; `cargo bench -- aggregation` a part.

mod epoch;
mod kernels;
mod network;

use criterion::{criterion_group, criterion_main};

criterion_group!(
    benches,
    kernels::aggregation,
    kernels::dense_layer,
    epoch::epochs,
    network::all_reduce,
    network::codecs,
    network::sharing
);
criterion_main!(benches);
