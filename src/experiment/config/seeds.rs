//! `seeds`: a list, or as many as it takes to decide the claims.

use toml::Value;

use super::decode::decode;
use super::error::ConfigError;
use super::locate::Document;
use super::path::KeyPath;
use super::settings;
use crate::experiment::statistics::{Looks, Statistics};

/// The seeds that every cell has, and the looks at the claims while more are added, if they are.
pub(super) fn seeds(
    document: &Document,
    statistics: &Statistics,
) -> Result<(Vec<u64>, Option<Looks>), ConfigError> {
    let path = KeyPath::dotted("seeds");
    if let Some(value @ Value::Table(_)) = document.get(&path) {
        let looks: Looks = decode(document, &path, value)?;
        looks
            .check(statistics.minimum_seeds)
            .map_err(|(key, what)| document.bad(&path.join(key), what))?;
        return Ok(((0..looks.first as u64).collect(), Some(looks)));
    }
    if let Some(value) = document.get(&path).filter(|value| !value.is_array()) {
        let expected = "a list such as [0, 1, 2], or { first = 5, most = 30 }, which adds seeds until the claims are decided";
        return Err(settings::mismatch(document, &path, expected, value));
    }
    let seeds: Vec<u64> = super::required(document, "seeds")?;
    if seeds.is_empty() {
        return Err(document.bad(&path, "must have at least one seed, like [0, 1, 2]"));
    }
    for (index, seed) in seeds.iter().enumerate() {
        if seeds[..index].contains(seed) {
            let message = format!("must be distinct, and {seed} is there twice");
            return Err(document.bad(&path.join(&index.to_string()), message));
        }
    }
    Ok((seeds, None))
}
