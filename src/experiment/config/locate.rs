//! A TOML document that knows where each of its values was written.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

use super::error::{ConfigError, Place, Problem};
use super::path::KeyPath;

/// The text of an experiment file as a table, with overrides in place and the origin of every key.
#[derive(Clone, Debug)]
pub(super) struct Document {
    file: String,
    root: Value,
    places: BTreeMap<KeyPath, Place>,
}

impl Document {
    /// Reads TOML text; `file` is the name it goes by in messages.
    ///
    /// # Errors
    /// [`ConfigError::Syntax`] with the line, if the text is not TOML.
    pub(super) fn parse(text: &str, file: &str) -> Result<Self, ConfigError> {
        let lines = Lines::new(text);
        let syntax = |error: &toml::de::Error| {
            let offset = error.span().map_or(text.len(), |span| span.start);
            let (line, column) = lines.place(offset);
            // What is missing at the end is behind the last line.
            let source = text.lines().nth(line - 1).unwrap_or_default();
            let mark = " ".repeat(column - 1);
            ConfigError::Syntax {
                place: Place::Line {
                    file: file.to_owned(),
                    line,
                    column,
                },
                message: error.message().to_owned(),
                snippet: format!("  {source}\n  {mark}^"),
            }
        };
        // Read twice: once for the places of values, and once for plain values, which lose them.
        let spanned = DeTable::parse(text).map_err(|error| syntax(&error))?;
        let mut places = BTreeMap::new();
        let mut place = |path: KeyPath, offset: usize| {
            let (line, column) = lines.place(offset);
            places.insert(
                path,
                Place::Line {
                    file: file.to_owned(),
                    line,
                    column,
                },
            );
        };
        walk_table(spanned.get_ref(), &KeyPath::default(), &mut place);
        let table: Table = toml::from_str(text).map_err(|error| {
            let beyond = beyond_in(spanned.get_ref(), &KeyPath::default());
            beyond.map_or_else(
                || syntax(&error),
                |(path, number)| too_large(places.get(&path), file, &path, &number),
            )
        })?;
        Ok(Self {
            file: file.to_owned(),
            root: Value::Table(table),
            places,
        })
    }

    /// The value at a path.
    pub(super) fn get(&self, path: &KeyPath) -> Option<&Value> {
        path.segments()
            .iter()
            .try_fold(&self.root, |node, segment| match node {
                Value::Table(table) => table.get(segment),
                Value::Array(entries) => entries.get(segment.parse::<usize>().ok()?),
                _ => None,
            })
    }

    /// The keys at the top level.
    pub(super) fn top_level(&self) -> impl Iterator<Item = &str> {
        self.root
            .as_table()
            .into_iter()
            .flatten()
            .map(|(key, _)| key.as_str())
    }

    /// Puts a value at a path, making the tables on the way that do not exist; `place` is where
    /// the value was written.
    ///
    /// # Errors
    /// A sentence, if the path leads through something that is neither a table nor an existing
    /// entry of an array.
    pub(super) fn set(
        &mut self,
        path: &KeyPath,
        value: Value,
        place: &Place,
    ) -> Result<(), String> {
        let mut node = &mut self.root;
        let mut walked = KeyPath::default();
        for segment in path.segments() {
            node = match node {
                Value::Table(table) => table
                    .entry(segment.as_str())
                    .or_insert_with(|| Value::Table(Table::new())),
                Value::Array(entries) => {
                    let count = entries.len();
                    segment
                        .parse()
                        .ok()
                        .and_then(|index: usize| entries.get_mut(index))
                        .ok_or_else(|| {
                            format!(
                                "`{walked}` is a list of {count}, numbered from 0: it has no \
                                 entry `{segment}`"
                            )
                        })?
                }
                _ => return Err(format!("`{walked}` is no table: it has no key `{segment}`")),
            };
            walked = walked.join(segment);
            // A table that is made on the way was written here, too.
            self.places
                .entry(walked.clone())
                .or_insert_with(|| place.clone());
        }
        *node = value;
        // Whatever stood below the old value is gone, and its places with it.
        self.places
            .retain(|key, _| !key.segments().starts_with(path.segments()));
        self.places.insert(path.clone(), place.clone());
        Ok(())
    }

    /// Takes out a key of the top level, with all that stands below it.
    pub(super) fn remove(&mut self, key: &str) {
        if let Value::Table(table) = &mut self.root {
            table.remove(key);
        }
        self.places
            .retain(|path, _| path.segments().first().is_none_or(|first| first != key));
    }

