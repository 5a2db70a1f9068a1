//! The story of a sweep: who is ahead in how many of its settings.

use super::super::figures::list;
use super::super::format;
use super::super::series::{Entrant, metric};
use super::super::settings::{Setting, reference, strategies};
use super::bytes::outweighed;
use super::{ACCURACY, Headline, Story, alone};

/// Tells the story of several settings, each with the cells of its strategies.
pub(super) fn tell(cells: &[Entrant], settings: &[Setting]) -> Story {
    let mut story = Story::default();
    let compared: Vec<&Setting> = settings
        .iter()
        .filter(|(_, cells)| cells.len() > 1)
        .collect();
    if !compared.is_empty() {
        let accuracy = |cell: &Entrant| cell.accuracy().map(|sum| (sum.mean, sum.spread()));
        let first = if metric(cells) == ACCURACY {
            "most accurate"
        } else {
            "best scored"
        };
        leaders(&compared, first, accuracy, &mut story);
        node_data(cells, &compared, &mut story);
        let speed = |cell: &Entrant| {
            let time = cell.column("simulated_seconds").filter(|_| !alone(cell));
            // Less time is more speed: with the sign turned, the highest number leads.
            time.map(|sum| (-sum.mean, sum.spread()))
        };
        leaders(&compared, "fastest across workers", speed, &mut story);
    }
    outweighed(cells, &mut story);
    story
}

/// Which strategies have the highest number, given with its standard deviation, in how many
/// settings each.
fn leaders(
    settings: &[&Setting],
    name: &'static str,
    number: impl Fn(&Entrant) -> Option<(f64, f64)>,
    story: &mut Story,
) {
    // In how many settings a strategy is ahead, and in how many of them by more than one standard
    // deviation.
    let mut led: Vec<(&str, usize, usize)> = Vec::new();
    let mut judged = 0;
    for (_, cells) in settings {
        let mut numbers: Vec<(f64, f64)> = cells.iter().filter_map(|cell| number(cell)).collect();
        numbers.sort_by(|a, b| b.0.total_cmp(&a.0));
        let Some(&best) = numbers.first() else {
            continue;
        };
        judged += 1;
        let clear = numbers
            .get(1)
            .is_some_and(|next| best.0 - next.0 > best.1.max(next.1));
        // Of equals each one leads.
        for cell in cells.iter().filter(|cell| number(cell) == Some(best)) {
            let known = led
                .iter_mut()
                .find(|(strategy, ..)| *strategy == cell.strategy);
            let clear = usize::from(clear);
            match known {
                Some((_, times, clearly)) => (*times, *clearly) = (*times + 1, *clearly + clear),
                None => led.push((cell.strategy, 1, clear)),
            }
        }
    }
    // A stable sort: of equal counts, whoever led first stays first.
    led.sort_by_key(|(_, times, _)| std::cmp::Reverse(*times));
    let Some((first, times, clearly)) = led.first() else {
        return;
    };
    let among = |(strategy, times, _): &(&str, usize, usize)| format!("{strategy} in {times}");
    let others: Vec<String> = led[1..].iter().map(among).collect();
    let others = if others.is_empty() {
        String::new()
    } else {
        format!(", {}", list(&others))
    };
    let value = format!("in {times} of {judged} settings");
    let mut cells = settings.iter().flat_map(|(_, cells)| cells);
    let clearly = if cells.any(|cell| cell.runs.len() > 1) {
        format!(" (by more than one standard deviation in {clearly})")
    } else {
        String::new()
    };
    let ties = if led.iter().map(|(_, times, _)| times).sum::<usize>() > judged {
        "; of equals each counts"
    } else {
        ""
    };
    story.sentences.push(format!(
        "By the mean over seeds, {first} is the {name} {value}{clearly}{others}{ties}."
    ));
    story.headlines.push(Headline {
        name,
        label: (*first).to_owned(),
        value,
    });
}

