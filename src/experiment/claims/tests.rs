//! Verdicts on small tables of runs.

mod evidence;
mod sequence;
mod settings;

use ClaimVerdict::{Inconclusive, NotReproduced, Reproduced};

use super::*;
use crate::experiment::rows::{Measured, Sweep};
use crate::experiment::statistics::Correction;

fn claim(measure: &str, compare: &str) -> Result<ClaimSpec, String> {
    let text = format!(
        "id = 'c'\nsource = 's'\nstatement = 'x'\nmeasure = '{measure}'\ncompare = {compare}"
    );
    toml::from_str(&text).map_err(|error: toml::de::Error| error.message().to_owned())
}

/// One run per value, with seeds from 0.
fn runs(cell: &str, accuracies: &[f64], bytes: &[u64]) -> Vec<RunRow> {
    let run = |(seed, (&accuracy, &bytes)): (usize, (&f64, &u64))| RunRow {
        cell: cell.to_owned(),
        strategy: cell.to_owned(),
        seed: seed as u64,
        ..RunRow::finished(Measured {
            test_accuracy: Some(accuracy),
            feature_bytes: bytes,
            ..Measured::default()
        })
    };
    accuracies.iter().zip(bytes).enumerate().map(run).collect()
}

/// The same in a setting of a sweep.
fn swept(workers: u64, strategy: &str, accuracies: &[f64]) -> Vec<RunRow> {
    let name = format!("workers={workers} {strategy}");
    let mut rows = runs(&name, accuracies, &vec![0; accuracies.len()]);
    for row in &mut rows {
        row.strategy = strategy.to_owned();
        row.sweep = Sweep::default().with("workers", workers.into());
    }
    rows
}

/// A claim judged by itself, however few the seeds.
fn judge(measure: &str, compare: &str, runs: &[RunRow]) -> ClaimRow {
    let statistics = Statistics {
        minimum_seeds: 1,
        ..Statistics::default()
    };
    judge_by(measure, compare, runs, &statistics)
}

fn judge_by(measure: &str, compare: &str, runs: &[RunRow], statistics: &Statistics) -> ClaimRow {
    let claims = [claim(measure, compare).unwrap()];
    super::judge(&claims, runs, statistics).remove(0)
}

#[test]
fn no_node_data_stands_beside_what_repartitioning_moved() {
    let mut rows: Vec<RunRow> = Vec::new();
    for (workers, moved) in [(2, [30, 50]), (4, [70, 90])] {
        let mut mine = swept(workers, "grappa", &[0.8, 0.8]);
        for (row, moved) in mine.iter_mut().zip(moved) {
            row.measured.as_mut().unwrap().repartition_bytes = moved;
        }
        rows.extend(mine);
        rows.extend(swept(workers, "full", &[0.8, 0.8]));
    }
    let claim = |measure: &str, strategy: &str| {
        let compare = format!("{{ strategy = \"{strategy}\", equals = 0 }}");
        judge(measure, &compare, &rows)
    };
    close(claim("node_data_bytes", "grappa").repartition_bytes, 90.0);
    assert_eq!(claim("node_data_bytes", "full").repartition_bytes, None);
    assert_eq!(claim("payload_bytes", "grappa").repartition_bytes, None);
}

fn close(found: Option<f64>, expected: f64) {
    let found = found.unwrap();
    assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
}

#[test]
fn the_interval_is_of_the_differences_paired_by_seed() {
    let mut rows = runs("full", &[0.80, 0.82, 0.84], &[0; 3]);
    rows.extend(runs("varco", &[0.79, 0.82, 0.83], &[0; 3]));
    let row = judge(
        "test_accuracy",
        "{ strategy = 'varco', to = 'full', within = 0.03 }",
        &rows,
    );
    // Differences −0.01, 0, −0.01: mean −1/150, sd 1/√30000, half width t(2)·sd/√3 = t(2)/300.
    close(row.measured, -1.0 / 150.0);
    close(row.low, -1.0 / 150.0 - 4.302_652_729_911 / 300.0);
    close(row.high, -1.0 / 150.0 + 4.302_652_729_911 / 300.0);
    assert_eq!(row.verdict, Reproduced);
    assert_eq!(row.expected, "test_accuracy of varco within 0.03 of full");
}

