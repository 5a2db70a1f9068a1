//! The experiment file: from text to an experiment that can run, or to an error that says what is
//! wrong, where, and what would be right.
//!
//! Reading has two steps. The text becomes a document of TOML values that know their place, with
//! `--set` overrides put in; then every section is read into the struct of the floor it belongs to
//! and checked, for the file as it stands and again for every combination of sweep values. Only
//! the second step makes an [`Experiment`], so that whoever holds one need not check anything.

#[cfg(test)]
mod bad_inputs;
#[cfg(test)]
mod bad_together;
mod check;
mod data;
mod decode;
mod error;
mod flows;
mod homes;
mod locate;
mod networks;
mod overrides;
mod path;
mod scale;
mod seeds;
mod settings;
mod strategy;
mod study;
mod sweep;
#[cfg(test)]
mod tests;
mod twice;

use std::path::Path;

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::claims::{self, ClaimSpec};
use super::rows::distinct;
use super::statistics::Statistics;
use crate::strategies::Registry;
use decode::decode;
use homes::SECTIONS;
use locate::Document;
use path::KeyPath;

pub(crate) use error::closest;
pub use error::{ConfigError, Place, Problem};
pub(crate) use flows::FlowFile;
pub(crate) use overrides::value_of;
pub(crate) use scale::PAPER;
pub(crate) use settings::Settings;
pub(crate) use strategy::StrategyEntry;
pub(crate) use study::{Chunking, DesignSpec, EstimatorStudy};
pub use sweep::Cell;
pub(crate) use sweep::SweepAxis;
pub(super) use twice::used;

/// The names that an experiment file may use, as far as the caller has them.
#[derive(Clone, Copy)]
pub(crate) struct Vocabulary<'a> {
    /// Strategies, which also know their options.
    pub registry: &'a Registry,
    /// Kinds of figures.
    pub figures: &'a [&'a str],
}

/// One `[[figure]]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FigureSpec {
    /// Which figure.
    pub kind: String,
    /// Its title; default: the kind's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// A checked experiment file.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// What the result folder and the tables call it: lower-case letters, digits, `-` and `_`.
    pub name: String,
    /// What it is about, in a sentence or two.
    pub description: Option<String>,
    /// The size in which the file was read.
    pub scale: String,
    /// Every cell runs once with each; distinct, at least one. Where seeds are added until claims
    /// are decided ([`Statistics::looks`]), the first.
    pub seeds: Vec<u64>,
    /// The sections, without the sweep's changes.
    pub(crate) settings: Settings,
    /// At least one; labels are unique.
    pub(crate) strategies: Vec<StrategyEntry>,
    /// Keys that vary, in the file's order.
    pub(crate) sweep: Vec<SweepAxis>,
    /// What is claimed of the results; ids are unique.
    pub claims: Vec<ClaimSpec>,
    /// How claims are judged.
    pub statistics: Statistics,
    /// The figures to draw.
    pub(crate) figures: Vec<FigureSpec>,
    cells: Vec<Cell>,
}

const TOP_LEVEL: [&str; 9] = [
    "name",
    "description",
    "seeds",
    "strategy",
    "sweep",
    "claim",
    "statistics",
    "figure",
    scale::SECTION,
];

/// Keys that only files for another command have at the top level.
const ELSEWHERE: [(&[&str], &str); 3] = [
    (&["strategy", "claim", "dataset", "training"], "run"),
    (&["link", "route", "flow"], "net"),
    (&["graph", "design", "estimator", "sampling"], "estimator"),
];

impl Experiment {
    /// Reads an experiment file in one of its sizes; `sets` are `key.path=value` overrides.
    ///
    /// # Errors
    /// [`ConfigError`]: the file cannot be read, is not TOML, or says something that makes no
    /// sense.
    pub(crate) fn read(
        path: &Path,
        scale: &str,
        sets: &[String],
        vocabulary: &Vocabulary<'_>,
    ) -> Result<Self, ConfigError> {
        let (file, text) = text_of(path)?;
        let experiment = Self::parse(&text, &file, scale, sets, vocabulary)?;
        // A size may leave out the kind that a key is for, and so may --set; who sets such a key
        // means it.
        if scale == PAPER && (sets.is_empty() || sets.iter().any(|set| twice::of_kinds(set))) {
            let mut document = Document::parse(&text, &file)?;
            overrides::apply(&mut document, sets)?;
            twice::idle(&document, &experiment.cells)?;
        }
        Ok(experiment)
    }

