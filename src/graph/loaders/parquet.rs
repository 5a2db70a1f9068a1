//! Two Parquet tables: of nodes, with the columns `id`, `label` and `features`, and of edges, with
//! `source` and `target`; a section may name others. Features are a column of lists, or several
//! columns of numbers. A missing label is none.

use std::path::Path;

use polars::prelude::{DataFrame, DataType, PolarsError, Series};

use super::ids::is_known;
use super::tabular::{Node, Nodes, each_once, file_of};
use super::{EdgeCount, Reading, file_name, finite};
use crate::graph::{DatasetSpec, FeatureSource, Features, GraphError, LabelColumns, RawDataset};
use crate::memory;
use crate::parquet;

/// Reads the folder.
pub(super) fn read(folder: &Path, spec: &DatasetSpec) -> Result<RawDataset, GraphError> {
    let path = file_of(folder, spec.nodes.as_deref(), "nodes.parquet")?;
    let table = Table::read(&path)?;
    let nodes = Nodes::new(&path, nodes(&table, spec)?, spec.label.as_ref())?;
    let pairs = file_of(folder, spec.edges.as_deref(), "edges.parquet")?;
    let table = Table::read(&pairs)?;
    let [source, target] = [("source", &spec.source), ("target", &spec.target)]
        .map(|(key, name)| (key, name.as_deref().unwrap_or(key)));
    each_once(&[source, target], |name| (*name).to_owned()).map_err(|what| table.error(what))?;
    let sources = table.whole("source", spec.source.as_deref())?;
    let targets = table.whole("target", spec.target.as_deref())?;
    let node = |row: usize, id: u64| {
        nodes.ids.node(id).ok_or_else(|| {
            let what = format!(
                "row {row} (from 0): node {id} has no row in `{}`",
                file_name(&path)
            );
            GraphError::file(&pairs, what)
        })
    };
    let ends = sources.into_iter().zip(targets).enumerate();
    let edges = ends.map(|(row, (from, to))| Ok((node(row, from)?, node(row, to)?)));
    let edges = edges.collect::<Result<Vec<_>, GraphError>>()?;
    let count = nodes.ids.len();
    let (graph, listed) = EdgeCount::undirected(count, edges);
    let mut reading = Reading::of(listed, [path.clone(), pairs]);
    reading.notes.extend(nodes.doubt);
    let features = if let Some(features) = nodes.features {
        finite(&path, "the features", features)?
    } else {
        reading = reading.with_note(format!(
            "no features: each of the {count} nodes is its own, an identity matrix; `features` of [dataset] names their columns"
        ));
        Features::identity(count)
    };
    // Named after the folder.
    let (name, labels, classes) = (String::new(), nodes.labels, nodes.classes);
    Ok(RawDataset::new(name, graph, features, labels, classes, vec![]).read_as(reading))
}

/// The rows of the table of nodes.
fn nodes(table: &Table<'_>, spec: &DatasetSpec) -> Result<Vec<Node>, GraphError> {
    let ids = table.whole("id", spec.id.as_deref())?;
    let mut labels = vec![Vec::new(); ids.len()];
    let named = spec.label.as_ref().map_or(&[][..], LabelColumns::names);
    let named = named.iter().map(|name| Some(name.as_str()));
    for name in named.chain(spec.label.is_none().then_some(None)) {
        for (row, label) in labels.iter_mut().zip(table.text("label", name)?) {
            row.push(label);
        }
    }
    let columns = match &spec.features {
        Some(FeatureSource::Columns(columns)) => columns.clone(),
        // A file of its own is refused with the section.
        _ if table.frame.column("features").is_ok() => vec!["features".to_owned()],
        _ => vec![],
    };
    let id = [("id", spec.id.as_deref().unwrap_or("id"))].into_iter();
    let label = spec
        .label
        .as_ref()
        .map_or(&[][..], LabelColumns::names)
        .iter();
    let label = label.map(|name| ("label", name.as_str()));
    let features = columns.iter().map(|name| ("features", name.as_str()));
    let default = spec.label.is_none().then_some(("label", "label"));
    let all = id.chain(label).chain(default).chain(features);
    each_once(&all.collect::<Vec<_>>(), |name| (*name).to_owned())
        .map_err(|what| table.error(what))?;
    let mut rows: Vec<Node> = (ids.into_iter().zip(labels))
        .map(|(id, labels)| Node {
            id,
            labels,
            values: vec![],
        })
        .collect();
    for column in &columns {
        for (row, values) in rows.iter_mut().zip(table.values(column)?) {
            row.values.extend(values);
        }
    }
    let width = rows.first().map_or(0, |row| row.values.len());
    match rows.iter().position(|row| row.values.len() != width) {
        None => Ok(rows),
        Some(row) => Err(table.error(format!(
            "row {row} (from 0) has {} features, and the first {width}",
            rows[row].values.len()
        ))),
    }
}

