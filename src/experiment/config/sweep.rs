//! From one file to the cells of its grid: sweep values × strategies.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value as Json;
use toml::{Table, Value};

use super::check::network_error;
use super::decode::decode;
use super::error::{ConfigError, Problem, closest};
use super::homes::SECTIONS;
use super::locate::Document;
use super::path::KeyPath;
use super::settings::Settings;
use super::strategy::{StrategyEntry, plain, with};
use crate::experiment::claims::Named;
use crate::experiment::rows::{Sweep, distinct};
use crate::graph::CountSpec;
use crate::net::NetError;

/// One key of `[sweep]` and the values it takes in turn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SweepAxis {
    /// The key with dots, for example `partition.workers`.
    pub key: String,
    /// At least one value. A whole section may have a `with`: settings of other sections, for the
    /// cells with this value alone.
    pub values: Vec<Value>,
}

impl SweepAxis {
    /// Whether each of its values says what stands at `path`.
    pub(super) fn settles(&self, path: &KeyPath) -> bool {
        let within = |outer: &str| {
            let outer = KeyPath::dotted(outer);
            path.segments().starts_with(outer.segments())
        };
        let beside = |value: &Value| parted(value).1.keys().any(|key| within(key));
        within(&self.key) || self.values.iter().all(beside)
    }
}

/// A value, and what stands in its `with` if it is a section.
fn parted(value: &Value) -> (Value, Table) {
    let mut value = value.clone();
    let with = value.as_table_mut().and_then(|table| table.remove("with"));
    let with = with.and_then(|with| with.as_table().cloned());
    (value, with.unwrap_or_default())
}

/// One row of figures in every table: settings and a strategy, to be run with every seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The strategy's label, after the sweep's values if there is a sweep: `full`,
    /// `workers=4 full`. Unique in the experiment.
    pub name: String,
    /// What is trained, on what.
    pub(crate) settings: Settings,
    /// How it communicates.
    pub(crate) strategy: StrategyEntry,
    /// The sweep's values.
    pub sweep: Sweep,
    origin: Origin,
}

/// Where a cell was written: the document with the sweep's values in it, and the number of its
/// strategy.
#[derive(Clone, Debug)]
struct Origin {
    document: Arc<Document>,
    strategy: usize,
}

/// Cells that mean the same are equal wherever they were written.
impl PartialEq for Origin {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Cell {
    /// What claims may call it.
    pub(in crate::experiment) fn named(&self) -> Named<'_> {
        Named {
            name: &self.name,
            sweep: &self.sweep,
            label: &self.strategy.label,
        }
    }

    /// The same settings with a strategy of this kind and nothing but defaults, which the file does
    /// not have.
    pub(in crate::experiment) fn with_kind(&self, kind: &str) -> Self {
        let strategy = StrategyEntry {
            label: kind.to_owned(),
            kind: kind.to_owned(),
            with: Table::new(),
            options: Table::new(),
        };
        Self {
            name: cell_name(&self.sweep, &strategy),
            strategy,
            ..self.clone()
        }
    }

    /// The number of its strategy among all of the file.
    pub(super) fn number(&self) -> usize {
        self.origin.strategy
    }

    /// An error about a key of the settings (`partition.workers`) that shows only with the data, at
    /// the key's place.
    pub(in crate::experiment) fn refuse(&self, key: &str, message: String) -> ConfigError {
        self.origin.document.refuse(&KeyPath::dotted(key), message)
    }

    /// The same of what other cells may be well with, so that the message names this one.
    pub(in crate::experiment) fn refuse_itself(&self, key: &str, message: String) -> ConfigError {
        self.refuse_at(&KeyPath::dotted(key), message)
    }

    /// An error about the network, at the key that it is about.
    pub(in crate::experiment) fn refuse_network(&self, error: NetError) -> ConfigError {
        network_error(&self.origin.document, &self.settings.network, error)
    }

    /// An error about the cell's strategy, or one of its options.
    pub(in crate::experiment) fn refuse_option(
        &self,
        option: Option<&str>,
        message: &str,
    ) -> ConfigError {
        let entry = KeyPath::dotted("strategy").join(&self.origin.strategy.to_string());
        let path = option
            // No key is called so: the place is that of the whole entry, and the message names its
            // section.
            .unwrap_or("*")
            .split('.')
            .fold(entry, |path, segment| path.join(segment));
        let option = option.map_or(String::new(), |option| format!("`{option}` "));
        self.refuse_at(&path, format!("{option}{message}"))
    }

