//! The condition of a claim, as it is written and as it is meant.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::experiment::rows::{Quantity, RunRow, Sweep};

/// The condition of a claim: `compare = { strategy = "varco", to = "full", within = 0.01 }`.
///
/// `strategy` and `to` are labels of strategies, compared in every setting of a sweep; or names of
/// cells, for one setting (`workers=4 full`) or across two (`workers=1 full`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "CompareKeys", into = "CompareKeys")]
pub struct Comparison {
    strategy: String,
    pub(super) condition: Condition,
    pub(super) over: Over,
}

/// What is asked of the settings of a sweep together: `over = "mean"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Over {
    /// Each of them meets the condition: "always", "never".
    #[default]
    Each,
    /// Their mean does, taken for each seed; of factors the geometric mean: "on average".
    Mean,
    /// One of them does: "up to".
    Best,
}

impl Over {
    // The signature is serde's.
    #[allow(clippy::trivially_copy_pass_by_ref)]
    fn is_each(&self) -> bool {
        *self == Self::Each
    }
}

/// What is asked of the mean over seeds.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Condition {
    /// Against another cell.
    Relative { form: Form, to: String, by: f64 },
    /// `equals`, `at_least`, `at_most` and `between`: low ≤ strategy ≤ high.
    Between { low: f64, high: f64 },
}

/// How two cells are compared; `strategy` and `to` stand for their values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Form {
    /// `within = m`: |strategy − to| ≤ m.
    Within,
    /// `at_most_below = m`: strategy ≥ to − m.
    AtMostBelow,
    /// `at_least_above = m`: strategy ≥ to + m.
    AtLeastAbove,
    /// `at_least_below = m`: strategy ≤ to − m.
    AtLeastBelow,
    /// `times_less = r`: strategy / to ≤ 1 / r. The quotient with the baseline below is finite
    /// when nothing at all was sent; the reported figure is its inverse, so the measured factor is
    /// the harmonic mean of the seeds' factors, and infinite where nothing was sent.
    TimesLess,
}

impl Form {
    const ALL: [Self; 5] = [
        Self::Within,
        Self::AtMostBelow,
        Self::AtLeastAbove,
        Self::AtLeastBelow,
        Self::TimesLess,
    ];

    /// Its key, and where its value is written.
    fn key(self, keys: &mut CompareKeys) -> (&'static str, &mut Option<f64>) {
        match self {
            Self::Within => ("within", &mut keys.within),
            Self::AtMostBelow => ("at_most_below", &mut keys.at_most_below),
            Self::AtLeastAbove => ("at_least_above", &mut keys.at_least_above),
            Self::AtLeastBelow => ("at_least_below", &mut keys.at_least_below),
            Self::TimesLess => ("times_less", &mut keys.times_less),
        }
    }
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
    #[serde(default, skip_serializing_if = "Over::is_each")]
    over: Over,
}

impl Comparison {
    /// Why the condition makes no sense for shares such as accuracies, if it does not.
    pub(crate) fn misfit_of_shares(&self) -> Option<String> {
        match self.condition {
            Condition::Relative { form, by, .. } => (form != Form::TimesLess && by > 1.0).then(|| {
                format!("{by} is no difference of shares: accuracies are from 0 to 1, and 0.05 is five points")
            }),
            Condition::Between { low, high } => [low, high]
                .into_iter()
                .find(|end| end.is_finite() && !(0.0..=1.0).contains(end))
                .map(|end| format!("{end} is no share: accuracies are from 0 to 1, and 0.8 is 80 %")),
        }
    }
}

impl TryFrom<CompareKeys> for Comparison {
    type Error = String;

