//! Operations and bytes of a layer, for modelled compute time.

use super::{Block, Input, ModelKind, ModelSpec};

/// Arithmetic and memory traffic of a piece of work.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Floating-point operations; a multiply-add is two.
    pub operations: f64,
    /// Bytes read and written, each once per use.
    pub bytes: f64,
}

impl std::ops::Add for Work {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            operations: self.operations + other.operations,
            bytes: self.bytes + other.bytes,
        }
    }
}

impl std::ops::Mul<f64> for Work {
    type Output = Self;
    fn mul(self, times: f64) -> Self {
        Self {
            operations: self.operations * times,
            bytes: self.bytes * times,
        }
    }
}

impl Work {
    /// `[rows, inner] × [inner, columns]` of which `stored` values of the left side are there.
    #[must_use]
    pub fn product(rows: usize, stored: usize, inner: usize, columns: usize) -> Self {
        Self {
            operations: 2.0 * stored as f64 * columns as f64,
            bytes: 4.0 * (stored as f64 + (inner * columns) as f64 + (rows * columns) as f64),
        }
    }

    /// Aggregation of rows of `width` over `entries` edges into `rows` rows.
    #[must_use]
    pub fn aggregation(rows: usize, entries: usize, width: usize) -> Self {
        Self {
            operations: 2.0 * entries as f64 * width as f64,
            bytes: 4.0 * (entries as f64 * (width + 2) as f64 + (rows * width) as f64),
        }
    }

    /// One pass over `values` numbers that are read and written.
    #[must_use]
    pub fn pass(values: usize) -> Self {
        Self {
            operations: values as f64,
            bytes: 8.0 * values as f64,
        }
    }

    /// Forward pass of a layer over a block.
    #[must_use]
    pub fn layer(spec: &ModelSpec, layer: usize, block: &Block, input: &Input) -> Self {
        let (inner, columns) = (spec.widths[layer], spec.widths[layer + 1]);
        let (outputs, inputs) = (block.outputs(), block.inputs());
        let stored = input.stored();
        let aggregate_first = matches!(input, Input::Dense(_)) && inner < columns;
        let (rows, width) = if aggregate_first {
            (outputs, inner)
        } else {
            (inputs, columns)
        };
        let stored_in_product = if aggregate_first {
            outputs * inner
        } else {
            stored
        };
        let mut work = Self::product(rows, stored_in_product, inner, columns)
            + Self::aggregation(outputs, block.matrix.entries(), width)
            + Self::pass(outputs * columns) * 2.0
            + Self::pass(stored);
        if spec.kind == ModelKind::Sage {
            let own = stored * outputs / inputs.max(1);
            work = work + Self::product(outputs, own, inner, columns);
        }
        work
    }
}