    /// Where the value at a path, or the nearest table around it, was written.
    pub(super) fn place(&self, path: &KeyPath) -> Place {
        let mut path = Some(path.clone());
        while let Some(key) = path {
            if let Some(place) = self.places.get(&key) {
                return place.clone();
            }
            path = key.parent();
        }
        Place::File {
            file: self.file.clone(),
        }
    }

    /// An error about the value at a path.
    pub(super) fn error(&self, path: &KeyPath, problem: Problem) -> ConfigError {
        ConfigError::Invalid {
            place: self.place(path),
            section: path.section(),
            problem: Box::new(problem),
        }
    }

    /// An error about what stands at a path, in a sentence of its own.
    pub(super) fn refuse(&self, path: &KeyPath, message: impl Into<String>) -> ConfigError {
        let message = message.into();
        self.error(path, Problem::Other { message })
    }

    /// An error about a name at a path that is none of the known ones.
    pub(super) fn unknown<'a>(
        &self,
        path: &KeyPath,
        value: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> ConfigError {
        let problem = Problem::UnknownValue {
            key: path.key().to_owned(),
            value: value.to_owned(),
            known: known.into_iter().map(str::to_owned).collect(),
        };
        self.error(path, problem)
    }

    /// An error about a value that has the right type and makes no sense.
    pub(super) fn bad(&self, path: &KeyPath, message: impl Into<String>) -> ConfigError {
        let key = path.key().to_owned();
        self.error(
            path,
            Problem::BadValue {
                key,
                message: message.into(),
            },
        )
    }
}

fn walk_table(table: &DeTable<'_>, path: &KeyPath, place: &mut impl FnMut(KeyPath, usize)) {
    for (key, value) in table {
        let path = path.join(key.get_ref());
        place(path.clone(), key.span().start);
        walk_value(value, &path, place);
    }
}

fn walk_value(
    value: &Spanned<DeValue<'_>>,
    path: &KeyPath,
    place: &mut impl FnMut(KeyPath, usize),
) {
    match value.get_ref() {
        DeValue::Table(table) => walk_table(table, path, place),
        DeValue::Array(entries) => {
            for (index, entry) in entries.iter().enumerate() {
                let path = path.join(&index.to_string());
                place(path.clone(), entry.span().start);
                walk_value(entry, &path, place);
            }
        }
        _ => {}
    }
}

/// The first whole number of a table that TOML cannot hold, and its path.
fn beyond_in(table: &DeTable<'_>, path: &KeyPath) -> Option<(KeyPath, String)> {
    let mut values = table.iter();
    values.find_map(|(key, value)| beyond(value.get_ref(), &path.join(key.get_ref())))
}

fn beyond(value: &DeValue<'_>, path: &KeyPath) -> Option<(KeyPath, String)> {
    match value {
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .is_err()
            .then(|| (path.clone(), number.to_string())),
        DeValue::Table(table) => beyond_in(table, path),
        DeValue::Array(entries) => (entries.iter().enumerate())
            .find_map(|(index, entry)| beyond(entry.get_ref(), &path.join(&index.to_string()))),
        _ => None,
    }
}

/// serde would name a type of Rust's, and no key.
fn too_large(place: Option<&Place>, file: &str, path: &KeyPath, number: &str) -> ConfigError {
    let message = format!(
        "must be from {} to {}, as all whole numbers in TOML, not {number}",
        i64::MIN,
        i64::MAX
    );
    let file = file.to_owned();
    ConfigError::Invalid {
        place: place.cloned().unwrap_or(Place::File { file }),
        section: path.section(),
        problem: Box::new(Problem::BadValue {
            key: path.key().to_owned(),
            message,
        }),
    }
}

