//! What every worker tells all others at the end of an epoch.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::net::{Reduce, TrafficKind};
use crate::sim::{SimError, Worker};

/// Numbers of which every worker adds some, and all get the sums, in the order of their places.
#[derive(Debug, Default)]
pub struct Sums(Mutex<Vec<f32>>);

impl Sums {
    /// So many zeros.
    #[must_use]
    pub fn new(len: usize) -> Self {
        Self(Mutex::new(vec![0.0; len]))
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of them.
    #[must_use]
    pub fn values(&self) -> Vec<f32> {
        self.lock().clone()
    }

    /// Writes some of them, from a place on.
    pub fn set(&self, start: usize, values: &[f32]) {
        let all = &mut self.lock()[start..];
        for (place, value) in all.iter_mut().zip(values) {
            *place = *value;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<f32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts the sums over workers in the place of this worker's numbers.
    pub(super) fn add_up(&self, worker: &mut Worker) -> Result<(), SimError> {
        let mut values = self.values();
        worker.all_reduce(&mut values, Reduce::Sum, TrafficKind::Control)?;
        self.set(0, &values);
        Ok(())
    }
}
