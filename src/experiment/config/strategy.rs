//! The `[[strategy]]` entries and what they are called in tables and figures.

use toml::{Table, Value};

use super::Vocabulary;
use super::decode::{decode, wrong};
use super::error::{ConfigError, Problem, elsewhere};
use super::homes::SECTIONS;
use super::locate::Document;
use super::path::KeyPath;

/// One `[[strategy]]`, with options that the strategy itself has accepted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StrategyEntry {
    /// What it is called in tables and figures, unique in the experiment: the `label` key if there
    /// is one, else the kind, with the options that tell it from other entries of the kind:
    /// `fixed(ratio=8)`.
    pub label: String,
    /// The name in the registry of strategies.
    pub kind: String,
    /// The entry's `with`: settings that differ from the experiment's for this entry alone, by
    /// their key with dots (`partition.workers`).
    pub with: Table,
    /// All other keys of the entry.
    pub options: Table,
}

/// Reads and checks all entries.
pub(super) fn entries(
    document: &Document,
    vocabulary: &Vocabulary<'_>,
) -> Result<Vec<StrategyEntry>, ConfigError> {
    let top = KeyPath::dotted("strategy");
    let tables: Vec<Table> = document
        .get(&top)
        .map_or(Ok(Vec::new()), |value| decode(document, &top, value))?;
    if tables.is_empty() {
        let what = "no strategy to run; add a [[strategy]] with a `kind`";
        return Err(document.refuse(&top, what));
    }
    let mut given = Vec::new();
    for (index, mut options) in tables.into_iter().enumerate() {
        let path = top.join(&index.to_string());
        let mut text = |key: &str| {
            let value = options.remove(key)?;
            Some(decode::<String>(document, &path.join(key), &value))
        };
        let label = text("label").transpose()?;
        let kind = text("kind").transpose()?.ok_or_else(|| {
            let key = "kind".to_owned();
            document.error(&path.join("kind"), Problem::MissingKey { key })
        })?;
        let with = with(document, &path, options.remove("with"))?;
        // Label, kind and `with` are taken out by now. The rest is the strategy's own.
        accept(document, vocabulary, &path, &kind, &options)?;
        given.push(Given {
            label,
            kind,
            with,
            options,
        });
    }
    let entries = label_all(given);
    for (index, entry) in entries.iter().enumerate() {
        let path = top.join(&index.to_string()).join("label");
        check_label(document, &path, entry, vocabulary)?;
        // Readers hardly see a difference of case.
        let same =
            |earlier: &&StrategyEntry| earlier.label.to_lowercase() == entry.label.to_lowercase();
        if let Some(earlier) = entries[..index].iter().find(same) {
            let message = format!(
                "two strategies would be called \"{}\"; give this one a `label` of its own",
                earlier.label
            );
            return Err(document.refuse(&path, message));
        }
    }
    Ok(entries)
}

/// Refuses a label that tables cannot show, or that readers would take for another strategy.
fn check_label(
    document: &Document,
    path: &KeyPath,
    entry: &StrategyEntry,
    vocabulary: &Vocabulary<'_>,
) -> Result<(), ConfigError> {
    let label = entry.label.as_str();
    if label.trim().is_empty() {
        return Err(document.bad(path, "must not be empty"));
    }
    if label.trim() != label || label.chars().any(char::is_control) {
        let what = "must not begin or end with a blank, nor have a line break or another control character";
        return Err(document.bad(path, what));
    }
    let another =
        |name: &&&str| name.to_lowercase() == label.to_lowercase() && **name != entry.kind;
    if let Some(name) = vocabulary.registry.names().iter().find(another) {
        let message = format!(
            "`label` \"{label}\" is the name of a strategy, `{name}`, and this one is `{}`; choose another label",
            entry.kind
        );
        return Err(document.refuse(path, message));
    }
    Ok(())
}

/// One entry as it is written.
struct Given {
    label: Option<String>,
    kind: String,
    with: Table,
    options: Table,
}

impl Given {
    /// Everything that can tell it from another entry of its kind.
    fn differences(&self) -> Vec<(String, String)> {
        [flat(&self.with), flat(&self.options)].concat()
    }
}

