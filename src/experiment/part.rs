//! A part of an experiment's runs, for one machine of several.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::error::Error;
use crate::sim::SimError;

/// Part `number` of `of`: of all runs, cell by cell, every `of`-th, from the `number`-th on.
/// Seeds of a cell thereby go to different parts, which take about equally long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Share {
    /// Which, from 1.
    pub number: usize,
    /// Of how many.
    pub of: usize,
}

impl Share {
    /// Whether it has the run of this number, from 0.
    pub(crate) const fn has(self, run: usize) -> bool {
        run % self.of == self.number - 1
    }

    /// The error of a part that no run falls to, of so many.
    pub(super) fn of_nothing(self, runs: usize) -> Error {
        Error::from(SimError::Input(format!(
            "--part {self}: no run falls to it, for there are {runs}; take no more parts than runs"
        )))
    }
}

/// As it is written: `3/16`.
impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/');
        let numbers = numbers
            .and_then(|(number, of)| Some((number.trim().parse().ok()?, of.trim().parse().ok()?)));
        match numbers {
            Some((number, of)) if (1..=of).contains(&number) => Ok(Self { number, of }),
            _ => Err("give the number of the part, from 1, and of how many, like 3/16".to_owned()),
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_falls_to_one_part() {
        let parts: Vec<Share> = (1..=5).map(|number| Share { number, of: 5 }).collect();
        for run in 0..23 {
            assert_eq!(parts.iter().filter(|part| part.has(run)).count(), 1);
        }
        assert!("1/1".parse::<Share>().unwrap().has(7));
    }

    #[test]
    fn a_part_is_written_as_it_is_read_and_others_are_refused() {
        for text in ["1/1", "3/16", "16/16"] {
            assert_eq!(text.parse::<Share>().unwrap().to_string(), text);
        }
        for text in ["", "3", "0/4", "5/4", "1/0", "a/b", "1/2/3", "-1/2"] {
            assert!(text.parse::<Share>().is_err(), "{text}");
        }
    }
}
