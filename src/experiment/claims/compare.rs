//! The condition of a claim, as it is written and as it is meant.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::experiment::rows::{RunRow, Sweep};

/// The condition of a claim: `compare = { strategy = "varco", to = "full", within = 0.01 }`.
///
/// `strategy` and `to` are labels of strategies, compared in every setting of a sweep; or names of
/// cells, for one setting (`workers=4 full`) or across two (`workers=1 full`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "CompareKeys", into = "CompareKeys")]
pub struct Comparison {
    strategy: String,
    pub(super) condition: Condition,
}

/// What is asked of the mean over seeds; `strategy` and `to` stand for the two cells' values.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Condition {
    /// `within = m`: |strategy − to| ≤ m.
    Within { to: String, margin: f64 },
    /// `at_most_below = m`: strategy ≥ to − m.
    AtMostBelow { to: String, margin: f64 },
    /// `at_least_above = m`: strategy ≥ to + m.
    AtLeastAbove { to: String, margin: f64 },
    /// `at_least_below = m`: strategy ≤ to − m.
    AtLeastBelow { to: String, margin: f64 },
    /// `times_less = r`: strategy / to ≤ 1 / r. The quotient with the baseline below is finite
    /// when nothing at all was sent; the reported figure is its inverse, so the measured factor is
    /// the harmonic mean of the seeds' factors, and infinite where nothing was sent.
    TimesLess { to: String, factor: f64 },
    /// `equals`, `at_least`, `at_most` and `between`: low ≤ strategy ≤ high.
    Between { low: f64, high: f64 },
}

/// The keys of `compare` as they are written.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CompareKeys {
    strategy: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    within: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at_most_below: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at_least_above: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at_least_below: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    times_less: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    equals: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at_least: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at_most: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    between: Option<[f64; 2]>,
}

impl Comparison {
    /// Why the condition makes no sense for shares such as accuracies, if it does not.
    pub fn misfit_of_shares(&self) -> Option<String> {
        match self.condition {
            Condition::Within { margin, .. }
            | Condition::AtMostBelow { margin, .. }
            | Condition::AtLeastAbove { margin, .. }
            | Condition::AtLeastBelow { margin, .. } => (margin > 1.0).then(|| {
                format!("{margin} is no difference of shares: accuracies are from 0 to 1, and 0.05 is five points")
            }),
            Condition::Between { low, high } => [low, high]
                .into_iter()
                .find(|end| end.is_finite() && !(0.0..=1.0).contains(end))
                .map(|end| format!("{end} is no share: accuracies are from 0 to 1, and 0.8 is 80 %")),
            Condition::TimesLess { .. } => None,
        }
    }
}

impl TryFrom<CompareKeys> for Comparison {
    type Error = String;

    fn try_from(keys: CompareKeys) -> Result<Self, String> {
        const FORMS: &str = "within, at_most_below, at_least_above, at_least_below and times_less \
                             (with `to`), equals, at_least, at_most and between (without)";
        let relative = [
            ("within", keys.within),
            ("at_most_below", keys.at_most_below),
            ("at_least_above", keys.at_least_above),
            ("at_least_below", keys.at_least_below),
            ("times_less", keys.times_less),
        ];
        let absolute = [
            ("equals", keys.equals.map(|x| (x, x))),
            ("at_least", keys.at_least.map(|x| (x, f64::INFINITY))),
            ("at_most", keys.at_most.map(|x| (f64::NEG_INFINITY, x))),
            ("between", keys.between.map(|[low, high]| (low, high))),
        ];
        let written = [keys.equals, keys.at_least, keys.at_most];
        let written = written.into_iter().flatten();
        let mut written = written.chain(keys.between.into_iter().flatten());
        if let Some(bound) = written.find(|bound| !bound.is_finite()) {
            return Err(format!("a bound must be a finite number, not {bound}"));
        }
        let mut forms = relative.iter().filter_map(|&(form, x)| Some((form, x?)));
        let mut ranges = absolute
            .iter()
            .filter_map(|&(form, range)| Some((form, range?)));
        let condition = match (forms.next(), forms.next(), ranges.next(), ranges.next()) {
            (Some((form, x)), None, None, None) => {
                let to = keys.to.ok_or_else(|| {
                    format!("`{form}` needs `to` beside it: the strategy to compare with")
                })?;
                if to == keys.strategy {
                    return Err(format!("`strategy` and `to` are both \"{to}\""));
                }
                if !(x.is_finite() && x >= 0.0) || (form == "times_less" && x == 0.0) {
                    let least = if form == "times_less" {
                        "above 0"
                    } else {
                        "of 0 or more"
                    };
                    return Err(format!("`{form}` must be a number {least}, not {x}"));
                }
                match form {
                    "within" => Condition::Within { to, margin: x },
                    "at_most_below" => Condition::AtMostBelow { to, margin: x },
                    "at_least_above" => Condition::AtLeastAbove { to, margin: x },
                    "at_least_below" => Condition::AtLeastBelow { to, margin: x },
                    _ => Condition::TimesLess { to, factor: x },
                }
            }
            (None, None, Some((form, (low, high))), None) => {
                if keys.to.is_some() {
                    return Err(format!("`{form}` compares with a number; remove `to`"));
                }
                if low > high {
                    return Err(format!(
                        "`{form}` must be numbers in order, not {low} to {high}"
                    ));
                }
                Condition::Between { low, high }
            }
            _ => return Err(format!("give exactly one condition of {FORMS}")),
        };
        Ok(Self {
            strategy: keys.strategy,
            condition,
        })
    }
}