#[test]
fn a_claim_says_what_its_numbers_are() {
    let rows = [
        runs("full", &[0.8; 3], &[10; 3]),
        runs("varco", &[0.8; 3], &[5; 3]),
    ]
    .concat();
    let of = |measure: &str, compare: &str| {
        let row = judge(measure, compare, &rows);
        (row.expected, row.quantity)
    };
    let asked = of("payload_bytes", "{ strategy = 'varco', at_most = 4e10 }");
    let said = "payload_bytes of varco at most 40.0 GB".to_owned();
    assert_eq!(asked, (said, Some(Quantity::Bytes)));
    for (compare, said) in [
        ("between = [2.7e10, 3.3e10]", "between 27.0 GB and 33.0 GB"),
        ("equals = 1234567", "equal to 1234567 B"),
        ("at_least = 1e6", "at least 1.00 MB"),
    ] {
        let row = of(
            "payload_bytes",
            &format!("{{ strategy = 'varco', {compare} }}"),
        );
        assert_eq!(row.0, format!("payload_bytes of varco {said}"));
    }
    let factor = "{ strategy = 'varco', to = 'full', times_less = 1000 }";
    let said = "payload_bytes of varco at least 1000 times less than full".to_owned();
    assert_eq!(of("payload_bytes", factor), (said, Some(Quantity::Number)));
    let below = "{ strategy = 'varco', to = 'full', at_least_below = 0.5 }";
    let said = "simulated_seconds of varco at least 500 ms below full".to_owned();
    assert_eq!(
        of("simulated_seconds", below),
        (said, Some(Quantity::Seconds))
    );
    assert_eq!(
        of("test_accuracy", "{ strategy = 'full', at_least = 0.5 }").1,
        Some(Quantity::Number)
    );
}

#[test]
fn part_of_the_interval_is_inconclusive_and_none_of_it_not_reproduced() {
    let mut rows = runs("full", &[0.80, 0.82, 0.84], &[0; 3]);
    rows.extend(runs("varco", &[0.79, 0.82, 0.83], &[0; 3]));
    let verdict = |compare: &str| judge("test_accuracy", compare, &rows).verdict;
    let compare = "{ strategy = 'varco', to = 'full', within = 0.01 }";
    assert_eq!(verdict(compare), Inconclusive);
    assert_eq!(
        verdict("{ strategy = 'varco', at_least = 0.9 }"),
        NotReproduced
    );
    assert_eq!(verdict("{ strategy = 'varco', at_most = 0.9 }"), Reproduced);
    assert_eq!(
        verdict("{ strategy = 'varco', between = [0.7, 0.9] }"),
        Reproduced
    );
    let compare = "{ strategy = 'varco', to = 'full', at_most_below = 0.03 }";
    assert_eq!(verdict(compare), Reproduced);
}

#[test]
fn one_seed_decides_by_its_value_and_shows_no_interval() {
    let mut rows = runs("full", &[0.81], &[0]);
    rows.extend(runs("varco", &[0.80], &[0]));
    let compare = "{ strategy = 'varco', to = 'full', within = 0.01 }";
    let row = judge("test_accuracy", compare, &rows);
    assert_eq!((row.low, row.high), (None, None));
    assert_eq!(
        row.verdict, Reproduced,
        "0.81 − 0.80 is 0.01 whatever binary says"
    );
}

#[test]
fn times_less_is_the_baseline_over_the_strategy() {
    let mut rows = runs("full", &[0.0; 2], &[1000, 1000]);
    rows.extend(runs("retexo", &[0.0; 2], &[100, 100]));
    rows.extend(runs("grappa", &[0.0; 2], &[0, 0]));
    let judged = |strategy: &str, to: &str| {
        let compare = format!("{{ strategy = '{strategy}', to = '{to}', times_less = 10 }}");
        judge("node_data_bytes", &compare, &rows)
    };
    let row = judged("retexo", "full");
    assert_eq!(
        (row.measured, row.low, row.high),
        (Some(10.0), Some(10.0), Some(10.0))
    );
    assert_eq!(row.verdict, Reproduced);
    assert_eq!(judged("full", "retexo").verdict, NotReproduced);
    let row = judged("grappa", "full");
    assert_eq!(
        (row.measured, row.verdict),
        (Some(f64::INFINITY), Reproduced)
    );
    // Whatever is sent is more than nothing, any number of times.
    let row = judged("full", "grappa");
    assert_eq!((row.measured, row.verdict), (Some(0.0), NotReproduced));
    // Of two that send nothing neither sends less, nor more.
    rows.extend(runs("isolated", &[0.0; 2], &[0, 0]));
    for (times, verdict) in [(1, Reproduced), (2, NotReproduced)] {
        let compare = format!("{{ strategy = 'grappa', to = 'isolated', times_less = {times} }}");
        let row = judge("node_data_bytes", &compare, &rows);
        assert_eq!((row.measured, row.verdict), (Some(1.0), verdict));
    }
}

