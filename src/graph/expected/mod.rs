//! Graphs that are known by their law alone: what a partition and a sampler would find in them, in
//! expectation, without a graph in memory.
//!
//! A law deals nodes to *classes* whose members are exchangeable. R-MAT has one class for each
//! number of one-bits in a node's number ([`rmat`]); a degree sequence has one for each degree
//! ([`degrees`]). Boundary rows of a random partition follow in closed form
//! ([`ExpectedGraph::counts`]), and so do the rows that a neighbour sampler meets ([`sampling`]).
//! What other partitioners leave of it is fitted on smaller graphs of the same law ([`CutFit`]).

mod classes;
mod cut;
pub(super) mod degrees;
mod line;
mod published;
mod reading;
pub(super) mod rmat;
pub(crate) mod sampling;

pub use classes::ExpectedGraph;
pub(crate) use classes::round;
pub(crate) use cut::{CutFit, End as FitEnd, Samples};
pub(crate) use published::{PUBLISHED, PublishedSize};
pub use reading::Counted;
