//! The plotters backends with text drawn from outlines of the embedded font.

use std::collections::BTreeSet;
use std::fmt::Write;

use plotters::backend::{BitMapBackend, DrawingBackend, SVGBackend};
use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingErrorKind, FontTransform,
};

use super::text::{self, Placed};

/// Where a line of text begins on the page, on its baseline.
#[derive(Clone, Copy)]
pub struct Start {
    x: f64,
    y: f64,
    /// Whether it runs upwards.
    turned: bool,
}

/// A backend that puts lines of text on its page.
pub trait Glyphs: DrawingBackend {
    /// Draws `glyphs` of type size `size`.
    ///
    /// # Errors
    /// The backend's.
    fn line(
        &mut self,
        glyphs: &[Placed],
        size: f64,
        color: BackendColor,
        start: Start,
    ) -> Result<(), DrawingErrorKind<Self::ErrorType>>;
}

/// The text of an SVG page: every outline once, and lines that use them.
#[derive(Default)]
pub struct Text {
    outlines: BTreeSet<u16>,
    lines: String,
}

impl Text {
    /// The elements of all lines, after those of the outlines, which go by the same names on every page.
    pub fn elements(&self) -> String {
        let mut elements = "<defs>\n".to_owned();
        for &number in &self.outlines {
            let outline = text::outline(number);
            // Writing to a string cannot fail.
            let _ = writeln!(elements, "<path id=\"glyph-{number}\" d=\"{outline}\"/>");
        }
        format!("{elements}</defs>\n{}", self.lines)
    }
}

/// Plotters' SVG backend and, beside it, the outlines of text.
pub struct Svg<'a> {
    shapes: SVGBackend<'a>,
    text: &'a mut Text,
}

impl<'a> Svg<'a> {
    /// A page of `size` units; shapes are written to `shapes`, text to `text`.
    pub fn new(shapes: &'a mut String, text: &'a mut Text, size: (u32, u32)) -> Self {
        Self {
            shapes: SVGBackend::with_string(shapes, size),
            text,
        }
    }
}

/// Plotters' bitmap backend.
pub struct Bitmap<'a>(BitMapBackend<'a>);

impl<'a> Bitmap<'a> {
    /// A page over `buffer`, three bytes a pixel.
    pub fn new(buffer: &'a mut [u8], size: (u32, u32)) -> Self {
        Self(BitMapBackend::with_buffer(buffer, size))
    }
}

impl Glyphs for Svg<'_> {
    fn line(
        &mut self,
        glyphs: &[Placed],
        size: f64,
        color: BackendColor,
        start: Start,
    ) -> Result<(), DrawingErrorKind<Self::ErrorType>> {
        let Text { outlines, lines } = &mut *self.text;
        let (Start { x, y, turned }, (r, g, b)) = (start, color.rgb);
        let turn = if turned { " rotate(-90)" } else { "" };
        let unit = text::unit(size);
        // Writing to a string cannot fail.
        let _ = write!(
            lines,
            "<g fill=\"#{r:02X}{g:02X}{b:02X}\" transform=\"translate({x:.0} {y:.0}){turn} scale({unit:.5} -{unit:.5})\">"
        );
        for glyph in glyphs {
            let number = glyph.number();
            if outlines.contains(&number) || !text::outline(number).is_empty() {
                outlines.insert(number);
                let right = glyph.x / unit;
                let _ = write!(lines, "<use href=\"#glyph-{number}\" x=\"{right:.0}\"/>");
            }
        }
        lines.push_str("</g>\n");
        Ok(())
    }
}

impl Glyphs for Bitmap<'_> {
    fn line(
        &mut self,
        glyphs: &[Placed],
        size: f64,
        color: BackendColor,
        start: Start,
    ) -> Result<(), DrawingErrorKind<Self::ErrorType>> {
        let Start { x, y, turned } = start;
        let place = |right: f64, below: f64| {
            if turned {
                (x + below, y - right)
            } else {
                (x + right, y + below)
            }
        };
        let mut result = Ok(());
        for glyph in glyphs {
            text::pixels(glyph, size, |right, below, coverage| {
                let color = BackendColor {
                    alpha: color.alpha * f64::from(coverage),
                    ..color
                };
                let drawn = self.0.draw_pixel(pixel(place(right, below)), color);
                if result.is_ok() {
                    result = drawn;
                }
            });
        }
        result
    }
}

