//! What codecs left out and are given again.

/// Values to send, and what of earlier ones was not sent: error feedback (Seide, Fu, Droppo, Li and
/// Yu, *1-Bit Stochastic Gradient Descent*, INTERSPEECH 2014; Karimireddy et al., ICML 2019).
#[derive(Debug, Default)]
pub(super) struct Residual {
    /// Whether anything is kept.
    kept: bool,
    values: Vec<f32>,
}

impl Residual {
    /// Nothing yet; with `kept` false there never is.
    pub(super) const fn new(kept: bool) -> Self {
        Self {
            kept,
            values: Vec::new(),
        }
    }

    /// How many of so many values are kept, once something was left out.
    pub(super) const fn kept(&self, len: usize) -> usize {
        if self.kept { len } else { 0 }
    }

    /// Adds what was left out before.
    pub(super) fn add_to(&self, values: &mut [f32]) {
        // Nothing is there at first, and then nothing is added.
        for (value, left) in values.iter_mut().zip(&self.values) {
            *value += left;
        }
    }

    /// Keeps what of `values` is not in `sent`, from a place on.
    pub(super) fn keep(&mut self, place: usize, len: usize, values: &[f32], sent: &[f32]) {
        if !self.kept {
            return;
        }
        self.values.resize(len, 0.0);
        let left = self.values[place..].iter_mut();
        for (left, (value, sent)) in left.zip(values.iter().zip(sent)) {
            *left = value - sent;
        }
    }

    /// Takes what sums before this one left out; all of it is in the first list.
    pub(super) fn remember(&mut self, memory: Vec<Vec<f32>>) {
        self.values = memory.into_iter().next().unwrap_or_default();
    }

    /// What was left out.
    pub(super) fn values(&self) -> &[f32] {
        &self.values
    }
}
