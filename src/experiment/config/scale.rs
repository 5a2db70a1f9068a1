//! Sizes of an experiment: `[scale.smoke]` changes some of the file's values, and `--scale smoke` chooses it.

use toml::{Table, Value};

use super::decode::decode;
use super::error::{ConfigError, Place, Problem};
use super::locate::Document;
use super::overrides::key_path;
use super::path::KeyPath;

/// The table that holds the sizes.
pub(super) const SECTION: &str = "scale";

/// The file as it stands. No table of sizes may be called that.
pub const PAPER: &str = "paper";

/// Puts the values of one size into the document, and takes the sizes out of it.
///
/// `[scale.NAME]` holds keys as `--set` takes them, in quotes where they have dots: `"training.epochs" = 20`. The experiment
/// is called after its size, `compare-all-smoke`, so that results of several sizes lie side by side.
///
/// # Errors
/// There is no such size, or one of its keys leads nowhere.
pub(super) fn apply(document: &mut Document, scale: &str) -> Result<(), ConfigError> {
    let section = KeyPath::dotted(SECTION);
    let sizes: Table = match document.get(&section) {
        Some(value) => decode(document, &section, value)?,
        None => Table::new(),
    };
    if sizes.contains_key(PAPER) {
        let message = "is the file as it stands; choose another name";
        return Err(document.bad(&section.join(PAPER), message));
    }
    let mut changes = Vec::new();
    for (size, values) in &sizes {
        let path = section.join(size);
        let values: Table = decode(document, &path, values)?;
        for (key, value) in values {
            let written = path.join(&key);
            let target = key_path(&key).ok_or_else(|| {
                let message =
                    format!("`{key}` is not a key path; write it like \"training.epochs\"");
                document.error(&written, Problem::Other { message })
            })?;
            if size == scale {
                changes.push((target, value, document.place(&written)));
            }
        }
    }
    if scale != PAPER && !sizes.contains_key(scale) {
        return Err(ConfigError::Scale {
            scale: scale.to_owned(),
            known: sizes.keys().cloned().chain([PAPER.to_owned()]).collect(),
        });
    }
    document.remove(SECTION);
    for (path, value, place) in changes {
        document
            .set(&path, value, &place)
            .map_err(|message| document.error(&path, Problem::Other { message }))?;
    }
    if scale != PAPER {
        rename(document, scale);
    }
    Ok(())
}

/// Adds the size to the name; what is no name is left for whoever reads it to refuse.
fn rename(document: &mut Document, scale: &str) {
    let path = KeyPath::dotted("name");
    let name = document.get(&path).and_then(Value::as_str);
    if let Some(name) = name.map(|name| format!("{name}-{scale}")) {
        let place: Place = document.place(&path);
        // A key at the top level can always be set.
        let _ = document.set(&path, Value::String(name), &place);
    }
}