    /// Reads the text of an experiment file, which goes by the name `file` in messages.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(crate) fn parse(
        text: &str,
        file: &str,
        scale: &str,
        sets: &[String],
        vocabulary: &Vocabulary<'_>,
    ) -> Result<Self, ConfigError> {
        let experiment = Self::parse_size(text, file, scale, sets, vocabulary)?;
        // What is wrong in another size is told before somebody waits for it; what --set changes
        // may not suit them.
        if sets.is_empty() {
            for other in scale::names(&Document::parse(text, file)?) {
                if other != scale {
                    Self::parse_size(text, file, &other, sets, vocabulary)?;
                }
            }
        }
        Ok(experiment)
    }

    fn parse_size(
        text: &str,
        file: &str,
        scale: &str,
        sets: &[String],
        vocabulary: &Vocabulary<'_>,
    ) -> Result<Self, ConfigError> {
        let mut document = Document::parse(text, file)?;
        // In this order, so that --set has the last word.
        scale::apply(&mut document, scale)?;
        let set = overrides::apply(&mut document, sets)?;
        scale::none_left(&document)?;
        let known: Vec<&str> = TOP_LEVEL.into_iter().chain(SECTIONS).collect();
        known_at_top_level(&document, &known)?;
        let name = name(&document)?;
        let description = optional(&document, "description")?;
        let settings = Settings::read(&sweep::with_first_sections(&document))?;
        let strategies = strategy::entries(&document, vocabulary)?;
        let sweep = sweep::axes(&document)?;
        twice::overrides(&document, &set, &sweep)?;
        let cells = sweep::cells(&document, &sweep, &strategies)?;
        twice::cells(&document, &cells)?;
        let claims = claims(&document, &cells)?;
        let mut statistics = statistics(&document)?;
        let seeds;
        (seeds, statistics.looks) = seeds::seeds(&document, &statistics)?;
        let figures = figures(&document, vocabulary)?;
        Ok(Self {
            name,
            description,
            scale: scale.to_owned(),
            seeds,
            settings,
            strategies,
            sweep,
            claims,
            statistics,
            figures,
            cells,
        })
    }

    /// The seed at a place, from 0, of those that a cell runs with.
    pub fn seed(&self, place: usize) -> u64 {
        match self.statistics.looks {
            Some(_) => place as u64,
            None => self.seeds[place],
        }
    }

    /// All seeds that a cell may run with.
    pub(crate) fn all_seeds(&self) -> impl Iterator<Item = u64> {
        let most = (self.statistics.looks).map_or(self.seeds.len(), |looks| looks.most);
        (0..most).map(|place| self.seed(place))
    }

    /// The grid: every combination of sweep values (in the file's order, the last key varying
    /// fastest) with every strategy. Each cell has been read and checked like a file of its own.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// The experiment as an experiment file that leaves nothing to defaults. Two files that mean
    /// the same experiment resolve to the same table; strategy options stay as they were given.
    pub fn resolved(&self) -> Table {
        let mut table = Table::new();
        let mut put = |key: &str, value: Value| table.insert(key.to_owned(), value);
        put("name", self.name.clone().into());
        if let Some(description) = &self.description {
            put("description", description.clone().into());
        }
        put(
            "seeds",
            match &self.statistics.looks {
                Some(looks) => to_value(looks),
                None => to_value(&self.seeds),
            },
        );
        let settings = Settings {
            model: twice::without_idle(&self.settings.model, &self.cells),
            ..self.settings.clone()
        };
        if let Value::Table(sections) = to_value(&settings) {
            for (name, section) in sections {
                put(&name, section);
            }
        }
        let strategies = self.strategies.iter().map(|entry| {
            let mut table = Table::new();
            table.insert("kind".to_owned(), entry.kind.clone().into());
            table.insert("label".to_owned(), entry.label.clone().into());
            if !entry.with.is_empty() {
                table.insert("with".to_owned(), Value::Table(entry.with.clone()));
            }
            table.extend(entry.options.clone());
            Value::Table(table)
        });
        put("strategy", Value::Array(strategies.collect()));
        if !self.sweep.is_empty() {
            let axes = self.sweep.iter();
            let axes = axes.map(|axis| (axis.key.clone(), Value::Array(axis.values.clone())));
            put("sweep", Value::Table(axes.collect()));
        }
        // Statistics say how claims are judged, and nothing without any.
        if !self.claims.is_empty() || self.statistics.looks.is_some() {
            put("claim", to_value(&self.claims));
            put("statistics", to_value(&self.statistics));
        }
        if !self.figures.is_empty() {
            put("figure", to_value(&self.figures));
        }
        table
    }

    /// [`Self::resolved`] as the text of an experiment file. Sweep keys stay in their order, which
    /// names the cells, also where one of them holds whole sections.
    pub fn resolved_text(&self) -> String {
        let mut table = self.resolved();
        table.remove("sweep");
        let mut text = toml::to_string_pretty(&table).unwrap_or_default();
        for (place, axis) in self.sweep.iter().enumerate() {
            if place == 0 {
                text.push_str("\n[sweep]\n");
            }
            let values = Value::Array(axis.values.clone());
            text.push_str(&format!("\"{}\" = {values}\n", axis.key));
        }
        text
    }
}

