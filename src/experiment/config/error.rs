//! What can be wrong with an experiment file, and how it is said.

use std::fmt;
use std::io;

use thiserror::Error;

use super::homes::{SECTIONS, kind_with, options_with, sections_with};

/// Where a key or a value was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The file as a whole: a key that is nowhere in it.
    File {
        /// The experiment file.
        file: String,
    },
    /// A line of the file. Both numbers count from 1; columns are characters.
    Line {
        /// The experiment file.
        file: String,
        /// The line.
        line: usize,
        /// The character in the line.
        column: usize,
    },
    /// An override on the command line, as it was given.
    Set {
        /// `key.path=value`.
        entry: String,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { file } => write!(f, "{file}"),
            Self::Line { file, line, .. } => write!(f, "{file}:{line}"),
            Self::Set { entry } => write!(f, "from --set {entry}"),
        }
    }
}

/// What is wrong with a key or its value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Problem {
    /// A key that means nothing here.
    #[error("unknown key `{key}`{}", hint(key, known, "keys"))]
    UnknownKey {
        /// The key as written.
        key: String,
        /// The keys that would be right.
        known: Vec<String>,
    },
    /// A name that is none of the possible ones.
    #[error("`{key}` cannot be \"{value}\"{}", hint(value, known, "values"))]
    UnknownValue {
        /// The key.
        key: String,
        /// Its value as written.
        value: String,
        /// The values that would be right.
        known: Vec<String>,
    },
    /// A key that must be there.
    #[error("the key `{key}` is missing; add it")]
    MissingKey {
        /// The key.
        key: String,
    },
    /// A section that must be there.
    #[error("the section [{section}] is missing; add it")]
    MissingSection {
        /// The section's name.
        section: String,
    },
    /// A value of another type.
    #[error("`{key}`: expected {expected}, found {found}")]
    WrongType {
        /// The key.
        key: String,
        /// The type in words.
        expected: String,
        /// The value in words.
        found: String,
    },
    /// A value of the right type that makes no sense.
    #[error("`{key}` {message}")]
    BadValue {
        /// The key.
        key: String,
        /// The rest of the sentence, for example `must be at least 1, not 0`.
        message: String,
    },
    /// What one cell of several cannot be.
    #[error("{message} (cell \"{cell}\")")]
    OfCell {
        /// A sentence.
        message: String,
        /// The cell's name.
        cell: String,
    },
    /// Anything that concerns a section and no single key.
    #[error("{message}")]
    Other {
        /// A sentence.
        message: String,
    },
}

/// Why an experiment file cannot be used. Every variant is an error of the input.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// `--scale` names a size that the file does not have.
    #[error("--scale {scale}: the experiment file has no such size; it has {}", known.join(", "))]
    Scale {
        /// The size asked for.
        scale: String,
        /// Those there are.
        known: Vec<String>,
    },
    /// The file cannot be read.
    #[error("cannot read the experiment file {file}: {source}")]
    Unreadable {
        /// The file.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not TOML.
    #[error("{place}: not valid TOML: {message}\n{snippet}")]
    Syntax {
        /// Where reading stopped.
        place: Place,
        /// What the reader expected.
        message: String,
        /// The line of text with a mark under the place.
        snippet: String,
    },
    /// A `--set` entry that is not `key.path=value`, or whose path leads nowhere.
    #[error("--set {entry}: {message}")]
    Set {
        /// The entry as given.
        entry: String,
        /// What is wrong with it, and what would be right.
        message: String,
    },
    /// A key or value that is wrong.
    #[error(
        "{place}: {}{problem}{}",
        in_section(section),
        elsewhere(section, problem)
    )]
    Invalid {
        /// Where it was written.
        place: Place,
        /// The section as it is written in TOML, for example `[model]`; empty at the top level.
        section: String,
        /// What is wrong.
        problem: Box<Problem>,
    },
}

impl ConfigError {
    /// Whether it is about a section, whichever strategy it was found with.
    pub(in crate::experiment) fn is_of(&self, name: &str) -> bool {
        matches!(self, Self::Invalid { section, .. } if section.trim_matches(['[', ']']) == name)
    }

    /// What is wrong, without its place and its cell, if it has them.
    pub(in crate::experiment) fn what(&self) -> String {
        match self {
            Self::Invalid { problem, .. } => match &**problem {
                Problem::OfCell { message, .. } => message.clone(),
                problem => problem.to_string(),
            },
            other => other.to_string(),
        }
    }
}

fn in_section(section: &str) -> String {
    if section.is_empty() {
        String::new()
    } else {
        format!("in {section}: ")
    }
}

