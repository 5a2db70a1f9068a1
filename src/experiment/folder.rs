//! The folder of an experiment's results: where it is, whose it is, and what of an earlier run has
//! to leave it.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::TRACES;
use super::archive::{CHECKPOINTS, FOLDER};
use super::config::Experiment;
use super::differences::of_what;
use super::error::Error;
use super::manifest::{MANIFEST, read_manifest};
use super::part::Share;
use super::rows::{ProjectionRow, Row};
use super::tables::{Tables, read_projection};

/// The default folder of an experiment's results, or of a part of them.
pub(crate) fn default_out(experiment: &Experiment, part: Option<Share>) -> PathBuf {
    let name = match part {
        Some(Share { number, of }) => format!("{}-{number}-of-{of}", experiment.name),
        None => experiment.name.clone(),
    };
    Path::new("results").join(name)
}

/// Whether results of the experiment `name` may go to `folder`: there is nothing, or results of an
/// experiment of that name.
pub(super) fn free(folder: &Path, name: &str) -> Result<(), Error> {
    can_be_made(folder)?;
    if !folder.join(MANIFEST).exists() {
        // Where a run was killed that had no results yet, its lock is left.
        return if folder.join(LOCK).exists() {
            Ok(())
        } else {
            is_empty(folder, "results")
        };
    }
    // What cannot be read counts as somebody else's, and is not written over.
    let manifest = read_manifest(folder).unwrap_or_default();
    match manifest["name"].as_str() {
        Some(other) if other == name => Ok(()),
        Some(other) => taken(
            folder,
            format!("holds results of the experiment \"{other}\", not of \"{name}\""),
        ),
        None => taken(folder, format!("holds a {MANIFEST} of something else")),
    }
}

/// Whether a projection of the experiment `name` may go to `folder`: there is nothing, or a
/// projection of an experiment of that name.
pub(crate) fn free_for_projection(folder: &Path, name: &str) -> Result<(), Error> {
    can_be_made(folder)?;
    if folder.join(MANIFEST).exists() {
        return taken(folder, "holds results of runs".to_owned());
    }
    let projected = format!("{}.parquet", ProjectionRow::TABLE);
    if !folder.join(&projected).exists() {
        return is_empty(folder, "projection");
    }
    // What cannot be read counts as somebody else's, and is not written over.
    match read_projection(folder).unwrap_or_default().first() {
        Some(row) if row.experiment == name => Ok(()),
        Some(ProjectionRow { experiment, .. }) => taken(
            folder,
            format!("holds a projection of the experiment \"{experiment}\", not of \"{name}\""),
        ),
        None => taken(folder, format!("holds a {projected} of something else")),
    }
}

fn taken(path: &Path, what: String) -> Result<(), Error> {
    Err(Error::Taken {
        path: path.to_owned(),
        what,
    })
}

/// Whether no file is where the folder should be. Making it would fail as well, but with the exit
/// code of a failed run; here the argument is wrong.
pub(crate) fn can_be_made(folder: &Path) -> Result<(), Error> {
    match folder.ancestors().find(|path| path.exists()) {
        Some(file) if !file.is_dir() => taken(
            folder,
            format!("{} is a file, not a folder", file.display()),
        ),
        _ => Ok(()),
    }
}

/// Whether a folder without `what` holds nothing: tables and figures have names that a person's own
/// files may have.
fn is_empty(folder: &Path, what: &str) -> Result<(), Error> {
    let mut entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    match entries.next() {
        Some(entry) => {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            taken(
                folder,
                format!("holds {name} and no {what}: what is there could be written over"),
            )
        }
        None => Ok(()),
    }
}

/// What tells other programs that results are being written to a folder.
const LOCK: &str = ".lock";

