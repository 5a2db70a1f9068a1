//! Schedules against their formulas, and what holds of all of them.

use super::*;
use proptest::prelude::*;

const fn measures() -> [ValidationMeasure; 2] {
    [ValidationMeasure::Loss, ValidationMeasure::Accuracy]
}

fn schedules() -> impl Strategy<Value = Schedule> {
    let pace = (1.01..9.0_f64, 1..9_usize, 0.0..0.1_f64);
    (
        1.0..8.0_f64,
        0.0..200.0_f64,
        0.1..9.0_f64,
        1..50_usize,
        pace,
        0..8_u8,
    )
        .prop_map(|(to, above, slope, every, pace, kind)| {
            let from = to + above;
            let (factor, patience, tolerance) = pace;
            match kind {
                0 => Schedule::Linear { from, to, slope },
                1 => Schedule::Exponential { from, to },
                2 => Schedule::Cosine { from, to },
                3 => Schedule::Steps { from, to, every },
                4 => Schedule::Constant(from),
                5 | 6 => Schedule::AdaptiveValidation {
                    measure: measures()[usize::from(kind) - 5],
                    from,
                    to,
                    factor,
                    patience,
                    tolerance,
                },
                _ => Schedule::AdaptiveError {
                    from,
                    to,
                    factor,
                    patience,
                    tolerance,
                },
            }
        })
}

/// What a training may show: rises, falls, gaps, and what is not a number.
fn trainings() -> impl Strategy<Value = Vec<Feedback>> {
    let value = || {
        prop_oneof![
            6 => (0.0..1.0_f64).prop_map(Some),
            1 => Just(None),
            1 => Just(Some(f64::NAN)),
        ]
    };
    let seen = (value(), value(), value()).prop_map(|(accuracy, loss, error)| Feedback {
        accuracy,
        loss,
        error,
    });
    prop::collection::vec(seen, 1..120)
}

proptest! {
    #[test]
    fn every_schedule_falls_or_stays_and_keeps_its_bounds_whatever_the_training_shows(
        schedule in schedules(),
        seen in trainings(),
    ) {
        let (from, to) = schedule.bounds();
        let epochs = seen.len();
        let ratio = |t: usize| schedule.ratio(t, epochs, &seen[..t]);
        let ratios: Vec<f64> = (0..epochs).map(ratio).collect();
        prop_assert!(schedule.check().is_ok());
        prop_assert!(ratios.windows(2).all(|pair| pair[1] <= pair[0]), "{ratios:?}");
        prop_assert!(ratios.iter().all(|r| (to..=from).contains(r)));
    }

    #[test]
    fn no_training_takes_a_ratio_below_the_least(schedule in schedules(), seen in trainings()) {
        let epochs = seen.len();
        for t in 0..epochs {
            let (ratio, least) = (schedule.ratio(t, epochs, &seen[..t]), schedule.least_ratio(t, epochs));
            prop_assert!(ratio >= least);
            prop_assert!(schedule.is_adaptive() || ratio == least);
        }
    }
}

/// Ratios of a schedule that halves from 8, waits for two, and looks for more than 0.01.
fn halved(validation: &[f64]) -> Vec<f64> {
    let seen: Vec<Feedback> = validation
        .iter()
        .map(|&accuracy| Feedback {
            accuracy: Some(accuracy),
            loss: Some(3.0 - accuracy),
            error: Some(1.0 - accuracy),
        })
        .collect();
    let ratios = |schedule: Schedule| -> Vec<f64> {
        (0..=seen.len())
            .map(|t| schedule.ratio(t, 100, &seen[..t]))
            .collect()
    };
    let (from, to, factor, patience, tolerance) = (8.0, 1.0, 2.0, 2, 0.01);
    let [by_loss, by_accuracy] = measures().map(|measure| {
        ratios(Schedule::AdaptiveValidation {
            measure,
            from,
            to,
            factor,
            patience,
            tolerance,
        })
    });
    let by_error = ratios(Schedule::AdaptiveError {
        from,
        to,
        factor,
        patience,
        tolerance,
    });
    // An error or a loss that falls is an accuracy that rises.
    assert_eq!(by_accuracy, by_error);
    assert_eq!(by_accuracy, by_loss);
    by_accuracy
}

#[test]
fn an_adaptive_schedule_stays_while_there_is_progress_and_falls_when_there_is_none() {
    assert_eq!(halved(&[0.2, 0.3, 0.4, 0.5]), [8.0; 5]);
    // 0.505 is not progress enough, and 0.4 is none; then the wait starts anew.
    assert_eq!(
        halved(&[0.5, 0.505, 0.4, 0.4, 0.4, 0.6, 0.6, 0.6]),
        [8.0, 8.0, 8.0, 4.0, 4.0, 2.0, 2.0, 2.0, 1.0]
    );
}