#[test]
fn only_seeds_that_both_have_finished_count() {
    let mut rows = runs("full", &[0.8, 0.8, 0.8], &[0; 3]);
    rows.extend(runs("varco", &[0.8, 0.1], &[0; 2]));
    rows[4].measured = None;
    let compare = "{ strategy = 'varco', to = 'full', within = 0 }";
    let row = judge("test_accuracy", compare, &rows);
    assert_eq!((row.measured, row.low), (Some(0.0), None));
    let row = judge("test_accuracy", "{ strategy = 'bns', equals = 0 }", &rows);
    assert_eq!((row.measured, row.verdict), (None, Inconclusive));
    let row = judge(
        "bytes_to_target",
        "{ strategy = 'full', equals = 0 }",
        &rows,
    );
    assert_eq!(row.measured, None, "null is not zero");
    assert_eq!(row.censored, 3, "but more than was sent");
}

#[test]
fn a_claim_about_strategies_must_hold_in_every_setting_of_a_sweep() {
    let mut rows = swept(2, "full", &[0.8]);
    rows.extend(swept(2, "varco", &[0.8]));
    rows.extend(swept(4, "full", &[0.8]));
    rows.extend(swept(4, "varco", &[0.7]));
    let row = judge(
        "test_accuracy",
        "{ strategy = 'varco', to = 'full', within = 0.01 }",
        &rows,
    );
    assert_eq!(row.verdict, NotReproduced);
    close(row.measured, -0.1);
    assert_eq!(
        row.expected,
        "test_accuracy of varco within 0.01 of full, in each of 2 settings (worst: workers=4)"
    );
    let row = judge(
        "test_accuracy",
        "{ strategy = 'varco', to = 'full', within = 0.2 }",
        &rows,
    );
    assert_eq!(row.verdict, Reproduced);
    close(row.measured, -0.1);
    let compare = "{ strategy = 'workers=2 varco', to = 'workers=4 full', within = 0 }";
    let row = judge("test_accuracy", compare, &rows);
    assert_eq!(
        row.verdict, Reproduced,
        "cells may be named across settings"
    );
    assert_eq!(
        row.expected,
        "test_accuracy of workers=2 varco within 0 of workers=4 full"
    );
}

#[test]
fn a_setting_without_a_finished_run_leaves_a_claim_open_but_does_not_hide_a_refutation() {
    let mut rows = swept(2, "full", &[0.8]);
    rows.extend(swept(4, "full", &[0.8]));
    rows[0].measured = None;
    let verdict = |compare: &str| judge("test_accuracy", compare, &rows).verdict;
    assert_eq!(
        verdict("{ strategy = 'full', at_least = 0.5 }"),
        Inconclusive
    );
    assert_eq!(
        verdict("{ strategy = 'full', at_least = 0.9 }"),
        NotReproduced
    );
}

#[test]
fn measures_are_the_number_columns_and_node_data() {
    let measures = measures();
    assert!(measures.contains(&"test_accuracy") && measures.contains(&"node_data_bytes"));
    assert!(!measures.contains(&"strategy"));
}

#[test]
fn fewer_seeds_than_asked_for_show_their_mean_and_no_verdict() {
    let mut rows = runs("full", &[0.8, 0.8], &[0; 2]);
    rows.extend(runs("varco", &[0.8, 0.8], &[0; 2]));
    let compare = "{ strategy = 'varco', to = 'full', within = 0.01 }";
    let row = judge_by("test_accuracy", compare, &rows, &Statistics::default());
    assert_eq!((row.measured, row.seeds, row.p_value), (Some(0.0), 2, None));
    assert_eq!(row.verdict, Inconclusive);
}

