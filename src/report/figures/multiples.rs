//! Small multiples: one panel for each setting of a sweep, under one legend.

use super::list;
use crate::experiment::rows::Sweep;
use crate::report::plot::{Axis, Bars, Headed, Panel, Reach, Row, Unit};
use crate::report::series::Entrant;
use crate::report::settings::{self, Setting};
use crate::report::style::Fill;

/// More settings than these are not shown: in figures with one panel for each, with two and with
/// three.
// That is 12, 16 and 18 panels, as many as fit a page.
const MOST: [usize; 3] = [12, 8, 6];
/// Panels whose ranges differ by more than this factor have an axis each.
const ALIKE: f64 = 4.0;

/// The settings that a figure shows.
pub(super) struct Multiples<'c, 'a> {
    /// The first ones of the sweep, or the only one.
    pub settings: Vec<Setting<'c, 'a>>,
    /// What all of the sweep's settings share; headings do not repeat it.
    common: Sweep,
    /// Which ones it leaves out; empty if none.
    pub note: String,
}

impl<'c, 'a> Multiples<'c, 'a> {
    /// Those of `cells`, for a figure with `each` (1 to 3) panels for every setting.
    pub(super) fn of(cells: impl IntoIterator<Item = &'c Entrant<'a>>, each: usize) -> Self {
        let mut settings = settings::settings(cells);
        let names: Vec<String> = settings.iter().map(|(name, _)| name.to_string()).collect();
        let note = left_out(&names, MOST[each - 1]);
        let common = settings::common(&settings);
        settings.truncate(MOST[each - 1]);
        Self {
            settings,
            common,
            note,
        }
    }

    /// Whether there is one panel a setting.
    pub(super) fn several(&self) -> bool {
        self.settings.len() > 1
    }

    /// What the caption says about panels.
    pub(super) fn caption(&self) -> String {
        let panels = if self.several() {
            " One panel for each setting of the sweep, with an axis of its own where they differ much."
        } else {
            ""
        };
        let common = settings::said_of_all(&self.common);
        let note = if self.note.is_empty() {
            String::new()
        } else {
            format!(" {}.", self.note)
        };
        format!("{panels}{common}{note}")
    }

