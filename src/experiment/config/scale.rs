//! Sizes of an experiment: `[scale.smoke]` changes some of the file's values, and `--scale smoke`
//! chooses it.

use toml::{Table, Value};

use super::decode::decode;
use super::error::{ConfigError, Place};
use super::locate::Document;
use super::overrides::key_path;
use super::path::KeyPath;

/// The table that holds the sizes.
pub(super) const SECTION: &str = "scale";

/// Sections of which a size changes single keys.
const WHOLE: [&str; 6] = [
    "model",
    "optimizer",
    "training",
    "partition",
    "device",
    "compute",
];

/// The file as it stands. No table of sizes may be called that.
pub(crate) const PAPER: &str = "paper";

/// The names of the sizes in the document.
pub(super) fn names(document: &Document) -> Vec<String> {
    let sizes = document.get(&KeyPath::dotted(SECTION));
    let sizes = sizes.and_then(Value::as_table);
    sizes.map_or(Vec::new(), |sizes| sizes.keys().cloned().collect())
}

/// Puts the values of one size into the document, and takes the sizes out of it.
///
/// `[scale.NAME]` holds keys as `--set` takes them, in quotes where they have dots:
/// `"training.epochs" = 20`. The experiment is called after its size, `compare-all-smoke`, so that
/// results of several sizes lie side by side.
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
    // Of all sizes, not of the chosen one alone: a slip in another is told before somebody waits
    // for it.
    for (size, values) in &sizes {
        let path = section.join(size);
        let values: Table = decode(document, &path, values)?;
        for (key, value) in values {
            let written = path.join(&key);
            let target = key_path(&key).ok_or_else(|| {
                let message =
                    format!("`{key}` is not a key path; write it like \"training.epochs\"");
                document.refuse(&written, message)
            })?;
            if WHOLE.contains(&key.as_str()) {
                let inner = value.as_table().and_then(|table| table.keys().next());
                let inner = inner.map_or("key", String::as_str);
                let message = format!(
                    "would replace the whole section; write its keys in quotes, like \"{key}.{inner}\""
                );
                return Err(document.bad(&written, message));
            }
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
            .map_err(|message| document.refuse(&path, message))?;
    }
    if scale != PAPER {
        rename(document, scale);
    }
    Ok(())
}

/// Refuses sizes that were put in after one was chosen: they would do nothing.
///
/// # Errors
/// If there are any.
pub(super) fn none_left(document: &Document) -> Result<(), ConfigError> {
    let section = KeyPath::dotted(SECTION);
    if document.get(&section).is_none() {
        return Ok(());
    }
    let message = "a size cannot be changed by --set or by a size; change what it stands for, like training.epochs";
    Err(document.refuse(&section, message))
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