/// A table and where it is from.
struct Table<'a> {
    path: &'a Path,
    frame: DataFrame,
}

impl<'a> Table<'a> {
    fn read(path: &'a Path) -> Result<Self, GraphError> {
        let file = std::fs::metadata(path).map_err(|source| GraphError::read(path, source))?;
        memory::need(
            || format!("the table {}", path.display()),
            file.len().saturating_mul(2),
        )?;
        let frame = parquet::read(path).map_err(|error| {
            GraphError::file(path, format!("is not read as a Parquet table: {error}"))
        })?;
        Ok(Self { path, frame })
    }

    fn error(&self, what: impl Into<String>) -> GraphError {
        GraphError::file(self.path, what)
    }

    /// The column that a key names, or the one called like the key.
    fn column(&self, key: &str, name: Option<&str>) -> Result<Series, GraphError> {
        let name = name.unwrap_or(key);
        let column = self.frame.column(name).map_err(|_| {
            let columns = self.frame.get_column_names().into_iter();
            let columns: Vec<String> = columns.map(ToString::to_string).collect();
            self.error(format!(
                "has no column `{name}`; `{key}` of [dataset] names another; its columns: {}",
                columns.join(", ")
            ))
        })?;
        Ok(column.as_materialized_series().clone())
    }

    /// A column of whole numbers that are not negative, none missing.
    fn whole(&self, key: &str, name: Option<&str>) -> Result<Vec<u64>, GraphError> {
        let column = self.column(key, name)?;
        let numbers = || -> Result<Option<Vec<u64>>, PolarsError> {
            if !column.dtype().is_integer() {
                return Ok(None);
            }
            Ok(column
                .strict_cast(&DataType::UInt64)?
                .u64()?
                .iter()
                .collect())
        };
        match numbers() {
            Ok(Some(numbers)) => Ok(numbers),
            _ => Err(self.error(format!(
                "column `{}` must hold whole numbers from 0 on, one in each row; it holds {}",
                column.name(),
                column.dtype()
            ))),
        }
    }

    /// A column of anything that has a text; missing where there is none.
    fn text(&self, key: &str, name: Option<&str>) -> Result<Vec<Option<String>>, GraphError> {
        let column = self.column(key, name)?;
        // Whole numbers with gaps are kept as decimals: `4.0`.
        let fraction = if column.dtype().is_float() { ".0" } else { "" };
        let text = column.cast(&DataType::String);
        let text = text.and_then(|text| {
            let known = |text: &&str| is_known(text);
            let name = |text: &str| text.strip_suffix(fraction).unwrap_or(text).to_owned();
            Ok(text
                .str()?
                .iter()
                .map(|text| text.filter(known).map(name))
                .collect())
        });
        text.map_err(|error| self.error(format!("column `{}`: {error}", column.name())))
    }

    /// The numbers in each row of a column: one, or a list of them.
    fn values(&self, name: &str) -> Result<Vec<Vec<f32>>, GraphError> {
        let column = self.column("features", Some(name))?;
        let numbers = || -> Result<Option<Vec<Vec<f32>>>, PolarsError> {
            let whole = |column: &Series| -> Result<Option<Vec<f32>>, PolarsError> {
                Ok(column
                    .strict_cast(&DataType::Float32)?
                    .f32()?
                    .iter()
                    .collect())
            };
            if let DataType::List(_) = column.dtype() {
                let mut rows = Vec::with_capacity(column.len());
                let lists = column.list()?;
                for row in 0..lists.len() {
                    let Some(row) = lists.get_as_series(row) else {
                        return Ok(None);
                    };
                    let Some(row) = whole(&row)? else {
                        return Ok(None);
                    };
                    rows.push(row);
                }
                return Ok(Some(rows));
            }
            Ok(whole(&column)?.map(|values| values.into_iter().map(|value| vec![value]).collect()))
        };
        match numbers() {
            Ok(Some(numbers)) => Ok(numbers),
            _ => Err(self.error(format!(
                "column `{name}` must hold a number or a list of numbers in each row; it holds {}",
                column.dtype()
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use polars::prelude::{IntoColumn, NamedFrom};

    use super::*;

    #[test]
    fn whole_numbers_with_gaps_are_labels_without_a_fraction_and_texts_stay_as_they_are() {
        let gaps = Series::new("gaps".into(), [Some(4.0), None, Some(0.5)]);
        let texts = Series::new("texts".into(), ["v1", "v1.0", "1.0.0"]);
        let frame = DataFrame::new(3, vec![gaps.into_column(), texts.into_column()]).unwrap();
        let path = Path::new("nodes.parquet");
        let table = Table { path, frame };
        let labels = |name: &str| table.text("label", Some(name)).unwrap();
        let known = |text: &str| Some(text.to_owned());
        assert_eq!(labels("gaps"), [known("4"), None, known("0.5")]);
        assert_eq!(labels("texts"), ["v1", "v1.0", "1.0.0"].map(known));
    }
}
