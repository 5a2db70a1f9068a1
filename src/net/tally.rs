//! Numbers that codecs take down while they encode.

use std::sync::Arc;

use super::memory::CodecMemory;

/// Some numbers, of which a codec writes down its own.
#[derive(Debug, Default)]
pub struct Tally(CodecMemory<Vec<f32>>);

impl Tally {
    /// So many zeros.
    pub(crate) fn new(len: usize) -> Self {
        Self(CodecMemory::new(vec![0.0; len]))
    }

    /// These.
    pub(crate) fn of(values: Vec<f32>) -> Arc<Self> {
        Arc::new(Self(CodecMemory::new(values)))
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.lock().len()
    }

    /// All of them.
    pub(crate) fn values(&self) -> Vec<f32> {
        self.0.lock().clone()
    }

    /// Writes some of them, from a place on.
    pub(crate) fn set(&self, start: usize, values: &[f32]) {
        let all = &mut self.0.lock()[start..];
        for (place, value) in all.iter_mut().zip(values) {
            *place = *value;
        }
    }

    /// Adds to some of them, from a place on.
    pub(crate) fn add(&self, start: usize, values: &[f32]) {
        let all = &mut self.0.lock()[start..];
        for (place, value) in all.iter_mut().zip(values) {
            *place += *value;
        }
    }
}
