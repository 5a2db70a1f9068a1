//! The parameters that runs start from, as files that other programs read.

use std::io::Cursor;
use std::path::{Path, PathBuf};

use ndarray::{ArrayD, IxDyn};
use ndarray_npy::{NpzWriter, WriteNpzError};

use super::config::Experiment;
use super::error::Error;
use super::prepare::Preparation;
use super::trace::RunNames;
use crate::atomic;
use crate::model::NamedParameter;

/// Writes what every run of an experiment starts from to `out/<cell>-<seed>.npz`: a float32 array
/// for each parameter, under its name. Returns the files.
///
/// # Errors
/// If data or settings are wrong, or a file cannot be written.
pub(crate) fn write_weights(
    experiment: &Experiment,
    preparation: &mut Preparation<'_>,
    out: &Path,
) -> Result<Vec<PathBuf>, Error> {
    let (mut names, mut files) = (RunNames::default(), Vec::new());
    for cell in preparation.present(experiment)?.0 {
        for seed in experiment.all_seeds() {
            let initial = preparation.fit(cell, seed)?.training.initial();
            let path = out.join(names.name(&cell.name, seed, "npz"));
            let written = npz(&initial).and_then(|bytes| atomic::write_bytes(&path, &bytes));
            written.map_err(Error::folder(&path))?;
            files.push(path);
        }
    }
    Ok(files)
}

/// The arrays as one file.
fn npz(parameters: &[NamedParameter]) -> std::io::Result<Vec<u8>> {
    let broken = |error: WriteNpzError| std::io::Error::other(error);
    let mut file = Cursor::new(Vec::new());
    let mut writer = NpzWriter::new(&mut file);
    for NamedParameter {
        name,
        shape,
        values,
    } in parameters
    {
        let array = ArrayD::from_shape_vec(IxDyn(shape), values.clone());
        let array = array.map_err(std::io::Error::other)?;
        writer.add_array(name.as_str(), &array).map_err(broken)?;
    }
    writer.finish().map_err(broken)?;
    Ok(file.into_inner())
}
