//! Which graph: an argument that several subcommands share.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use serde::Deserialize;
use serde_json::Value;

use super::list::FORMATS;
use super::output::BadArgument;
use crate::graph::{DatasetSpec, SyntheticSpec, dataset_names};

/// A graph by its name, its files or how it is generated.
#[derive(ClapArgs)]
pub(super) struct DataArgs {
    /// A bundled or fetched data set, the path of files with --format, or a generated graph as
    /// experiment files write it: '{ kind = "rmat", scale = 12, classes = 4, features = 16 }'
    pub dataset: String,
    /// Format of the files
    #[arg(long, value_parser = FORMATS.map(|(name, _)| name))]
    pub format: Option<String>,
}

impl DataArgs {
    /// The data set that the arguments name, and no other.
    pub(super) fn spec(&self) -> anyhow::Result<DatasetSpec> {
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
            let what = format!(
                "\"{dataset}\" is not a known data set (`grapevine list datasets` has those); for files of yours, \
             say how they are written"
            );
            return bad("--format", what);
        }
        Ok(DatasetSpec {
            name: named.then(|| dataset.clone()),
            path: (!named).then(|| PathBuf::from(dataset)),
            format: self.format.as_deref().map(named_value).transpose()?,
            ..DatasetSpec::default()
        })
    }
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