    fn refuse_at(&self, path: &KeyPath, message: String) -> ConfigError {
        let cell = self.name.clone();
        let problem = Problem::OfCell { message, cell };
        self.origin.document.error(path, problem)
    }
}

/// Most cells of an experiment: a slip of the hand beyond, which nobody has the time to run.
const MOST_CELLS: usize = 10_000;

/// Reads `[sweep]`.
///
/// # Errors
/// A key outside the sections of [`Settings`] (strategies and seeds are lists already, and need no
/// sweep), or a value that is not a list with something in it.
pub(super) fn axes(document: &Document) -> Result<Vec<SweepAxis>, ConfigError> {
    let top = KeyPath::dotted("sweep");
    let Some(value) = document.get(&top) else {
        return Ok(Vec::new());
    };
    let table: Table = decode(document, &top, value)?;
    let mut axes = Vec::new();
    for (key, value) in table {
        let path = top.join(&key);
        let refuse = |message: String| Err(document.refuse(&path, message));
        let section = key.split('.').next().unwrap_or_default();
        if !SECTIONS.contains(&section) {
            let sections: Vec<String> = SECTIONS.map(str::to_owned).into();
            let suggestion = closest(section, &sections)
                .map(|close| format!("; did you mean `{close}`?"))
                .unwrap_or_default();
            return refuse(format!(
                "`{key}` cannot be swept{suggestion}; the key must be in one of the sections {}",
                sections.join(", ")
            ));
        }
        let values = match value {
            Value::Array(values) => values,
            Value::Table(inner) => {
                let inner = inner.keys().next().map_or("key", String::as_str);
                return refuse(format!(
                    "write the whole key in quotes, like \"{key}.{inner}\" = [1, 2]"
                ));
            }
            other if !key.contains('.') => {
                return refuse(format!(
                    "`{key}` needs a list of whole sections, like [{{ key = {other} }}], not {other}"
                ));
            }
            other => {
                return refuse(format!(
                    "`{key}` needs a list of values, like [{other}], not {other}"
                ));
            }
        };
        if values.is_empty() {
            return refuse(format!(
                "`{key}` has no values; give at least one or remove the key"
            ));
        }
        if let Some(index) =
            (1..values.len()).find(|&index| values[..index].contains(&values[index]))
        {
            let message = format!("`{key}` has the value {} twice", values[index]);
            let path = path.join(&index.to_string());
            return Err(document.refuse(&path, message));
        }
        let whole = KeyPath::dotted(&key);
        let lost = axes.iter().find(|earlier: &&SweepAxis| {
            let inner = KeyPath::dotted(&earlier.key);
            inner.segments().starts_with(whole.segments())
        });
        if let Some(lost) = lost {
            return refuse(format!(
                "`{key}` comes after `{0}` and sets it anew, so that the values of `{0}` are lost; write `{key}` first",
                lost.key
            ));
        }
        axes.push(SweepAxis { key, values });
    }
    for axis in &axes {
        check_with(document, axis, &axes)?;
    }
    Ok(axes)
}

/// Checks what whole sections of a sweep have in their `with`: keys of other sections, which the
/// sweep itself does not set.
fn check_with(
    document: &Document,
    axis: &SweepAxis,
    axes: &[SweepAxis],
) -> Result<(), ConfigError> {
    let whole = |value: &&Value| !axis.key.contains('.') && value.is_table();
    for (index, value) in axis.values.iter().enumerate().filter(|(_, one)| whole(one)) {
        let written = KeyPath::dotted("sweep")
            .join(&axis.key)
            .join(&index.to_string());
        let table = with(document, &written, value.get("with").cloned())?;
        for key in table.keys() {
            let own = KeyPath::dotted(key);
            let swept = axes.iter().find(|other| {
                let swept = KeyPath::dotted(&other.key);
                let (own, swept) = (own.segments(), swept.segments());
                own.starts_with(swept) || swept.starts_with(own)
            });
            if let Some(other) = swept {
                let message = if other.key == axis.key {
                    format!(
                        "`{key}` is of the very section that has this `with`: write it beside it"
                    )
                } else {
                    format!(
                        "`{key}` is set by the sweep of `{}` as well: leave out one of the two",
                        other.key
                    )
                };
                let path = written.join("with").join(key);
                return Err(document.refuse(&path, message));
            }
        }
    }
    Ok(())
}

