//! The mathematics of coverage and of the weights that correct for what a worker does not see.
//! Plain functions of plain numbers: nothing here trains, sends or reads.
//!
//! The estimated thing is the full gradient `g = (1/n) Σ_v ∇ℓ_v`. A random design decides what
//! `v`'s worker sees; `d` is a node's degree in the whole graph, `d_local` how many of its
//! neighbours are seen, both without the self-loop; the *coverage* is `c = d_local/d`, and
//! `ρ = E c`. Every function says where its formula is from: *the paper's*, *the authors' code's*,
//! whose files the strategy's own page names, or *derived* here.
//!
//! | file | what it computes |
//! |---|---|
//! | `inclusion` | how likely a design shows one node to another's worker |
//! | `coverage` | `c`, and its version over L hops |
//! | `weights` | what a node, a batch or an edge is multiplied by |
//! | `shrinkage` | pulling weights towards 1, and capping them |
//!
//! What only a study of estimators needs, closed forms and exhaustive sums, is in [`crate::study`],
//! with the properties of the functions here.

mod coverage;
mod inclusion;
mod options;
mod shrinkage;
mod weights;

#[cfg(test)]
pub(crate) use coverage::by_hop;
pub(crate) use coverage::{coverage, halo_hops, none_seen, stay};
pub(crate) use inclusion::Inclusion;
pub(crate) use options::{Normalise, Shrinkage, Weight};
pub(crate) use shrinkage::{capped, james_stein_of_sums, positive_part, sampling_variance, shrunk};
use shrinkage::{over_two_more, smoothed};
pub(crate) use weights::{
    batch_norms, edge_ht, mean, mean_or_one, node_hajek, over_expectation, ratio, share_of_loss,
    squared_gradient_norm,
};
