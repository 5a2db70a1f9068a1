//! The codecs, one a file.

mod bits;
mod buckets;
mod compose;
mod difference;
mod draw;
mod first_columns;
mod identity;
mod measured;
mod qsgd;
mod quantise;
mod quantise_rows;
mod random_columns;
mod random_entries;
mod scale;
mod short;
mod signs;
#[cfg(test)]
mod tests;
mod top_k;

pub(crate) use buckets::Buckets;
pub use compose::Compose;
pub use difference::{Difference, DifferenceMemory, HeldRows};
pub use first_columns::FirstColumns;
pub use identity::Identity;
pub use measured::{CodingError, Gauge};
pub(crate) use measured::{CodingErrors, Watched, Watcher};
pub use qsgd::Qsgd;
pub use quantise::{Bits, Quantise};
pub(crate) use quantise_rows::ROW_BITS;
pub use quantise_rows::{QuantiseRows, RowBits};
pub use random_columns::RandomColumns;
pub use random_entries::RandomEntries;
pub use short::{BF16, F16, Short};
pub use signs::Signs;
pub use top_k::TopK;
