//! Training strategies: one folder per published method, and the parts they share.
//!
//! A strategy is the program of one worker and a plan of its traffic; see [`Strategy`]. To add one:
//! a folder here (or a crate of your own), a [`Registration`], one line in [`Registry::builtin`].

/// The guide's programs, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../docs/add-a-strategy.md")]
mod guide {}

pub mod adaqp;
pub mod bns;
pub mod cagnet;
pub mod cluster;
pub mod distdgl;
pub mod distgnn;
pub mod ecgraph;
pub mod fedgcn;
pub mod fixed;
pub mod full;
pub mod grappa;
pub mod isolated;
pub mod llcg;
pub mod parts;
pub mod pipe;
mod registration;
mod registry;
pub mod retexo;
pub mod sancus;
mod strategy;
pub mod sylvie;
pub mod train;
pub mod varco;

pub use registration::{Read, Registration, options};
pub use registry::Registry;
pub use strategy::{
    BatchUse, Needs, OptionError, OptionInfo, Strategy, StrategyInfo, Training, run, run_keeping,
};
