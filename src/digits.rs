//! Three significant digits in the unit that fits, as messages and reports show sizes and times,
//! and counts.

/// A unit and its power of ten.
pub(crate) type Unit = (&'static str, i32);

/// Decimal units of bytes, ascending.
pub(crate) const BYTES: [Unit; 6] = [
    ("B", 0),
    ("kB", 3),
    ("MB", 6),
    ("GB", 9),
    ("TB", 12),
    ("PB", 15),
];

/// The largest of `units`, which ascend, of which `value` has at least one; zero is shown in the
/// base unit, and what is less than one of each in the smallest.
pub(crate) fn unit(value: f64, units: &[Unit]) -> Unit {
    // What would be rounded to 1.00 of a unit is in that unit already: 1 kB and not 1000 B.
    let fits = |exponent: i32| value.abs() >= 0.9995 * 10_f64.powi(exponent);
    let base = units.iter().find(|unit| unit.1 == 0);
    let largest = units.iter().rev().find(|unit| fits(unit.1));
    let smallest = if value == 0.0 { base } else { units.first() };
    largest.or(smallest).copied().unwrap_or(("", 0))
}

/// Three digits: `1.00 MB`.
pub(crate) fn full(value: f64, units: &[Unit]) -> String {
    let (number, name) = parts(value, units);
    format!("{number} {name}")
}

/// Three digits, less the zeros at the end: `1 MB`.
pub(crate) fn short(value: f64, units: &[Unit]) -> String {
    let (number, name) = parts(value, units);
    format!("{} {name}", trimmed(&number))
}

/// A number without the zeros at its end, if they are behind a point.
pub(crate) fn trimmed(number: &str) -> &str {
    if number.contains('.') {
        number.trim_end_matches('0').trim_end_matches('.')
    } else {
        number
    }
}

fn parts(value: f64, units: &[Unit]) -> (String, &'static str) {
    let (name, exponent) = unit(value, units);
    (digits(value / 10_f64.powi(exponent)), name)
}

/// A number with about three significant digits and no exponent: `0.0123`, `4.56`, `789`.
pub(crate) fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        // Bounds lie where rounding carries: 99.96 is `100` and not `100.0`.
        m if m >= 99.95 || m == 0.0 => 0,
        m if m >= 9.995 => 1,
        m if m >= 0.9995 => 2,
        m if m >= 0.0995 => 3,
        _ => 4,
    };
    format!("{value:.decimals$}")
}

/// Bytes in decimal units with three significant digits: `1.23 MB`.
pub(crate) fn bytes(bytes: f64) -> String {
    if bytes < 999.5 {
        return format!("{bytes:.0} B");
    }
    full(bytes, &BYTES)
}

/// A duration: `350 µs`, `12.3 ms`, `4.56 s`, `3 min 20 s`, `2 h 5 min`.
pub(crate) fn seconds(seconds: f64) -> String {
    if seconds == 0.0 {
        return "0 s".into();
    }
    // What would be rounded to a minute is one: 59.96 s.
    match seconds {
        s if s < 0.999_5e-3 => format!("{} µs", digits(s * 1e6)),
        s if s < 0.9995 => format!("{} ms", digits(s * 1e3)),
        s if s < 59.95 => format!("{} s", digits(s)),
        s if s < 3599.5 => {
            let whole = s.round();
            format!("{:.0} min {:.0} s", (whole / 60.0).floor(), whole % 60.0)
        }
        s => {
            let minutes = (s / 60.0).round();
            format!(
                "{:.0} h {:.0} min",
                (minutes / 60.0).floor(),
                minutes % 60.0
            )
        }
    }
}

/// So many of something: `1 worker`, `4 workers`, `2 classes`.
pub(crate) fn counted(number: u64, what: &str) -> String {
    let plural = match number {
        1 => "",
        _ if what.ends_with('s') => "es",
        _ => "s",
    };
    format!("{number} {what}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_alone_has_no_plural() {
        let of = |what: &str| [0, 1, 2].map(|number| counted(number, what));
        assert_eq!(of("label"), ["0 labels", "1 label", "2 labels"]);
        assert_eq!(of("class"), ["0 classes", "1 class", "2 classes"]);
    }

    #[test]
    fn three_digits_are_shown_in_the_largest_unit_that_fits() {
        for (value, whole, trimmed) in [
            (0.0, "0 B", "0 B"),
            (999.0, "999 B", "999 B"),
            (1000.0, "1.00 kB", "1 kB"),
            (12_340.0, "12.3 kB", "12.3 kB"),
            (99_960.0, "100 kB", "100 kB"),
            (999_960.0, "1.00 MB", "1 MB"),
            (-2.5e9, "-2.50 GB", "-2.5 GB"),
            (3e18, "3000 PB", "3000 PB"),
        ] {
            assert_eq!(full(value, &BYTES), whole);
            assert_eq!(short(value, &BYTES), trimmed);
        }
        assert_eq!(short(1e-4, &[("us", -6), ("s", 0)]), "100 us");
        assert_eq!(short(0.0, &[("us", -6), ("s", 0)]), "0 s");
    }
}
