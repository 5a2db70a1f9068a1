//! Axes: how values map to positions, and which ticks say so.

use crate::digits::{BYTES, trimmed, unit};
use crate::report::format;

/// What an axis measures; it decides how ticks are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// A number as it is.
    Plain,
    /// Bytes, in decimal units.
    Bytes,
    /// Seconds.
    Seconds,
    /// Shares of one, shown in per cent.
    Percent,
}

/// How values map to positions.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mapping {
    Linear,
    /// Logarithmic; with room for zero beside a break in the axis if `zero`.
    Log {
        zero: bool,
    },
}

/// An axis: its name, its range and its mapping.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    name: String,
    unit: Unit,
    low: f64,
    high: f64,
    mapping: Mapping,
    /// Values that have the ticks; empty for round ones.
    marks: Vec<f64>,
}

/// A tick: where it stands in 0 to 1 along the axis, and its text; minor ticks have none.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    /// Position along the axis, 0 to 1.
    pub at: f64,
    /// The text; `None` for a minor tick.
    pub text: Option<String>,
    /// Whose text is written first where there is no room for all: the lower rank's.
    pub rank: u8,
}

/// No axis has room for more.
const MOST_TICKS: usize = 50;
/// Which tenths of a decade's first number may be written on a logarithmic axis, from few to many.
const WRITTEN: [&[u32]; 3] = [&[10], &[10, 20, 50], &[10, 15, 20, 30, 50, 70]];
/// The longest stretch of a logarithmic axis without a number, as a share of its length.
const BARE: f64 = 0.34;
/// Where zero stands on a logarithmic axis that shows it, and where its first decade begins.
const ZERO_AT: f64 = 0.05;
const AFTER_BREAK: f64 = 0.13;
/// Free space at either end of an axis, as a share of its length.
const MARGIN: f64 = 0.04;

impl Axis {
    /// A linear axis around `values`, with a margin at both ends.
    pub(crate) fn linear(name: &str, unit: Unit, values: impl IntoIterator<Item = f64>) -> Self {
        let (low, high) = range(values).unwrap_or((0.0, 1.0));
        // Values that differ in their last digits only are equal: ticks between them could not be
        // told apart.
        let negative = low < 0.0;
        let margin = if high - low > 1e-9 * high.abs().max(low.abs()) {
            (high - low) * MARGIN
        } else {
            0.05 * high.abs().max(0.1)
        };
        let (mut low, mut high) = (low - margin, high + margin);
        if unit == Unit::Percent {
            // No share lies beyond 0 or 1, and no tick should.
            (low, high) = (low.max(0.0), high.min(1.0));
        } else if unit != Unit::Plain && !negative {
            // Nor was anything sent before the start.
            low = low.max(0.0);
        }
        Self::new(name, unit, (low, high), Mapping::Linear)
    }

    /// A linear axis from zero to `high`, for bars.
    pub(crate) fn from_zero(name: &str, unit: Unit, high: f64) -> Self {
        // An axis without a length has no positions.
        let high = if high > 0.0 { high } else { 1.0 };
        Self::new(name, unit, (0.0, high), Mapping::Linear)
    }

    fn new(name: &str, unit: Unit, (low, high): (f64, f64), mapping: Mapping) -> Self {
        Self {
            name: name.into(),
            unit,
            low,
            high,
            mapping,
            marks: Vec::new(),
        }
    }

    /// A logarithmic axis around the positive `values`. Zero has no logarithm: if it occurs, it
    /// gets a place of its own at the start, left of a break in the axis.
    pub(crate) fn log(name: &str, unit: Unit, values: impl IntoIterator<Item = f64>) -> Self {
        let mut zero = false;
        let positive = range(values.into_iter().filter(|value| {
            zero |= *value == 0.0;
            *value > 0.0
        }));
        let (low, high) = positive.unwrap_or((1.0, 10.0));
        // Less than a third of a decade would leave no room for ticks.
        let widen = ((0.35 - (high / low).log10()) / 2.0).max(0.0);
        let margin = 10_f64.powf(((high / low).log10() + 2.0 * widen) * MARGIN + widen);
        let ends = (low / margin, high * margin);
        Self::new(name, unit, ends, Mapping::Log { zero })
    }

    /// The axis with ticks at `values` alone.
    pub(crate) fn marked(self, values: impl IntoIterator<Item = f64>) -> Self {
        let marks = values.into_iter().collect();
        Self { marks, ..self }
    }

    /// Where `value` stands along the axis, 0 to 1 for values in range.
    pub(crate) fn position(&self, value: f64) -> f64 {
        match self.mapping {
            Mapping::Linear => (value - self.low) / (self.high - self.low),
            Mapping::Log { zero: true } if value <= 0.0 => ZERO_AT,
            Mapping::Log { zero } => {
                let start = if zero { AFTER_BREAK } else { 0.0 };
                let share = (value / self.low).ln() / (self.high / self.low).ln();
                // An error bar may reach below zero, where there is no logarithm: it ends at the
                // border.
                start + (1.0 - start) * if share.is_finite() { share } else { 0.0 }
            }
        }
    }

