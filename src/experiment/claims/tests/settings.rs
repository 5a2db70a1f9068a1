//! What is asked of the settings of a sweep together.

use super::{ClaimVerdict, RunRow, Statistics, claim, close, judge, swept};

/// Two settings in which a strategy is beside another, by the differences of three seeds.
fn two_settings(of: [[f64; 3]; 2]) -> Vec<RunRow> {
    let mut rows = Vec::new();
    for (workers, differences) in [2, 4].into_iter().zip(of) {
        rows.extend(swept(workers, "full", &[0.8; 3]));
        rows.extend(swept(
            workers,
            "varco",
            &differences.map(|difference| 0.8 + difference),
        ));
    }
    rows
}

#[test]
fn on_average_is_the_mean_over_settings_taken_by_seed() {
    // What one setting loses the other gains, seed by seed: the mean has hardly any noise.
    let rows = two_settings([[-0.04, 0.02, 0.05], [0.059, 0.0, -0.029]]);
    let row = judge(
        "test_accuracy",
        "{ strategy = 'varco', to = 'full', within = 0.02, over = 'mean' }",
        &rows,
    );
    close(row.measured, 0.01);
    close(row.low, 0.01 - 4.302_652_730 * 0.000_5 / 3_f64.sqrt());
    assert_eq!(row.verdict, ClaimVerdict::Reproduced);
    assert_eq!(
        row.expected,
        "test_accuracy of varco within 0.02 of full, on average over 2 settings"
    );
    // Each of them is too noisy to say so.
    let each = "{ strategy = 'varco', to = 'full', within = 0.02 }";
    assert_eq!(
        judge("test_accuracy", each, &rows).verdict,
        ClaimVerdict::Inconclusive
    );
}

#[test]
fn a_mean_is_of_the_seeds_that_every_setting_has() {
    let mut rows = two_settings([[0.01, 0.02, 0.03]; 2]);
    rows.retain(|row| !(row.seed == 2 && row.cell == "workers=4 varco"));
    let row = judge(
        "test_accuracy",
        "{ strategy = 'varco', to = 'full', at_most_below = 0.0, over = 'mean' }",
        &rows,
    );
    assert_eq!(row.seeds, 2);
    close(row.measured, 0.015);
}

#[test]
fn an_average_factor_is_the_geometric_mean_over_settings() {
    let mut rows = Vec::new();
    for (workers, bytes) in [(2, 25), (4, 4)] {
        for (strategy, bytes) in [("full", 100), ("varco", bytes)] {
            let mut cell = swept(workers, strategy, &[0.8; 3]);
            for row in &mut cell {
                let measured = row.measured.as_mut().unwrap();
                measured.feature_bytes = bytes;
            }
            rows.extend(cell);
        }
    }
    // 4 and 25 times less: 10 on average.
    let compare = "{ strategy = 'varco', to = 'full', times_less = 10, over = 'mean' }";
    let row = judge("node_data_bytes", compare, &rows);
    close(row.measured, 10.0);
    assert_eq!(row.verdict, ClaimVerdict::Reproduced);
    let compare = "{ strategy = 'varco', to = 'full', times_less = 10.1, over = 'mean' }";
    assert_eq!(
        judge("node_data_bytes", compare, &rows).verdict,
        ClaimVerdict::NotReproduced
    );
    // Up to 25 times less.
    let compare = "{ strategy = 'varco', to = 'full', times_less = 25, over = 'best' }";
    let row = judge("node_data_bytes", compare, &rows);
    close(row.measured, 25.0);
    assert_eq!(row.verdict, ClaimVerdict::Reproduced);
    assert!(
        row.expected
            .ends_with("in the best of 2 settings (workers=4)"),
        "{}",
        row.expected
    );
    let compare = "{ strategy = 'varco', to = 'full', times_less = 26, over = 'best' }";
    assert_eq!(
        judge("node_data_bytes", compare, &rows).verdict,
        ClaimVerdict::NotReproduced
    );
}

#[test]
fn the_best_of_many_settings_is_held_to_their_number() {
    let noisy = [0.011, 0.030, 0.049];
    let compare = |over: &str| {
        format!("{{ strategy = 'varco', to = 'full', at_least_above = 0.0, over = '{over}' }}")
    };
    let alone = judge(
        "test_accuracy",
        &compare("best"),
        &two_settings([noisy; 2])[..6],
    );
    let of_two = judge(
        "test_accuracy",
        &compare("best"),
        &two_settings([noisy, [-0.01, 0.0, 0.01]]),
    );
    let (alone, of_two) = (alone.p_value.unwrap(), of_two.p_value.unwrap());
    assert!((of_two - 2.0 * alone).abs() < 1e-12, "{alone} {of_two}");
}

#[test]
fn the_setting_that_is_quoted_is_the_one_that_breaks_the_claim_at_whatever_step() {
    // One breaks the bound, at the second step of Holm's method; the other has a worse mean and
    // says nothing.
    let clear = [-0.0222, -0.02, -0.0178];
    let noisy = [-0.11, -0.04, 0.03];
    let claims = [
        (
            "test_accuracy",
            "{ strategy = 'varco', to = 'full', at_most_below = 0.01 }",
        ),
        ("node_data_bytes", "{ strategy = 'varco', equals = 0 }"),
    ];
    let claims = claims.map(|(measure, compare)| claim(measure, compare).unwrap());
    for (settings, quoted) in [([clear, noisy], 2), ([noisy, clear], 4)] {
        let rows = two_settings(settings);
        let row = super::super::judge(&claims, &rows, &Statistics::default()).remove(0);
        assert_eq!(row.verdict, ClaimVerdict::NotReproduced);
        close(row.measured, -0.02);
        assert!(row.high.unwrap() < -0.01, "{row:?}");
        let worst = format!("worst: workers={quoted}");
        assert!(row.expected.contains(&worst), "{}", row.expected);
    }
}