#[test]
fn claims_of_a_family_are_corrected_together_and_others_do_not_count() {
    let rows = runs("full", &[0.80, 0.82, 0.84, 0.86], &[0; 4]);
    // 0.83 ± 0.0411: clearly above 0.78, and nothing is known of 0.83 and 0.84.
    let claims = |family: &str| -> Vec<ClaimSpec> {
        ["0.78", "0.83", "0.84"]
            .iter()
            .map(|bound| ClaimSpec {
                family: (*bound != "0.78").then(|| family.to_owned()),
                ..claim(
                    "test_accuracy",
                    &format!("{{ strategy = 'full', at_least = {bound} }}"),
                )
                .unwrap()
            })
            .collect()
    };
    let apart = super::judge(&claims("others"), &rows, &Statistics::default());
    assert_eq!(apart[0].p_adjusted, apart[0].p_value);
    assert_eq!(apart[0].verdict, Reproduced);
    assert!(apart[0].p_value.unwrap() > 0.02, "{:?}", apart[0]);

    let mut together = claims("x");
    for claim in &mut together {
        claim.family = None;
    }
    let corrected = super::judge(&together, &rows, &Statistics::default());
    close(corrected[0].p_adjusted, 3.0 * corrected[0].p_value.unwrap());
    assert_eq!(corrected[0].verdict, Inconclusive);
    // What another statement says is another family.
    together[0].source = "another paper".to_owned();
    let of_sources = super::judge(&together, &rows, &Statistics::default());
    assert_eq!(of_sources[0].p_adjusted, of_sources[0].p_value);
    close(
        of_sources[2].p_adjusted,
        2.0 * of_sources[2].p_value.unwrap(),
    );
    together[0].source = together[1].source.clone();
    let each = Statistics {
        correction: Correction::None,
        ..Statistics::default()
    };
    let uncorrected = super::judge(&together, &rows, &each);
    assert_eq!(uncorrected[0].verdict, Reproduced);
    assert_eq!(uncorrected[0].measured, corrected[0].measured);
}

#[test]
fn one_setting_that_fails_is_held_to_the_number_of_settings() {
    let mut rows = Vec::new();
    for workers in 2..12 {
        rows.extend(swept(workers, "full", &[0.80, 0.81, 0.82, 0.83]));
    }
    rows.extend(swept(12, "full", &[0.75, 0.77, 0.78, 0.78]));
    let compare = "{ strategy = 'full', at_least = 0.80 }";
    let row = judge_by("test_accuracy", compare, &rows, &Statistics::default());
    assert!(row.expected.contains("worst: workers=12"));
    // Alone that setting would say no: 0.77 ± 0.0225.
    assert!(row.high.unwrap() < 0.80);
    assert_eq!(row.verdict, Inconclusive);
}

#[test]
fn the_worst_setting_is_the_one_with_the_worst_mean_and_not_the_noisiest() {
    let mut rows = swept(2, "full", &[0.70, 0.80, 0.95]);
    rows.extend(swept(2, "varco", &[0.79, 0.81, 0.845]));
    rows.extend(swept(4, "full", &[0.80, 0.81, 0.82]));
    rows.extend(swept(4, "varco", &[0.791, 0.794, 0.803]));
    let compare = "{ strategy = 'varco', to = 'full', at_most_below = 0.01 }";
    let row = judge("test_accuracy", compare, &rows);
    assert!(
        row.expected.ends_with("(worst: workers=4)"),
        "{}",
        row.expected
    );
    close(row.measured, -0.014);
    // The noisy one's interval reaches farther down.
    assert!(row.low.unwrap() > -0.03, "{row:?}");
    assert_eq!(row.verdict, Inconclusive);
}

/// Runs that took 100 s and 1,000 bytes, and reached the target after these seconds, if they did.
fn until_target(cell: &str, seconds: &[Option<f64>]) -> Vec<RunRow> {
    let mut rows = runs(cell, &vec![0.8; seconds.len()], &vec![0; seconds.len()]);
    for (row, reached) in rows.iter_mut().zip(seconds) {
        let measured = row.measured.as_mut().unwrap();
        measured.simulated_seconds = 100.0;
        measured.payload_bytes = 1000;
        measured.seconds_to_target = *reached;
    }
    rows
}