/// Checks that the `with` of an entry, or of a section of a sweep, has keys of the sections of
/// [`Settings`]; what they hold is checked with the cell.
pub(super) fn with(
    document: &Document,
    entry: &KeyPath,
    value: Option<Value>,
) -> Result<Table, ConfigError> {
    let path = entry.join("with");
    let Some(value) = value else {
        return Ok(Table::new());
    };
    let table: Table = decode(document, &path, &value)?;
    for key in table.keys() {
        let section = key.split('.').next().unwrap_or_default();
        if !SECTIONS.contains(&section) || section == key {
            let message = format!(
                "`{key}` is not a whole key of a section, in quotes, like \"partition.workers\" = 1"
            );
            return Err(document.refuse(&path.join(key), message));
        }
    }
    Ok(table)
}

fn accept(
    document: &Document,
    vocabulary: &Vocabulary<'_>,
    path: &KeyPath,
    kind: &str,
    options: &Table,
) -> Result<(), ConfigError> {
    let registered = vocabulary.registry.all().iter().map(|one| &one.info);
    let Some(info) = registered.clone().find(|info| info.name == kind) else {
        let known = registered.map(|info| info.name);
        return Err(document.unknown(&path.join("kind"), kind, known));
    };
    let read = vocabulary.registry.read(kind, options);
    read.map(drop).map_err(|error| {
        let at = error
            .key
            .iter()
            .flat_map(|key| key.split('.'))
            .fold(path.clone(), |path, segment| path.join(segment));
        // A message of serde's about a field names the field. Any other without a key is about all
        // options together.
        if error.key.is_none() && !error.message.contains(" field `") {
            let message = format!("the options of {kind}: {}", error.message);
            return document.refuse(&at.join("*"), message);
        }
        let option = error.key.as_ref().and_then(|key| key.split('.').next());
        let known = info.options.iter().map(|option| option.name);
        if option.is_none_or(|option| known.clone().any(|name| name == option)) {
            let error = wrong(document, &at, &error.message, "");
            return with_hint(error, options, vocabulary);
        }
        let (key, known) = (at.key().to_owned(), known.map(str::to_owned).collect());
        let error = document.error(&at, Problem::UnknownKey { key, known });
        with_hint(error, options, vocabulary)
    })
}

/// The error with how the option is written, or with the strategies that have it.
fn with_hint(mut error: ConfigError, options: &Table, vocabulary: &Vocabulary<'_>) -> ConfigError {
    let ConfigError::Invalid {
        problem, section, ..
    } = &mut error
    else {
        return error;
    };
    match problem.as_mut() {
        // Codecs may be given as a word, and a schedule may not.
        Problem::WrongType { key, expected, .. } if key == "schedule" => {
            if let Some(kind) = options.get("schedule").and_then(Value::as_str) {
                *expected = format!("{expected} like {{ kind = \"{kind}\" }}");
            }
        }
        unknown @ Problem::UnknownKey { .. } if section == "[[strategy]]" => {
            *unknown = of_another_kind(unknown.clone(), vocabulary);
        }
        _ => {}
    }
    error
}

/// An unknown key with the strategies that have it, where nothing else says where it belongs.
fn of_another_kind(problem: Problem, vocabulary: &Vocabulary<'_>) -> Problem {
    const NAMED: usize = 4;
    let Problem::UnknownKey { key, known } = &problem else {
        return problem;
    };
    let all = vocabulary.registry.all().iter().map(|one| &one.info);
    let having = all.filter(|info| info.options.iter().any(|option| option.name == key));
    let mut having: Vec<&str> = having.map(|info| info.name).collect();
    if having.is_empty() || !elsewhere("[[strategy]]", &problem).is_empty() {
        return problem;
    }
    if having.len() > NAMED {
        having.truncate(NAMED);
        having.push("others");
    }
    // What is constant elsewhere may be a matter of the epoch here.
    let here = if key == "ratio" && known.iter().any(|known| known == "schedule") {
        "; here it is that of `schedule`, such as schedule = { kind = \"linear\", from = 128, to = 1 }"
    } else {
        ""
    };
    let message = format!(
        "{problem}. `{key}` is an option of {}{here}",
        having.join(", ")
    );
    Problem::Other { message }
}

