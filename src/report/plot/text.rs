//! Text as outlines of the embedded font, so that a figure looks the same on every machine, with fonts or
//! without.

use std::sync::LazyLock;

use ab_glyph::{Font, FontRef, GlyphId, OutlineCurve, Point, PxScale, ScaleFont};

/// The condensed face leaves room for data in a narrow column.
static FONT: LazyLock<FontRef<'static>> = LazyLock::new(|| {
    FontRef::try_from_slice(dejavu::sans_condensed::regular())
        .expect("the embedded font is part of the program and is parsed by every figure test")
});

/// Height of capitals over the type size in the embedded font.
pub const CAPITALS: f64 = 0.729;

/// One glyph of a line of text.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    id: GlyphId,
    /// Left end on the baseline, from the start of the line.
    pub x: f64,
}

/// The glyphs of `text` at type size `size`, and the width of the line; in the unit of `size`.
pub fn layout(text: &str, size: f64) -> (Vec<Placed>, f64) {
    let font = FONT.as_scaled(scale(size));
    let mut x = 0.0;
    let mut before: Option<GlyphId> = None;
    let mut glyphs = Vec::new();
    for id in text.chars().map(|character| font.glyph_id(character)) {
        if let Some(before) = before {
            x += f64::from(font.kern(before, id));
        }
        glyphs.push(Placed { id, x });
        x += f64::from(font.h_advance(id));
        before = Some(id);
    }
    (glyphs, x)
}

/// Width of `text` at type size `size`, in the unit of `size`.
pub fn width(text: &str, size: f64) -> f64 {
    layout(text, size).1
}

/// `text`, or as much of its start as fits into `room` with an ellipsis; in the unit of `size`.
pub fn fit(text: &str, size: f64, room: f64) -> String {
    if width(text, size) <= room {
        return text.to_owned();
    }
    let mut kept: Vec<char> = text.chars().collect();
    loop {
        kept.pop();
        let short: String = kept.iter().chain(&['…']).collect();
        if kept.is_empty() || width(&short, size) <= room {
            return short;
        }
    }
}

impl Placed {
    /// What tells its outline from others of the font.
    pub const fn number(&self) -> u16 {
        self.id.0
    }
}

/// Type size over the units that [`outline`] has.
pub fn unit(size: f64) -> f64 {
    f64::from(FONT.as_scaled(scale(size)).v_scale_factor())
}

/// The outline of the glyph of this number as SVG path commands, in the font's own units, up being positive; empty for a blank.
pub fn outline(number: u16) -> String {
    use std::fmt::Write;
    let Some(outline) = FONT.outline(GlyphId(number)) else {
        return String::new();
    };
    let mut path = String::new();
    let mut here: Option<Point> = None;
    let point = |path: &mut String, command: &str, points: &[Point]| {
        let mut sign = command;
        for p in points {
            // Writing to a string cannot fail.
            let _ = write!(path, "{sign}{:.0} {:.0}", p.x, p.y);
            sign = " ";
        }
    };
    for curve in &outline.curves {
        let (start, end) = match curve {
            OutlineCurve::Line(a, b)
            | OutlineCurve::Quad(a, _, b)
            | OutlineCurve::Cubic(a, _, _, b) => (*a, *b),
        };
        if here != Some(start) {
            point(&mut path, "M", &[start]);
        }
        match curve {
            OutlineCurve::Line(_, b) => point(&mut path, "L", &[*b]),
            OutlineCurve::Quad(_, c, b) => point(&mut path, "Q", &[*c, *b]),
            OutlineCurve::Cubic(_, c, d, b) => point(&mut path, "C", &[*c, *d, *b]),
        }
        here = Some(end);
    }
    if !path.is_empty() {
        path.push('Z');
    }
    path
}

/// Calls `ink` with every pixel the glyph covers (right, down, from the start of the line on the baseline)
/// and how much of it is covered, 0 to 1.
pub fn pixels(glyph: &Placed, size: f64, mut ink: impl FnMut(f64, f64, f32)) {
    // Positions in pixels are far below the precision of `f32`.
    #[allow(clippy::cast_possible_truncation)]
    let placed = glyph
        .id
        .with_scale_and_position(scale(size), ab_glyph::point(glyph.x as f32, 0.0));
    if let Some(outline) = FONT.outline_glyph(placed) {
        let corner = outline.px_bounds().min;
        outline.draw(|x, y, coverage| {
            ink(
                f64::from(corner.x) + f64::from(x),
                f64::from(corner.y) + f64::from(y),
                coverage,
            );
        });
    }
}

/// Type size (the em square) to the font library's scale (ascent to descent).
fn scale(size: f64) -> PxScale {
    let em = f64::from(FONT.units_per_em().unwrap_or(2048.0));
    // Type sizes are small numbers.
    #[allow(clippy::cast_possible_truncation)]
    PxScale::from((size * f64::from(FONT.height_unscaled()) / em) as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn width_grows_with_text_and_size() {
        let one = width("full", 7.0);
        assert!((width("full", 14.0) - 2.0 * one).abs() < 1e-3);
        assert!(width("fullfull", 7.0) > 1.9 * one);
        assert!((2.0 * 7.0..7.0 * 4.0).contains(&width("mmmm", 7.0)));
    }

    #[test]
    fn text_that_is_too_long_ends_in_an_ellipsis_and_fits() {
        assert_eq!(fit("full", 7.0, 50.0), "full");
        let short = fit("workers=64 fixed(ratio=128)", 7.0, 50.0);
        assert!(
            short.ends_with('…') && short.starts_with("workers"),
            "{short}"
        );
        assert!(width(&short, 7.0) <= 50.0);
    }

    #[test]
    fn every_sign_that_reports_use_has_a_glyph() {
        for sign in "±×µ−–…≤≥·\u{2009}σθ".chars() {
            assert_ne!(FONT.glyph_id(sign), GlyphId(0), "{sign:?}");
        }
    }

    #[test]
    fn a_letter_with_a_hole_has_two_contours() {
        let (glyphs, _) = layout("o ", 100.0);
        let outline_of = |glyph: &Placed| outline(glyph.number());
        assert_eq!(outline_of(&glyphs[0]).matches('M').count(), 2);
        assert_eq!(outline_of(&glyphs[1]), "", "a space");
    }
}