/// Where an unknown key belongs, if an option, another kind or other sections have it. Of figures
/// and claims nothing is said: their keys are called like others by chance.
pub(super) fn elsewhere(section: &str, problem: &Problem) -> String {
    let Problem::UnknownKey { key, known } = problem else {
        return String::new();
    };
    let settings = section.trim_matches(['[', ']']);
    if settings == "strategy" {
        let inside = options_with(key, known);
        if !inside.is_empty() {
            let inside = inside.iter();
            let inside = inside.map(|(option, written)| format!("of `{option}`: {written}"));
            let inside: Vec<String> = inside.collect();
            return format!(". `{key}` is a key {}", inside.join(", and "));
        }
    }
    let by_kind = ["optimizer", "strategy.schedule", "strategy.codec"].contains(&settings);
    let table = settings.rsplit('.').next().unwrap_or_default();
    if by_kind && let Some(kind) = kind_with(table, key) {
        return format!(". `{key}` is a key of kind = \"{kind}\"");
    }
    let homes = sections_with(key);
    let is_one = ["", "strategy"].contains(&settings) || SECTIONS.contains(&settings);
    if homes.is_empty() || !is_one {
        return String::new();
    }
    let homes: Vec<String> = homes.iter().map(|home| format!("[{home}]")).collect();
    format!(". `{key}` is a key of {}", homes.join(" and of "))
}

/// `; did you mean …? The … are: …`, as far as there is something to say.
fn hint(given: &str, known: &[String], what: &str) -> String {
    /// Cells of a sweep may be thousands.
    const MOST_SHOWN: usize = 100;

    let mut text = String::new();
    if let Some(close) = closest(given, known) {
        text = format!("; did you mean `{close}`?");
    }
    if !known.is_empty() {
        let stop = if text.is_empty() { "." } else { "" };
        let shown = &known[..known.len().min(MOST_SHOWN)];
        text = format!("{text}{stop} Possible {what}: {}", shown.join(", "));
        if shown.len() < known.len() {
            text += &format!(" and {} others", known.len() - shown.len());
        }
    }
    text
}

/// The known name most like `given`, if one is like it at all: Jaro–Winkler similarity over 0.8, or
/// one letter changed, missing, added or swapped with its neighbour. The first of equals wins.
/// Where none is, the first that has all of `given` in it.
pub(crate) fn closest<'a, S: AsRef<str>>(given: &str, known: &'a [S]) -> Option<&'a str> {
    let given = given.to_lowercase();
    let mut best = (0.8, None);
    for name in known.iter().map(S::as_ref) {
        // Of two letters, one changed leaves too little to tell what was meant.
        let one_slip = given.len() > 2 && strsim::osa_distance(&given, name) <= 1;
        let likeness = strsim::jaro_winkler(&given, name).max(if one_slip { 0.9 } else { 0.0 });
        if likeness > best.0 {
            best = (likeness, Some(name));
        }
    }
    let mut names = known.iter().map(S::as_ref);
    best.1
        .or_else(|| names.find(|name| given.len() > 2 && name.contains(&given)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn a_near_miss_finds_its_name_and_a_far_one_none() {
        let names = known(&["kind", "layers", "hidden", "dropout", "norm"]);
        assert_eq!(closest("hiden", &names), Some("hidden"));
        assert_eq!(closest("Layer", &names), Some("layers"));
        assert_eq!(closest("gnc", &known(&["sage", "gcn"])), Some("gcn"));
        assert_eq!(closest("learning_rate", &names), None);
        assert_eq!(closest("x", &known(&[])), None);
        let sets = ["cora", "ogbn-arxiv", "ogbn-products"];
        assert_eq!(closest("arxiv", &sets), Some("ogbn-arxiv"));
        assert_eq!(closest("ar", &sets), None);
    }

    #[test]
    fn a_hint_lists_no_more_than_a_reader_can_read() {
        let many: Vec<String> = (0..250).map(|number| format!("cell {number}")).collect();
        let text = hint("zzz", &many, "values");
        assert!(text.ends_with("cell 98, cell 99 and 150 others"), "{text}");
    }

    #[test]
    fn a_hint_suggests_and_lists() {
        let problem = Problem::UnknownKey {
            key: "epoch".into(),
            known: known(&["epochs", "evaluate_every"]),
        };
        assert_eq!(
            problem.to_string(),
            "unknown key `epoch`; did you mean `epochs`? Possible keys: epochs, evaluate_every"
        );
        let problem = Problem::UnknownValue {
            key: "kind".into(),
            value: "transformer".into(),
            known: known(&["gcn", "sage"]),
        };
        assert_eq!(
            problem.to_string(),
            "`kind` cannot be \"transformer\". Possible values: gcn, sage"
        );
    }
}
