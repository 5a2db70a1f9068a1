//! The plotters backends with text drawn from outlines of the embedded font.

use std::fmt::Write;

use plotters::backend::{BitMapBackend, DrawingBackend, SVGBackend};
use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingErrorKind, FontTransform,
};

use super::text::{self, Placed};

/// A backend that puts single glyphs on its page.
pub trait Glyphs: DrawingBackend {
    /// Draws `glyph` of type size `size`; `place` maps (right, down) from the start of the baseline to the page.
    ///
    /// # Errors
    /// The backend's.
    fn glyph(
        &mut self,
        glyph: &Placed,
        size: f64,
        color: BackendColor,
        place: &dyn Fn(f64, f64) -> (f64, f64),
    ) -> Result<(), DrawingErrorKind<Self::ErrorType>>;
}

/// Plotters' SVG backend and, beside it, the outlines of text.
pub struct Svg<'a> {
    shapes: SVGBackend<'a>,
    text: &'a mut String,
}

impl<'a> Svg<'a> {
    /// A page of `size` units; shapes are written to `shapes`, `<path>` elements of text to `text`.
    pub fn new(shapes: &'a mut String, text: &'a mut String, size: (u32, u32)) -> Self {
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
    fn glyph(
        &mut self,
        glyph: &Placed,
        size: f64,
        color: BackendColor,
        place: &dyn Fn(f64, f64) -> (f64, f64),
    ) -> Result<(), DrawingErrorKind<Self::ErrorType>> {
        let path = text::path(glyph, size, |x, y| place(x, -y));
        if !path.is_empty() {
            let (r, g, b) = color.rgb;
            // Writing to a string cannot fail.
            let _ = writeln!(
                self.text,
                "<path fill=\"#{r:02X}{g:02X}{b:02X}\" d=\"{}Z\"/>",
                path.trim_end()
            );
        }
        Ok(())
    }
}

impl Glyphs for Bitmap<'_> {
    fn glyph(
        &mut self,
        glyph: &Placed,
        size: f64,
        color: BackendColor,
        place: &dyn Fn(f64, f64) -> (f64, f64),
    ) -> Result<(), DrawingErrorKind<Self::ErrorType>> {
        let mut result = Ok(());
        text::pixels(glyph, size, |x, y, coverage| {
            let color = BackendColor {
                alpha: color.alpha * f64::from(coverage),
                ..color
            };
            let drawn = self.0.draw_pixel(pixel(place(x, y)), color);
            if result.is_ok() {
                result = drawn;
            }
        });
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
    let place = move |right: f64, below: f64| {
        let (right, below) = (right + left, below + down);
        if turned {
            (x + below, y - right)
        } else {
            (x + right, y + below)
        }
    };
    glyphs
        .iter()
        .try_for_each(|glyph| backend.glyph(glyph, size, style.color(), &place))
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
