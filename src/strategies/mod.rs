//! Training strategies: one folder per published method, and the parts they share.
//!
//! A strategy is the program of one worker and a plan of its traffic; see [`Strategy`]. To add one:
//! a folder here (or a crate of your own), a [`Registration`], one line in [`Registry::builtin`].

/// The guide's programs, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../docs/add-a-strategy.md")]
mod guide {}

mod adaqp;
mod bns;
mod cagnet;
mod cluster;
mod distdgl;
mod distgnn;
mod ecgraph;
mod fedgcn;
mod fixed;
mod full;
pub(crate) mod grappa;
mod isolated;
mod llcg;
pub mod parts;
mod pipe;
mod registration;
mod registry;
pub mod retexo;
mod sancus;
mod strategy;
mod sylvie;
mod train;
mod varco;

pub use registration::{Registration, options};
pub use registry::Registry;
pub use strategy::{
    BatchUse, EpochKind, Needs, NeedsOfOthers, OptionError, OptionInfo, PlansFrom, Strategy,
    StrategyInfo, Training, run, run_keeping,
};
