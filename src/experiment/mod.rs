//! Experiments: from a TOML file to tables that can be checked.
//!
//! ```text
//! file.toml ─→ config::Experiment ─→ Cell × seed ─→ prepare::Preparation ─→ run ─→ rows ─→ Tables
//!                                                        │                        │  (Parquet,
//!                                                   project: plan alone      claims, │      CSV)
//!                                                                            verify ─┘
//! ```

mod advise;
mod alike;
mod archive;
pub mod claims;
mod collected;
pub(crate) mod compare;
pub(crate) mod config;
mod decisions;
pub(crate) mod differences;
mod error;
mod folder;
#[cfg(test)]
mod fuzz;
mod manifest;
mod merge;
mod noise;
mod outlook;
mod pace;
mod part;
mod prepare;
mod project;
mod rejudge;
mod resent;
mod resolution;
mod rising;
mod row_maker;
pub mod rows;
mod run;
mod sentences;
pub mod statistics;
mod study;
mod tables;
mod trace;
mod uneven;
pub mod verify;
mod weights;

pub use crate::study::StudyError;
pub(crate) use advise::{Advice, Advised, Change, Heard, NODES_A_WORKER, Probe, Why, advise};
pub use config::{Cell, ConfigError, Experiment, Place, Problem};
pub(crate) use config::{EstimatorStudy, FlowFile};
pub use error::Error;
pub(crate) use folder::{can_be_made, default_out, free_for_projection};
pub use manifest::read_manifest;
pub(crate) use manifest::{PART, judged_by};
pub(crate) use merge::{Part, merge};
pub(crate) use part::Share;
pub(crate) use prepare::base_of;
pub use prepare::{Fitted, Preparation};
pub(crate) use project::{
    Beside, Notes, Projected, Projection, Verdicts, beside, notes, project, verdicts,
};
pub(crate) use rejudge::{ask_again, in_settings};
pub(crate) use run::{Finished, Progress, Runner, Summary};
pub(crate) use study::{EstimatorRow, estimate};
pub(crate) use tables::write_projection;
pub use tables::{Tables, TablesError};
pub(crate) use weights::write_weights;

/// Folder of traces in a result folder.
pub(crate) const TRACES: &str = "traces";
