//! The codecs, one a file.

mod identity;
mod random_columns;

pub use identity::Identity;
pub use random_columns::RandomColumns;