    /// Whether `value` lies beyond the axis' beginning; on a logarithmic one what lies before it
    /// has no place among the rest.
    pub(crate) fn begins_before(&self, value: f64) -> bool {
        self.mapping == Mapping::Linear || value >= self.low
    }

    /// Where the break between zero and the first decade lies, 0 to 1.
    pub(crate) fn break_at(&self) -> Option<f64> {
        (self.mapping == Mapping::Log { zero: true }).then_some(f64::midpoint(ZERO_AT, AFTER_BREAK))
    }

    /// The axis' name with its unit.
    pub(crate) fn label(&self) -> String {
        match (self.unit, self.mapping) {
            (Unit::Plain, Mapping::Linear) => self.name.clone(),
            (Unit::Percent, Mapping::Log { .. }) => format!("{} (%, log scale)", self.name),
            // One unit for all ticks. On a logarithmic axis each tick has its own.
            (unit, Mapping::Linear) => format!("{} ({})", self.name, unit.of_axis(self.high).1),
            (_, Mapping::Log { .. }) => format!("{} (log scale)", self.name),
        }
    }

    /// The axis' label without its scale.
    pub(crate) fn short_label(&self) -> String {
        match (self.unit, self.mapping) {
            (Unit::Percent, _) => format!("{} (%)", self.name),
            (_, Mapping::Log { .. }) => self.name.clone(),
            (_, Mapping::Linear) => self.label(),
        }
    }

    /// Whether it is logarithmic.
    pub(crate) fn is_log(&self) -> bool {
        matches!(self.mapping, Mapping::Log { .. })
    }

    /// The ticks in range, from low to high.
    pub(crate) fn ticks(&self) -> Vec<Tick> {
        if !self.marks.is_empty() {
            let tick = |value: &f64| Tick {
                at: self.position(*value),
                text: Some(self.tick_text(*value)),
                rank: 0,
            };
            return self.marks.iter().map(tick).collect();
        }
        match self.mapping {
            Mapping::Linear => self.linear_ticks(),
            Mapping::Log { zero } => self.log_ticks(zero),
        }
    }

    fn linear_ticks(&self) -> Vec<Tick> {
        let size = self.unit.of_axis(self.high).0;
        let (low, high) = (self.low / size, self.high / size);
        // Rounded up to 1, 2 or 5: six steps at most, and seldom fewer than three.
        let step = nice_step((high - low) / 6.0);
        // As many as tell neighbouring ticks apart.
        let decimals = usize::from(step < 1.0) + usize::from(step < 0.1) + usize::from(step < 0.01);
        let mut ticks = Vec::new();
        // Rounding must not lose a tick at the very end; so it is below.
        let mut index = (low / step - 1e-9).ceil();
        // Of a range that is tiny beside its values, an index can be too large to count up.
        while index * step <= high + step * 1e-9 && ticks.len() < MOST_TICKS {
            let value = index * step;
            // Not `0.0`, and never `-0.0`.
            let text = if value == 0.0 {
                "0".into()
            } else {
                format!("{value:.decimals$}")
            };
            ticks.push(Tick {
                at: self.position(value * size),
                text: Some(text),
                rank: 0,
            });
            index += 1.0;
        }
        ticks
    }

    fn log_ticks(&self, zero: bool) -> Vec<Tick> {
        let decades = (self.high / self.low).log10();
        let zero = zero.then(|| Tick {
            at: ZERO_AT,
            text: Some("0".into()),
            rank: 0,
        });
        // Many decades: only every other power of ten is written. Few: more of each, so that it can
        // be said everywhere what lies there.
        let every = if decades > 6.0 { 2.0 } else { 1.0 };
        let start = if zero.is_some() { AFTER_BREAK } else { 0.0 };
        let reads = |ticks: &Vec<Tick>| {
            let written = ticks.iter().filter(|tick| tick.text.is_some());
            let mut ends: Vec<f64> = written.map(|tick| tick.at).collect();
            // One alone does not say how far it is to anything else.
            let several = ends.len() > 1;
            ends.insert(0, start);
            ends.push(1.0);
            several
                && ends
                    .windows(2)
                    .all(|pair| pair[1] - pair[0] <= BARE * (1.0 - start))
        };
        let coarse = WRITTEN.iter().map(|tenths| self.digit_ticks(tenths, every));
        let mut ticks = coarse.chain([self.fine_ticks(5.0)]);
        let ticks = ticks.find(reads).unwrap_or_else(|| self.fine_ticks(10.0));
        zero.into_iter().chain(ticks).collect()
    }

