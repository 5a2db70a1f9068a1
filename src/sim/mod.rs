//! Workers, virtual time, devices and what a run records.
//!
//! ```text
//! Setting ─→ simulate ─→ one thread per Worker ──(program)──→ EpochReport ─→ Outcome
//!                              │ exchange, all_reduce
//!                              ▼
//!                    kernel: turns, clocks, Fabric, Ledger
//! ```

mod adapters;
mod allocation;
mod checkpoint;
mod compute;
mod device;
mod engine;
mod engines;
mod error;
mod evaluation;
mod intervals;
mod kernel;
mod measurement;
mod mpi;
mod opening;
mod plan;
mod record;
mod run;
mod setting;
mod spec;
mod speed;
mod trace;
mod worker;

#[cfg(feature = "wgpu")]
pub use adapters::adapter_names;
pub use allocation::{CacheLines, keep_freed_memory};
pub use checkpoint::{Checkpoints, Loading, Saving};
pub(crate) use compute::DEVICE_PROFILES;
pub use compute::{ComputeTiming, DeviceProfile};
pub(crate) use device::drain;
pub use device::{WorkerDevice, divide, host};
pub use engine::{Cluster, EngineResults, run_workers};
pub use engines::Engine;
pub use error::{Complaint, SimError};
pub(crate) use evaluation::held_in_evaluation;
pub use evaluation::{Aside, Evaluation, Inference, NodeRows};
pub use kernel::WorkerTimes;
pub(crate) use measurement::{
    Calibration, CalibrationPlan, Load, Pattern, calibrate, calibrate_emulated,
};
pub use mpi::Processes;
pub use opening::open_devices;
pub use plan::{
    Broadcasts, Course, Decision, Exchange, Memory, Phase, Planner, Played, Stretch, Timeline,
    Track, play, play_equals,
};
pub use record::{EpochRecord, EpochReport, Observer, Outcome, Scores};
pub use run::{Run, simulate};
pub use setting::{Repartitioner, Setting, Shard};
pub use spec::{
    Backend, ComputeConfig, DeviceConfig, MeasuredTiming, ModelledTiming, OwnProfile, ProfileSpec,
    Timing, TrainingConfig, WorkerProfile,
};
pub(crate) use speed::{OperationTime, most_nodes, time_operations};
pub use trace::{Doing, Flight, Span, Trace};
pub use worker::{Activity, PendingExchange, Restoring, Saved, Worker};
