//! How a strategy makes itself known: its name, its options, and how these are read.

use serde::de::DeserializeOwned;

use super::{OptionError, Strategy, StrategyInfo};

/// How a strategy is read from its options, a table without `kind` and `label`.
pub(crate) type Read = fn(&toml::Table) -> Result<Box<dyn Strategy>, OptionError>;

/// A strategy by name.
#[derive(Clone, Copy)]
pub struct Registration {
    /// What it is.
    pub info: StrategyInfo,
    /// How its options are read.
    pub read: Read,
}

/// Options as a struct; serde's message says what is wrong with them.
///
/// # Errors
/// If a key is unknown or a value does not fit.
pub fn options<T: DeserializeOwned>(table: &toml::Table) -> Result<T, OptionError> {
    serde_path_to_error::deserialize(toml::Value::Table(table.clone())).map_err(|error| {
        let path = error.path().to_string();
        OptionError {
            key: (path != ".").then_some(path),
            // The message alone: the error's text goes on with the key, which is not one of the
            // possible ones.
            message: error.inner().message().trim().to_owned(),
        }
    })
}
