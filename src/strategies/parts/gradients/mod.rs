//! How parameter gradients are summed over workers: how encoded, how often, and whether gradients
//! or models are averaged. Each file here holds the program of a worker and its plan, side by side.
//!
//! ```text
//! Gradients ──── as experiment files say it
//! Learner ────── model, optimiser and sum of one worker   LearnerPlan
//!   └─ Sum ───── one of:
//!        Whole      an all-reduce of all values
//!        Drawn      an all-reduce of a share that all workers draw alike (random_k)
//!        Gathered   everybody's largest entries, to everybody (top_k)
//!        Split      each worker sums a chunk, encoded there and back (qsgd, sign, f16, bf16)
//!        LowRank    two all-reduces of factors (power_sgd)
//! ```
//!
//! With one worker nothing is sent, so nothing is lost either: all of them are `Whole`.

mod coded;
mod drawn;
mod gathered;
mod kinds;
mod learner;
mod low_rank;
mod options;
mod residual;
mod split;
mod sum;

pub use learner::{Learner, LearnerPlan};
pub use options::{Average, GradientCodec, Gradients};
pub use sum::{Round, Sum};
