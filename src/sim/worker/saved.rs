//! What parts of a program save of themselves, and how they get it back.

use std::collections::BTreeMap;

use burn::module::Module;

use super::{PendingExchange, Worker};
use crate::model::{parameter_count, parameters, with_parameters};
use crate::sim::SimError;
use crate::sim::checkpoint::{Loading, Saving};

/// A part of a worker's program that changes while it trains, and does not follow from the setting
/// and the epoch.
///
/// # Example
/// A sum over the epochs so far:
///
/// ```
/// use grapevine::sim::{Restoring, Saved, Saving, SimError};
///
/// struct Losses(f64);
///
/// impl Saved for Losses {
///     fn save(&self, into: &mut Saving) {
///         into.put(&self.0);
///     }
///     fn restore(&mut self, from: &mut Restoring<'_>) -> Result<(), SimError> {
///         self.0 = from.saved().take()?;
///         Ok(())
///     }
/// }
/// ```
pub trait Saved {
    /// Saves what has changed since it was made.
    fn save(&self, into: &mut Saving);

    /// Takes it back, in a part that has just been made.
    ///
    /// # Errors
    /// If something else was saved.
    fn restore(&mut self, from: &mut Restoring<'_>) -> Result<(), SimError>;
}

/// Where a part finds what it saved.
pub struct Restoring<'a> {
    saved: Loading<'a>,
    worker: &'a mut Worker,
    under_way: BTreeMap<u64, PendingExchange>,
}

impl<'a> Restoring<'a> {
    pub(super) const fn new(
        saved: Loading<'a>,
        worker: &'a mut Worker,
        under_way: BTreeMap<u64, PendingExchange>,
    ) -> Self {
        Self {
            saved,
            worker,
            under_way,
        }
    }

    /// What was saved, in the order in which it was.
    pub const fn saved(&mut self) -> &mut Loading<'a> {
        &mut self.saved
    }

    /// The worker. What it computes while it restores is neither timed nor counted, and nothing is
    /// to be sent.
    pub const fn worker(&mut self) -> &mut Worker {
        self.worker
    }

    /// A model with the parameters that were saved by [`Saving::model`].
    ///
    /// # Errors
    /// If a model of another size was.
    pub fn model<M: Module>(&mut self, model: M) -> Result<M, SimError> {
        let values = self.saved.floats()?;
        if values.len() != parameter_count(&model) {
            let what = "a checkpoint has a model of another size";
            return Err(SimError::Strategy(what.to_owned()));
        }
        Ok(with_parameters(model, &values))
    }

    /// The exchange of this number, which is under way.
    ///
    /// # Errors
    /// If it is not.
    pub fn exchange(&mut self, number: u64) -> Result<PendingExchange, SimError> {
        self.under_way.remove(&number).ok_or_else(|| {
            SimError::Strategy(format!(
                "a checkpoint waits for exchange {number}, which is not under way"
            ))
        })
    }

    /// That all was taken that was saved, and all that is under way.
    pub(super) fn end(self) -> Result<(), SimError> {
        self.saved.end()?;
        if let Some(number) = self.under_way.keys().next() {
            return Err(SimError::Strategy(format!(
                "nobody waits for exchange {number}, which a checkpoint has under way"
            )));
        }
        Ok(())
    }
}

impl Saving {
    /// Adds the parameters of a model.
    pub fn model<M: Module>(&mut self, model: &M) {
        self.floats(&parameters(model));
    }
}

impl<T: Saved> Saved for Option<T> {
    fn save(&self, into: &mut Saving) {
        if let Some(part) = self {
            part.save(into);
        }
    }

    fn restore(&mut self, from: &mut Restoring<'_>) -> Result<(), SimError> {
        self.as_mut().map_or(Ok(()), |part| part.restore(from))
    }
}

/// Nothing.
impl Saved for () {
    fn save(&self, _: &mut Saving) {}

    fn restore(&mut self, _: &mut Restoring<'_>) -> Result<(), SimError> {
        Ok(())
    }
}