#[test]
fn a_run_that_never_reached_the_target_counts_as_longer_than_it_ran() {
    let reached: Vec<Option<f64>> = [10.0, 11.0, 9.0, 10.0].map(Some).into();
    let mut never = reached.clone();
    never[2] = None;
    let verdict = |fast: &[Option<f64>], slow: &[Option<f64>]| {
        let mut rows = until_target("fast", fast);
        rows.extend(until_target("slow", slow));
        let compare = "{ strategy = 'fast', to = 'slow', times_less = 2 }";
        judge_by("seconds_to_target", compare, &rows, &Statistics::default())
    };
    let slower: Vec<Option<f64>> = [40.0, 41.0, 39.0, 40.0].map(Some).into();
    assert_eq!(verdict(&reached, &slower).verdict, Reproduced);
    // Slower than seen: all the better.
    let row = verdict(&reached, &[Some(40.0), Some(41.0), None, None]);
    assert_eq!((row.verdict, row.censored), (Reproduced, 2));
    assert_eq!(row.measured, None);
    // The fast one may never get there in a seed: nothing can be said for it, though three of four
    // are four times as fast …
    let row = verdict(&never, &slower);
    assert_eq!((row.verdict, row.censored), (Inconclusive, 1));
    // … and where what it took at least is too long already, it fails.
    let row = verdict(&[None; 4], &slower);
    assert_eq!((row.verdict, row.censored), (NotReproduced, 4));
    // All that is counted is the same: one training, of which a claim says nothing.
    let row = verdict(&[None; 4], &[None; 4]);
    assert_eq!((row.verdict, row.censored), (Inconclusive, 0));
    assert!(row.expected.ends_with("(one training under two names)"));
}

#[test]
fn accuracies_of_a_run_that_diverged_decide_nothing() {
    let mut rows = runs("full", &[0.80, 0.81, 0.79, 0.80], &[900; 4]);
    rows.extend(runs("fixed", &[0.60, 0.61, 0.60, 0.59], &[100; 4]));
    let verdict = |measure: &str, rows: &[RunRow]| {
        let compare = "{ strategy = 'full', to = 'fixed', at_most_below = 0.01 }";
        let row = judge_by(measure, compare, rows, &Statistics::default());
        (row.verdict, row.measured, row.censored)
    };
    assert_eq!(verdict("test_accuracy", &rows).0, Reproduced);
    let bytes = verdict("payload_bytes", &rows);
    // The rival was ahead of where it would have stopped, or behind.
    rows[5].measured.as_mut().unwrap().diverged_at = Some(7);
    assert_eq!(verdict("test_accuracy", &rows), (Inconclusive, None, 1));
    assert_eq!(verdict("payload_bytes", &rows), bytes);
}

#[test]
fn times_of_a_run_beside_other_programs_decide_nothing() {
    let mut rows = runs("full", &[0.8; 4], &[900; 4]);
    rows.extend(runs("fixed", &[0.8; 4], &[100; 4]));
    for row in &mut rows {
        let measured = row.measured.as_mut().unwrap();
        measured.simulated_seconds = if row.cell == "full" { 4.0 } else { 1.0 };
        measured.load_during = Some(0.01);
    }
    let verdict = |measure: &str, rows: &[RunRow]| {
        let compare = "{ strategy = 'fixed', to = 'full', times_less = 2 }";
        let row = judge_by(measure, compare, rows, &Statistics::default());
        (row.verdict, row.measured, row.censored)
    };
    let quiet = (Reproduced, Some(4.0), 0);
    assert_eq!(verdict("simulated_seconds", &rows), quiet);
    let bytes = verdict("payload_bytes", &rows);
    rows[2].measured.as_mut().unwrap().load_during = Some(0.4);
    let noisy = (Inconclusive, None, 1);
    assert_eq!(verdict("simulated_seconds", &rows), noisy);
    assert_eq!(verdict("payload_bytes", &rows), bytes);
}

#[test]
fn better_and_worse_by_a_margin_are_each_others_opposite() {
    let mut rows = runs("full", &[0.80, 0.82, 0.84], &[0; 3]);
    rows.extend(runs("fixed", &[0.75, 0.77, 0.80], &[0; 3]));
    let verdict = |compare: &str| judge("test_accuracy", compare, &rows).verdict;
    for (form, forward, backward) in [
        ("at_least_below", Reproduced, NotReproduced),
        ("at_least_above", NotReproduced, Reproduced),
    ] {
        let compare = |a: &str, b: &str| {
            verdict(&format!(
                "{{ strategy = '{a}', to = '{b}', {form} = 0.02 }}"
            ))
        };
        assert_eq!(compare("fixed", "full"), forward);
        assert_eq!(compare("full", "fixed"), backward);
    }
}
