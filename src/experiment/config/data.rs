//! Values of `[dataset]` that make sense: where data come from, how they are read and drawn.

use super::check::Checks;
use super::error::ConfigError;
use super::homes::formats;
use super::path::KeyPath;
use crate::graph::{
    DatasetSpec, FeatureSource, FeatureStorage, Format, LabelColumns, NodeOrder, SplitSpec,
    SyntheticSpec, are_quadrants, dataset_names,
};

/// Most edges that are drawn, repeated ones included.
const MOST_DRAWS: usize = 1 << 40;

/// Most features of all nodes together: 256 GiB.
const MOST_VALUES: usize = 1 << 36;

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
    let of_features = |features: usize, nodes: usize| {
        check.positive(features, "features")?;
        let values = features.checked_mul(nodes);
        check.that(
            values.is_some_and(|values| values <= MOST_VALUES),
            "features",
            &format!("{features} of each of {nodes} nodes are more than {MOST_VALUES} values"),
        )
    };
    let of_labels = |labels: usize, nodes: usize| {
        check.positive(labels, "labels")?;
        let values = labels.checked_mul(nodes);
        check.that(
            values.is_some_and(|values| values <= MOST_VALUES),
            "labels",
            &format!("{labels} of each of {nodes} nodes are more than {MOST_VALUES} values"),
        )
    };
    match spec {
        SyntheticSpec::Sbm {
            nodes,
            classes,
            features,
            degree_within,
            degree_between,
            noise,
            labels,
            ..
        } => {
            check.positive(*nodes, "nodes")?;
            of_labels(labels.unwrap_or(1), *nodes)?;
            check.positive(*classes, "classes")?;
            of_features(*features, *nodes)?;
            check.that(nodes >= classes, "nodes", "must be at least `classes`")?;
            check.not_negative(*degree_within, "degree_within")?;
            check.not_negative(*degree_between, "degree_between")?;
            check.not_negative(*noise, "noise")
        }
        SyntheticSpec::Csbm {
            nodes, features, ..
        } => {
            of_features(*features, *nodes)?;
            contextual(spec, check)
        }
        SyntheticSpec::Rmat {
            scale,
            edge_factor,
            edges,
            nodes,
            classes,
            features,
            quadrants,
            ..
        } => {
            check.that(
                (1..=31).contains(scale),
                "scale",
                &format!("must be 1 to 31 (2^scale nodes), not {scale}"),
            )?;
            check.that(
                edges.is_none() || edge_factor.is_none(),
                "edges",
                "says how many there are, and so does `edge_factor`, which would do nothing: keep one",
            )?;
            let factor = edge_factor.unwrap_or(1);
            check.positive(factor, "edge_factor")?;
            check.that(
                // Divided, not multiplied: the product may not fit into a number.
                factor <= MOST_DRAWS >> scale,
                "edge_factor",
                &format!("draws more than {MOST_DRAWS} edges with scale = {scale}"),
            )?;
            check.positive(*classes, "classes")?;
            of_features(*features, nodes.unwrap_or(1 << scale))?;
            if let Some(nodes) = nodes {
                check.positive(*nodes, "nodes")?;
                check.that(
                    *nodes as u64 <= 1 << scale,
                    "nodes",
                    "must be no more than the 2^scale nodes there are",
                )?;
            }
            // The fourth quadrant has what the three leave.
            check.that(
                are_quadrants(*quadrants),
                "quadrants",
                "must be three probabilities that add up to no more than 1",
            )
        }
    }
}

/// The numbers of a contextual stochastic block model.
fn contextual(spec: &SyntheticSpec, check: &Checks<'_>) -> Result<(), ConfigError> {
    let SyntheticSpec::Csbm {
        nodes,
        classes,
        features,
        degree,
        homophily,
        feature_signal,
        power_law,
        ..
    } = spec
    else {
        return Ok(());
    };
    check.positive(*nodes, "nodes")?;
    check.that(*classes >= 2, "classes", "must be at least 2")?;
    check.that(nodes >= classes, "nodes", "must be at least `classes`")?;
    check.that(
        features + 1 >= *classes,
        "features",
        "must be at least `classes` - 1: the means of the classes are the corners of a simplex",
    )?;
    check.not_negative(*degree, "degree")?;
    check.not_negative(*feature_signal, "feature_signal")?;
    check.that(
        (0.0..=1.0).contains(homophily),
        "homophily",
        "is a chance, between 0 and 1",
    )?;
    check.that(
        power_law.is_none_or(|exponent| exponent > 2.0 && exponent.is_finite()),
        "power_law",
        "must be above 2: with less the mean degree has no bound",
    )
}
