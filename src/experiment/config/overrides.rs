//! `--set key.path=value`: one value of the experiment file changed on the command line.

use toml::{Table, Value};

use super::error::{ConfigError, Place};
use super::locate::Document;
use super::path::KeyPath;

/// Puts the entries into the document, in order, and returns their paths with what was written.
///
/// The key is a TOML key: parts with dots in them are quoted (`sweep."partition.workers"=[2, 4]`);
/// entries of lists are numbered from 0 (`strategy.1.schedule.from=64`). The value is a TOML value;
/// what is not one is taken as text, so that `dataset.name=cora` needs no quotes.
///
/// # Errors
/// [`ConfigError::Set`], if an entry has no `=` or no key, or its path leads nowhere.
pub(super) fn apply(
    document: &mut Document,
    sets: &[String],
) -> Result<Vec<(KeyPath, String)>, ConfigError> {
    let mut paths = Vec::new();
    for entry in sets {
        let wrong = |message: String| ConfigError::Set {
            entry: entry.clone(),
            message,
        };
        let (key, value) = entry
            .split_once('=')
            .ok_or_else(|| wrong("write it as key.path=value".to_owned()))?;
        let path = key_path(key).ok_or_else(|| {
            wrong(format!(
                "`{key}` is not a key path; write it like training.epochs=10"
            ))
        })?;
        let place = Place::Set {
            entry: entry.clone(),
        };
        let value = value_of(value).map_err(wrong)?;
        document.set(&path, value, &place).map_err(wrong)?;
        paths.push((path, entry.clone()));
    }
    Ok(paths)
}

/// Reads a key path by letting TOML read `path = 0`.
pub(super) fn key_path(key: &str) -> Option<KeyPath> {
    // A second line would be a second key of the text that TOML reads.
    if key.contains('\n') {
        return None;
    }
    let mut table: Table = toml::from_str(&format!("{key} = 0")).ok()?;
    let mut segments = Vec::new();
    loop {
        let (name, value) = table.into_iter().next()?;
        segments.push(name);
        match value {
            Value::Table(inner) => table = inner,
            _ => return Some(KeyPath::new(segments)),
        }
    }
}

/// A value as TOML writes it; text that is none needs no quotes.
///
/// # Errors
/// What TOML says of a list, a table or a quoted text that it cannot read.
pub(crate) fn value_of(text: &str) -> Result<Value, String> {
    let text = text.trim();
    let read = toml::from_str::<Table>(&format!("value = {text}"));
    match read {
        // A value with a line break may read as two keys. Then it is text.
        Ok(mut table) if table.len() == 1 => Ok(table
            .remove("value")
            .unwrap_or_else(|| Value::String(text.to_owned()))),
        Err(error) if text.starts_with(['{', '[', '"']) => {
            let reason = error.message().lines().collect::<Vec<_>>().join(", ");
            Err(format!("`{text}` is not a value of TOML: {reason}"))
        }
        Err(_)
            if text.len() > 18
                && text
                    .trim_start_matches('-')
                    .bytes()
                    .all(|b| b.is_ascii_digit()) =>
        {
            Err(format!(
                "`{text}` is too large a number; at most {} is read",
                i64::MAX
            ))
        }
        _ => Ok(Value::String(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(entry: &str) -> Result<Document, String> {
        let mut document = Document::parse("[[strategy]]\nkind = 'full'\n", "x.toml").unwrap();
        apply(&mut document, &[entry.to_owned()]).map_err(|error| error.to_string())?;
        Ok(document)
    }

    #[test]
    fn values_are_toml_and_otherwise_text() {
        let at = |entry: &str, path: &str| set(entry).unwrap().get(&KeyPath::dotted(path)).cloned();
        assert_eq!(at("a.b=3", "a.b"), Some(Value::Integer(3)));
        assert_eq!(at("a.b = 5e-4", "a.b"), Some(Value::Float(5e-4)));
        assert_eq!(at("a=cora", "a"), Some(Value::String("cora".into())));
        assert_eq!(at("a=x=y", "a"), Some(Value::String("x=y".into())));
        assert_eq!(at("a=1\nb=2", "a"), Some(Value::String("1\nb=2".into())));
        assert_eq!(at("a={ from = 8 }", "a.from"), Some(Value::Integer(8)));
        for broken in ["a={ from = 8", "a=[1, 2", "a={ rate = 1e400 }", "a=\"cora"] {
            let refused = set(broken).unwrap_err();
            assert!(refused.contains("is not a value of TOML: "), "{refused}");
        }
        let large = set("a=99999999999999999999").unwrap_err();
        assert!(large.contains("is too large a number"), "{large}");
        assert_eq!(
            at("strategy.0.kind=varco", "strategy.0.kind"),
            Some("varco".into())
        );
    }

    #[test]
    fn quoted_parts_of_a_key_may_hold_dots() {
        let document = set("sweep.\"partition.workers\"=[2, 4]").unwrap();
        assert!(
            document
                .get(&KeyPath::dotted("sweep").join("partition.workers"))
                .is_some()
        );
    }

    #[test]
    fn entries_that_are_no_override_say_how_to_write_one() {
        for (entry, message) in [
            ("epochs", "--set epochs: write it as key.path=value"),
            (
                "=3",
                "--set =3: `` is not a key path; write it like training.epochs=10",
            ),
            (
                "a b=3",
                "--set a b=3: `a b` is not a key path; write it like training.epochs=10",
            ),
            (
                "strategy.one.kind=x",
                "--set strategy.one.kind=x: `strategy` is a list of 1, numbered from 0: it has \
                 no entry `one`",
            ),
        ] {
            assert_eq!(set(entry).unwrap_err(), message);
        }
    }
}