impl From<Comparison> for CompareKeys {
    fn from(comparison: Comparison) -> Self {
        let keys = Self {
            strategy: comparison.strategy,
            ..Self::default()
        };
        match comparison.condition {
            Condition::Within { to, margin } => Self {
                to: Some(to),
                within: Some(margin),
                ..keys
            },
            Condition::AtMostBelow { to, margin } => Self {
                to: Some(to),
                at_most_below: Some(margin),
                ..keys
            },
            Condition::AtLeastAbove { to, margin } => Self {
                to: Some(to),
                at_least_above: Some(margin),
                ..keys
            },
            Condition::AtLeastBelow { to, margin } => Self {
                to: Some(to),
                at_least_below: Some(margin),
                ..keys
            },
            Condition::TimesLess { to, factor } => Self {
                to: Some(to),
                times_less: Some(factor),
                ..keys
            },
            Condition::Between { low, high } if low.is_infinite() => Self {
                at_most: Some(high),
                ..keys
            },
            Condition::Between { low, high } if high.is_infinite() => Self {
                at_least: Some(low),
                ..keys
            },
            Condition::Between { low, high } if low >= high => Self {
                equals: Some(low),
                ..keys
            },
            Condition::Between { low, high } => Self {
                between: Some([low, high]),
                ..keys
            },
        }
    }
}

impl Comparison {
    /// The strategy or cell that the claim is about.
    pub fn strategy(&self) -> &str {
        &self.strategy
    }

    /// The strategy or cell it is compared with, if any.
    pub fn baseline(&self) -> Option<&str> {
        match &self.condition {
            Condition::Within { to, .. }
            | Condition::AtMostBelow { to, .. }
            | Condition::AtLeastAbove { to, .. }
            | Condition::AtLeastBelow { to, .. }
            | Condition::TimesLess { to, .. } => Some(to),
            Condition::Between { .. } => None,
        }
    }

    /// The settings of a sweep in which the strategies that are compared exist; `None` stands for
    /// names of cells, or an experiment without a sweep.
    pub(in crate::experiment) fn settings<'a>(
        &self,
        cells: impl Iterator<Item = Named<'a>>,
    ) -> Vec<Option<&'a Sweep>> {
        let cells: Vec<Named<'_>> = cells.collect();
        let mut settings = vec![None];
        for cell in &cells {
            // Without a sweep a cell is called as its strategy is.
            if !cell.sweep.is_empty() && !settings.contains(&Some(cell.sweep)) {
                settings.push(Some(cell.sweep));
            }
        }
        let exists = |setting, what: &str| cells.iter().any(|cell| cell.is(setting, what));
        settings.retain(|&setting| {
            exists(setting, &self.strategy) && self.baseline().is_none_or(|to| exists(setting, to))
        });
        settings
    }
}