#[test]
fn without_measurements_an_adaptive_schedule_stays() {
    let schedule = Schedule::AdaptiveError {
        from: 8.0,
        to: 1.0,
        factor: 2.0,
        patience: 1,
        tolerance: 0.0,
    };
    assert_eq!(schedule.ratio(50, 100, &[Feedback::default(); 50]), 8.0);
}

#[test]
fn the_linear_schedule_takes_the_values_of_the_authors_code() {
    let schedule = Schedule::default();
    for (epoch, expected) in [
        (0, 128.0),
        (10, 106.7),
        (20, 85.4),
        (30, 64.1),
        (40, 42.8),
        (50, 21.5),
        (55, 10.8),
        (58, 4.41),
        (59, 2.28),
        (60, 1.0),
    ] {
        let ratio = schedule.ratio(epoch, 300, &[]);
        assert!(
            (ratio - expected).abs() < 0.06,
            "epoch {epoch}: {ratio} ≠ {expected}"
        );
    }
}

/// Ratios in some epochs, by hand.
fn assert_ratios(schedule: Schedule, epochs: usize, expected: &[(usize, f64)]) {
    for &(epoch, expected) in expected {
        let ratio = schedule.ratio(epoch, epochs, &[]);
        assert!(
            (ratio - expected).abs() < 1e-3,
            "{schedule:?}, epoch {epoch} of {epochs}: {ratio} ≠ {expected}"
        );
    }
}

#[test]
fn the_exponential_schedule_takes_the_values_of_its_formula() {
    // 128 · exp(−t · ln(128 / 2) / 100): a quarter of the way 128 / 64^¼ = 128 / 2√2, half-way 128
    // / 8.
    let schedule = Schedule::Exponential {
        from: 128.0,
        to: 2.0,
    };
    let quarter = 128.0 / (2.0 * 2.0_f64.sqrt());
    let expected = [
        (0, 128.0),
        (25, quarter),
        (50, 16.0),
        (100, 2.0),
        (101, 2.0),
    ];
    assert_ratios(schedule, 102, &expected);
    // 128 · 2^(−7 t / 298).
    let schedule = Schedule::Exponential {
        from: 128.0,
        to: 1.0,
    };
    let expected = [(0, 128.0), (149, 128.0_f64.sqrt()), (298, 1.0), (299, 1.0)];
    assert_ratios(schedule, 300, &expected);
}

#[test]
fn the_cosine_schedule_takes_the_values_of_its_formula() {
    // 2 + 126 · (1 + cos(π t / 100)) / 2: at an eighth of a turn 2 + 63 · (1 + √½), half-way the
    // mean.
    let schedule = Schedule::Cosine {
        from: 128.0,
        to: 2.0,
    };
    let expected = [
        (0, 128.0),
        (25, 109.5477),
        (50, 65.0),
        (75, 20.4523),
        (100, 2.0),
        (101, 2.0),
    ];
    assert_ratios(schedule, 102, &expected);
}

#[test]
fn the_schedule_of_steps_takes_the_values_of_its_formula() {
    // 2^⌈(300 − t) / 50⌉.
    let schedule = |from, to| Schedule::Steps {
        from,
        to,
        every: 50,
    };
    let expected = [
        (0, 64.0),
        (49, 64.0),
        (50, 32.0),
        (149, 16.0),
        (150, 8.0),
        (151, 8.0),
        (249, 4.0),
        (250, 2.0),
        (299, 2.0),
    ];
    assert_ratios(schedule(128.0, 1.0), 300, &expected);
    // Within bounds.
    let expected = [(0, 20.0), (99, 20.0), (100, 16.0), (200, 4.0), (299, 3.0)];
    assert_ratios(schedule(20.0, 3.0), 300, &expected);
}

#[test]
fn a_rising_schedule_or_a_ratio_below_one_is_refused() {
    assert!(Schedule::Cosine { from: 2.0, to: 4.0 }.check().is_err());
    assert!(Schedule::Cosine { from: 2.0, to: 0.5 }.check().is_err());
    assert!(
        Schedule::Linear {
            from: 2.0,
            to: 1.0,
            slope: 0.0
        }
        .check()
        .is_err()
    );
    let adaptive = |factor, patience| Schedule::AdaptiveError {
        from: 2.0,
        to: 1.0,
        factor,
        patience,
        tolerance: 0.0,
    };
    assert!(adaptive(1.0, 1).check().is_err());
    assert!(adaptive(2.0, 0).check().is_err());
    assert!(Schedule::default().check().is_ok());
}
