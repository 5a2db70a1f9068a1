//! What accuracy costs: final test accuracy against bytes and time, with the Pareto front.

use super::multiples::{Multiples, Scores, alike, rows};
use super::{BARS, list, seeds_with, series, spot};
use crate::experiment::rows::{Sweep, distinct};
use crate::experiment::statistics::Summary;
use crate::report::format;
use crate::report::plot::{Axis, Curves, Figure, Guide, Headed, Panel, Series, Spot, Unit};
use crate::report::series::{Entrant, metric};
use crate::report::story::ACCURACY;

/// More panels than these do not fit a page.
const MOST_PANELS: usize = 18;

/// What accuracy is set against: its name, its unit, and its value for a cell.
struct Cost {
    name: &'static str,
    unit: Unit,
    of: fn(&Entrant) -> Option<Summary>,
}

const COSTS: [Cost; 3] = [
    Cost {
        name: "node-data payload",
        unit: Unit::Bytes,
        of: |cell| cell.node_data(),
    },
    Cost {
        name: "total payload",
        unit: Unit::Bytes,
        of: |cell| cell.column("payload_bytes"),
    },
    Cost {
        name: "simulated time",
        unit: Unit::Seconds,
        of: |cell| cell.column("simulated_seconds"),
    },
];

/// The panels of one cost, and who is on the front of each.
struct Group {
    panels: Vec<Headed>,
    fronts: Vec<String>,
}

/// Panels against node data alone, against all that was sent, and against time.
pub(super) fn figure(cells: &[Entrant]) -> Option<Figure> {
    let evaluated = |cell: &&Entrant| cell.column("test_accuracy").is_some();
    let metric = metric(cells);
    // Settings that are alike share a panel, and more of them fit.
    let with = |each| {
        let shown = Multiples::of(cells.iter().filter(evaluated), each);
        let groups: Option<Vec<Group>> = COSTS
            .iter()
            .map(|cost| group(&shown, cost, &metric))
            .collect();
        Some((shown, groups?))
    };
    let fit = |(_, groups): &(_, Vec<Group>)| {
        let panels = groups.iter().map(|group| group.panels.len());
        panels.sum::<usize>() <= MOST_PANELS
    };
    let most = COSTS.len();
    let (shown, groups) = (1..most)
        // From the most settings down: the first selection whose panels fit is the largest.
        .find_map(|each| with(each).filter(fit))
        .or_else(|| with(most))?;
    let told: Vec<String> = (COSTS.iter().zip(&groups))
        .map(|(cost, group)| format!("for {}: {}", cost.name, group.fronts.join("; ")))
        .collect();
    let mut panels: Vec<Vec<Headed>> = groups.into_iter().map(|group| group.panels).collect();
    if !shown.several() {
        let headings = ["(a) node data only", "(b) all that was sent", "(c) time"];
        for ((heading, _), text) in panels.iter_mut().flatten().zip(headings) {
            *heading = text.into();
        }
    }
    if panels.iter().all(|group| group.len() == 1) {
        panels = vec![panels.into_iter().flatten().collect()];
    }
    let front = match (
        distinct(cells.iter().map(|cell| cell.strategy)).len(),
        &*metric,
    ) {
        (0 | 1, _) => "",
        (_, ACCURACY) => {
            " No strategy is both more accurate and cheaper than those on the dashed Pareto front."
        }
        _ => " No strategy is both better and cheaper than those on the dashed Pareto front.",
    };
    let sends = |cell: &Entrant| cell.node_data().is_some_and(|sum| sum.mean > 0.0);
    let none = if cells.iter().any(sends) && !cells.iter().all(sends) {
        " A point at 0, left of the break in the axis, sent none."
    } else {
        ""
    };
    Some(Figure {
        kind: "pareto",
        title: format!("{} and its price", format::capitalised(&metric)),
        caption: format!(
            "Test {metric} (at the epoch of best validation {metric}) against what the whole run takes: node data \
             sent, all that is sent, and simulated time; {}.{front}{none}{}{}{}{}",
            seeds_with(cells, BARS),
            if cells.iter().any(is_alone) && !cells.iter().all(is_alone) {
                " A single worker, who has nobody to send to, is on no front."
            } else {
                ""
            },
            repartitioned(cells),
            shown.caption(),
            if shown.several() {
                " Settings between which nothing differs share a panel."
            } else {
                ""
            }
        ),
        alt: format!(
            "Test {metric} against its price. On the Pareto front {}.",
            list(&told)
        ),
        rows: rows(panels),
        note: shown.note,
    })
}

