//! Numbers as people read them.

use crate::digits::trimmed;
pub(crate) use crate::digits::{bytes, counted, digits, seconds};
use crate::experiment::Projection;
use crate::experiment::statistics::Summary;

/// The text with a capital first letter, for headings and sentences.
pub(crate) fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

/// How many times: `1.04×`, `12.3×`, `580×`.
pub(crate) fn factor(factor: f64) -> String {
    if factor >= 9_999.5 {
        return format!("{}×", grouped(factor));
    }
    format!("{}×", digits(factor))
}

/// Node data, and beside them what repartitioning moved, if anything, which is none of them.
pub(crate) fn with_repartition(node_data: String, moved: f64) -> String {
    if moved > 0.0 {
        format!("{node_data} + {} repartitioned", bytes(moved))
    } else {
        node_data
    }
}

/// With a `≤` where it is the most that it can be.
pub(crate) fn upper(cell: &Projection, text: String) -> String {
    if cell.exact {
        text
    } else {
        format!("≤ {text}")
    }
}

/// A share of one as a percentage with one decimal: `81.5 %`.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A number with the sign of its value: `+0.3`, `−12 %`, `0.0`.
pub(crate) fn signed(value: f64, text: String) -> String {
    let zero = !text.contains(|letter| ('1'..='9').contains(&letter));
    match value {
        _ if zero => text,
        below if below < 0.0 => format!("−{text}"),
        _ => format!("+{text}"),
    }
}

/// Mean and deviation of shares of one, in percent: `81.5 ± 0.4 %`; without deviation for one seed.
pub(crate) fn percent_summary(summary: &Summary) -> String {
    match summary.sd {
        Some(sd) => format!("{:.1} ± {:.1} %", summary.mean * 100.0, sd * 100.0),
        None => percent(summary.mean),
    }
}

/// A whole number with thin spaces between groups of three digits: `10 556`.
pub(crate) fn grouped(count: f64) -> String {
    let plain = format!("{:.0}", count.abs());
    // A minus, where a program would write a hyphen.
    let mut grouped = String::from(if count < 0.0 { "−" } else { "" });
    for (index, digit) in plain.chars().enumerate() {
        // Four digits are read at a glance.
        if index > 0 && (plain.len() - index) % 3 == 0 && plain.len() > 4 {
            grouped.push('\u{2009}');
        }
        grouped.push(digit);
    }
    grouped
}

/// A measured quantity of unknown unit: about four significant digits, whole numbers as such.
pub(crate) fn quantity(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude.is_infinite() {
        return if value > 0.0 { "∞" } else { "−∞" }.to_owned();
    }
    if magnitude >= 9_999.5 {
        return grouped(value);
    }
    let decimals = match magnitude {
        m if m >= 100.0 => 1,
        m if m >= 1.0 => 3,
        _ => 4,
    };
    let text = format!("{value:.decimals$}");
    let text = trimmed(&text);
    // Small negative numbers round to it.
    if text == "-0" {
        "0".into()
    } else {
        text.replace('-', "−")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_take_the_largest_unit_that_fits() {
        let shown: Vec<String> = [0.0, 999.0, 1000.0, 12_340.0, 999_960.0, 5.678e7, 3e12]
            .map(bytes)
            .into();
        assert_eq!(
            shown,
            [
                "0 B", "999 B", "1.00 kB", "12.3 kB", "1.00 MB", "56.8 MB", "3.00 TB"
            ]
        );
    }

    #[test]
    fn seconds_change_unit_with_size_and_never_show_sixty() {
        let shown: Vec<String> = [0.0, 2.5e-5, 0.0123, 4.56, 59.99, 200.0, 7_500.0]
            .map(seconds)
            .into();
        let wanted = [
            "0 s",
            "25.0 µs",
            "12.3 ms",
            "4.56 s",
            "1 min 0 s",
            "3 min 20 s",
            "2 h 5 min",
        ];
        assert_eq!(shown, wanted);
    }

    #[test]
    fn a_single_seed_shows_no_deviation() {
        let three = Summary::of([0.81, 0.815, 0.82]).unwrap();
        assert_eq!(percent_summary(&three), "81.5 ± 0.5 %");
        assert_eq!(percent_summary(&Summary::of([0.8]).unwrap()), "80.0 %");
    }

    #[test]
    fn large_counts_are_grouped_and_years_are_not() {
        assert_eq!(grouped(2708.0), "2708");
        assert_eq!(grouped(10_556.0), "10\u{2009}556");
        assert_eq!(grouped(1_234_567.0), "1\u{2009}234\u{2009}567");
    }

    #[test]
    fn quantities_of_any_unit_keep_their_sign_and_lose_idle_zeros() {
        let shown: Vec<String> = [-0.0123, 12.5, 250.04, -0.000_01, 0.0].map(quantity).into();
        assert_eq!(shown, ["−0.0123", "12.5", "250", "0", "0"]);
    }
}