/// A value that came out of TOML, or out of defaults, as TOML again.
fn to_value<T: Serialize>(value: &T) -> Value {
    // Serialising fails for whole numbers over 2^63 − 1, which TOML cannot have contained, and for
    // keys that are not text, of which there are none. What is not given is left out.
    Value::try_from(value).expect("what was read from TOML can be written as TOML")
}

fn optional<T: serde::de::DeserializeOwned>(
    document: &Document,
    key: &str,
) -> Result<Option<T>, ConfigError> {
    let path = KeyPath::dotted(key);
    document
        .get(&path)
        .map(|value| decode(document, &path, value))
        .transpose()
}

fn required<T: serde::de::DeserializeOwned>(
    document: &Document,
    key: &str,
) -> Result<T, ConfigError> {
    optional(document, key)?.ok_or_else(|| {
        let path = KeyPath::dotted(key);
        let key = path.key().to_owned();
        document.error(&path, Problem::MissingKey { key })
    })
}

/// A file for another command than `run`, with overrides, as far as its keys are known.
fn opened(text: &str, file: &str, sets: &[String], keys: &[&str]) -> Result<Document, ConfigError> {
    let mut document = Document::parse(text, file)?;
    overrides::apply(&mut document, sets)?;
    known_at_top_level(&document, keys)?;
    Ok(document)
}

/// The name of a file in messages, and what it says.
fn text_of(path: &Path) -> Result<(String, String), ConfigError> {
    let file = path.display().to_string();
    match std::fs::read_to_string(path) {
        Ok(text) => Ok((file, text)),
        Err(source) => Err(ConfigError::Unreadable { file, source }),
    }
}

fn known_at_top_level(document: &Document, known: &[&str]) -> Result<(), ConfigError> {
    let unknown = || document.top_level().filter(|key| !known.contains(key));
    let Some(first) = unknown().next() else {
        return Ok(());
    };
    // A file for another command has several such keys; the one that tells which is not always the
    // first.
    let elsewhere = unknown().find_map(|key| {
        let (_, command) = ELSEWHERE.iter().find(|(keys, _)| keys.contains(&key))?;
        let message = format!("`{key}` belongs to a file for `grapevine {command}`");
        Some((key, Problem::Other { message }))
    });
    let (key, problem) = elsewhere.unwrap_or_else(|| {
        let known = known.iter().map(|&name| name.to_owned()).collect();
        let key = first.to_owned();
        (first, Problem::UnknownKey { key, known })
    });
    Err(document.error(&KeyPath::new(vec![key.to_owned()]), problem))
}