    /// Ticks at every digit of every decade in range, with the texts of those that are `written`,
    /// by their tenths, in decades of which the power is a multiple of `every`.
    fn digit_ticks(&self, written: &[u32], every: f64) -> Vec<Tick> {
        let mut ticks = Vec::new();
        let mut exponent = self.low.log10().floor();
        while exponent <= self.high.log10() {
            for tenths in 10..100_u32 {
                let value = f64::from(tenths) / 10.0 * 10_f64.powf(exponent);
                let written = written.contains(&tenths) && exponent % every == 0.0;
                let shown = written || tenths.is_multiple_of(10);
                if !shown || value < self.low || value > self.high {
                    continue;
                }
                ticks.push(Tick {
                    at: self.position(value),
                    text: written.then(|| self.tick_text(value)),
                    rank: match tenths {
                        10 => 0,
                        20 | 50 => 1,
                        _ => 2,
                    },
                });
            }
            exponent += 1.0;
        }
        ticks
    }

    /// Ticks at even steps, `parts` or fewer, for a range in which hardly a digit changes: two at
    /// least, as a step is at most half of it.
    fn fine_ticks(&self, parts: f64) -> Vec<Tick> {
        let step = nice_step((self.high - self.low) / parts);
        let first = (self.low / step).ceil();
        let values = (0..MOST_TICKS).map(|place| (first + place as f64) * step);
        let values = values.take_while(|value| *value <= self.high);
        let tick = |value| Tick {
            at: self.position(value),
            text: Some(self.tick_text(value)),
            rank: 0,
        };
        values.map(tick).collect()
    }

    fn tick_text(&self, value: f64) -> String {
        let short = |text: &str| trimmed(text).to_owned();
        let (size, name) = self.unit.at(value);
        match self.unit {
            Unit::Bytes | Unit::Seconds => {
                let number = value / size;
                let number = if number >= 1e4 {
                    format::digits(number)
                } else {
                    short(&format!("{number:.1}"))
                };
                format!("{number} {name}")
            }
            Unit::Percent => short(&format!("{:.2}", value * 100.0)),
            Unit::Plain => short(&format::digits(value)),
        }
    }
}

impl Unit {
    /// Size and name of what the ticks of a linear axis to `high` are counted in.
    fn of_axis(self, high: f64) -> (f64, &'static str) {
        match self {
            Self::Seconds if high >= 7200.0 => (3600.0, "h"),
            Self::Seconds if high >= 600.0 => (60.0, "min"),
            _ => self.at(high),
        }
    }

    /// Size and name of what a value like this is counted in.
    fn at(self, value: f64) -> (f64, &'static str) {
        match self {
            Self::Plain => (1.0, ""),
            Self::Percent => (0.01, "%"),
            Self::Bytes => {
                let (name, exponent) = unit(value, &BYTES);
                (10_f64.powi(exponent), name)
            }
            Self::Seconds if value >= 0.9995 => (1.0, "s"),
            Self::Seconds if value >= 0.9995e-3 => (1e-3, "ms"),
            Self::Seconds => (1e-6, "µs"),
        }
    }
}

/// The smallest of 1, 2, 5 times a power of ten that is not below `rough`.
fn nice_step(rough: f64) -> f64 {
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        // Rounding must not take a step for larger than it is.
        .find(|step| step * power >= rough * 0.999);
    step.unwrap_or(10.0) * power
}

