//! The mathematics of coverage and of the weights that correct for what a worker does not see. Plain functions of plain
//! numbers: nothing here trains, sends or reads.
//!
//! The estimated thing is the full gradient `g = (1/n) Σ_v ∇ℓ_v`. A random design decides what `v`'s worker sees; `d` is a node's degree in the
//! whole graph, `d_local` how many of its neighbours are seen, both without the self-loop; the *coverage* is `c = d_local/d`, and
//! `ρ = E c`. Every function says where its formula is from: *the paper's*, *the authors' code's*, or *derived* here.
//!
//! | file | what it computes |
//! |---|---|
//! | `inclusion` | how likely a design shows one node to another's worker |
//! | `coverage` | `c`, its version over L hops, and their expectations |
//! | `weights` | what a node, a batch or an edge is multiplied by |
//! | `shrinkage` | pulling weights towards 1, normalising and capping them |
//! | `phases` | the ratio estimator over several repartitions |
//! | `bias` | the exact biases of one layer with squared loss |
//! | `outcomes` | every outcome of a small design, for exact expectations |

mod bias;
mod coverage;
mod inclusion;
mod options;
mod outcomes;
mod phases;
#[cfg(test)]
mod properties;
mod shrinkage;
mod weights;

pub use bias::{
    binomial, ht_covariance, mean_inverse, node_weight_factor, nonempty_factor,
    population_covariance, squared_loss_bias,
};
pub use coverage::{
    coverage, empty_probability, expected_coverage, expected_coverage_by_hop, halo_hops,
};
pub use inclusion::Inclusion;
pub use options::{Normalise, Shrinkage, Weight};
pub use outcomes::{
    assignments, balanced_assignments, balanced_sizes, count_of_balanced_assignments,
};
pub use phases::Ratio;
pub use shrinkage::{
    capped, gradient_lambda, james_stein, james_stein_of_sums, optimal_lambda, pooled_lambda,
    sampling_variance, shrunk, smoothed,
};
pub use weights::{
    batch_gram, batch_norms, batch_projection, edge_ht, mean, mean_or_one, node_hajek,
    over_expectation, squared_gradient_norm, worker_scale,
};