/// The least and the greatest score that bars reach.
fn range_of(spots: &[Spot]) -> [f64; 2] {
    let ends = |sign: f64| spots.iter().map(move |spot| spot.y + sign * spot.y_sd);
    [
        ends(-1.0).fold(f64::INFINITY, f64::min),
        ends(1.0).fold(f64::NEG_INFINITY, f64::max),
    ]
}

/// Who moved what to repartition, which no panel of node data shows.
fn repartitioned(cells: &[Entrant]) -> String {
    let moved = cells.iter().filter_map(|cell| {
        let moved = format::bytes(cell.repartitioned()?);
        Some((cell.strategy, format!("{} {moved}", cell.label)))
    });
    let moved: Vec<(&str, String)> = moved.collect();
    match &moved[..] {
        [] => String::new(),
        few @ [_, ..] if few.len() <= 6 => {
            let few: Vec<String> = few.iter().map(|(_, said)| said.clone()).collect();
            let few = list(&few);
            format!(" What repartitioning moved is no node data here: {few}.")
        }
        many => {
            let mut who: Vec<String> = many.iter().map(|(who, _)| (*who).to_owned()).collect();
            who.sort();
            who.dedup();
            let who = list(&who);
            format!(" What {who} moved to repartition is no node data here; the tables have it.")
        }
    }
}

/// The panels of one cost, those of settings between which nothing differs drawn once; `None` where
/// nothing is known.
fn group(shown: &Multiples, cost: &Cost, metric: &str) -> Option<Group> {
    let mut panels: Vec<(Vec<&Sweep>, Vec<Series>, Vec<usize>)> = Vec::new();
    for (setting, cells) in &shown.settings {
        let points = cells
            .iter()
            .filter_map(|cell| Some((point(cell, cost.of)?, is_alone(cell))));
        let (series, alone): (Vec<Series>, Vec<bool>) = points.unzip();
        // Bytes are the same on every network, say: one panel tells all of a sweep over networks.
        match panels.iter_mut().find(|(_, known, _)| same(known, &series)) {
            Some((settings, ..)) => settings.push(setting),
            None => panels.push((vec![setting], series, compared(&alone))),
        }
    }
    let spots = |panel: &[Series]| -> Vec<Spot> {
        let series = panel.iter().flat_map(|series| series.spots.iter().copied());
        series.collect()
    };
    let all: Vec<Spot> = panels
        .iter()
        .flat_map(|(_, panel, _)| spots(panel))
        .collect();
    if all.is_empty() {
        return None;
    }
    let axis = |spots: &[Spot]| Axis::log(cost.name, cost.unit, spots.iter().map(|spot| spot.x));
    let reach = |spots: Vec<Spot>| spots.iter().map(|spot| spot.x).fold(0.0, f64::max);
    let reaches: Vec<f64> = panels
        .iter()
        .map(|(_, panel, _)| reach(spots(panel)))
        .collect();
    let shared = alike(&reaches).then(|| axis(&all));
    let name = format!("test {metric}");
    let scores = (shown.settings.iter()).map(|(_, cells)| {
        let scores = cells
            .iter()
            .filter_map(|cell| Some(point(cell, cost.of)?.spots));
        range_of(&scores.flatten().collect::<Vec<Spot>>())
    });
    let scores = Scores::of(&name, scores);
    let mut group = Group {
        panels: Vec::new(),
        fronts: Vec::new(),
    };
    for (settings, series, compared) in panels {
        let spots = spots(&series);
        let points: Vec<(f64, f64)> = spots.iter().map(|spot| (spot.x, spot.y)).collect();
        let front = front(&points, compared);
        let labels: Vec<String> = (front.iter())
            .map(|index| series[*index].label.clone())
            .collect();
        let name = heading(&settings, shown);
        let colon = if name.is_empty() { "" } else { ": " };
        group.fronts.push(format!("{name}{colon}{}", list(&labels)));
        let panel = Panel::Curves(Curves {
            x: shared.clone().unwrap_or_else(|| axis(&spots)),
            y: scores.axis(range_of(&spots)),
            guide: Some(Guide {
                label: "Pareto front",
                points: stairs(front.iter().map(|index| points[*index])),
            }),
            series,
            joined: false,
        });
        group.panels.push((name, panel));
    }
    Some(group)
}

