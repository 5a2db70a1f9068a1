//! The sizes of one message-passing layer.

use super::{Init, ModelKind};

/// One message-passing layer: what it maps to what.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerSpec {
    /// Which layer.
    pub kind: ModelKind,
    /// Width of an input row.
    pub inputs: usize,
    /// Width of an output row.
    pub outputs: usize,
    /// Width between the two products of `gin`, and of what `sage-pool` takes the maximum of. The
    /// papers leave both open; here it is that of the model's hidden layers.
    pub inner: usize,
    /// Attention heads of `gat`.
    pub heads: usize,
    /// Whether heads that are averaged have a bias each.
    pub head_biases: bool,
    /// How attention heads become the output.
    pub merge: Merge,
    /// From what the first weights are drawn.
    pub init: Init,
    /// What their bounds are multiplied with.
    pub gain: f64,
    /// Biases of `sage`: one, or one for each product.
    pub biases: usize,
}

/// What a row of a layer is when neighbours read it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowForm {
    /// What the layer reads, `inputs` columns.
    #[default]
    Input,
    /// What the layer's first product makes of that, [`LayerSpec::transformed`] columns. All kinds
    /// of layers gather such rows, so it is the same layer.
    Product,
}

/// How attention heads become the output of a layer (Veličković et al., 2018, eq. 5 and 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// Side by side, as in hidden layers: each head has its share of the output's columns.
    Concatenate,
    /// Their mean, as in the last layer: each head is as wide as the output.
    Average,
}

impl LayerSpec {
    /// Attention heads; 0 for kinds without attention.
    pub const fn attention_heads(&self) -> usize {
        match self.kind {
            ModelKind::Gat => self.heads,
            ModelKind::Gcn | ModelKind::Sage | ModelKind::SagePool | ModelKind::Gin => 0,
        }
    }

    /// Columns of one attention head.
    pub const fn head_width(&self) -> usize {
        match self.merge {
            // Without a rest: a width that the heads do not divide is refused when the experiment
            // is read.
            Merge::Concatenate => self.outputs / self.heads,
            Merge::Average => self.outputs,
        }
    }

    /// Width of what the first product makes of an input row, and of what neighbours are gathered
    /// in after it.
    pub const fn transformed(&self) -> usize {
        match self.kind {
            ModelKind::Gcn | ModelKind::Sage => self.outputs,
            ModelKind::SagePool | ModelKind::Gin => self.inner,
            ModelKind::Gat => self.heads * self.head_width(),
        }
    }

    /// Columns of a row in this form.
    pub const fn width(&self, form: RowForm) -> usize {
        match form {
            RowForm::Input => self.inputs,
            RowForm::Product => self.transformed(),
        }
    }

    /// The form with fewer columns; the input where both have as many, as in DGL's `SAGEConv`
    /// (`lin_before_mp`).
    pub const fn narrower(&self) -> RowForm {
        if self.transformed() < self.inputs {
            RowForm::Product
        } else {
            RowForm::Input
        }
    }

    /// Width of the bias: of the output, or of all heads that have one each.
    pub(crate) const fn bias_width(&self) -> usize {
        match (self.kind, self.head_biases) {
            (ModelKind::Gat, true) => self.heads * self.head_width(),
            _ => self.outputs,
        }
    }

    /// Number of parameters.
    pub const fn parameters(&self) -> usize {
        let first = self.inputs * self.transformed();
        let (outputs, inner) = (self.outputs, self.inner);
        match self.kind {
            ModelKind::Gcn => first + outputs,
            ModelKind::Sage => 2 * first + self.biases * outputs,
            ModelKind::SagePool => first + inner + (self.inputs + inner) * outputs + outputs,
            ModelKind::Gat => first + 2 * self.transformed() + self.bias_width(),
            ModelKind::Gin => first + inner + inner * outputs + outputs,
        }
    }
}

/// Whether neighbours' rows of `width` columns are summed before a product that makes `columns` of
/// them: the order that gathers narrower rows. Among all neighbours, rows as wide are summed last:
/// sums would be kept for the way back, and part of a graph would round otherwise than the whole.
/// Where neighbours were `sampled` they are summed first, as in DGL's `SAGEConv`: a block has
/// several times as many inputs as outputs, and the product is one of outputs then.
pub(super) const fn sums_first(sampled: bool, width: usize, columns: usize) -> bool {
    width < columns || sampled && width == columns
}