    fn try_from(mut keys: CompareKeys) -> Result<Self, String> {
        const FORMS: &str = "within, at_most_below, at_least_above, at_least_below and times_less \
                             (with `to`), equals, at_least, at_most and between (without)";
        let relative = Form::ALL.map(|form| {
            let (key, by) = form.key(&mut keys);
            by.map(|by| (form, key, by))
        });
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
        let mut forms = relative.into_iter().flatten();
        let mut ranges = absolute
            .iter()
            .filter_map(|&(form, range)| Some((form, range?)));
        // The second of each is asked for, too: two conditions are as wrong as none.
        let condition = match (forms.next(), forms.next(), ranges.next(), ranges.next()) {
            (Some((form, key, by)), None, None, None) => {
                let to = keys.to.ok_or_else(|| {
                    format!("`{key}` needs `to` beside it: the strategy to compare with")
                })?;
                if to == keys.strategy {
                    return Err(format!("`strategy` and `to` are both \"{to}\""));
                }
                let factor = form == Form::TimesLess;
                if !(by.is_finite() && by >= 0.0) || (factor && by == 0.0) {
                    let least = if factor { "above 0" } else { "of 0 or more" };
                    return Err(format!("`{key}` must be a number {least}, not {by}"));
                }
                Condition::Relative { form, to, by }
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
            over: keys.over,
        })
    }
}

impl From<Comparison> for CompareKeys {
    fn from(comparison: Comparison) -> Self {
        let mut keys = Self {
            strategy: comparison.strategy,
            over: comparison.over,
            ..Self::default()
        };
        match comparison.condition {
            Condition::Relative { form, to, by } => {
                keys.to = Some(to);
                *form.key(&mut keys).1 = Some(by);
            }
            Condition::Between { low, high } if low.is_infinite() => keys.at_most = Some(high),
            Condition::Between { low, high } if high.is_infinite() => keys.at_least = Some(low),
            Condition::Between { low, high } if low >= high => keys.equals = Some(low),
            Condition::Between { low, high } => keys.between = Some([low, high]),
        }
        keys
    }
}

impl Comparison {
    /// The strategy or cell that the claim is about.
    pub fn strategy(&self) -> &str {
        &self.strategy
    }

    /// The strategy or cell it is compared with, if any.
    pub(crate) fn baseline(&self) -> Option<&str> {
        match &self.condition {
            Condition::Relative { to, .. } => Some(to),
            Condition::Between { .. } => None,
        }
    }

    /// The difference that is asked about; none of factors and of claims about a number.
    pub(in crate::experiment) fn margin(&self) -> Option<f64> {
        match self.condition {
            Condition::Relative { form, by, .. } => (form != Form::TimesLess).then_some(by),
            Condition::Between { .. } => None,
        }
    }

    /// Names of the cells that are compared.
    pub(in crate::experiment) fn cells<'a>(
        &self,
        cells: impl Iterator<Item = Named<'a>> + Clone,
    ) -> BTreeSet<&'a str> {
        let settings = self.settings(cells.clone());
        let compared = |cell: &Named<'a>| {
            settings.iter().any(|&setting| {
                let is = |what: &str| cell.is(setting, what);
                is(&self.strategy) || self.baseline().is_some_and(is)
            })
        };
        cells.filter(compared).map(|cell| cell.name).collect()
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
    pub(in crate::experiment) fn is(&self, setting: Option<&Sweep>, what: &str) -> bool {
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

impl Comparison {
    /// The condition in words, with bounds of this quantity: `varco within 0.01 of full`.
    pub(super) fn in_words(&self, quantity: Quantity) -> String {
        let bound = |bound: f64| quantity.bound(bound);
        let what = match &self.condition {
            Condition::Relative { form, to, by } => match (form, bound(*by)) {
                (Form::Within, by) => format!("within {by} of {to}"),
                (Form::AtMostBelow, by) => format!("at most {by} below {to}"),
                (Form::AtLeastAbove, by) => format!("at least {by} above {to}"),
                (Form::AtLeastBelow, by) => format!("at least {by} below {to}"),
                (Form::TimesLess, _) if *by == 1.0 => format!("no more than {to}"),
                (Form::TimesLess, by) => format!("at least {by} times less than {to}"),
            },
            &Condition::Between { low, high } => match (bound(low), bound(high)) {
                (_, high) if low.is_infinite() => format!("at most {high}"),
                (low, _) if high.is_infinite() => format!("at least {low}"),
                (low_text, _) if low >= high => format!("equal to {low_text}"),
                (low, high) => format!("between {low} and {high}"),
            },
        };
        format!("{} {what}", self.strategy)
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
            "{ strategy = 'a', at_least = 1, over = 'mean' }",
            "{ strategy = 'a', to = 'b', times_less = 13, over = 'best' }",
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