    /// What a person who cannot see the figure should know: a clause for each cell, or, of many
    /// panels, what they are.
    pub(super) fn told(&self, clause: impl Fn(&Entrant<'a>) -> Option<String>) -> String {
        if self.several() {
            let names: Vec<String> = (self.settings.iter())
                .map(|(name, _)| name.to_string())
                .collect();
            return format!("one panel for each of {}", list(&names));
        }
        let cells = self.settings.iter().flat_map(|(_, cells)| cells);
        let clauses: Vec<String> = cells.filter_map(|cell| clause(cell)).collect();
        list(&clauses)
    }

    /// Panels of stacked bars, a row for each strategy: the same rows in every panel, and the same
    /// axis where the lengths are alike.
    pub(super) fn bars(
        &self,
        (name, unit, fills): (&str, Unit, Vec<Fill>),
        row: impl Fn(&Entrant<'a>) -> Option<Row>,
    ) -> Vec<Headed> {
        let cells = self.settings.iter().flat_map(|(_, cells)| cells.iter());
        let strategies = settings::strategies(cells.copied());
        let rows_of = |members: &[&Entrant<'a>]| -> Vec<Row> {
            let of = |strategy: &&str| {
                let cell = members.iter().find(|cell| cell.strategy == *strategy);
                cell.and_then(|cell| row(cell)).unwrap_or_else(|| Row {
                    label: (*strategy).to_owned(),
                    lengths: Vec::new(),
                    note: "–".into(),
                })
            };
            strategies.iter().map(of).collect()
        };
        let rows: Vec<Vec<Row>> = (self.settings.iter())
            .map(|(_, members)| rows_of(members))
            .collect();
        let longest = |rows: &Vec<Row>| {
            let lengths = rows.iter().map(|row| row.lengths.iter().sum());
            lengths.fold(0.0, f64::max)
        };
        let shared = alike(&rows.iter().map(longest).collect::<Vec<f64>>());
        let all = Reach::of(rows.iter().flatten());
        let panels = rows.into_iter().map(|rows| {
            let own = || Reach::of(&rows);
            Panel::Bars(Bars {
                name: name.into(),
                unit,
                fills: fills.clone(),
                reach: if shared { all.clone() } else { own() },
                rows,
                compact: self.several(),
            })
        });
        self.headed(panels)
    }

    /// The panels under the names of their settings.
    pub(super) fn headed(&self, panels: impl IntoIterator<Item = Panel>) -> Vec<Headed> {
        let headings = self
            .settings
            .iter()
            .map(|(setting, _)| self.heading(setting));
        headings.zip(panels).collect()
    }

    /// A setting as a heading, without what all share.
    pub(super) fn heading(&self, setting: &Sweep) -> String {
        setting.beyond(&self.common).heading()
    }
}

/// What is said about settings after the first `most`.
pub(super) fn left_out(names: &[String], most: usize) -> String {
    match names.get(most..).unwrap_or_default() {
        [] => String::new(),
        [one] => format!("{one} is in the tables alone"),
        // Without their names, which are longer than a figure is wide.
        [_, ..] => format!(
            "The first {most} of {} settings; the others are in the tables alone",
            names.len()
        ),
    }
}

/// Whether panels that reach so far can share an axis.
pub(super) fn alike(reaches: &[f64]) -> bool {
    let most = reaches.iter().copied().fold(0.0, f64::max);
    // Panels without anything fit any axis.
    let least = reaches.iter().copied().filter(|reach| *reach > 0.0);
    most <= ALIKE * least.fold(f64::INFINITY, f64::min)
}

/// The vertical axes of panels of accuracies, or of another score.
pub(super) struct Scores {
    name: String,
    /// The range of all panels, if one axis serves them all.
    shared: Option<[f64; 2]>,
}

impl Scores {
    /// For panels with these ranges. One axis serves them where together they are not much longer
    /// than the shortest; otherwise each panel has its own, so that differences within it are seen.
    pub(super) fn of(name: &str, ranges: impl Iterator<Item = [f64; 2]>) -> Self {
        let known: Vec<[f64; 2]> = ranges.filter(|[low, high]| low <= high).collect();
        let all = known
            .iter()
            .copied()
            .reduce(|all, its| [all[0].min(its[0]), all[1].max(its[1])]);
        let lengths = known.iter().map(|[low, high]| high - low);
        let shortest = lengths.fold(f64::INFINITY, f64::min);
        // Two points at least: scores that are nearly alike are not to look far apart.
        let shared = all.filter(|[low, high]| high - low <= ALIKE * shortest.max(0.02));
        Self {
            name: name.to_owned(),
            shared,
        }
    }

    /// The axis of the panel with this range.
    pub(super) fn axis(&self, own: [f64; 2]) -> Axis {
        Axis::linear(&self.name, Unit::Percent, self.shared.unwrap_or(own))
    }
}

/// Groups of panels as the rows of a figure: each begins a row if it does not fit into the last
/// one, and all rows have about the same length.
pub(super) fn rows(groups: Vec<Vec<Headed>>) -> Vec<Vec<Headed>> {
    let columns = match groups.iter().map(Vec::len).max().unwrap_or(0) {
        few @ 0..=4 => few,
        // Five, six and nine panels fill rows of three better than rows of four.
        5 | 6 | 9 => 3,
        _ => 4,
    };
    let mut rows: Vec<Vec<Headed>> = Vec::new();
    for group in groups {
        match rows.last_mut() {
            Some(row) if row.len() + group.len() <= columns => row.extend(group),
            _ => {
                let mut group = group.into_iter().peekable();
                while group.peek().is_some() {
                    rows.push(group.by_ref().take(columns).collect());
                }
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::rows::{Measured, RunRow};
    use crate::report::series;

    #[test]
    fn settings_beyond_the_most_are_named_as_left_out() {
        let names = ["a=1", "a=2", "a=3", "a=4"].map(str::to_owned);
        assert_eq!(left_out(&names, 4), "");
        assert_eq!(left_out(&names, 3), "a=4 is in the tables alone");
        let several = "The first 1 of 4 settings; the others are in the tables alone";
        assert_eq!(left_out(&names, 1), several);
    }

    #[test]
    fn scores_far_apart_have_an_axis_each_and_others_one() {
        let axes = |ranges: &[[f64; 2]]| {
            let scores = Scores::of("test accuracy", ranges.iter().copied());
            let axes = ranges.iter().map(|range| scores.axis(*range));
            axes.collect::<Vec<Axis>>()
        };
        let near = axes(&[[0.80, 0.84], [0.82, 0.90]]);
        assert_eq!(near[0], near[1]);
        let far = axes(&[[0.60, 0.64], [0.90, 0.94]]);
        assert!(far[0] != far[1] && far[0].position(0.9) > 1.0);
        // Ranges of hardly a point are not drawn out.
        let narrow = axes(&[[0.80, 0.801], [0.86, 0.861]]);
        assert_eq!(narrow[0], narrow[1]);
    }

    #[test]
    fn headings_leave_out_what_all_settings_share_and_the_caption_says_it() {
        let run = |workers: u64, kind: &str| {
            let sweep = Sweep::default().with("kind", kind.into());
            let sweep = sweep.with("workers", workers.into());
            RunRow {
                cell: sweep.to_string(),
                sweep,
                ..RunRow::finished(Measured::default())
            }
        };
        let told = |runs: &[RunRow]| {
            let cells = series::cells(runs, &[]);
            let shown = Multiples::of(&cells, 1);
            let headings = shown.settings.iter().map(|(sweep, _)| shown.heading(sweep));
            (headings.collect::<Vec<String>>(), shown.caption())
        };
        let (headings, caption) = told(&[run(4, "gcn"), run(4, "sage")]);
        assert_eq!(headings, ["gcn", "sage"]);
        assert!(
            caption.contains(" All settings have workers=4."),
            "{caption}"
        );
        let (headings, caption) = told(&[run(4, "gcn")]);
        assert_eq!(headings, ["gcn, workers=4"]);
        assert!(!caption.contains("All settings"), "{caption}");
    }

    #[test]
    fn a_group_of_panels_begins_a_row_unless_it_fits_into_the_last_one() {
        let lanes = || {
            Panel::Bars(Bars {
                name: String::new(),
                unit: Unit::Plain,
                fills: Vec::new(),
                rows: Vec::new(),
                reach: Reach::default(),
                compact: false,
            })
        };
        let group = |count: usize| (0..count).map(|_| (String::new(), lanes())).collect();
        let lengths = |groups: Vec<Vec<Headed>>| -> Vec<usize> {
            rows(groups).iter().map(Vec::len).collect()
        };
        assert_eq!(lengths(vec![group(1), group(1)]), [1, 1]);
        assert_eq!(lengths(vec![group(5), group(5)]), [3, 2, 3, 2]);
        assert_eq!(lengths(vec![group(12)]), [4, 4, 4]);
        assert_eq!(lengths(vec![group(1), group(1), group(10)]), [2, 4, 4, 2]);
        assert!(lengths(Vec::new()).is_empty());
    }

    #[test]
    fn reaches_that_differ_much_are_not_alike_and_nothing_counts_for_nothing() {
        assert!(alike(&[1.0, 3.0, 0.0]));
        assert!(!alike(&[1.0, 30.0]));
        assert!(alike(&[]));
    }
}