/// The document with the first value of each section that is swept as a whole and stands nowhere
/// else: nobody need write one that the sweep replaces.
pub(super) fn with_first_sections(document: &Document) -> Document {
    let mut whole = document.clone();
    for section in SECTIONS {
        let path = KeyPath::dotted(section);
        let first = KeyPath::dotted("sweep").join(section).join("0");
        if document.get(&path).is_none()
            && let Some(value) = document.get(&first)
        {
            // A section stands at the top level, where everything can be set.
            let _ = whole.set(&path, parted(value).0, &document.place(&first));
        }
    }
    whole
}

/// All cells: the last sweep key varies fastest, and the strategies within it.
///
/// # Errors
/// Those of [`Settings::read`] for any combination, at the place of the sweep value they concern.
pub(super) fn cells(
    document: &Document,
    axes: &[SweepAxis],
    strategies: &[StrategyEntry],
) -> Result<Vec<Cell>, ConfigError> {
    // Counted before any is made: a few long lists would fill the memory with cells.
    let count = (axes.iter().map(|axis| axis.values.len()))
        .try_fold(strategies.len(), usize::checked_mul)
        .unwrap_or(usize::MAX);
    if count > MOST_CELLS {
        let message = format!(
            "the sweep and the strategies make {count} cells, and at most {MOST_CELLS} can be run; sweep fewer keys or values"
        );
        return Err(document.refuse(&KeyPath::dotted("sweep"), message));
    }
    // Without the lists, of which each cell would keep a copy.
    let mut whole = document.clone();
    whole.remove("sweep");
    let mut combinations = vec![(Sweep::default(), whole)];
    for axis in axes {
        let short = short_key(axis, axes);
        let path = KeyPath::dotted(&axis.key);
        let written = KeyPath::dotted("sweep").join(&axis.key);
        let (values, beside): (Vec<Value>, Vec<Table>) = axis.values.iter().map(parted).unzip();
        let briefs = briefs(&values);
        let mut next = Vec::new();
        for (sweep, base) in &combinations {
            for (index, value) in values.iter().enumerate() {
                let at = written.join(&index.to_string());
                let mut changed = base.clone();
                changed
                    .set(&path, value.clone(), &document.place(&at))
                    .map_err(|message| document.refuse(&written, message))?;
                set_beside(&mut changed, document, &beside[index], &at.join("with"))?;
                next.push((sweep.with(short, briefs[index].clone()), changed));
            }
        }
        combinations = next;
    }
    // Values that differ can read alike, such as the paths `a/x` and `b/x`.
    let mut names = BTreeSet::new();
    for (sweep, _) in &combinations {
        let name = sweep.to_string();
        if !names.insert(name.clone()) {
            let message = format!(
                "two settings would be called \"{name}\"; only one of them can be in an experiment"
            );
            let path = KeyPath::dotted("sweep");
            return Err(document.refuse(&path, message));
        }
    }
    let mut cells = Vec::new();
    for (sweep, document) in combinations {
        let document = Arc::new(document);
        let settings = Settings::read(&document)?;
        for (index, strategy) in strategies.iter().enumerate() {
            let own = own_settings(&document, index, strategy)?;
            let (document, settings) = own.unwrap_or_else(|| (document.clone(), settings.clone()));
            cells.push(Cell {
                name: cell_name(&sweep, strategy),
                settings,
                strategy: strategy.clone(),
                sweep: sweep.clone(),
                origin: Origin {
                    document,
                    strategy: index,
                },
            });
        }
    }
    Ok(cells)
}

fn cell_name(sweep: &Sweep, strategy: &StrategyEntry) -> String {
    if sweep.is_empty() {
        strategy.label.clone()
    } else {
        format!("{sweep} {}", strategy.label)
    }
}

/// The document and its settings with the strategy's `with` in them, if it has one.
fn own_settings(
    document: &Document,
    index: usize,
    strategy: &StrategyEntry,
) -> Result<Option<(Arc<Document>, Settings)>, ConfigError> {
    if strategy.with.is_empty() {
        return Ok(None);
    }
    let path = KeyPath::dotted("strategy")
        .join(&index.to_string())
        .join("with");
    let mut changed = document.clone();
    set_beside(&mut changed, document, &strategy.with, &path)?;
    let settings = Settings::read(&changed)?;
    Ok(Some((Arc::new(changed), settings)))
}

