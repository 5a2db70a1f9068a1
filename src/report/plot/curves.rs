//! A panel of curves or points over two axes, with bands or error bars.

use super::canvas::{At, Canvas, GUIDE, Stroke};
use super::frame::{Frame, Labels};
use super::legend::{Entries, Sample};
use super::scale::Axis;
use crate::report::looks::Look;
use crate::report::style::{CURVE, THIN};

/// Height of the data rectangle, pt: at most, and of narrow ones at least.
const HEIGHT: f64 = 118.0;
const LOW: f64 = 78.0;
/// Markers on one curve, about, and the least distance between them, pt.
const MARKERS: usize = 7;
const APART: f64 = 20.0;
/// How dark a band is at most, and all bands on one another.
const BAND: f64 = 0.2;
const BANDS: f64 = 0.5;
/// Size of a marker on a curve, and of one that stands alone, pt.
const MARKER: f64 = 3.8;
const POINT: f64 = 5.2;

/// A point with the standard deviation of either coordinate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spot {
    /// Horizontal value.
    pub x: f64,
    /// Its standard deviation over seeds.
    pub x_sd: f64,
    /// Vertical value.
    pub y: f64,
    /// Its standard deviation over seeds.
    pub y_sd: f64,
}

/// One curve, or one group of points.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    /// Legend text.
    pub label: String,
    /// Colour, dash and marker.
    pub look: Look,
    /// The points, by growing x if they are joined.
    pub spots: Vec<Spot>,
    /// Crosses on top of the curves, which need no entry in the legend.
    pub crosses: bool,
}

/// A thin line to compare with, behind everything else.
#[derive(Clone, Debug)]
pub(crate) struct Guide {
    /// Legend text.
    pub label: &'static str,
    /// Its corners.
    pub points: Vec<(f64, f64)>,
}

/// A panel with two axes.
#[derive(Clone, Debug)]
pub(crate) struct Curves {
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// What is drawn, first to last.
    pub series: Vec<Series>,
    /// Joined points have a band of ± one standard deviation, single ones error bars.
    pub joined: bool,
    /// A line to compare with.
    pub guide: Option<Guide>,
}

impl Curves {
    /// The legend's entries.
    pub(crate) fn legend(&self) -> Entries {
        let sample = |series: &Series| Sample::Curve {
            look: series.look,
            joined: self.joined,
        };
        let guide = self.guide.iter().filter(|guide| guide.points.len() > 1);
        self.series
            .iter()
            .filter(|series| !series.crosses)
            .map(|series| (sample(series), series.label.clone()))
            .chain(guide.map(|guide| (Sample::Guide, guide.label.to_owned())))
            .collect()
    }

    /// Height of a data rectangle of `width` pt, pt.
    pub(crate) fn inside(width: f64) -> f64 {
        (0.75 * width).clamp(LOW, HEIGHT)
    }

    /// Draws the panel.
    pub(crate) fn draw(&self, canvas: &mut Canvas, frame: Frame, labels: Labels) {
        let place = |x: f64, y: f64| frame.at(self.x.position(x), self.y.position(y));
        if let Some(guide) = &self.guide {
            let points = guide.points.iter().map(|(x, y)| place(*x, *y));
            for piece in frame.above_bottom(&points.collect::<Vec<At>>()) {
                canvas.line(&piece, GUIDE);
            }
        }
        if self.joined {
            for series in self.series.iter().filter(|series| !series.crosses) {
                let joined = self.joined_of(series);
                // Where a curve is out of sight, so is its band, but for the way to the next point.
                let seen = |at: usize| place(joined[at].x, joined[at].y).1 <= frame.bottom;
                let places: Vec<usize> = (0..joined.len()).collect();
                for piece in places.chunk_by(|a, b| seen(*a) == seen(*b)) {
                    if seen(piece[0]) {
                        let (first, last) = (piece[0], piece[0] + piece.len());
                        let piece = &joined[first.saturating_sub(1)..joined.len().min(last + 1)];
                        let lower = |spot: &Spot| self.lower(spot);
                        band(canvas, (series, self.alpha()), piece, lower, |x, y| {
                            frame.nearest(place(x, y))
                        });
                    }
                }
            }
        }
        let is_curve = |series: &Series| self.joined && series.spots.len() > 1;
        // Bars first: the marker of one point is not to lie under the bar of another.
        let single = |series: &&Series| !series.crosses && !is_curve(series);
        for series in self.series.iter().filter(single) {
            error_bars(canvas, series, |x, y| frame.nearest(place(x, y)));
        }
        for (index, series) in self.series.iter().enumerate() {
            if series.crosses {
                crosses(canvas, series, |x, y| frame.nearest(place(x, y)));
            } else if is_curve(series) {
                self.draw_curve(canvas, series, index, &frame);
            } else {
                for spot in &series.spots {
                    let at = frame.nearest(place(spot.x, spot.y));
                    canvas.marker(at, POINT, series.look.color, series.look.marker);
                }
            }
        }
        frame.draw(canvas, &self.x, Some(&self.y));
        frame.horizontal(canvas, &self.x, labels.below);
        frame.vertical(canvas, &self.y, labels.left);
    }

