//! What the numbers say, in a few plain sentences.

mod bytes;
mod sweep;

use std::collections::BTreeSet;

use serde::Serialize;

use super::figures::list;
use super::format;
use super::series::{Entrant, comparable, metric};
use super::settings::settings;
use crate::experiment::statistics::Summary;
use crate::graph::Metric;

/// The metric of which sentences speak in words of their own.
pub(super) const ACCURACY: &str = Metric::Accuracy.title();

/// One number that stands out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Headline {
    /// What it is.
    pub name: &'static str,
    /// Whose it is.
    pub label: String,
    /// The number.
    pub value: String,
}

/// The report's opening: headlines, then one paragraph.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Story {
    /// Numbers that stand out.
    pub headlines: Vec<Headline>,
    /// Whole sentences.
    pub sentences: Vec<String>,
}

/// A cell with one of its numbers.
type Ranked<'a, 'b> = (&'a Entrant<'b>, Summary);

fn ranked<'a, 'b>(
    cells: &'a [Entrant<'b>],
    number: impl Fn(&Entrant<'b>) -> Option<Summary>,
) -> Vec<Ranked<'a, 'b>> {
    let mut ranked: Vec<Ranked> = cells
        .iter()
        .filter_map(|cell| Some((cell, number(cell)?)))
        .collect();
    // Stable: of equal means the cell that comes first in the table stays first.
    ranked.sort_by(|a, b| a.1.mean.total_cmp(&b.1.mean));
    ranked
}

/// Tells the story of the finished cells, over the seeds that those that are compared share.
pub(super) fn tell(cells: &[Entrant]) -> Story {
    let cells = &comparable(cells)[..];
    let settings = settings(cells);
    if settings.len() > 1 {
        return sweep::tell(cells, &settings);
    }
    let mut story = Story::default();
    time(cells, &mut story);
    bytes::node_data(cells, &mut story);
    accuracy(cells, &mut story);
    bytes::outweighed(cells, &mut story);
    story
}

fn accuracy(cells: &[Entrant], story: &mut Story) {
    let ranked = ranked(cells, Entrant::accuracy);
    let Some((best, accuracy)) = ranked.last() else {
        return;
    };
    let (value, metric) = (format::percent_summary(accuracy), metric(cells));
    let seeds = match best.runs.len() {
        1 => "a single seed".to_owned(),
        seeds => format!("{seeds} seeds"),
    };
    let equal = equal(&ranked, accuracy);
    let mut sentence = format!(
        "Over {seeds}, {} {}",
        list(&equal),
        match (&*metric, equal.len()) {
            (ACCURACY, 1) => format!("is the most accurate: {value} of test nodes"),
            (ACCURACY, _) => format!("share the highest accuracy: {value} of test nodes"),
            (other, 1) => format!("has the highest test {other}: {value}"),
            (other, _) => format!("share the highest test {other}: {value}"),
        }
    );
    // Within one standard deviation of the best there is no saying which is better. Who is far
    // below it and scatters most is not near it.
    let level = |(cell, other): &&Ranked| {
        !equal.contains(&cell.label) && accuracy.mean - other.mean <= accuracy.spread()
    };
    let level: Vec<String> = ranked
        .iter()
        .filter(level)
        .map(|(cell, accuracy)| format!("{} ({})", cell.label, format::percent(accuracy.mean)))
        .collect();
    if best.runs.len() > 1 && !level.is_empty() {
        sentence += "; within one standard deviation of it: ";
        sentence += &list(&level);
    }
    story.sentences.push(sentence + ".");
    story.headlines.push(Headline {
        name: if metric == ACCURACY {
            "most accurate"
        } else {
            "highest score"
        },
        label: equal.join(", "),
        value,
    });
}

/// The labels of all whose mean is this one, to the bit.
fn equal(ranked: &[Ranked], to: &Summary) -> Vec<String> {
    let equal = ranked.iter().filter(|(_, other)| other.mean == to.mean);
    equal.map(|(cell, _)| cell.label.clone()).collect()
}

/// Whether a cell has one worker alone: it sends nothing, so how workers communicate is no question
/// there.
fn alone(cell: &Entrant) -> bool {
    cell.runs.iter().all(|(run, _)| run.workers == 1)
}

/// The cells across workers, by growing simulated time; all cells where none is.
fn by_time<'a, 'b>(cells: &'a [Entrant<'b>]) -> Vec<Ranked<'a, 'b>> {
    let every = cells.iter().all(alone);
    ranked(cells, |cell| {
        (every || !alone(cell))
            .then(|| cell.column("simulated_seconds"))
            .flatten()
    })
}

/// Whether a cell's workers never speak of nodes: that it is fast is no question.
fn is_isolated(cell: &Entrant) -> bool {
    cell.runs.iter().any(|(run, _)| run.kind() == "isolated")
}

