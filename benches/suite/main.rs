//! What training costs and what emulating costs, piece by piece.
//!
//! `cargo bench` runs everything; `cargo bench -- aggregation` a part.

mod epoch;
mod graphs;
mod kernels;
mod network;

use criterion::{Criterion, criterion_group};
use grapevine::sim::keep_freed_memory;

criterion_group!(
    benches,
    kernels::copy,
    kernels::aggregation,
    kernels::peak,
    kernels::dense_layer,
    kernels::watch,
    epoch::models,
    epoch::epochs,
    graphs::partitioners,
    graphs::orders,
    graphs::sampler,
    network::exchange,
    network::all_reduce,
    network::epochs_of_many,
    network::codecs,
    network::sharing,
    network::edge
);

fn main() {
    keep_freed_memory(); // as the program does
    benches();
    Criterion::default().configure_from_args().final_summary();
}