/// Where the lines of a text begin, so that a place is found without reading all before it: files
/// of links and flows have as many places as lines.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Self {
        let after = text.match_indices('\n').map(|(at, _)| at + 1);
        Self {
            text,
            starts: std::iter::once(0).chain(after).collect(),
        }
    }

    /// Line and column, both from 1, of a byte of the text.
    fn place(&self, offset: usize) -> (usize, usize) {
        let line = self.starts.partition_point(|&start| start <= offset);
        let before = self.text.get(self.starts[line - 1]..offset);
        (line, before.map_or(0, |before| before.chars().count()) + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name = 'x'\n[model]\nkind = \"gcn\"\n  hidden = 16\n\
        [[strategy]]\nkind = 'full'\n[[strategy]]\nkind = 'varco'\nschedule = { from = 8 }\n\
        [sweep]\n\"partition.workers\" = [\n  2,\n  4]\n";

    fn line(document: &Document, path: &KeyPath) -> (usize, usize) {
        match document.place(path) {
            Place::Line { line, column, .. } => (line, column),
            other => panic!("no line but {other:?}"),
        }
    }

    #[test]
    fn a_place_is_what_counting_all_before_it_gives() {
        for text in ["", "\n", "ä = 1\n\n[b]\nc = 'é'", TEXT] {
            for (offset, _) in text.char_indices() {
                let before = &text[..offset];
                let line = before.matches('\n').count() + 1;
                let column = before.chars().rev().take_while(|&c| c != '\n').count() + 1;
                assert_eq!(Lines::new(text).place(offset), (line, column));
            }
        }
    }

    #[test]
    fn every_key_and_entry_has_its_line_and_column() {
        let document = Document::parse(TEXT, "x.toml").unwrap();
        for (path, expected) in [
            ("name", (1, 1)),
            ("model", (2, 2)),
            ("model.hidden", (4, 3)),
            ("strategy.0.kind", (6, 1)),
            ("strategy.1", (7, 1)),
            ("strategy.1.schedule.from", (9, 14)),
        ] {
            assert_eq!(line(&document, &KeyPath::dotted(path)), expected, "{path}");
        }
        let sweep = KeyPath::dotted("sweep").join("partition.workers").join("1");
        assert_eq!(line(&document, &sweep), (13, 3));
    }

    #[test]
    fn what_is_not_written_is_placed_at_the_table_around_it() {
        let document = Document::parse(TEXT, "x.toml").unwrap();
        assert_eq!(line(&document, &KeyPath::dotted("model.norm")), (2, 2));
        let whole = Place::File {
            file: "x.toml".into(),
        };
        assert_eq!(document.place(&KeyPath::dotted("training")), whole);
    }

    #[test]
    fn an_override_replaces_the_place_of_all_it_replaces() {
        let mut document = Document::parse(TEXT, "x.toml").unwrap();
        let place = Place::Set {
            entry: "…".into()
        };
        let path = KeyPath::dotted("strategy.1.schedule");
        document
            .set(&path, Value::Table(Table::new()), &place)
            .unwrap();
        assert_eq!(document.place(&path.join("from")), place);
        assert_eq!(document.get(&path.join("from")), None);
        let created = KeyPath::dotted("training.batch.size");
        document.set(&created, Value::Integer(3), &place).unwrap();
        assert_eq!(document.get(&created), Some(&Value::Integer(3)));
        assert_eq!(document.place(&KeyPath::dotted("training")), place);
    }

    #[test]
    fn what_is_taken_out_leaves_nothing_behind() {
        let mut document = Document::parse(TEXT, "x.toml").unwrap();
        let places = document.places.len();
        document.remove("sweep");
        assert_eq!(document.get(&KeyPath::dotted("sweep")), None);
        // The key, the swept one and its two values.
        assert_eq!(document.places.len(), places - 4);
        assert_eq!(line(&document, &KeyPath::dotted("model.hidden")), (4, 3));
    }

    #[test]
    fn a_path_through_a_number_or_past_a_list_leads_nowhere() {
        let mut document = Document::parse(TEXT, "x.toml").unwrap();
        let place = Place::Set {
            entry: "…".into()
        };
        let mut set = |path: &str| {
            document
                .set(&KeyPath::dotted(path), Value::Integer(1), &place)
                .unwrap_err()
        };
        assert_eq!(
            set("model.hidden.x"),
            "`model.hidden` is no table: it has no key `x`"
        );
        assert_eq!(
            set("strategy.2.kind"),
            "`strategy` is a list of 2, numbered from 0: it has no entry `2`"
        );
    }

    #[test]
    fn a_syntax_error_shows_the_line() {
        let error =
            Document::parse("name = \"x\"\nseeds = [0, 1\n[model]\n", "x.toml").unwrap_err();
        assert_eq!(
            error.to_string(),
            "x.toml:3: not valid TOML: missing comma between array elements, expected `,`\n  \
             [model]\n  ^"
        );
    }
}
