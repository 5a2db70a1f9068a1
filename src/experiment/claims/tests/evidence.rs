//! What equal values, factors and many settings say.

use super::*;

#[test]
fn accuracies_that_happen_to_be_equal_do_not_decide_without_their_number() {
    // As in a published table: three seeds a third of a point apart to the last digit, and not in
    // the mean of many.
    let asked = "{ strategy = 'a', to = 'b', at_most_below = 0.003 }";
    let verdict = |below: f64, seeds: usize| {
        let others: Vec<f64> = (0..seeds).map(|seed| 0.8 + 0.01 * seed as f64).collect();
        let own: Vec<f64> = others.iter().map(|other| other - below).collect();
        let mut rows = runs("a", &own, &vec![5; seeds]);
        rows.extend(runs("b", &others, &vec![10; seeds]));
        let row = judge("test_accuracy", asked, &rows);
        let fewer = "{ strategy = 'a', to = 'b', times_less = 2 }";
        let bytes = judge("node_data_bytes", fewer, &rows);
        assert_eq!(bytes.verdict, Reproduced, "bytes need no spread");
        (row.verdict, row.p_value)
    };
    assert_eq!(verdict(0.0037, 3), (Inconclusive, Some(0.25)));
    assert_eq!(verdict(0.0037, 6), (NotReproduced, Some(0.03125)));
    // Trainings that come to the same, whether a difference or a quotient is asked for.
    assert_eq!(verdict(0.0, 3).0, Reproduced);
    let mut rows = runs("a", &[0.8, 0.81, 0.82], &[5; 3]);
    rows.extend(runs("b", &[0.8, 0.81, 0.82], &[10; 3]));
    let no_more = "{ strategy = 'a', to = 'b', times_less = 1 }";
    assert_eq!(judge("test_accuracy", no_more, &rows).verdict, Reproduced);
}

#[test]
fn equal_values_tell_how_many_of_them_would_decide_and_no_difference() {
    let mut rows = runs("a", &[0.79, 0.80, 0.81], &[5; 3]);
    rows.extend(runs("b", &[0.8, 0.81, 0.82], &[10; 3]));
    let asked = "{ strategy = 'a', to = 'b', at_most_below = 0.003 }";
    let row = judge("test_accuracy", asked, &rows);
    assert_eq!(row.verdict, Inconclusive);
    // Twice 2⁻⁶ is the first below 5 %.
    assert_eq!((row.seeds_needed, row.detectable), (Some(6), None));
}

#[test]
fn targets_that_are_reached_after_as_many_evaluations_do_not_decide_without_their_number() {
    // Whoever reaches it one evaluation later in a tenth of the trainings is not "no more", of
    // quotients or of differences.
    let verdict = |condition: &str, seeds: usize| {
        let asked = format!("{{ strategy = 'a', to = 'b', {condition} }}");
        let mut rows = Vec::new();
        for cell in ["a", "b"] {
            let mut own = runs(cell, &vec![0.8; seeds], &vec![5; seeds]);
            for (row, bytes) in own.iter_mut().zip([500, 600, 500, 500, 700, 500]) {
                row.measured.as_mut().unwrap().bytes_to_target = Some(bytes);
            }
            rows.extend(own);
        }
        let row = judge("bytes_to_target", &asked, &rows);
        (row.verdict, row.p_value)
    };
    for condition in ["times_less = 1", "at_most_below = 0", "within = 1"] {
        assert_eq!(verdict(condition, 3), (Inconclusive, Some(0.25)));
        assert_eq!(verdict(condition, 6), (Reproduced, Some(0.03125)));
    }
}

#[test]
fn the_setting_that_is_quoted_is_the_one_that_leaves_it_open() {
    let mut rows = Vec::new();
    for (workers, below, deviation) in [(2, 0.009, 1e-5), (4, 0.005, 0.00373)] {
        let others = [0.80, 0.81, 0.82, 0.83, 0.84];
        // Of a standard deviation of one.
        let z = [-1.2649, -0.6325, 0.0, 0.6325, 1.2649];
        let own: Vec<f64> = (others.iter().zip(z))
            .map(|(other, z)| other - below + deviation * z)
            .collect();
        rows.extend(swept(workers, "a", &own));
        rows.extend(swept(workers, "b", &others));
    }
    let asked = claim(
        "test_accuracy",
        "{ strategy = 'a', to = 'b', at_most_below = 0.01 }",
    );
    let asked = asked.unwrap();
    let of = |claims: &[ClaimSpec]| super::super::judge(claims, &rows, &Statistics::default());
    // A p-value of 0.04 decides a claim alone, of which the worst mean is told; of two it does not.
    let alone = &of(std::slice::from_ref(&asked))[0];
    assert_eq!(alone.verdict, Reproduced);
    assert!(
        alone.expected.contains("worst: workers=2"),
        "{}",
        alone.expected
    );
    let other = ClaimSpec {
        id: "other".to_owned(),
        ..asked.clone()
    };
    let two = &of(&[asked, other])[0];
    assert_eq!(two.verdict, Inconclusive);
    assert!(
        two.expected.contains("worst: workers=4"),
        "{}",
        two.expected
    );
}