/// Makes `folder`, and keeps others from writing results to it as long as what is returned is
/// there.
///
/// # Errors
/// If somebody writes results there now, or the folder cannot be made.
pub(super) fn occupy(folder: &Path) -> Result<File, Error> {
    // Nothing is done yet, so that a folder that cannot be written to is a wrong argument.
    let unwritable = |error: std::io::Error| Error::Taken {
        path: folder.to_owned(),
        what: format!("cannot be written to ({error})"),
    };
    std::fs::create_dir_all(folder).map_err(unwritable)?;
    let lock = File::create(folder.join(LOCK)).map_err(unwritable)?;
    // The lock is the system's and ends with the process. The file alone would lock out all runs
    // after one that was killed.
    match lock.try_lock() {
        Err(TryLockError::WouldBlock) => Err(Error::Taken {
            path: folder.to_owned(),
            what: "another run is writing its results there".to_owned(),
        }),
        // A file system without locks keeps nobody out.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(lock),
    }
}

/// Removes `drawn`, which tells of other tables than those that are written from now on; and the
/// traces and checkpoints, unless the run is one that resumes. Returns what is to be said about the
/// results that the run replaces.
pub(super) fn make_way(
    folder: &Path,
    drawn: &[PathBuf],
    resume: bool,
) -> Result<Option<String>, Error> {
    drawn
        .iter()
        .filter(|path| path.exists())
        .try_for_each(|path| remove(path))?;
    if resume {
        return Ok(None);
    }
    let checkpoints = folder.join(CHECKPOINTS);
    if checkpoints.exists() {
        std::fs::remove_dir_all(&checkpoints).map_err(Error::folder(&checkpoints))?;
    }
    let traces = std::fs::read_dir(folder.join(TRACES)).into_iter().flatten();
    traces
        .filter_map(|entry| Some(entry.ok()?.path()))
        // Traces alone: whatever else lies there may be a person's.
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .try_for_each(|path| remove(&path))?;
    Ok(replaced(folder))
}

fn replaced(folder: &Path) -> Option<String> {
    let finished = finished(folder)?;
    Some(format!(
        "note: {} holds {finished}, which new ones replace now; --resume keeps those of the same \
         program, settings and data",
        folder.display()
    ))
}

/// What is to be said where a run resumes and keeps nothing of what is there; `manifest` is that of
/// the new run, and that of the old one still there.
pub(super) fn none_kept(folder: &Path, manifest: &Value) -> Option<String> {
    let finished = finished(folder)?;
    let of = read_manifest(folder).map_or_else(
        |_| "another program, other settings or other data".to_owned(),
        |before| of_what(&before, manifest),
    );
    Some(format!(
        "note: {} holds {finished}, of {of}: all are trained anew, and the old ones stay in {FOLDER}/",
        folder.display()
    ))
}

/// How many runs have finished there, if any.
fn finished(folder: &Path) -> Option<String> {
    let earlier = Tables::read_runs(folder).ok()?;
    match earlier.iter().filter(|run| run.is_ok()).count() {
        0 => None,
        1 => Some("1 finished run".to_owned()),
        runs => Some(format!("{runs} finished runs")),
    }
}

fn remove(path: &Path) -> Result<(), Error> {
    std::fs::remove_file(path).map_err(Error::folder(path))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn checkpoints_go_unless_the_run_resumes() {
        let folder = tempfile::tempdir().unwrap();
        let of_a_run = folder.path().join(CHECKPOINTS).join("0123");
        fs::create_dir_all(&of_a_run).unwrap();
        make_way(folder.path(), &[], true).unwrap();
        assert!(of_a_run.exists());
        make_way(folder.path(), &[], false).unwrap();
        assert!(!folder.path().join(CHECKPOINTS).exists());
    }

    #[test]
    fn results_go_where_nothing_of_others_is() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        assert!(free(&out, "x").is_ok());
        fs::create_dir(&out).unwrap();
        assert!(free(&out, "x").is_ok());
        fs::write(out.join("runs.csv"), "mine").unwrap();
        let said = free(&out, "x").unwrap_err().to_string();
        assert!(said.contains("holds runs.csv and no results"), "{said}");
        // A run that was killed before it had any.
        fs::write(out.join(LOCK), "").unwrap();
        assert!(free(&out, "x").is_ok());
        fs::write(out.join(MANIFEST), r#"{ "name": "y", "config": {} }"#).unwrap();
        assert!(free(&out, "y").is_ok());
        let said = free(&out, "x").unwrap_err().to_string();
        assert!(said.contains("of the experiment \"y\""), "{said}");
    }
}
