//! Paths to keys: `training.epochs`, `strategy.1.schedule.from`.

use std::fmt;

/// The keys from the top of the file to one value; entries of arrays are numbered from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KeyPath(Vec<String>);

impl KeyPath {
    /// A path from its segments.
    pub(super) fn new(segments: Vec<String>) -> Self {
        Self(segments)
    }

    /// A path written with dots; no key in it contains one.
    pub(super) fn dotted(path: &str) -> Self {
        Self(path.split('.').map(str::to_owned).collect())
    }

    /// This path and one more segment.
    pub(super) fn join(&self, segment: &str) -> Self {
        let mut segments = self.0.clone();
        segments.push(segment.to_owned());
        Self(segments)
    }

    /// The path without its last segment; `None` at the top.
    pub(super) fn parent(&self) -> Option<Self> {
        let (_, init) = self.0.split_last()?;
        Some(Self(init.to_vec()))
    }

    /// The segments from the top.
    pub(super) fn segments(&self) -> &[String] {
        &self.0
    }

    /// The last segment that is a key and not a number, for messages.
    pub(super) fn key(&self) -> &str {
        self.0
            .iter()
            .rev()
            .find(|segment| !is_index(segment))
            .map_or("", String::as_str)
    }

    /// The table that holds the value, as its TOML header: `[model]`, `[[strategy]]`.
    /// Empty at the top level.
    pub(super) fn section(&self) -> String {
        // The entry of a plain list belongs to the section of the list's key.
        let mut holder = self.0.as_slice();
        while let Some((last, init)) = holder.split_last() {
            holder = init;
            if !is_index(last) {
                break;
            }
        }
        let names: Vec<&str> = holder
            .iter()
            .filter(|segment| !is_index(segment))
            .map(String::as_str)
            .collect();
        let name = names.join(".");
        match holder.last() {
            None => String::new(),
            Some(last) if is_index(last) => format!("[[{name}]]"),
            Some(_) => format!("[{name}]"),
        }
    }
}

fn is_index(segment: &str) -> bool {
    segment.parse::<usize>().is_ok()
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_named_as_its_header_is_written() {
        assert_eq!(KeyPath::dotted("model.hidden").section(), "[model]");
        assert_eq!(
            KeyPath::dotted("strategy.1.ratio").section(),
            "[[strategy]]"
        );
        assert_eq!(
            KeyPath::dotted("strategy.1.schedule.from").section(),
            "[strategy.schedule]"
        );
        assert_eq!(KeyPath::dotted("seeds.2").section(), "");
        assert_eq!(
            KeyPath::dotted("network.worker.0.rank").section(),
            "[[network.worker]]"
        );
        assert_eq!(KeyPath::dotted("device.adapters.1").section(), "[device]");
    }
}
