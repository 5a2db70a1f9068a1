//! Values of `[dataset]` that make sense: where data come from, how they are read and drawn.

use super::check::Checks;
use super::error::ConfigError;
use super::homes::formats;
use super::path::KeyPath;
use crate::graph::{
    DatasetSpec, FeatureSource, FeatureStorage, Format, LabelColumns, NodeOrder, SplitSpec,
    SyntheticSpec, dataset_names,
};

pub(super) fn dataset(spec: &DatasetSpec, check: &Checks<'_>) -> Result<(), ConfigError> {
    one_source(spec, check)?;
    if let Some(name) = &spec.name {
        check.known(name, "name", dataset_names())?;
    }
    if spec.path.is_some() && spec.format.is_none() {
        let what = format!(
            "needs `format` beside it, how the files are written: {}",
            formats().join(", ")
        );
        check.that(false, "path", &what)?;
    }
    check.that(
        spec.path.is_some() || spec.format.is_none(),
        "format",
        "goes with `path`; remove it",
    )?;
    columns(spec, check)?;
    check.that(
        spec.path.is_some() || spec.fetched() || !spec.optional,
        "optional",
        "goes with `path` and the `name` of a data set that is fetched: nothing else can be missing; remove it",
    )?;
    let fixed = match (&spec.counts, &spec.shards) {
        (Some(_), _) => {
            Some("needs the nodes themselves, and `counts` has only how many; remove it")
        }
        (_, Some(_)) => Some(
            "was settled when the shards were written; remove it here, and give it to `grapevine partition --set`",
        ),
        _ => None,
    };
    if let Some(fixed) = fixed {
        let only = [
            (spec.split == SplitSpec::default(), "split"),
            (spec.normalise_features.is_none(), "normalise_features"),
            (
                spec.feature_storage == FeatureStorage::default(),
                "feature_storage",
            ),
            (spec.order == NodeOrder::default(), "order"),
        ];
        for (absent, key) in only {
            check.that(absent, key, fixed)?;
        }
    }
    match spec.split {
        SplitSpec::Named(_) => {}
        SplitSpec::Fractions(split) => {
            check.share(split.train, "split.train")?;
            check.share(split.val, "split.val")?;
            check.that(
                split.train + split.val < 1.0,
                "split",
                "leaves no test nodes: `train` and `val` must add up to less than 1",
            )?;
        }
        SplitSpec::PerClass(split) => {
            check.positive(split.train_per_class, "split.train_per_class")?;
            check.that(
                split.val_per_class.is_some() != split.val.is_some(),
                "split",
                "needs either `val_per_class` or `val`: the validation nodes of each class or of all",
            )?;
            check.positive(split.val_per_class.unwrap_or(1), "split.val_per_class")?;
            check.positive(split.val.unwrap_or(1), "split.val")?;
        }
    }
    let inside = Checks {
        document: check.document,
        section: check.section.join("synthetic"),
    };
    spec.synthetic
        .as_ref()
        .map_or(Ok(()), |spec| synthetic(spec, &inside))
}

/// Whether exactly one source of data is given.
fn one_source(spec: &DatasetSpec, check: &Checks<'_>) -> Result<(), ConfigError> {
    let sources = [
        spec.name.is_some(),
        spec.path.is_some(),
        spec.synthetic.is_some(),
        spec.shards.is_some(),
        spec.counts.is_some(),
    ];
    match sources.into_iter().filter(|&given| given).count() {
        0 => {
            let swept = KeyPath::dotted("sweep").join("dataset");
            let swept = check.document.get(&swept).map_or(
                "",
                |_| "; values of a sweep of `dataset` are whole data sets, each with its own `split`, and [dataset] can be left out then",
            );
            let message = format!(
                "no data; give one of `name`, `path` (with `format`), `synthetic`, `shards` and `counts`{swept}"
            );
            Err(check.whole(&message))
        }
        1 => Ok(()),
        _ => Err(check.whole(
            "`name`, `path`, `synthetic`, `shards` and `counts` exclude each other; keep the one you mean",
        )),
    }
}

/// Keys that say how tables are read.
fn columns(spec: &DatasetSpec, check: &Checks<'_>) -> Result<(), ConfigError> {
    let csv = matches!(spec.format, Some(Format::Csv | Format::CsvJson));
    check.that(
        csv || spec.header.is_none(),
        "header",
        "goes with `format = \"csv\"` and \"csv-json\": other formats have none; remove it",
    )?;
    let columns = matches!(spec.features, Some(FeatureSource::Columns(_)));
    check.that(
        spec.format == Some(Format::Csv)
            || spec.features.is_none()
            || (columns && spec.format == Some(Format::Parquet)),
        "features",
        "goes with `format = \"csv\"`, and a list of columns with \"parquet\", too: other formats say where features are; remove it",
    )?;
    let table = csv || spec.format == Some(Format::Parquet);
    let label = table || spec.format == Some(Format::Igb);
    let several = matches!(spec.label, Some(LabelColumns::Several(_)));
    check.that(
        table || !several,
        "label",
        "is one file with `format = \"igb\"`, and no list",
    )?;
    let listed = spec.label.as_ref().map_or(1, |label| label.names().len());
    check.positive(listed, "label")?;
    let none = matches!(&spec.features, Some(FeatureSource::Columns(names)) if names.is_empty());
    check.that(
        !none,
        "features",
        "names no column; list columns, or leave it out where there are none",
    )?;
    for (given, fits, key) in [
        (spec.nodes.is_some(), table, "nodes"),
        (spec.edges.is_some(), table, "edges"),
        (spec.id.is_some(), table, "id"),
        (spec.label.is_some(), label, "label"),
        (spec.source.is_some(), table, "source"),
        (spec.target.is_some(), table, "target"),
    ] {
        check.that(
            fits || !given,
            key,
            "goes with the formats of tables, \"csv\", \"csv-json\" and \"parquet\"; remove it",
        )?;
    }
    Ok(())
}

pub(super) fn synthetic(spec: &SyntheticSpec, check: &Checks<'_>) -> Result<(), ConfigError> {
    let checked = spec.check();
    checked.or_else(|(key, what)| check.that(false, key, &what))
}
