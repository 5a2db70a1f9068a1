//! First weights from a file, in place of drawn ones.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use burn::module::Module;

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
    pub fn read(path: &Path) -> Result<Self, GraphError> {
        let arrays = all_arrays(path)?.into_iter();
        Ok(Self {
            path: path.to_owned(),
            arrays: arrays
                .map(|(name, array)| (name, (array.shape, array.values)))
                .collect(),
        })
    }

    /// Whether they are those of a training that starts from so many parameters, by name and sizes.
    ///
    /// # Errors
    /// The first that is missing, of other sizes, not finite or too many.
    pub fn suit(&self, parameters: &[NamedParameter]) -> Result<(), GraphError> {
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

    fn error(&self, what: &str) -> GraphError {
        let hint =
            "`grapevine weights` writes a file with all arrays that this experiment starts from";
        GraphError::file(&self.path, format!("{what}; {hint}"))
    }

    /// The module with these parameters, which suit it; `lead` is before their names.
    pub fn put<M: Module>(&self, module: M, lead: &str) -> M {
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