/// What a panel is called that stands for these of all settings: what they share, if no other
/// setting does.
fn heading(settings: &[&Sweep], shown: &Multiples) -> String {
    let Some((first, others)) = settings.split_first() else {
        return String::new();
    };
    let shared = others
        .iter()
        .fold((*first).clone(), |shared, other| shared.shared(other));
    let fits = (shown.settings.iter()).filter(|(other, _)| shared.shared(other) == shared);
    match (fits.count(), others.len()) {
        (_, 0) => shown.heading(first),
        (fits, _) if fits == settings.len() => match shown.heading(&shared) {
            nothing if nothing.is_empty() => "every setting".to_owned(),
            shared => shared,
        },
        (_, alike) => format!("{} and {alike} alike", shown.heading(first)),
    }
}

/// The places of those that a front compares. Who has nobody to send to is beaten by nobody, and
/// says nothing of the others.
fn compared(alone: &[bool]) -> Vec<usize> {
    let all = 0..alone.len();
    let several: Vec<usize> = all.clone().filter(|&index| !alone[index]).collect();
    if several.is_empty() {
        all.collect()
    } else {
        several
    }
}

/// Whether it was trained by a single worker.
fn is_alone(cell: &Entrant) -> bool {
    cell.runs.iter().all(|(run, _)| run.workers == 1)
}

/// Whether two panels show the same.
fn same(one: &[Series], other: &[Series]) -> bool {
    let pair =
        |(one, other): (&Series, &Series)| one.label == other.label && one.spots == other.spots;
    one.len() == other.len() && one.iter().zip(other).all(pair)
}

fn point(cell: &Entrant, cost: impl Fn(&Entrant) -> Option<Summary>) -> Option<Series> {
    let (cost, accuracy) = (cost(cell)?, cell.column("test_accuracy")?);
    let spot = Spot {
        x_sd: cost.spread(),
        ..spot(cost.mean, &accuracy)
    };
    Some(series(cell, vec![spot]))
}

/// The line below which nothing on the front lies: level up to the next corner, then up.
fn stairs(corners: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut line: Vec<(f64, f64)> = Vec::new();
    for corner in corners {
        if let Some(before) = line.last() {
            line.push((corner.0, before.1));
        }
        line.push(corner);
    }
    line
}

