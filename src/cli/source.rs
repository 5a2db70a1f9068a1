//! Which graph: an argument that several subcommands share.

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use serde::Deserialize;
use serde_json::Value;

use super::list::FORMATS;
use super::output::BadArgument;
use crate::Error;
use crate::experiment::config::{closest, value_of};
use crate::graph::{DatasetSpec, RawDataset, SplitSpec, SyntheticSpec, dataset_names};

/// A graph by its name, its files or how it is generated.
#[derive(ClapArgs)]
pub(super) struct DataArgs {
    /// A bundled or fetched data set, the path of files with --format, or a generated graph as
    /// experiment files write it: '{ kind = "rmat", scale = 12, classes = 4, features = 16 }'
    pub dataset: String,
    /// Format of the files
    #[arg(long, value_parser = FORMATS.map(|(name, _)| name))]
    pub format: Option<String>,
    /// Another key of [dataset], as experiment files write it: 'split={ train = 0.6, val = 0.2 }',
    /// id=ID, label=CLASS
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

impl DataArgs {
    /// The data set that the arguments name, with all keys of it that are set.
    pub(super) fn spec(&self) -> anyhow::Result<DatasetSpec> {
        with_keys(&self.named()?, &self.set)
    }

    /// The data set that the arguments name, and no other.
    fn named(&self) -> anyhow::Result<DatasetSpec> {
        let dataset = &self.dataset;
        let bad = |flag, what| Err(BadArgument { flag, what }.into());
        if dataset.trim_start().starts_with('{') {
            if self.format.is_some() {
                return bad(
                    "--format",
                    "a generated graph has none; remove it".to_owned(),
                );
            }
            return Ok(DatasetSpec {
                synthetic: Some(synthetic(dataset)?),
                ..DatasetSpec::default()
            });
        }
        let named = dataset_names().contains(&dataset.as_str());
        if named && self.format.is_some() {
            let what = format!(
                "\"{dataset}\" is a known data set and needs no format; remove it, or write ./{dataset} for \
             files of yours"
            );
            return bad("--format", what);
        }
        if !named && self.format.is_none() {
            return Err(unknown(dataset).into());
        }
        Ok(DatasetSpec {
            name: named.then(|| dataset.clone()),
            path: (!named).then(|| PathBuf::from(dataset)),
            format: self.format.as_deref().map(named_value).transpose()?,
            ..DatasetSpec::default()
        })
    }
}

/// Nodes that train, validate and test by the split that a section asks for, drawn with a seed if
/// it is drawn; none if it asks for that of the data.
///
/// # Errors
/// A split that these data cannot have.
pub(super) fn asked_split(
    spec: &DatasetSpec,
    data: &RawDataset,
    seed: u64,
) -> Result<Option<[usize; 3]>, Error> {
    if spec.split == SplitSpec::default() {
        return Ok(None);
    }
    let split = data.split(&spec.split, seed)?.split;
    let sets = [&split.train, &split.validation, &split.test];
    Ok(Some(sets.map(Vec::len)))
}

/// What is wrong with an argument that is no known data set, without a format.
fn unknown(dataset: &str) -> BadArgument {
    let what = format!("\"{dataset}\" is not a known data set");
    if Path::new(dataset).exists() {
        let formats = FORMATS.map(|(name, _)| name).join(", ");
        let what = format!("{what}; for files of yours say how they are written: {formats}");
        return BadArgument {
            flag: "--format",
            what,
        };
    }
    let meant = closest(dataset, dataset_names())
        .map_or_else(String::new, |near| format!("; did you mean {near}?"));
    let stop = if meant.is_empty() { "." } else { "" };
    BadArgument {
        flag: "DATASET",
        what: format!(
            "{what}, and no file is called so{meant}{stop} `grapevine list datasets` has all; files of yours need --format"
        ),
    }
}

/// The section with more of its keys.
fn with_keys(spec: &DatasetSpec, sets: &[String]) -> anyhow::Result<DatasetSpec> {
    let bad = |what: String| BadArgument {
        flag: "--set",
        what,
    };
    let mut table = toml::Table::try_from(spec)?;
    for set in sets {
        let Some((key, value)) = set.split_once('=') else {
            return Err(bad(format!("\"{set}\" is no KEY=VALUE")).into());
        };
        let value = value_of(value).map_err(|what| bad(format!("{}: {what}", key.trim())))?;
        table.insert(key.trim().to_owned(), value);
    }
    let read = |table: toml::Table| table.try_into();
    let spec = read(table).map_err(|error: toml::de::Error| {
        bad(format!(
            "{}; write it as a key of [dataset]",
            error.message()
        ))
    })?;
    Ok(spec)
}

/// A generated graph from an inline table.
fn synthetic(text: &str) -> anyhow::Result<SyntheticSpec> {
    let value = toml::de::ValueDeserializer::parse(text);
    value.and_then(SyntheticSpec::deserialize).map_err(|error| {
        let what = format!(
            "{}; write a generated graph as `synthetic` of [dataset], for example {}",
            error.message(),
            "'{ kind = \"rmat\", scale = 12, classes = 4, features = 16 }'"
        );
        BadArgument {
            flag: "DATASET",
            what,
        }
        .into()
    })
}

/// A value of an enumeration by the name that experiment files use.
pub(super) fn named_value<T: serde::de::DeserializeOwned>(name: &str) -> serde_json::Result<T> {
    serde_json::from_value(Value::String(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Format;

    #[test]
    fn every_format_that_is_offered_has_a_value() {
        for (name, _) in FORMATS {
            named_value::<Format>(name).unwrap();
        }
    }
}