fn range(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    values
        .into_iter()
        .filter(|value| value.is_finite())
        .fold(None, |range, value| {
            let (low, high) = range.unwrap_or((value, value));
            Some((value.min(low), value.max(high)))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(axis: &Axis) -> Vec<String> {
        axis.ticks()
            .into_iter()
            .filter_map(|tick| tick.text)
            .collect()
    }

    #[test]
    fn linear_ticks_are_round_numbers_in_the_axis_unit() {
        let axis = Axis::linear("sent", Unit::Bytes, [0.0, 9.3e6]);
        assert_eq!(axis.label(), "sent (MB)");
        assert_eq!(texts(&axis), ["0", "2", "4", "6", "8"]);
    }

    #[test]
    fn values_that_differ_in_their_last_digit_make_an_axis_like_equal_ones() {
        for value in [0.3_f64, 1.0, 1e12] {
            let next = f64::from_bits(value.to_bits() + 1);
            let axis = Axis::linear("coverage", Unit::Plain, [value, next]);
            let ticks = axis.ticks().len();
            assert!((2..20).contains(&ticks), "{value}: {ticks} ticks");
        }
    }

    #[test]
    fn zero_on_a_logarithmic_axis_stands_before_a_break() {
        let axis = Axis::log("sent", Unit::Bytes, [0.0, 1.5e3, 2e7]);
        assert_eq!(texts(&axis), ["0", "10 kB", "100 kB", "1 MB", "10 MB"]);
        let (zero, gap) = (axis.position(0.0), axis.break_at().unwrap());
        assert!(zero < gap && gap < axis.position(1.5e3));
        assert_eq!(Axis::log("sent", Unit::Bytes, [1.0, 10.0]).break_at(), None);
    }

    #[test]
    fn less_than_a_decade_still_has_at_least_two_written_ticks() {
        for high in [1.0e6, 1.05e6, 1.5e6, 4e6, 9e6] {
            let axis = Axis::log("sent", Unit::Bytes, [1e6, high]);
            assert!(texts(&axis).len() >= 2, "{high}: {:?}", texts(&axis));
        }
    }

    #[test]
    fn whatever_its_range_a_logarithmic_axis_has_two_written_ticks_that_differ() {
        let axis = Axis::log("time", Unit::Seconds, [0.117, 0.263]);
        assert_eq!(texts(&axis), ["150 ms", "200 ms", "250 ms"]);
        for unit in [Unit::Plain, Unit::Bytes, Unit::Seconds, Unit::Percent] {
            for place in 0..300 {
                // There is no tenth of a byte.
                let least = if unit == Unit::Bytes { 1.0 } else { 1e-2 };
                let low = least * 10_f64.powf(f64::from(place) / 60.0);
                for factor in [1.0, 2.0, 3.0, 4.0, 5.5, 8.0, 30.0, 80.0, 3e4, 3e7] {
                    let axis = Axis::log("sent", unit, [low, low * factor]);
                    let mut texts = texts(&axis);
                    let count = texts.len();
                    let told = format!("{unit:?}, {low} and {factor} times: {texts:?}");
                    assert!((2..12).contains(&count), "{told}");
                    let at: Vec<f64> = axis.ticks().iter().map(|tick| tick.at).collect();
                    assert!(
                        at.is_sorted() && at[0] >= 0.0 && at[at.len() - 1] <= 1.0,
                        "{told}"
                    );
                    texts.dedup();
                    assert_eq!(texts.len(), count, "{told}");
                }
            }
        }
    }

    #[test]
    fn a_logarithmic_axis_is_written_on_everywhere() {
        for place in 0..100 {
            let low = 10_f64.powf(f64::from(place) / 20.0);
            for factor in [1.5, 2.3, 3.0, 5.0, 9.0, 14.0, 40.0, 1e3, 1e5, 1e9] {
                let axis = Axis::log("sent", Unit::Bytes, [low, low * factor]);
                let ticks = axis.ticks();
                let written = ticks.iter().filter(|tick| tick.text.is_some());
                let ends: Vec<f64> = written.map(|tick| tick.at).chain([1.0]).collect();
                let bare = ends.iter().scan(0.0, |before, at| {
                    let bare = at - *before;
                    *before = *at;
                    Some(bare)
                });
                let longest = bare.fold(0.0, f64::max);
                assert!(
                    longest < 0.4,
                    "{low} and {factor} times: {:?}",
                    texts(&axis)
                );
            }
        }
    }

    #[test]
    fn long_times_are_in_minutes_and_hours_and_nothing_begins_before_zero() {
        let axis = Axis::linear("time", Unit::Seconds, [0.0, 75_600.0]);
        assert_eq!(axis.label(), "time (h)");
        assert_eq!(texts(&axis), ["0", "5", "10", "15", "20"]);
        assert_eq!(
            Axis::linear("time", Unit::Seconds, [900.0]).label(),
            "time (min)"
        );
        assert_eq!(axis.position(0.0), 0.0);
        assert!(Axis::linear("difference", Unit::Plain, [0.0, 1.0]).position(0.0) > 0.0);
    }

    #[test]
    fn a_marked_axis_has_its_ticks_where_the_values_are() {
        let axis = Axis::log("workers", Unit::Plain, [2.0, 8.0]).marked([2.0, 4.0, 8.0]);
        assert_eq!(texts(&axis), ["2", "4", "8"]);
        let at: Vec<f64> = axis.ticks().iter().map(|tick| tick.at).collect();
        assert!(
            (at[1] - f64::midpoint(at[0], at[2])).abs() < 1e-12,
            "{at:?}"
        );
    }

    #[test]
    fn equal_values_and_none_at_all_make_a_usable_axis() {
        for values in [vec![], vec![0.5], vec![0.5, 0.5], vec![f64::NAN]] {
            for axis in [
                Axis::linear("x", Unit::Percent, values.clone()),
                Axis::log("x", Unit::Seconds, values.clone()),
            ] {
                assert!(axis.position(0.5).is_finite());
                assert!(!axis.ticks().is_empty(), "{axis:?}");
            }
        }
    }
}