/// Gives a label to each entry without one.
fn label_all(given: Vec<Given>) -> Vec<StrategyEntry> {
    let unlabelled: Vec<(String, Vec<(String, String)>)> = given
        .iter()
        .filter(|entry| entry.label.is_none())
        .map(|entry| (entry.kind.clone(), entry.differences()))
        .collect();
    let label = |entry: &Given| {
        let same_kind = || unlabelled.iter().filter(|(other, _)| *other == entry.kind);
        let telling: Vec<String> = entry
            .differences()
            .into_iter()
            // What all entries of a kind have tells none of them apart.
            .filter(|option| !same_kind().all(|(_, others)| others.contains(option)))
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        if telling.is_empty() {
            entry.kind.clone()
        } else {
            format!("{}({})", entry.kind, telling.join(","))
        }
    };
    given
        .into_iter()
        .map(|mut entry| StrategyEntry {
            label: entry.label.take().unwrap_or_else(|| label(&entry)),
            kind: entry.kind,
            with: entry.with,
            options: entry.options,
        })
        .collect()
}

/// Options as (dotted key, value) pairs.
fn flat(options: &Table) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    for (key, value) in options {
        match value {
            Value::Table(inner) => {
                let inner = flat(inner).into_iter();
                pairs.extend(inner.map(|(rest, value)| (format!("{key}.{rest}"), value)));
            }
            other => pairs.push((key.clone(), plain(other))),
        }
    }
    pairs
}

/// A value as it reads in a name: text without quotes, everything else as in TOML.
pub(super) fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> Vec<String> {
        let table: Table = toml::from_str(text).unwrap();
        let given = table["strategy"].as_array().unwrap().iter().map(|entry| {
            let mut options = entry.as_table().unwrap().clone();
            let with = options
                .remove("with")
                .map(|with| with.as_table().unwrap().clone());
            let mut text = |key| options.remove(key).map(|value| plain(&value));
            Given {
                label: text("label"),
                kind: text("kind").unwrap(),
                with: with.unwrap_or_default(),
                options,
            }
        });
        label_all(given.collect())
            .into_iter()
            .map(|entry| entry.label)
            .collect()
    }

    #[test]
    fn a_kind_that_occurs_once_is_its_own_label() {
        let text = "strategy = [{ kind = 'full' }, { kind = 'fixed', ratio = 8 }]";
        assert_eq!(labels(text), ["full", "fixed"]);
    }

    #[test]
    fn entries_of_one_kind_are_told_apart_by_the_options_in_which_they_differ() {
        let text = "strategy = [
            { kind = 'fixed', ratio = 8, rescale = true },
            { kind = 'fixed', ratio = 32, rescale = true },
            { kind = 'varco', schedule = { kind = 'linear', slope = 2 } },
            { kind = 'varco', schedule = { kind = 'linear', slope = 7 } },
            { kind = 'varco' }]";
        assert_eq!(
            labels(text),
            [
                "fixed(ratio=8)",
                "fixed(ratio=32)",
                "varco(schedule.kind=linear,schedule.slope=2)",
                "varco(schedule.kind=linear,schedule.slope=7)",
                "varco"
            ]
        );
    }

    #[test]
    fn settings_of_its_own_tell_an_entry_apart() {
        let text = "strategy = [
            { kind = 'full' }, { kind = 'full', with = { 'partition.workers' = 1 } }]";
        assert_eq!(labels(text), ["full", "full(partition.workers=1)"]);
    }

    #[test]
    fn a_label_of_ones_own_wins_and_takes_no_part_in_telling_others_apart() {
        let text = "strategy = [
            { kind = 'fixed', ratio = 8, label = 'eight' }, { kind = 'fixed', ratio = 32 }]";
        assert_eq!(labels(text), ["eight", "fixed"]);
    }
}
