//! A straight line through few points, and how far from it the next one may lie.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Least squares.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line {
    mean: (f64, f64),
    slope: f64,
    /// Σ (x − mean)² of the points.
    spread: f64,
    /// Standard deviation of the points around the line.
    deviation: f64,
    points: usize,
}

impl Line {
    /// The line through points `(x, y)`; none through fewer than three, or with one x alone.
    pub(super) fn through(points: &[(f64, f64)]) -> Option<Self> {
        let count = points.len() as f64;
        let sum = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>();
        let mean = (sum(&|(x, _)| *x) / count, sum(&|(_, y)| *y) / count);
        let spread = sum(&|(x, _)| (x - mean.0).powi(2));
        if points.len() < 3 || spread <= 0.0 {
            return None;
        }
        let slope = sum(&|(x, y)| (x - mean.0) * (y - mean.1)) / spread;
        let off = |&(x, y): &(f64, f64)| (y - mean.1 - slope * (x - mean.0)).powi(2);
        Some(Self {
            mean,
            slope,
            spread,
            deviation: (sum(&off) / (count - 2.0)).sqrt(),
            points: points.len(),
        })
    }

    /// Its height at x.
    pub(super) fn at(&self, x: f64) -> f64 {
        self.mean.1 + self.slope * (x - self.mean.0)
    }

    /// Half the interval in which one more point at x lies with this confidence (the prediction
    /// interval of a regression; Draper and Smith, *Applied Regression Analysis*, chapter 3).
    pub(super) fn half(&self, x: f64, level: f64) -> f64 {
        let points = self.points as f64;
        let unit = StudentsT::new(0.0, 1.0, points - 2.0);
        // Degrees of freedom are at least one.
        let quantile = unit.map_or(f64::INFINITY, |t| t.inverse_cdf(0.5 + level / 2.0));
        let far = (x - self.mean.0).powi(2) / self.spread;
        quantile * self.deviation * (1.0 + 1.0 / points + far).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_on_a_line_leave_no_doubt() {
        let line = Line::through(&[(1.0, 3.0), (2.0, 5.0), (4.0, 9.0)]).unwrap();
        assert!((line.at(10.0) - 21.0).abs() < 1e-12);
        assert!(line.half(10.0, 0.95) < 1e-9);
    }

    #[test]
    fn the_interval_is_that_of_the_textbook() {
        // By hand: slope .66, residuals .19, .03, −.63, .41, whose squares add up to .602, and
        // Student's t of two degrees of freedom, 4.3027: 4.3027 · √(.602 / 2) · √(1 + 1/4 +
        // 6.25/5).
        let line = Line::through(&[(1.0, 2.0), (2.0, 2.5), (3.0, 2.5), (4.0, 4.2)]).unwrap();
        assert!((line.at(5.0) - 4.45).abs() < 1e-12, "{}", line.at(5.0));
        assert!(
            (line.half(5.0, 0.95) - 3.7324).abs() < 1e-3,
            "{}",
            line.half(5.0, 0.95)
        );
    }

    #[test]
    fn two_points_or_one_place_are_no_line() {
        assert!(Line::through(&[(1.0, 2.0), (2.0, 3.0)]).is_none());
        assert!(Line::through(&[(1.0, 2.0), (1.0, 3.0), (1.0, 5.0)]).is_none());
    }
}
