//! First weights from a file, in place of drawn ones.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use burn::module::Module;
use sha2::{Digest, Sha256};

use super::{NamedParameter, named_parameters, with_parameters};
use crate::graph::{GraphError, all_arrays};

/// The weights that a run starts from where it does not draw them: those of another program, or of
/// an earlier training.
#[derive(Debug)]
pub struct GivenWeights {
    path: PathBuf,
    /// Sizes and values of each array.
    arrays: BTreeMap<String, (Vec<usize>, Vec<f32>)>,
}

impl GivenWeights {
    /// Reads an `.npz` file.
    ///
    /// # Errors
    /// If there is none, or an array has other values than numbers.
    pub(crate) fn read(path: &Path) -> Result<Self, GraphError> {
        let arrays = all_arrays(path)?.into_iter();
        Ok(Self {
            path: path.to_owned(),
            arrays: arrays
                .map(|(name, array)| (name, (array.shape, array.values)))
                .collect(),
        })
    }

    /// Checks that they are those of a training that starts from these parameters, by name and
    /// sizes.
    ///
    /// # Errors
    /// The first that is missing, of other sizes, not finite or too many.
    pub(crate) fn check(&self, parameters: &[NamedParameter]) -> Result<(), GraphError> {
        for NamedParameter { name, shape, .. } in parameters {
            let what = match self.arrays.get(name) {
                None => format!("has no array `{name}` of {}", sizes(shape)),
                Some((given, _)) if given != shape => {
                    let (given, shape) = (sizes(given), sizes(shape));
                    format!("array `{name}` has {given} values; the model has {shape}")
                }
                Some((_, values)) if !values.iter().all(|value| value.is_finite()) => {
                    format!("array `{name}` has values that are not finite")
                }
                Some(_) => continue,
            };
            return Err(self.error(&what));
        }
        let known = |name: &String| parameters.iter().any(|parameter| parameter.name == *name);
        match self.arrays.keys().find(|name| !known(name)) {
            Some(name) => {
                Err(self.error(&format!("has an array `{name}`, which the model has not")))
            }
            None => Ok(()),
        }
    }

    /// Hash of names, sizes and values; how the file is packed is no part of it.
    pub(crate) fn hash(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        let number = |hash: &mut Sha256, number: usize| hash.update((number as u64).to_le_bytes());
        for (name, (shape, values)) in &self.arrays {
            // The length before each part, so that none can be taken for another.
            number(&mut hash, name.len());
            hash.update(name);
            number(&mut hash, shape.len());
            for &size in shape {
                number(&mut hash, size);
            }
            for value in values {
                hash.update(value.to_le_bytes());
            }
        }
        hash.finalize().into()
    }

    fn error(&self, what: &str) -> GraphError {
        let hint =
            "without `weights`, `grapevine weights` writes a file with all arrays that are needed";
        GraphError::file(&self.path, format!("{what}; {hint}"))
    }

    /// The module with these parameters, which suit it; `lead` is before their names.
    pub(crate) fn put<M: Module>(&self, module: M, lead: &str) -> M {
        let drawn = named_parameters(&module).into_iter();
        let given = |parameter: NamedParameter| {
            let name = format!("{lead}{}", parameter.name);
            let values = self.arrays.get(&name).map(|(_, values)| values.clone());
            // Only of a file that does not suit, which is refused before anything is trained.
            let suits = |values: &Vec<f32>| values.len() == parameter.values.len();
            values.filter(suits).unwrap_or(parameter.values)
        };
        let values: Vec<f32> = drawn.flat_map(given).collect();
        with_parameters(module, &values)
    }
}

/// As in `1,433 × 16`.
fn sizes(shape: &[usize]) -> String {
    let sizes: Vec<String> = shape.iter().map(ToString::to_string).collect();
    sizes.join(" × ")
}
