//! How rows travel: in which form, through which codec, and what its draws are keyed by.

use std::sync::Arc;

use crate::model::RowForm;
use crate::net::{Bytes, Codec, CodecKey, Identity, Way};
use crate::sim::SimError;

/// The wire of the rows of a layer in a round, which a checkpoint has by these numbers alone.
pub type WireAt<'a> = &'a mut dyn FnMut(u64, usize) -> Result<Wire, SimError>;

/// How the rows of one layer travel in one exchange.
#[derive(Clone)]
pub struct Wire {
    /// Encodes rows, and on the way back the gradient of the same entries.
    pub codec: Arc<dyn Codec>,
    /// From which both ends derive what the codec draws.
    pub key: CodecKey,
    /// Whether rows travel before or after the layer's product; their gradients come back so.
    pub form: RowForm,
}

impl Wire {
    /// A wire that changes nothing, for the input of a layer.
    pub fn plain() -> Self {
        Self {
            codec: Arc::new(Identity),
            key: CodecKey::new(0, 0, 0),
            form: RowForm::Input,
        }
    }

    /// The same wire for rows in another form.
    pub fn of(self, form: RowForm) -> Self {
        Self { form, ..self }
    }

    /// Whether the product of a layer's input travels, and not the input.
    pub fn takes_product(&self) -> bool {
        self.form == RowForm::Product
    }

    /// The round of its draws: the epoch, with all training nodes at once; 0 of a plain one, which
    /// is the same in all.
    pub(super) const fn round(&self) -> u64 {
        self.key.round
    }

    /// This wire for the message that takes rows of `owner` to `reader`, or their gradient back.
    pub(super) fn between(&self, owner: usize, reader: usize, way: Way) -> Self {
        Self {
            codec: Arc::clone(&self.codec),
            key: self.key.between(owner, reader, way),
            form: self.form,
        }
    }

    /// The payload of the message that takes `rows` of so many columns from `owner` to `reader`, or
    /// their gradient back.
    pub fn bytes(
        &self,
        (owner, reader, way): (usize, usize, Way),
        rows: usize,
        width: usize,
    ) -> Bytes {
        let key = self.key.between(owner, reader, way);
        self.codec.message_bytes(rows, width, key)
    }

    /// The wire of an epoch in one of its `steps`, whose draws are its own.
    pub fn at_step(&self, steps: usize, step: usize) -> Self {
        let mut wire = self.clone();
        wire.key.round = self.key.round * steps as u64 + step as u64;
        wire
    }
}
