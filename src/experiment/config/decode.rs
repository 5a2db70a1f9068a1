//! From TOML values to the structs of the lower floors, with errors that name the key.
//!
//! The structs and their rules (unknown keys, types, names) are serde's; what serde says about a
//! wrong value is taken apart here and put together again as a [`Problem`] at a place.

use serde::de::DeserializeOwned;
use serde_path_to_error::Segment;
use toml::{Table, Value};

use super::error::{ConfigError, Problem};
use super::locate::Document;
use super::path::KeyPath;

/// Reads the value that stands at `path` in the document.
///
/// # Errors
/// The first key that is unknown, missing, or has a value of another type, or that the type of its
/// value refuses.
pub(super) fn decode<T: DeserializeOwned>(
    document: &Document,
    path: &KeyPath,
    value: &Value,
) -> Result<T, ConfigError> {
    serde_path_to_error::deserialize(value.clone()).map_err(|error| {
        let mut at = path.clone();
        for segment in error.path() {
            match segment {
                Segment::Seq { index } => at = at.join(&index.to_string()),
                Segment::Map { key } => at = at.join(key),
                // A variant is no key of the file.
                Segment::Enum { .. } | Segment::Unknown => {}
            }
        }
        wrong(document, &at, error.inner().message(), "is wrong: ")
    })
}

/// Reads a table whose key `kind` says which other keys it has.
///
/// serde buffers such a table and forgets which of its keys a wrong value had. The key is found
/// again by trying each of them with nothing but `kind` beside it.
///
/// # Errors
/// As [`decode`].
pub(super) fn decode_tagged<T: DeserializeOwned>(
    document: &Document,
    path: &KeyPath,
    value: &Value,
) -> Result<T, ConfigError> {
    let error = match T::deserialize(value.clone()) {
        Ok(read) => return Ok(read),
        Err(error) => error,
    };
    let message = error.message();
    let same = |key: &str, table: &Table| {
        let probe: Table = table
            .iter()
            .filter(|(name, _)| *name == "kind" || *name == key)
            .map(owned)
            .collect();
        T::deserialize(Value::Table(probe)).is_err_and(|probed| probed.message() == message)
    };
    // A message about a field names that key by itself; there is nothing to find.
    let at = match value {
        _ if message.starts_with("unknown variant") => path.join("kind"),
        Value::Table(table) if !message.contains(" field `") => table
            .keys()
            .find(|key| same(key, table))
            .map_or_else(|| path.clone(), |key| path.join(key)),
        _ => path.clone(),
    };
    let mut error = wrong(document, &at, message, "is wrong: ");
    // serde does not count `kind` among the keys of such a table.
    if let ConfigError::Invalid { problem, .. } = &mut error
        && let Problem::UnknownKey { known, .. } = problem.as_mut()
    {
        known.insert(0, "kind".to_owned());
    }
    Err(error)
}

fn owned((key, value): (&String, &Value)) -> (String, Value) {
    (key.clone(), value.clone())
}

/// The located error for what serde said about the value at `path`. What is no message of serde's
/// own comes from the type of the value (units of a bandwidth, say) and is said after the key and
/// `lead`.
pub(super) fn wrong(document: &Document, path: &KeyPath, message: &str, lead: &str) -> ConfigError {
    let key = path.key();
    let message = message.trim_end();
    match problem(key, message) {
        None => document.bad(path, format!("{lead}{message}")),
        // The path leads to the table around an unknown or missing key, or to the key itself.
        Some(problem @ (Problem::UnknownKey { .. } | Problem::MissingKey { .. })) => {
            let inner = quoted(message).into_iter().next().unwrap_or_default();
            let inside = if path.segments().last() == Some(&inner) {
                path.clone()
            } else {
                path.join(&inner)
            };
            document.error(&inside, problem)
        }
        // serde calls whatever stands in the place of a name a "unit variant".
        Some(Problem::WrongType {
            key,
            expected,
            found,
        }) if found == "unit variant" => {
            let found = document.get(path).map_or(found, Value::to_string);
            document.error(
                path,
                Problem::WrongType {
                    key,
                    expected,
                    found,
                },
            )
        }
        Some(problem) => document.error(path, problem),
    }
}

/// Takes one of serde's messages apart; `None` if it is not one.
fn problem(key: &str, message: &str) -> Option<Problem> {
    let key = key.to_owned();
    let mut names = quoted(message).into_iter();
    if message.starts_with("unknown field") {
        return Some(Problem::UnknownKey {
            key: names.next()?,
            known: names.collect(),
        });
    }
    if message.starts_with("unknown variant") {
        return Some(Problem::UnknownValue {
            key,
            value: names.next()?,
            known: names.collect(),
        });
    }
    if message.starts_with("missing field") {
        return Some(Problem::MissingKey { key: names.next()? });
    }
    let mismatch = |lead: &str| message.strip_prefix(lead)?.rsplit_once(", expected ");
    let (found, expected) = mismatch("invalid type: ")
        .or_else(|| mismatch("invalid value: "))
        .map(|(found, expected)| (found_in_words(found), expected))
        .or_else(|| {
            let (length, expected) = mismatch("invalid length ")?;
            Some((format!("a list of {length}"), expected))
        })?;
    Some(Problem::WrongType {
        key,
        expected: expected_in_words(expected),
        found,
    })
}

/// Everything between backticks.
fn quoted(message: &str) -> Vec<String> {
    message
        .split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

fn found_in_words(found: &str) -> String {
    let value = quoted(found).into_iter().next();
    match (found.split_whitespace().next(), value) {
        (Some("string"), _) => format!("the text{}", found.trim_start_matches("string")),
        (Some("integer" | "floating" | "boolean"), Some(value)) => value,
        (Some("sequence"), _) => "a list".to_owned(),
        (Some("map"), _) => "a table".to_owned(),
        _ => found.to_owned(),
    }
}

fn expected_in_words(expected: &str) -> String {
    let words = match expected {
        "f64" | "f32" => "a number",
        "usize" | "u64" | "u32" | "u16" | "u8" => "a whole number that is not negative",
        "a boolean" => "true or false",
        "a string" | "path string" | "string only" | "variant identifier" => "a text in quotes",
        "a sequence" => "a list",
        "a map" => "a table",
        other if other.starts_with("struct ") || other.contains("tagged enum") => "a table",
        other if other.starts_with("an array of length") => {
            return other.replace("an array of length", "a list of");
        }
        other => return other.to_owned(),
    };
    words.to_owned()
}