/// Sets in a document what stands in the `with` at `path` of the file.
fn set_beside(
    document: &mut Document,
    file: &Document,
    with: &Table,
    path: &KeyPath,
) -> Result<(), ConfigError> {
    for (key, value) in with {
        let written = path.join(key);
        let place = file.place(&written);
        document
            .set(&KeyPath::dotted(key), value.clone(), &place)
            .map_err(|message| file.refuse(&written, message))?;
    }
    Ok(())
}

/// Values as they read in names of cells. Of tables without a name only what differs is said:
/// `100us` and `2ms` of links that are alike in all but their latency.
fn briefs(values: &[Value]) -> Vec<Json> {
    let unnamed = |value| Value::as_table(value).filter(|_| section(value).is_none());
    let tables: Option<Vec<&Table>> = values.iter().map(unnamed).collect();
    let apart = tables.filter(|tables| tables.len() > 1).and_then(|tables| {
        let keys = distinct(tables.iter().flat_map(|table| table.keys()));
        let differs = |key: &&String| {
            tables
                .iter()
                .any(|table| table.get(*key) != tables[0].get(*key))
        };
        let keys: Vec<&String> = keys.into_iter().filter(differs).collect();
        let read = |table: &&Table| {
            let of = |key: &&String| table.get(*key).map_or("–".to_owned(), plain);
            keys.iter().map(of).collect::<Vec<String>>().join("/")
        };
        let read: Vec<String> = tables.iter().map(read).collect();
        (distinct(&read).len() == read.len()).then_some(read)
    });
    match apart {
        Some(read) => read.into_iter().map(Json::String).collect(),
        None => values.iter().map(brief).collect(),
    }
}

/// What a whole `dataset` section is called: by its name, by the last part of its path, or as
/// synthetic graphs are, `rmat-4096`, `csbm-4096-h0.8-s1`; none of other values.
fn section(value: &Value) -> Option<String> {
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let last = |path: &str| {
        path.rsplit('/')
            .find(|part| !part.is_empty())
            .map(str::to_owned)
    };
    let synthetic = || {
        let spec = value.get("synthetic")?;
        let number = |key: &str| spec.get(key).and_then(Value::as_integer);
        // The scale has not been checked yet, and a shift by 64 would overflow.
        let nodes = number("nodes").or_else(|| Some(1 << number("scale")?.clamp(0, 62)))?;
        let name = format!("{}-{nodes}", spec.get("kind")?.as_str()?);
        let share = |key: &str| {
            let value = spec.get(key)?;
            value.as_float().or(value.as_integer().map(|n| n as f64))
        };
        Some(match share("homophily").zip(share("feature_signal")) {
            Some((homophily, signal)) => format!("{name}-h{homophily}-s{signal}"),
            None => name,
        })
    };
    text("name")
        .map(str::to_owned)
        .or_else(|| text("path").and_then(last))
        .or_else(synthetic)
        .or_else(|| {
            Some(
                CountSpec::deserialize(value.get("counts")?.clone())
                    .ok()?
                    .name(),
            )
        })
}

/// A value as it reads in the name of a cell.
fn brief(value: &Value) -> Json {
    let word = |word: String| Json::String(word);
    // A number stays one where JSON writes it as TOML does.
    let same = |json: &Json| format!("{json}") == format!("{value}");
    match (section(value), value) {
        (Some(name), _) => word(name),
        (None, &Value::Integer(number)) => number.into(),
        (None, &Value::Boolean(truth)) => truth.into(),
        (None, &Value::Float(number)) if same(&number.into()) => number.into(),
        (None, other) => word(plain(other)),
    }
}

/// The last part of the key, or all of it where another key ends alike.
fn short_key<'a>(axis: &'a SweepAxis, all: &[SweepAxis]) -> &'a str {
    let last = |key: &'a str| key.rsplit('.').next().unwrap_or(key);
    let short = last(&axis.key);
    let alike = all
        .iter()
        .filter(|other| other.key.rsplit('.').next() == Some(short))
        .count();
    if alike > 1 { &axis.key } else { short }
}
