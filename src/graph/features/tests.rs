//! Rows in every form read the same.

use super::*;

fn words() -> Features {
    Features::from_rows(
        4,
        vec![vec![(3, 2.0), (0, 6.0)], vec![], vec![(1, 5.0)]].into_iter(),
    )
}

fn dense(features: &Features) -> Vec<Vec<f32>> {
    let row = |row| {
        let mut target = vec![9.0; features.width()];
        features.copy_row_into(row, &mut target);
        target
    };
    (0..features.rows()).map(row).collect()
}

#[test]
fn rows_sum_to_one_after_normalising_and_empty_rows_stay_empty() {
    let mut features = words();
    features.row_normalise();
    let expected = [[0.75, 0.0, 0.0, 0.25], [0.0; 4], [0.0, 1.0, 0.0, 0.0]];
    assert_eq!(dense(&features), expected);
    let mut same = Features::Dense {
        width: 4,
        values: dense(&words()).concat(),
    };
    same.row_normalise();
    assert_eq!(dense(&same), expected);
}

#[test]
fn selected_rows_come_in_the_order_asked_for_in_both_forms() {
    let sparse = words().select(&[2, 0, 2]);
    let full = Features::Dense {
        width: 4,
        values: dense(&words()).concat(),
    };
    assert_eq!(dense(&sparse), dense(&full.select(&[2, 0, 2])));
    assert_eq!(dense(&sparse)[1], [6.0, 0.0, 0.0, 2.0]);
}

#[test]
fn appended_rows_read_the_same_in_both_forms() {
    let rows: Vec<f32> = (0_u8..120)
        .map(|at| if at % 7 == 3 { f32::from(at) } else { 0.0 })
        .collect();
    let mut sparse = Features::from_rows(40, vec![vec![(39, 1.0)]].into_iter());
    let mut full = Features::Dense {
        width: 40,
        values: dense(&sparse).concat(),
    };
    sparse.append(&rows);
    full.append(&rows);
    assert_eq!(sparse.rows(), 4);
    assert_eq!(dense(&sparse), dense(&full));
    assert_eq!(sparse.dense_rows(&[3, 1]), full.dense_rows(&[3, 1]));
    assert_eq!(
        sparse.values().len(),
        1 + rows.iter().filter(|v| **v != 0.0).count()
    );
}

#[test]
fn a_mostly_empty_matrix_is_stored_sparse_and_reads_the_same() {
    let mut values = vec![0.0; 60];
    values[17] = -3.0;
    let full = Features::Dense { width: 20, values };
    let sparse = full.clone().compact();
    assert!(matches!(sparse, Features::Sparse(_)));
    assert_eq!(dense(&sparse), dense(&full));
    assert!(!sparse.is_bag_of_words());
    assert!((sparse.density() - 1.0 / 60.0).abs() < 1e-12);
    let filled = Features::Dense {
        width: 2,
        values: vec![1.0; 8],
    };
    assert_eq!(filled.clone().compact(), filled);
    assert_eq!(sparse.clone().expanded(), sparse);
    let rows = (0..4).map(|_| vec![(0, 1.0), (1, 1.0)]);
    assert_eq!(Features::from_rows(2, rows).expanded(), filled);
}

#[test]
fn the_identity_gives_each_node_its_own_column() {
    assert_eq!(dense(&Features::identity(2)), [[1.0, 0.0], [0.0, 1.0]]);
    assert_eq!(
        (Features::none(5).rows(), Features::none(5).width()),
        (5, 0)
    );
}