/// The two strategies whose times a reader wants to compare: the fastest across workers, and
/// `full`, or else the slowest; `isolated` only where there are no two others.
pub(super) fn rivals<'a>(cells: &'a [Entrant<'_>]) -> Option<[&'a str; 2]> {
    // One machine is as fast on any network.
    let ranked = by_time(cells).into_iter().filter(|(cell, _)| !alone(cell));
    let every: Vec<Ranked> = ranked.collect();
    let speaking = every.iter().filter(|(cell, _)| !is_isolated(cell));
    let speaking: Vec<Ranked> = speaking.copied().collect();
    pair(&speaking).or_else(|| pair(&every))
}

/// The first of the ranked, and `full`, or else the last.
fn pair<'a>(ranked: &[Ranked<'a, '_>]) -> Option<[&'a str; 2]> {
    let fastest = ranked.first()?.0.strategy;
    let full = ranked.iter().find(|(cell, _)| cell.is_reference);
    let other = [full, ranked.last()].into_iter().flatten();
    let mut other = other.map(|(cell, _)| cell.strategy);
    Some([fastest, other.find(|label| *label != fastest)?])
}

fn time(cells: &[Entrant], story: &mut Story) {
    let ranked = by_time(cells);
    let (Some((fastest, least)), Some((slowest, most))) = (ranked.first(), ranked.last()) else {
        return;
    };
    // One alone is ahead of nobody, and no time makes no factor.
    if ranked.len() < 2 || least.mean <= 0.0 {
        return;
    }
    let runs = ranked.iter().flat_map(|(cell, _)| &cell.runs);
    let workers: BTreeSet<u64> = runs.map(|(run, _)| run.workers).collect();
    let across = match workers.first() {
        Some(number) if workers.len() == 1 && *number > 1 => format!(" across {number} workers"),
        Some(_) if workers.len() > 1 => " across workers".to_owned(),
        _ => String::new(),
    };
    let value = format::seconds(least.mean);
    let full = ranked.iter().find(|(cell, _)| cell.is_reference);
    let slower = full.filter(|(cell, _)| cell.label != fastest.label);
    let than = slower.and_then(|(full, _)| {
        let [mine, theirs] = fastest.beside(full, |run| Some(run.simulated_seconds))?;
        let factor = format::factor(theirs / mine);
        Some(format!("{factor} faster than {}", full.label))
    });
    let than_full = match (&than, full) {
        (Some(than), Some((full, _))) => format!(", {than}{}", bytes::at_accuracy(fastest, full)),
        _ => String::new(),
    };
    let equal = equal(&ranked, least);
    let who = match &equal[..] {
        all if all.len() == ranked.len() => format!("{} take the same", list(all)),
        [one] => format!("{one} is the fastest"),
        several => format!("{} share the shortest time", list(several)),
    };
    let mut sentence = format!("In simulated time, {who}{across}: {value}{than_full}.");
    if equal.len() < ranked.len() {
        let most = format::seconds(most.mean);
        sentence += &format!(" The slowest is {} with {most}.", slowest.label);
        story.headlines.push(Headline {
            name: "fastest across workers",
            label: equal.join(", "),
            value: than.unwrap_or(value),
        });
    }
    story.sentences.push(sentence);
    let lone = cells.iter().filter(|cell| alone(cell) && !alone(fastest));
    for cell in lone {
        if let Some(time) = cell.column("simulated_seconds") {
            story.sentences.push(format!(
                "A single machine ({}) would take {}, and would have to hold the whole graph.",
                cell.label,
                format::seconds(time.mean)
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::rows::{Measured, RunRow};
    use crate::report::series;

    fn run(strategy: &str, seed: u64, accuracy: f64, node_data: u64, gradients: u64) -> RunRow {
        RunRow {
            cell: strategy.into(),
            strategy: strategy.into(),
            seed,
            ..RunRow::finished(Measured {
                test_accuracy: Some(accuracy),
                activation_bytes: node_data,
                parameter_gradient_bytes: gradients,
                payload_bytes: node_data + gradients,
                simulated_seconds: 1.0 + node_data as f64 / 1e6,
                ..Measured::default()
            })
        }
    }

    fn sentences(runs: &[RunRow]) -> String {
        tell(&series::cells(runs, &[])).sentences.join(" ")
    }

    fn says(runs: &[RunRow], sentence: &str) {
        let story = sentences(runs);
        assert!(story.contains(sentence), "{sentence}: {story}");
    }

    #[test]
    fn the_story_names_the_winner_the_saver_and_the_factor() {
        let runs = [
            run("full", 0, 0.815, 5_000_000, 1_000_000),
            run("isolated", 0, 0.70, 0, 1_000_000),
            run("retexo", 0, 0.811, 100_000, 1_000_000),
        ];
        says(&runs, "full is the most accurate: 81.5 % of test nodes.");
        says(&runs, "No node data at all is sent by isolated.");
        says(
            &runs,
            "The least node data among the others is sent by retexo: 100 kB, 50.0× less than the 5.00 MB of full, at 0.4 \
             points lower accuracy.",
        );
        says(&runs, "outweigh node data for retexo (10.0×):");
        says(
            &runs,
            "isolated is the fastest: 1.00 s, 6.00× faster than full, at 11.5 points lower accuracy.",
        );
        let story = sentences(&runs);
        assert!(story.starts_with("In simulated time"), "{story}");
    }

    #[test]
    fn who_sends_no_node_data_but_repartitions_is_said_to() {
        let mut grappa = run("grappa", 0, 0.8, 0, 10);
        grappa.measured.as_mut().unwrap().repartition_bytes = 35_300_000;
        says(
            &[run("full", 0, 0.8, 2_000, 10), grappa],
            "No node data at all is sent by grappa (which moves 35.3 MB to repartition).",
        );
    }

    #[test]
    fn of_equals_none_leads() {
        let (one, other) = (run("full", 0, 0.8, 9, 1), run("own", 0, 0.8, 9, 1));
        let runs = [one, other, run("slow", 0, 0.7, 10_000_000, 1)];
        says(&runs, "full and own share the highest accuracy: 80.0 %");
        says(&runs, "full and own share the shortest time: 1.00 s. The");
        let workers = |workers| {
            move |run: &RunRow| RunRow {
                workers,
                ..run.clone()
            }
        };
        let mut both: Vec<RunRow> = runs[..2].iter().map(workers(4)).collect();
        both.push(workers(1)(&runs[2]));
        says(
            &both,
            "full and own take the same across 4 workers: 1.00 s. A single machine (slow)",
        );
    }

    #[test]
    fn nothing_is_said_about_gradients_that_weigh_less() {
        let runs = [
            run("full", 0, 0.8, 2_000, 1_000),
            run("varco", 0, 0.8, 1_500, 1_000),
        ];
        assert!(!sentences(&runs).contains("outweigh"));
    }

    #[test]
    fn a_rival_within_a_standard_deviation_is_named() {
        let runs = [
            run("full", 0, 0.80, 1, 1),
            run("full", 1, 0.82, 1, 1),
            run("varco", 0, 0.79, 1, 1),
            run("varco", 1, 0.82, 1, 1),
            // Far below, however much it scatters.
            run("isolated", 0, 0.20, 1, 1),
            run("isolated", 1, 0.81, 1, 1),
        ];
        says(
            &runs,
            "within one standard deviation of it: varco (80.5 %).",
        );
    }

    #[test]
    fn who_has_other_seeds_is_compared_over_those_that_all_have() {
        // By all its seeds the second is the slower, the larger and the less accurate.
        let runs = [
            run("few", 0, 0.80, 2_000_000, 1),
            run("many", 0, 0.81, 1_000_000, 1),
            run("many", 1, 0.50, 9_000_000, 1),
        ];
        says(&runs, "many is the fastest");
        says(
            &runs,
            "The least node data is sent by many: 1.00 MB, 2.00× less",
        );
        says(
            &runs,
            "Over a single seed, many is the most accurate: 81.0 %",
        );
    }

    #[test]
    fn a_single_machine_is_told_apart_and_is_not_the_fastest() {
        let on = |workers: u64, run: RunRow| RunRow { workers, ..run };
        let runs = [
            on(1, run("one worker", 0, 0.8, 0, 0)),
            on(4, run("full", 0, 0.8, 3_000_000, 1)),
            on(4, run("bns", 0, 0.8, 1_000_000, 1)),
        ];
        let story = sentences(&runs);
        for says in [
            "bns is the fastest across 4 workers: 2.00 s, 2.00× faster than full, at the same accuracy.",
            "The least node data is sent by bns: 1.00 MB, 3.00× less than the 3.00 MB of full",
            "A single machine (one worker) would take 1.00 s, and would have to hold the whole graph.",
        ] {
            assert!(story.contains(says), "{story}");
        }
        let cells = series::cells(&runs, &[]);
        assert_eq!(rivals(&cells), Some(["bns", "full"]));
        assert_eq!(rivals(&cells[..1]), None);
    }

    #[test]
    fn who_says_nothing_is_a_rival_only_where_there_are_no_two_others() {
        let runs = [
            run("full", 0, 0.8, 3_000_000, 1),
            run("isolated", 0, 0.7, 0, 1),
            run("bns", 0, 0.8, 1_000_000, 1),
        ];
        let cells = series::cells(&runs, &[]);
        assert_eq!(rivals(&cells), Some(["bns", "full"]));
        assert_eq!(rivals(&cells[..2]), Some(["isolated", "full"]));
    }

    #[test]
    fn without_runs_there_is_no_story() {
        assert_eq!(tell(&[]), Story::default());
    }
}
