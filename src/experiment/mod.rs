//! Experiments: from a TOML file to tables that can be checked.
//!
//! ```text
//! file.toml ─→ config::Experiment ─→ Cell × seed ─→ prepare::Preparation ─→ run ─→ rows ─→ Tables (Parquet, CSV)
//!                                                        │                        │
//!                                                   project: plan alone      claims, verify
//! ```

mod archive;
pub mod atomic;
pub mod claims;
pub mod compare;
pub mod config;
mod decisions;
mod error;
mod estimator;
mod folder;
#[cfg(test)]
mod fuzz;
mod manifest;
mod noise;
mod outlook;
mod pace;
mod prepare;
mod project;
mod row_maker;
pub mod rows;
mod run;
pub mod statistics;
pub mod tables;
mod trace;
pub mod verify;

pub use config::{ConfigError, EstimatorStudy, Experiment, FlowFile, FlowRow};
pub use error::{Error, RunError};
pub use estimator::{EstimatorRow, estimate};
pub use folder::default_out;
pub use manifest::{MANIFEST, judged_by, read_manifest};
pub use prepare::{Preparation, base_of, vocabulary_check};
pub use project::{Projected, Projection, project};
pub use run::{Finished, Progress, Runner, Silent, Summary};
pub use tables::{Tables, TablesError};
pub use trace::chrome_trace;

/// Folder of traces in a result folder.
pub const TRACES: &str = "traces";
