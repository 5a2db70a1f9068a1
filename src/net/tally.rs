//! Numbers that codecs take down while they encode.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Some numbers, of which a codec writes down its own.
#[derive(Debug, Default)]
pub struct Tally(Mutex<Vec<f32>>);

impl Tally {
    /// So many zeros.
    pub(crate) fn new(len: usize) -> Self {
        Self(Mutex::new(vec![0.0; len]))
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    /// All of them.
    pub(crate) fn values(&self) -> Vec<f32> {
        self.lock().clone()
    }

    /// Writes some of them, from a place on.
    pub(crate) fn set(&self, start: usize, values: &[f32]) {
        let all = &mut self.lock()[start..];
        for (place, value) in all.iter_mut().zip(values) {
            *place = *value;
        }
    }

    /// Adds to some of them, from a place on.
    pub(crate) fn add(&self, start: usize, values: &[f32]) {
        let all = &mut self.lock()[start..];
        for (place, value) in all.iter_mut().zip(values) {
            *place += *value;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<f32>> {
        // Plain numbers, each written whole: a panic elsewhere leaves nothing half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