/// The pixel that holds a point of the page; pages are far smaller than `i32`.
#[allow(clippy::cast_possible_truncation)]
fn pixel((x, y): (f64, f64)) -> BackendCoord {
    (x.round() as i32, y.round() as i32)
}

/// Places a line of text and draws its glyphs.
fn draw_line<B: Glyphs, S: BackendTextStyle>(
    backend: &mut B,
    line: &str,
    style: &S,
    (x, y): BackendCoord,
) -> Result<(), DrawingErrorKind<B::ErrorType>> {
    let size = style.size();
    let (glyphs, width) = text::layout(line, size);
    let left = match style.anchor().h_pos {
        HPos::Left => 0.0,
        HPos::Center => -width / 2.0,
        HPos::Right => -width,
    };
    // Vertical anchors mean the capitals' top, middle and baseline.
    let down = match style.anchor().v_pos {
        VPos::Top => text::CAPITALS * size,
        VPos::Center => text::CAPITALS * size / 2.0,
        VPos::Bottom => 0.0,
    };
    let (x, y) = (f64::from(x), f64::from(y));
    let turned = matches!(style.transform(), FontTransform::Rotate270);
    let (x, y) = if turned {
        (x + down, y - left)
    } else {
        (x + left, y + down)
    };
    backend.line(&glyphs, size, style.color(), Start { x, y, turned })
}

/// Hands every shape to the wrapped backend and draws text by [`draw_line`].
macro_rules! with_outlined_text {
    ($backend:ident, $wrapped:ident, $inner:tt) => {
        impl<'a> DrawingBackend for $backend<'a> {
            type ErrorType = <$wrapped<'a> as DrawingBackend>::ErrorType;

            fn get_size(&self) -> (u32, u32) {
                self.$inner.get_size()
            }
            fn ensure_prepared(&mut self) -> Result<(), DrawingErrorKind<Self::ErrorType>> {
                self.$inner.ensure_prepared()
            }
            fn present(&mut self) -> Result<(), DrawingErrorKind<Self::ErrorType>> {
                self.$inner.present()
            }
            fn draw_pixel(
                &mut self,
                point: BackendCoord,
                color: BackendColor,
            ) -> Result<(), DrawingErrorKind<Self::ErrorType>> {
                self.$inner.draw_pixel(point, color)
            }
            fn draw_line<S: BackendStyle>(
                &mut self,
                from: BackendCoord,
                to: BackendCoord,
                style: &S,
            ) -> Result<(), DrawingErrorKind<Self::ErrorType>> {
                self.$inner.draw_line(from, to, style)
            }
            fn draw_rect<S: BackendStyle>(
                &mut self,
                upper_left: BackendCoord,
                bottom_right: BackendCoord,
                style: &S,
                fill: bool,
            ) -> Result<(), DrawingErrorKind<Self::ErrorType>> {
                self.$inner.draw_rect(upper_left, bottom_right, style, fill)
            }
            fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
                &mut self,
                path: I,
                style: &S,
            ) -> Result<(), DrawingErrorKind<Self::ErrorType>> {
                self.$inner.draw_path(path, style)
            }
            fn draw_circle<S: BackendStyle>(
                &mut self,
                center: BackendCoord,
                radius: u32,
                style: &S,
                fill: bool,
            ) -> Result<(), DrawingErrorKind<Self::ErrorType>> {
                self.$inner.draw_circle(center, radius, style, fill)
            }
            fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
                &mut self,
                path: I,
                style: &S,
            ) -> Result<(), DrawingErrorKind<Self::ErrorType>> {
                self.$inner.fill_polygon(path, style)
            }
            fn draw_text<S: BackendTextStyle>(
                &mut self,
                text: &str,
                style: &S,
                position: BackendCoord,
            ) -> Result<(), DrawingErrorKind<Self::ErrorType>> {
                draw_line(self, text, style, position)
            }
        }
    };
}

with_outlined_text!(Svg, SVGBackend, shapes);
with_outlined_text!(Bitmap, BitMapBackend, 0);
