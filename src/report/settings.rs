//! Cells of a sweep by setting and by strategy, and how settings read.

use super::series::Cell;

/// The cells of one setting of a sweep.
pub type Setting<'c, 'a> = (&'a str, Vec<&'c Cell<'a>>);

/// The cells by setting, in the order of their appearance; one without a name where nothing is swept.
pub fn settings<'c, 'a: 'c>(cells: impl IntoIterator<Item = &'c Cell<'a>>) -> Vec<Setting<'c, 'a>> {
    let mut settings: Vec<Setting> = Vec::new();
    for cell in cells {
        match settings.iter_mut().find(|(name, _)| *name == cell.setting) {
            Some((_, members)) => members.push(cell),
            None => settings.push((cell.setting, vec![cell])),
        }
    }
    settings
}

/// The strategies' labels, each once, in the order of their appearance.
pub fn strategies<'c, 'a: 'c>(cells: impl IntoIterator<Item = &'c Cell<'a>>) -> Vec<&'a str> {
    distinct(cells.into_iter().map(|cell| cell.strategy))
}

/// The labels, each once.
pub fn distinct<'a>(labels: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut known = Vec::new();
    for label in labels {
        if !known.contains(&label) {
            known.push(label);
        }
    }
    known
}

/// The strategy that others are compared with: `full`, or the first where there is none.
pub fn yardstick<'a>(cells: &[Cell<'a>]) -> Option<&'a str> {
    let full = cells.iter().find(|cell| cell.strategy == "full");
    full.or(cells.first()).map(|cell| cell.strategy)
}

/// Keys and values of a setting: `kind=gcn workers=4` has two. A value may contain spaces.
pub fn values(setting: &str) -> Vec<(&str, String)> {
    let mut values: Vec<(&str, String)> = Vec::new();
    for word in setting.split_whitespace() {
        match (word.split_once('='), values.last_mut()) {
            (Some((key, value)), _) if !key.is_empty() => values.push((key, value.to_owned())),
            (_, Some((_, value))) => *value = format!("{value} {word}"),
            _ => {}
        }
    }
    values
}

/// A setting as a heading: words need no key, `kind=gcn workers=4` is `gcn, workers=4`.
pub fn heading(setting: &str) -> String {
    let needs_key = |value: &str| {
        let number = value.starts_with(|first: char| !first.is_alphabetic());
        number || ["true", "false"].contains(&value)
    };
    let say = |(key, value): (&str, String)| {
        if needs_key(&value) {
            format!("{key}={value}")
        } else {
            value
        }
    };
    let said: Vec<String> = values(setting).into_iter().map(say).collect();
    said.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_read_as_keys_and_values_with_spaces() {
        let expected = [
            ("dataset", "my graph".to_owned()),
            ("workers", "4".to_owned()),
        ];
        assert_eq!(values("dataset=my graph workers=4"), expected);
        assert!(values("").is_empty());
        let said = heading("kind=gcn workers=4 cache=true dataset=my graph");
        assert_eq!(said, "gcn, workers=4, cache=true, my graph");
    }
}
