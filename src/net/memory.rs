//! What the codecs of one worker remember from message to message.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// State of one worker that its codecs share: a [`Codec`](super::Codec) takes `&self`, and what it
/// has to remember lies here.
#[derive(Debug, Default)]
pub(crate) struct CodecMemory<T>(Mutex<T>);

impl<T> CodecMemory<T> {
    /// Remembers this.
    pub(crate) const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// What is remembered, for as long as the guard lives; others wait.
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        // Codecs replace rows and numbers whole, so what a panic elsewhere left is consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
