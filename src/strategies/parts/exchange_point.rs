//! Where the exchange of a layer stands: before or after its product.
//!
//! ```text
//!   input      x ── exchange ── gather ── · W           d_in columns cross
//!   product    x ── · W ── exchange ── gather            d_out columns cross
//! ```
//!
//! Both are the same layer, for a sum of products is the product of a sum. Gradients come back in
//! the columns in which the rows went.

use serde::Deserialize;

use crate::model::{LayerSpec, RowForm};
use crate::sim::Setting;

/// Where the exchange of every layer stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExchangePoint {
    /// Before the product.
    #[default]
    Input,
    /// After the product.
    Product,
    /// Where a layer's rows have fewer columns; before the product where they have as many.
    Narrower,
}

impl ExchangePoint {
    /// In which form the rows of a layer cross.
    const fn form(self, layer: &LayerSpec) -> RowForm {
        match self {
            Self::Input => RowForm::Input,
            Self::Product => RowForm::Product,
            Self::Narrower => layer.narrower(),
        }
    }

    /// In which form the rows of each layer cross in a setting. Features that are kept cross once,
    /// as they are, which no product of theirs could: it is another one in every epoch. One worker
    /// sends nothing, and so trains its layers in one piece, to the bit as one device does.
    pub fn forms(self, setting: &Setting, keeps_features: bool) -> Vec<RowForm> {
        let form = |layer| {
            if setting.workers() == 1 || (layer == 0 && keeps_features) {
                return RowForm::Input;
            }
            self.form(&setting.model.layer(layer))
        };
        (0..setting.model.layers()).map(form).collect()
    }
}
