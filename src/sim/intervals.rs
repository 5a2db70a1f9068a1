//! Unions of time spans, to tell how long something was going on and how much of it was waited for.

use crate::net::Seconds;

/// Disjoint spans in ascending order.
#[derive(Clone, Debug, Default)]
pub(super) struct Intervals(Vec<(f64, f64)>);

impl Intervals {
    /// Adds the span from `start` to `end`.
    pub(super) fn add(&mut self, start: Seconds, end: Seconds) {
        let (mut start, mut end) = (start.0, end.0);
        if end <= start {
            return;
        }
        // Most spans come in the order of their ends, so the place is looked for from there. One
        // that a worker's clock says in advance, such as the sum of a collective that it starts
        // late, may lie behind others that are still to come.
        let mut until = self.0.len();
        while until > 0 && self.0[until - 1].0 > end {
            until -= 1;
        }
        let mut from = until;
        // Spans that touch become one.
        while from > 0 && self.0[from - 1].1 >= start {
            from -= 1;
            start = start.min(self.0[from].0);
            end = end.max(self.0[from].1);
        }
        self.0.splice(from..until, [(start, end)]);
    }

    /// Total length.
    pub(super) fn length(&self) -> Seconds {
        // Not `sum`, which is −0 of nothing.
        let lengths = self.0.iter().map(|(start, end)| end - start);
        Seconds(lengths.fold(0.0, |sum, length| sum + length))
    }

    /// Length of what both have in common.
    pub(super) fn overlap(&self, other: &Self) -> Seconds {
        let (mut mine, mut theirs) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut total = 0.0;
        while let (Some(a), Some(b)) = (mine.peek(), theirs.peek()) {
            total += (a.1.min(b.1) - a.0.max(b.0)).max(0.0);
            if a.1 < b.1 {
                mine.next();
            } else {
                theirs.next();
            }
        }
        Seconds(total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(spans: &[(f64, f64)]) -> Intervals {
        let mut intervals = Intervals::default();
        for &(start, end) in spans {
            intervals.add(Seconds(start), Seconds(end));
        }
        intervals
    }

    #[test]
    fn overlapping_spans_count_once() {
        assert_eq!(
            spans(&[(0.0, 2.0), (1.0, 3.0), (5.0, 6.0)]).length(),
            Seconds(4.0)
        );
        assert_eq!(spans(&[(4.0, 5.0), (0.0, 6.0)]).length(), Seconds(6.0));
    }

    #[test]
    fn a_span_may_come_before_those_that_are_there() {
        assert_eq!(
            spans(&[(100.0, 101.0), (50.0, 60.0)]).0,
            [(50.0, 60.0), (100.0, 101.0)]
        );
        let between = spans(&[(0.0, 1.0), (8.0, 9.0), (3.0, 4.0), (1.0, 3.5)]);
        assert_eq!(between.0, [(0.0, 4.0), (8.0, 9.0)]);
        assert_eq!(spans(&[(0.0, 1.0), (8.0, 9.0), (1.0, 8.0)]).0, [(0.0, 9.0)]);
    }

    #[test]
    fn overlap_is_what_both_cover() {
        let flights = spans(&[(0.0, 2.0), (3.0, 6.0)]);
        let blocked = spans(&[(1.0, 4.0), (5.0, 9.0)]);
        assert_eq!(flights.overlap(&blocked), Seconds(3.0));
        assert_eq!(blocked.overlap(&flights), Seconds(3.0));
    }
}