fn name(document: &Document) -> Result<String, ConfigError> {
    let name: String = required(document, "name")?;
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if name.is_empty() || !name.chars().all(allowed) {
        let message = format!(
            "must be made of a to z, 0 to 9, `-` and `_`, because folders are named after it; \
             \"{name}\" is not"
        );
        return Err(document.bad(&KeyPath::dotted("name"), message));
    }
    Ok(name)
}

fn claims(document: &Document, cells: &[Cell]) -> Result<Vec<ClaimSpec>, ConfigError> {
    let claims: Vec<ClaimSpec> = optional(document, "claim")?.unwrap_or_default();
    let named = || cells.iter().map(Cell::named);
    let (labels, names) = (
        named().map(|cell| cell.label),
        named().map(|cell| cell.name),
    );
    let known = distinct(labels.chain(names));
    let measures = claims::measures();
    for (index, claim) in claims.iter().enumerate() {
        let path = KeyPath::dotted("claim").join(&index.to_string());
        if let Some(key) = claim.unreadable() {
            return Err(document.bad(&path.join(key), "must have a text, on one line"));
        }
        if claims[..index].iter().any(|earlier| earlier.id == claim.id) {
            let message = format!(
                "\"{}\" is the id of an earlier claim; ids are unique",
                claim.id
            );
            return Err(document.bad(&path.join("id"), message));
        }
        let goals = cells
            .iter()
            .filter_map(|cell| claims::goal(&claim.measure, &cell.settings.training));
        if let Some((key, _)) = goals.into_iter().find(|(_, goal)| goal.is_null()) {
            let message = format!(
                "\"{}\" needs training.{key} in every cell; set it",
                claim.measure
            );
            return Err(document.bad(&path.join("measure"), message));
        }
        if !measures.contains(&claim.measure.as_str()) {
            return Err(document.unknown(&path.join("measure"), &claim.measure, measures));
        }
        if let (true, Some(message)) = (
            claims::is_accuracy(&claim.measure),
            claim.compare.misfit_of_shares(),
        ) {
            return Err(document.refuse(&path.join("compare"), message));
        }
        if claim.compare.settings(named()).is_empty() {
            let path = path.join("compare");
            let exists = |name: &str| known.contains(&name);
            return Err(match claim.compare.baseline() {
                _ if !exists(claim.compare.strategy()) => {
                    document.unknown(&path.join("strategy"), claim.compare.strategy(), known)
                }
                Some(to) if !exists(to) => document.unknown(&path.join("to"), to, known),
                // Both exist, but in no setting together.
                _ => document.bad(&path, "names a strategy and a cell; name two of a kind"),
            });
        }
    }
    Ok(claims)
}

fn statistics(document: &Document) -> Result<Statistics, ConfigError> {
    let statistics: Statistics = optional(document, "statistics")?.unwrap_or_default();
    let path = KeyPath::dotted("statistics");
    statistics
        .check()
        .map_err(|(key, what)| document.bad(&path.join(key), what))?;
    Ok(statistics)
}

fn figures(
    document: &Document,
    vocabulary: &Vocabulary<'_>,
) -> Result<Vec<FigureSpec>, ConfigError> {
    let figures: Vec<FigureSpec> = optional(document, "figure")?.unwrap_or_default();
    for (index, figure) in figures.iter().enumerate() {
        if !vocabulary.figures.contains(&figure.kind.as_str()) {
            let path = KeyPath::dotted("figure")
                .join(&index.to_string())
                .join("kind");
            let known = vocabulary.figures.iter().copied();
            return Err(document.unknown(&path, &figure.kind, known));
        }
        if figures[..index]
            .iter()
            .any(|other| other.kind == figure.kind)
        {
            let path = KeyPath::dotted("figure").join(&index.to_string());
            let what = "is drawn already: there is one figure of each kind";
            return Err(document.bad(&path.join("kind"), what));
        }
    }
    Ok(figures)
}