/// Of these points, those that no other of them beats in both ways (less x and more y), by growing
/// x.
fn front(points: &[(f64, f64)], mut order: Vec<usize>) -> Vec<usize> {
    // Of equal costs the most accurate comes first, so that it beats the others.
    order.sort_by(|&a, &b| {
        points[a]
            .0
            .total_cmp(&points[b].0)
            .then(points[b].1.total_cmp(&points[a].1))
    });
    let mut best = f64::NEG_INFINITY;
    order.retain(|&index| {
        let better = points[index].1 > best;
        best = best.max(points[index].1);
        better
    });
    order
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::experiment::rows::{Measured, RunRow};
    use crate::report::series;

    #[test]
    fn the_front_leaves_out_what_costs_more_for_less() {
        let points = [
            (10.0, 0.8),
            (1.0, 0.7),
            (5.0, 0.6),
            (10.0, 0.75),
            (20.0, 0.8),
        ];
        assert_eq!(front(&points, (0..points.len()).collect()), [1, 0]);
    }

    #[test]
    fn a_single_worker_is_on_no_front_of_others_that_send() {
        let run = |strategy: &str, workers, accuracy, bytes: u64| RunRow {
            cell: strategy.into(),
            strategy: strategy.into(),
            workers,
            ..RunRow::finished(Measured {
                test_accuracy: Some(accuracy),
                activation_bytes: bytes,
                payload_bytes: bytes,
                simulated_seconds: bytes as f64 + 1.0,
                ..Measured::default()
            })
        };
        let told = |runs: &[RunRow]| {
            let figure = figure(&series::cells(runs, &[])).unwrap();
            (figure.alt, figure.caption.contains("is on no front"))
        };
        let (one, full) = (run("one", 1, 0.9, 0), run("full", 4, 0.8, 900));
        let (alt, said) = told(&[one.clone(), full.clone()]);
        assert!(alt.contains("full") && !alt.contains("one"), "{alt}");
        assert!(said);
        let (alt, said) = told(&[one]);
        assert!(alt.contains("one") && !said, "{alt}");
        // The same label on several workers is another cell.
        let swept = |run: RunRow, workers: u64| RunRow {
            cell: format!("workers={workers} {}", run.strategy),
            sweep: Sweep::default().with("workers", workers.into()),
            ..run
        };
        let beside = swept(run("one", 1, 0.9, 0), 4);
        let (alt, _) = told(&[swept(run("full", 1, 0.7, 0), 1), swept(full, 4), beside]);
        assert!(alt.contains("workers=4: full"), "{alt}");
    }

    #[test]
    fn settings_between_which_nothing_differs_share_a_panel() {
        let run = |preset: &str, strategy: &str, bytes: u64, seconds: f64| RunRow {
            cell: format!("preset={preset} {strategy}"),
            strategy: strategy.into(),
            sweep: Sweep::default().with("preset", preset.into()),
            ..RunRow::finished(Measured {
                test_accuracy: Some(0.8),
                activation_bytes: bytes,
                payload_bytes: bytes,
                simulated_seconds: seconds,
                ..Measured::default()
            })
        };
        let runs = [
            run("wan", "full", 900, 9.0),
            run("wan", "varco", 300, 3.0),
            run("lte", "full", 900, 90.0),
            run("lte", "varco", 300, 30.0),
        ];
        let figure = figure(&series::cells(&runs, &[])).unwrap();
        let headings: Vec<Vec<&str>> = (figure.rows.iter())
            .map(|row| row.iter().map(|(heading, _)| heading.as_str()).collect())
            .collect();
        let expected = [["every setting"; 2], ["wan", "lte"]];
        assert_eq!(headings, expected);
    }

    #[test]
    fn a_shared_panel_is_called_by_what_its_settings_share() {
        let of = |workers: u64, preset: &str| {
            let sweep = Sweep::default().with("workers", workers.into());
            sweep.with("preset", preset.into())
        };
        let all = [of(2, "wan"), of(2, "lte"), of(4, "wan"), of(4, "lte")];
        let runs = all.clone().map(|sweep| RunRow {
            cell: sweep.to_string(),
            sweep,
            ..RunRow::finished(Measured::default())
        });
        let cells = series::cells(&runs, &[]);
        let shown = Multiples::of(&cells, 1);
        let called = |places: &[usize]| {
            let some: Vec<&Sweep> = places.iter().map(|place| &all[*place]).collect();
            heading(&some, &shown)
        };
        assert_eq!(called(&[1]), "workers=2, lte");
        assert_eq!(called(&[0, 1]), "workers=2");
        assert_eq!(called(&[1, 3]), "lte");
        assert_eq!(called(&[0, 1, 2, 3]), "every setting");
        assert_eq!(called(&[0, 1, 2]), "workers=2, wan and 2 alike");
    }

    proptest! {
        #[test]
        fn every_point_off_the_front_is_matched_or_beaten_by_one_on_it(
            points in prop::collection::vec((0.0..9.0_f64, 0.0..1.0_f64), 1..30),
        ) {
            let front = front(&points, (0..points.len()).collect());
            for (x, y) in &points {
                prop_assert!(front.iter().any(|&f| points[f].0 <= *x && points[f].1 >= *y));
            }
        }
    }
}