#[test]
fn two_that_learnt_nothing_are_not_the_same_training() {
    // Both name the largest class, in every seed.
    let asked = "{ strategy = 'a', to = 'b', within = 0.005 }";
    let verdict = |seeds: usize, over: &str| {
        let mut rows = runs("a", &vec![0.8; seeds], &vec![5; seeds]);
        rows.extend(runs("b", &vec![0.8; seeds], &vec![5; seeds]));
        let asked = asked.replace(" }", over);
        let row = judge("test_accuracy", &asked, &rows);
        (row.verdict, row.p_value)
    };
    for over in [" }", ", over = 'mean' }"] {
        let open = (Inconclusive, Some(0.25));
        assert_eq!(verdict(3, over), open);
        assert_eq!(verdict(6, over).0, Reproduced);
    }
}

#[test]
fn nor_are_two_that_name_the_largest_class_of_a_split_that_changes() {
    let verdict = |largest: Option<f64>| {
        let accuracies = [0.29, 0.31, 0.3];
        let mut rows = runs("a", &accuracies, &[5; 3]);
        rows.extend(runs("b", &accuracies, &[6; 3]));
        for row in &mut rows {
            row.largest_class = largest.or(row.measured.unwrap().test_accuracy);
        }
        let asked = "{ strategy = 'a', to = 'b', within = 0.005 }";
        judge("test_accuracy", asked, &rows).verdict
    };
    assert_eq!(verdict(None), Inconclusive, "as accurate as their class");
    assert_eq!(verdict(Some(0.3)), Reproduced, "one seed learnt more");
}

#[test]
fn what_is_equal_is_not_more_by_a_margin_of_nothing() {
    let mut rows = runs("a", &[0.8, 0.81, 0.82], &[0; 3]);
    rows.extend(runs("b", &[0.8, 0.81, 0.82], &[0; 3]));
    for (asked, verdict) in [
        ("at_least_above", NotReproduced),
        ("at_least_below", NotReproduced),
        ("at_most_below", Reproduced),
        ("within", Reproduced),
    ] {
        let asked = format!("{{ strategy = 'a', to = 'b', {asked} = 0 }}");
        assert_eq!(
            judge("test_accuracy", &asked, &rows).verdict,
            verdict,
            "{asked}"
        );
    }
}

#[test]
fn what_can_be_told_of_factors_is_a_difference_of_factors() {
    // 90 to 110 times less, which is asked to be 100.
    let mut rows = runs("a", &[0.0; 3], &[1_000_000; 3]);
    rows.extend(runs(
        "b",
        &[0.0; 3],
        &[90_000_000, 100_000_000, 110_000_000],
    ));
    let asked = "{ strategy = 'a', to = 'b', times_less = 100 }";
    let row = judge("node_data_bytes", asked, &rows);
    // Quotients of 1/100 that are 0.001 apart: (4.303 + 1.061) · 0.001 / √3 of 0.01, a third.
    let detectable = row.detectable.unwrap();
    assert!((20.0..30.0).contains(&detectable), "{detectable}");
}

#[test]
fn one_of_many_settings_takes_more_seeds_to_break_a_claim() {
    let asked = "{ strategy = 'a', to = 'b', at_most_below = 0.01 }";
    let needed = |settings: u64| {
        let mut rows = Vec::new();
        for workers in 0..settings {
            // The first breaks it, but for its noise; the others are far from it.
            let below = if workers == 0 { 0.02 } else { 0.0 };
            rows.extend(swept(
                workers,
                "a",
                &[0.8 - below, 0.83 - below, 0.8 - below],
            ));
            rows.extend(swept(workers, "b", &[0.8, 0.8, 0.83]));
        }
        judge("test_accuracy", asked, &rows).seeds_needed.unwrap()
    };
    assert!(needed(8) > needed(1), "{} and {}", needed(8), needed(1));
}
