//! Seeds until decided: how often a verdict is wrong, and what is found.

use rand::RngExt;

use super::{ClaimSpec, RunRow, claim, runs};
use crate::experiment::claims::{judge, open_cells, seeds_by_rule, seeds_taken};
use crate::experiment::rows::ClaimVerdict;
use crate::experiment::statistics::{Looks, Statistics};
use crate::rng::{Purpose, stream};

const LOOKS: Looks = Looks { first: 3, most: 24 };

/// Standard deviation of what is compared.
const NOISE: f64 = 0.01;

fn statistics() -> Statistics {
    Statistics {
        looks: Some(LOOKS),
        ..Statistics::default()
    }
}

/// A normally distributed value (Box and Muller, 1958).
fn normal(random: &mut impl RngExt) -> f64 {
    let (u, v): (f64, f64) = (random.random(), random.random());
    (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// All seeds of `full`, and of strategies that differ from it so much on average.
fn draw(random: &mut impl RngExt, differences: &[(&str, f64)]) -> Vec<RunRow> {
    let bytes = [0; LOOKS.most];
    let full: Vec<f64> = bytes.iter().map(|_| 0.8 + NOISE * normal(random)).collect();
    let mut rows = runs("full", &full, &bytes);
    for (strategy, difference) in differences {
        let own = full
            .iter()
            .map(|full| full + difference + NOISE * normal(random));
        rows.extend(runs(strategy, &own.collect::<Vec<f64>>(), &bytes));
    }
    rows
}

/// A claim about `b` beside `full`.
fn about(condition: &str) -> ClaimSpec {
    let compare = format!("{{ strategy = 'b', to = 'full', {condition} }}");
    claim("test_accuracy", &compare).unwrap()
}

/// In what share of trials the claim, with all seeds, is reproduced, and is not.
///
/// With all seeds there are at least as many verdicts as where one stops: the least p-value of the
/// looks only falls.
fn shares(condition: &str, difference: f64, trials: usize) -> (f64, f64) {
    let (claims, statistics) = ([about(condition)], statistics());
    let mut random = stream(1, Purpose::Study, 0, 0);
    let (mut yes, mut no) = (0, 0);
    for _ in 0..trials {
        let rows = draw(&mut random, &[("b", difference)]);
        let row = &judge(&claims, &rows, &statistics)[0];
        yes += usize::from(row.verdict == ClaimVerdict::Reproduced);
        no += usize::from(row.verdict == ClaimVerdict::NotReproduced);
    }
    (yes as f64 / trials as f64, no as f64 / trials as f64)
}

#[test]
fn whatever_is_claimed_no_more_verdicts_are_wrong_than_the_level_allows() {
    // At the bound itself, where most are wrong: 5 % for both verdicts together, and half of it for
    // each, of which 10,000 trials show 0.47 points more at most (three deviations). That they are
    // not far below shows that the trials could have found more; another program draws 2.2 %.
    for (condition, difference) in [
        ("at_least_above = 0.0", 0.0),
        ("at_most_below = 0.01", -0.01),
        ("within = 0.02", 0.02),
        ("at_least_below = 0.02", -0.02),
    ] {
        let (yes, no) = shares(condition, difference, 10_000);
        assert!(yes + no <= 0.05, "{condition}: {yes} {no}");
        for share in [yes, no] {
            assert!((0.015..=0.0297).contains(&share), "{condition}: {yes} {no}");
        }
    }
}

/// In what share of trials it is wrongly reproduced that `b` is no worse than so much below, given
/// how it differs from `full` with one seed.
fn wrong_of(
    below: f64,
    statistics: &Statistics,
    difference: impl Fn(&mut rand_chacha::ChaCha8Rng) -> f64,
) -> f64 {
    const TRIALS: usize = 4_000;
    let claims = [about(&format!("at_most_below = {below}"))];
    let mut random = stream(3, Purpose::Study, 0, 0);
    let seeds = statistics.looks.map_or(3, |looks| looks.most);
    let wrong = (0..TRIALS).filter(|_| {
        let bytes = vec![0; seeds];
        let full: Vec<f64> = bytes
            .iter()
            .map(|_| 0.8 + NOISE * normal(&mut random))
            .collect();
        let own = full.iter().map(|full| full + difference(&mut random));
        let own: Vec<f64> = own.collect();
        let rows = [runs("full", &full, &bytes), runs("b", &own, &bytes)].concat();
        judge(&claims, &rows, statistics)[0].verdict == ClaimVerdict::Reproduced
    });
    wrong.count() as f64 / TRIALS as f64
}

#[test]
fn verdicts_on_skewed_differences_are_wrong_as_often_as_the_documentation_says() {
    // 11 to 12 % where normal ones are 2.5 %, of which 4,000 trials show 1.5 points more or less.
    for statistics in [&Statistics::default(), &statistics()] {
        let exponential = wrong_of(0.0, statistics, |random| {
            0.01 * (1.0 + (1.0 - random.random::<f64>()).ln())
        });
        assert!((0.095..0.135).contains(&exponential), "{exponential}");
        // Nobody sees in three seeds what happens in one of ten.
        let collapse = wrong_of(0.01, statistics, |random| {
            let fall = if random.random_bool(0.1) { -0.105 } else { 0.0 };
            fall + 0.001 * normal(random)
        });
        assert!(collapse > 0.5, "{collapse}");
    }
}

#[test]
fn a_family_of_claims_keeps_the_level_too() {
    let claims: Vec<ClaimSpec> = ["b", "c", "d"]
        .map(|strategy| {
            let compare =
                format!("{{ strategy = '{strategy}', to = 'full', at_least_above = 0.0 }}");
            ClaimSpec {
                id: strategy.to_owned(),
                ..claim("test_accuracy", &compare).unwrap()
            }
        })
        .into();
    let statistics = statistics();
    let mut random = stream(2, Purpose::Study, 0, 0);
    let wrong = (0..10_000).filter(|_| {
        let rows = draw(&mut random, &[("b", 0.0), ("c", 0.0), ("d", 0.0)]);
        let judged = judge(&claims, &rows, &statistics);
        judged
            .iter()
            .any(|row| row.verdict != ClaimVerdict::Inconclusive)
    });
    let wrong = wrong.count();
    assert!((50..=500).contains(&wrong), "{wrong} of 10,000");
}

#[test]
fn what_is_there_is_found_about_as_often_as_with_all_seeds_at_once() {
    // 24 seeds at once find 0.6 standard deviations of the difference with a chance of 80 %;
    // another program draws 72 % for the looks.
    let (found, wrong) = shares("at_least_above = 0.0", 0.6 * NOISE, 2000);
    assert!(
        (0.69..0.75).contains(&found) && wrong < 0.001,
        "{found} {wrong}"
    );
}

#[test]
fn what_is_clear_takes_few_seeds_and_stopping_decides_nothing_else() {
    let (claims, statistics) = ([about("at_least_above = 0.0")], statistics());
    let mut random = stream(3, Purpose::Study, 0, 0);
    for (difference, most) in [(0.0, 24.0), (NOISE, 16.0), (3.0 * NOISE, 6.5)] {
        let mut taken = 0;
        for _ in 0..300 {
            let mut rows = draw(&mut random, &[("b", difference)]);
            let with_all = judge(&claims, &rows, &statistics).remove(0);
            let seeds = seeds_by_rule(&claims, &rows, &statistics, LOOKS);
            assert_eq!(seeds["b"], seeds["full"], "they are compared seed by seed");
            rows.retain(|run| run.seed < seeds[&run.cell] as u64);
            let row = judge(&claims, &rows, &statistics).remove(0);
            assert_eq!(seeds, seeds_by_rule(&claims, &rows, &statistics, LOOKS));
            if row.verdict == ClaimVerdict::Inconclusive {
                assert_eq!((row.seeds, row.looks), (24, Some(4)));
                assert!((row.level_spent.unwrap() - 0.05).abs() < 1e-12);
                assert_eq!(row.decided_after, None);
            } else {
                assert_eq!(row.decided_after, Some(row.seeds));
                assert_ne!(with_all.verdict, ClaimVerdict::Inconclusive);
            }
            taken += seeds["b"];
        }
        let mean = f64::from(taken as u32) / 300.0;
        assert!(mean <= most, "{difference}: {mean}");
    }
}

#[test]
fn cells_of_open_claims_alone_get_more_seeds_and_the_reason_is_said() {
    // Bytes are the same with every seed, and decide at the first look.
    let mut rows = runs("full", &[0.80, 0.81, 0.79], &[100; 3]);
    rows.extend(runs("b", &[0.79, 0.82, 0.80], &[10; 3]));
    rows.extend(runs("c", &[0.5, 0.5, 0.5], &[10; 3]));
    rows.extend(runs("alone", &[0.5, 0.5, 0.5], &[10; 3]));
    let fewer = "{ strategy = 'c', to = 'full', times_less = 2 }";
    let claims = [
        about("within = 0.001"),
        ClaimSpec {
            id: "bytes".to_owned(),
            ..claim("node_data_bytes", fewer).unwrap()
        },
    ];
    let statistics = statistics();
    let open = open_cells(&claims, &rows, &statistics, LOOKS, 0);
    assert_eq!(open.into_iter().collect::<Vec<_>>(), ["b", "full"]);
    assert_eq!(judge(&claims, &rows, &statistics)[1].decided_after, Some(3));
    let told = seeds_taken(&claims, &rows, &statistics, LOOKS);
    assert!(
        told.starts_with("seeds until decided, with looks after 3, 6, 12, 24: "),
        "{told}"
    );
    assert!(told.contains("3 seeds of alone (in no claim)"), "{told}");
    assert!(told.contains("3 seeds of c (its claims decided)"), "{told}");
}

#[test]
fn without_looks_nothing_is_said_of_them() {
    let rows = runs("full", &[0.80, 0.81, 0.79], &[100; 3]);
    let claims = [claim("test_accuracy", "{ strategy = 'full', at_least = 0.5 }").unwrap()];
    let row = &judge(&claims, &rows, &Statistics::default())[0];
    assert_eq!(
        (row.looks, row.level_spent, row.decided_after),
        (None, None, None)
    );
}
