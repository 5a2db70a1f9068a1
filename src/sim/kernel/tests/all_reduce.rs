//! All-reduces against their closed forms.

use super::{ALPHA, BETA, all_reduce, assert_time, cluster};
use crate::net::{AllReduceKind, Framing, Hierarchy, Tried};

#[test]
fn all_reduce_takes_the_time_of_its_closed_form() {
    for size in 2..=17_usize {
        let len = size.next_power_of_two() * size * 10;
        let (workers, bytes) = (size as f64, 4.0 * len as f64);
        let share = 2.0 * (workers - 1.0) / workers * bytes * BETA;
        let expected = 2.0 * (workers - 1.0) * ALPHA + share;
        let found = all_reduce(&AllReduceKind::Ring, size, len);
        assert_time(found, expected, &format!("ring of {size}"));

        let expected = 2.0 * ALPHA + 2.0 * (workers - 1.0) * bytes * BETA;
        let found = all_reduce(&AllReduceKind::ParameterServer, size, len);
        assert_time(found, expected, &format!("parameter server of {size}"));

        let levels = f64::from(size.next_power_of_two().ilog2());
        let expected = 2.0 * levels * (ALPHA + bytes * BETA);
        let found = all_reduce(&AllReduceKind::Tree, size, len);
        if size.is_power_of_two() {
            assert_time(found, expected, &format!("tree of {size}"));
        } else {
            // The broadcast takes its closed form; the reduction has levels with idle workers,
            // which send early.
            assert!(
                found <= expected * (1.0 + 1e-9),
                "tree of {size}: {found} and {expected}"
            );
        }

        let core = (1_usize << size.ilog2()) as f64;
        let fold = if size.is_power_of_two() {
            0.0
        } else {
            2.0 * (ALPHA + bytes * BETA)
        };
        let expected = fold + 2.0 * core.log2() * ALPHA + 2.0 * (core - 1.0) / core * bytes * BETA;
        let found = all_reduce(&AllReduceKind::HalvingDoubling, size, len);
        if size.is_power_of_two() {
            assert_time(found, expected, &format!("halving and doubling of {size}"));
        } else {
            // Who has nobody to fold in sends early, into a link over which something is folded.
            let late = (found - expected) / (bytes * BETA);
            assert!(
                (-1e-9..=1.0).contains(&late),
                "halving and doubling of {size}: {late}"
            );
        }
    }
}

#[test]
fn all_reduce_in_two_levels_takes_the_time_of_its_closed_form() {
    for (groups, gpus) in [(2_usize, 2_usize), (3, 4), (4, 3), (1, 5), (8, 2)] {
        let (m, g) = (groups as f64, gpus as f64);
        let len = groups * gpus * 40;
        let bytes = 4.0 * len as f64;
        let inside = 2.0 * (ALPHA + (g - 1.0) / g * bytes * BETA);
        let moved = 2.0 * (m - 1.0) / m * bytes / g * BETA;
        for (halving, steps) in [(false, 2.0 * (m - 1.0)), (true, 2.0 * m.log2())] {
            if halving && !groups.is_power_of_two() {
                continue;
            }
            let kind = AllReduceKind::Hierarchical(Hierarchy::new(&vec![gpus; groups], halving));
            let found = all_reduce(&kind, groups * gpus, len);
            let expected = inside + steps * ALPHA + moved;
            assert_time(found, expected, &format!("{groups} of {gpus}, {halving}"));
        }
    }
}

#[test]
fn auto_is_never_slower_than_any_algorithm_on_equal_links() {
    for size in [2, 4, 8, 16] {
        for len in [size, 16 * size, 400 * size, 10_000 * size] {
            let tried = Tried::on(&cluster(size).topology, Framing::none());
            let auto = all_reduce(&AllReduceKind::Auto(tried), size, len);
            for kind in [
                AllReduceKind::Ring,
                AllReduceKind::HalvingDoubling,
                AllReduceKind::Tree,
                AllReduceKind::ParameterServer,
            ] {
                let other = all_reduce(&kind, size, len);
                assert!(
                    auto <= other * (1.0 + 1e-9),
                    "{size} workers, {len}: {auto}, {kind:?} {other}"
                );
            }
        }
    }
}