    /// How dark bands are: many on top of each other would hide what they surround.
    fn alpha(&self) -> f64 {
        let bands = self.series.iter().filter(|series| !series.crosses);
        BAND.min(BANDS / bands.count().max(1) as f64)
    }

    /// Where the band of a point ends below it: by a standard deviation, and on a logarithmic axis
    /// by as large a factor as above.
    fn lower(&self, spot: &Spot) -> f64 {
        if self.y.is_log() {
            spot.y * spot.y / (spot.y + spot.y_sd)
        } else {
            spot.y - spot.y_sd
        }
    }

    /// The points that are joined: not those before the axis begins, or beside its break.
    fn joined_of<'s>(&self, series: &'s Series) -> Vec<&'s Spot> {
        let spots = series.spots.iter();
        spots.filter(|spot| self.x.begins_before(spot.x)).collect()
    }

    fn draw_curve(&self, canvas: &mut Canvas, series: &Series, index: usize, frame: &Frame) {
        let place = |spot: &Spot| frame.at(self.x.position(spot.x), self.y.position(spot.y));
        let stroke = Stroke {
            color: series.look.color,
            width: CURVE,
            dash: series.look.dash,
        };
        let joined: Vec<At> = self.joined_of(series).into_iter().map(place).collect();
        for piece in frame.above_bottom(&joined) {
            canvas.line(&piece, stroke);
        }
        // Markers at even distances along the axis, each curve's a little further than the last
        // one's, so that curves that lie on one another can be told apart.
        let places = series
            .spots
            .iter()
            .map(place)
            // What lies below the frame is out of sight.
            .filter(|at| at.1 <= frame.bottom);
        let places: Vec<At> = places.collect();
        let (Some(first), Some(last)) = (places.first(), places.last()) else {
            return;
        };
        let distance = ((last.0 - first.0) / MARKERS as f64).max(APART);
        // The first seven multiples of 0.37 lie well apart within a distance.
        let mut next = first.0 + distance * (index as f64 * 0.37).fract();
        // A few points are marked each.
        let few = places.len() <= MARKERS;
        for at in &places[..places.len() - 1] {
            // Two markers on top of each other are none: the last point always has its own.
            if few || (at.0 >= next && last.0 - at.0 > 0.6 * distance) {
                canvas.marker(*at, MARKER, series.look.color, series.look.marker);
                next = at.0 + distance;
            }
        }
        canvas.marker(*last, MARKER, series.look.color, series.look.marker);
    }
}

fn band(
    canvas: &mut Canvas,
    (series, alpha): (&Series, f64),
    spots: &[&Spot],
    lower: impl Fn(&Spot) -> f64,
    place: impl Fn(f64, f64) -> At,
) {
    // Of a single seed there is no spread to show.
    if spots.iter().all(|spot| spot.y_sd == 0.0) {
        return;
    }
    let upper = spots.iter().map(|spot| place(spot.x, spot.y + spot.y_sd));
    let lower = spots.iter().rev().map(|spot| place(spot.x, lower(spot)));
    let outline: Vec<At> = upper.chain(lower).collect();
    canvas.fill(&outline, series.look.color, alpha);
}

fn crosses(canvas: &mut Canvas, series: &Series, place: impl Fn(f64, f64) -> At) {
    let stroke = Stroke::solid(series.look.color, 1.4 * CURVE);
    for spot in &series.spots {
        let (x, y) = place(spot.x, spot.y);
        let half = MARKER;
        canvas.line(&[(x - half, y - half), (x + half, y + half)], stroke);
        canvas.line(&[(x - half, y + half), (x + half, y - half)], stroke);
    }
}

fn error_bars(canvas: &mut Canvas, series: &Series, place: impl Fn(f64, f64) -> At) {
    let stroke = Stroke::solid(series.look.color, THIN + 0.2);
    for spot in &series.spots {
        let (up, down) = (
            place(spot.x, spot.y + spot.y_sd),
            place(spot.x, spot.y - spot.y_sd),
        );
        let (left, right) = (
            place(spot.x - spot.x_sd, spot.y),
            place(spot.x + spot.x_sd, spot.y),
        );
        if spot.y_sd > 0.0 {
            canvas.line(&[up, down], stroke);
            for (x, y) in [up, down] {
                canvas.line(&[(x - 1.6, y), (x + 1.6, y)], stroke);
            }
        }
        if spot.x_sd > 0.0 {
            canvas.line(&[left, right], stroke);
            for (x, y) in [left, right] {
                canvas.line(&[(x, y - 1.6), (x, y + 1.6)], stroke);
            }
        }
    }
}