/// What a cell is called, and what in it.
#[derive(Clone, Copy)]
pub(in crate::experiment) struct Named<'a> {
    /// Its whole name.
    pub name: &'a str,
    /// What the sweep gives it.
    pub sweep: &'a Sweep,
    /// Its strategy's label.
    pub label: &'a str,
}

impl Named<'_> {
    /// Whether it is what a claim calls so, in one setting of a sweep or by its whole name.
    pub(super) fn is(&self, setting: Option<&Sweep>, what: &str) -> bool {
        match setting {
            Some(sweep) => self.sweep == sweep && self.label == what,
            None => self.name == what,
        }
    }
}

impl<'a> From<&'a RunRow> for Named<'a> {
    fn from(run: &'a RunRow) -> Self {
        Self {
            name: &run.cell,
            sweep: &run.sweep,
            label: &run.strategy,
        }
    }
}

/// The condition in words: `varco within 0.01 of full`.
impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            strategy,
            condition,
        } = self;
        let what = match condition {
            Condition::Within { to, margin } => format!("within {margin} of {to}"),
            Condition::AtMostBelow { to, margin } => format!("at most {margin} below {to}"),
            Condition::AtLeastAbove { to, margin } => format!("at least {margin} above {to}"),
            Condition::AtLeastBelow { to, margin } => format!("at least {margin} below {to}"),
            Condition::TimesLess { to, factor: 1.0 } => format!("no more than {to}"),
            Condition::TimesLess { to, factor } => {
                format!("at least {factor} times less than {to}")
            }
            Condition::Between { low, high } if low.is_infinite() => format!("at most {high}"),
            Condition::Between { low, high } if high.is_infinite() => format!("at least {low}"),
            Condition::Between { low, high } if low >= high => format!("equal to {low}"),
            Condition::Between { low, high } => format!("between {low} and {high}"),
        };
        write!(f, "{strategy} {what}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Holder {
        compare: Comparison,
    }

    fn read(compare: &str) -> Result<Holder, String> {
        let text = format!("compare = {compare}");
        toml::from_str(&text).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn a_comparison_survives_writing_and_reading() {
        for compare in [
            "{ strategy = 'a', to = 'b', within = 0.5 }",
            "{ strategy = 'a', to = 'b', at_most_below = 0 }",
            "{ strategy = 'a', to = 'b', at_least_above = 0.1 }",
            "{ strategy = 'a', to = 'b', at_least_below = 0.1 }",
            "{ strategy = 'a', to = 'b', times_less = 10 }",
            "{ strategy = 'a', equals = 0 }",
            "{ strategy = 'a', at_least = 1 }",
            "{ strategy = 'a', at_most = -1 }",
            "{ strategy = 'a', between = [0.5, 2] }",
        ] {
            let holder = read(compare).unwrap();
            let text = toml::to_string(&holder).unwrap();
            assert_eq!(toml::from_str::<Holder>(&text).unwrap(), holder, "{text}");
        }
    }

    #[test]
    fn conditions_that_make_no_sense_are_refused() {
        for (compare, message) in [
            ("{ strategy = 'a' }", "give exactly one condition of "),
            (
                "{ strategy = 'a', equals = 0, at_least = 0 }",
                "give exactly one condition of ",
            ),
            (
                "{ strategy = 'a', to = 'b', within = 1, equals = 0 }",
                "give exactly one condition",
            ),
            (
                "{ strategy = 'a', within = 1 }",
                "`within` needs `to` beside it",
            ),
            (
                "{ strategy = 'a', to = 'a', within = 1 }",
                "`strategy` and `to` are both \"a\"",
            ),
            (
                "{ strategy = 'a', to = 'b', equals = 1 }",
                "`equals` compares with a number; remove",
            ),
            (
                "{ strategy = 'a', to = 'b', within = -1 }",
                "`within` must be a number of 0 or more",
            ),
            (
                "{ strategy = 'a', to = 'b', times_less = 0 }",
                "`times_less` must be a number above 0",
            ),
            (
                "{ strategy = 'a', between = [2, 1] }",
                "`between` must be numbers in order",
            ),
            (
                "{ strategy = 'a', equals = nan }",
                "a bound must be a finite number, not NaN",
            ),
        ] {
            let error = read(compare).unwrap_err();
            assert!(error.starts_with(message), "{compare}: {error}");
        }
    }
}
