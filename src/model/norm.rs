//! Layer normalisation.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};

use super::{Activation, Matrix, layer_norm};

/// Gain and shift of a layer normalisation; 1 and 0 at first.
#[derive(Module, Debug)]
pub struct Norm {
    /// `[width]`
    pub gain: Param<Tensor<1>>,
    /// `[width]`
    pub shift: Param<Tensor<1>>,
}

impl Norm {
    /// For rows of `width` columns.
    pub fn new(width: usize, device: &Device) -> Self {
        Self {
            gain: Param::from_tensor(Tensor::ones([width], device)),
            shift: Param::from_tensor(Tensor::zeros([width], device)),
        }
    }

    /// Normalised rows with an activation: `[rows, width]`, as the input.
    pub(crate) fn forward(&self, rows: Matrix, activation: Activation) -> Matrix {
        rows.map(|rows| layer_norm(rows, self.gain.val(), self.shift.val(), activation))
    }
}