/// How many times less node data than the reference each strategy sends, from the least to the most
/// favourable setting.
fn node_data(cells: &[Entrant], settings: &[&Setting], story: &mut Story) {
    let labels = strategies(cells);
    let sends = |cell: &Entrant| cell.node_data().map_or(0.0, |sum| sum.mean);
    let silent: Vec<String> = (labels.iter())
        .filter(|label| {
            let mut mine = cells.iter().filter(|cell| cell.strategy == **label);
            mine.all(|cell| sends(cell) == 0.0)
        })
        .map(|label| {
            let mine = cells.iter().filter(|cell| cell.strategy == *label);
            let moved = mine.filter_map(Entrant::repartitioned);
            super::bytes::silent(label, "up to ", moved.max_by(f64::total_cmp))
        })
        .collect();
    // Where nobody sends any, it tells nobody apart.
    if !silent.is_empty() && silent.len() < labels.len() {
        let said = format!("No node data at all is sent by {}.", list(&silent));
        story.sentences.push(said);
    }
    let Some(reference) = reference(cells) else {
        return;
    };
    let factors = |label: &str| -> Vec<f64> {
        let factor = |(_, cells): &&Setting| {
            let of = |label: &str| cells.iter().find(|cell| cell.strategy == label);
            let [full, mine] =
                of(reference)?.beside(of(label)?, |run| Some(run.node_data_bytes() as f64))?;
            // Of nothing sent there is no factor.
            (full > 0.0 && mine > 0.0).then(|| full / mine)
        };
        settings.iter().filter_map(factor).collect()
    };
    let mut ranges: Vec<(&str, f64, f64)> = (labels.iter())
        .filter(|label| **label != reference)
        .filter_map(|label| {
            let factors = factors(label);
            let least = factors.iter().copied().min_by(f64::total_cmp)?;
            let most = factors.iter().copied().max_by(f64::total_cmp)?;
            (most > 1.0).then_some((*label, least, most))
        })
        .collect();
    ranges.sort_by(|a, b| b.2.total_cmp(&a.2));
    let range = |least: f64, most: f64| {
        let (least, most) = (format::factor(least), format::factor(most));
        if least == most {
            most
        } else {
            format!("{least} to {most}")
        }
    };
    let Some((first, least, most)) = ranges.first() else {
        return;
    };
    let said: Vec<String> = (ranges.iter())
        .map(|(label, least, most)| format!("{label} {}", range(*least, *most)))
        .collect();
    story.sentences.push(format!(
        "Times less node data than {reference} in the same setting: {}.",
        list(&said)
    ));
    story.headlines.push(Headline {
        name: if silent.is_empty() {
            "least node data"
        } else {
            "least node data, if any"
        },
        label: (*first).to_owned(),
        value: format!("{} less than {reference}", range(*least, *most)),
    });
}

#[cfg(test)]
mod tests {
    use crate::experiment::rows::{Measured, RunRow, Sweep};
    use crate::report::series;

    fn run(workers: u64, strategy: &str, accuracy: f64, node_data: u64) -> RunRow {
        RunRow {
            cell: format!("workers={workers} {strategy}"),
            strategy: strategy.into(),
            sweep: Sweep::default().with("workers", workers.into()),
            ..RunRow::finished(Measured {
                test_accuracy: Some(accuracy),
                activation_bytes: node_data,
                payload_bytes: node_data,
                simulated_seconds: 1.0 + node_data as f64,
                ..Measured::default()
            })
        }
    }

    #[test]
    fn a_lead_within_the_spread_over_seeds_is_told_from_a_clear_one() {
        let setting = |workers: u64, full: [f64; 2], fixed: [f64; 2]| {
            let of = move |strategy: &'static str, accuracies: [f64; 2]| {
                accuracies.map(|accuracy| run(workers, strategy, accuracy, 100))
            };
            [of("full", full), of("fixed", fixed)].concat()
        };
        let runs = [
            setting(2, [0.80, 0.82], [0.70, 0.72]),
            setting(4, [0.80, 0.90], [0.79, 0.81]),
        ]
        .concat();
        let story = super::super::tell(&series::cells(&runs, &[]));
        let first = "By the mean over seeds, full is the most accurate in 2 of 2 settings (by more than one standard deviation in 1).";
        assert_eq!(story.sentences[0], first);
    }

    #[test]
    fn of_equals_each_counts_and_that_is_said() {
        let runs = [2, 4].map(|workers| ["full", "own"].map(|label| run(workers, label, 0.8, 1)));
        let story = super::super::tell(&series::cells(runs.as_flattened(), &[]));
        let first =
            "full is the most accurate in 2 of 2 settings, own in 2; of equals each counts.";
        assert!(story.sentences[0].ends_with(first), "{:?}", story.sentences);
    }

    #[test]
    fn settings_are_told_apart() {
        let runs = [
            run(2, "full", 0.8, 100),
            run(2, "fixed", 0.7, 50),
            run(2, "isolated", 0.6, 0),
            run(4, "full", 0.8, 400),
            run(4, "fixed", 0.9, 100),
            run(4, "isolated", 0.6, 0),
            run(8, "full", 0.8, 1_600),
            run(8, "fixed", 0.9, 400),
            run(8, "isolated", 0.6, 0),
        ];
        let story = super::super::tell(&series::cells(&runs, &[]));
        let expected = [
            "By the mean over seeds, fixed is the most accurate in 2 of 3 settings, full in 1.",
            "No node data at all is sent by isolated.",
            "Times less node data than full in the same setting: fixed 2.00× to 4.00×.",
            "By the mean over seeds, isolated is the fastest across workers in 3 of 3 settings.",
        ];
        assert_eq!(story.sentences, expected);
        let values: Vec<&str> = (story.headlines.iter())
            .map(|headline| headline.value.as_str())
            .collect();
        let expected = [
            "in 2 of 3 settings",
            "2.00× to 4.00× less than full",
            "in 3 of 3 settings",
        ];
        assert_eq!(values, expected);
    }

    #[test]
    fn a_sweep_of_one_strategy_has_nobody_ahead() {
        let runs = [run(2, "full", 0.8, 100), run(4, "full", 0.8, 400)];
        let story = super::super::tell(&series::cells(&runs, &[]));
        assert!(story.headlines.is_empty() && story.sentences.is_empty());
    }
}
