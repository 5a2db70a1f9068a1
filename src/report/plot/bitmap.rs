//! A page as a PNG on white, 400 dots an inch.

use tiny_skia::{
    Color as Fill, FillRule, Paint, PathBuilder, Pixmap, Stroke as Pen, StrokeDash, Transform,
};

use super::canvas::{At, Canvas, Line, Path, Shape};
use super::text::{self, Piece};
use crate::report::style::Color;

/// Pixels to the point.
const SCALE: f64 = 400.0 / 72.0;
/// Pixels to the metre.
const PER_METRE: u32 = 15_748;

/// The file of a page of `size` pt.
///
/// # Errors
/// A page without a size, or what the encoding library says.
pub(super) fn png(canvas: &Canvas, size: At) -> Result<Vec<u8>, String> {
    // Pages are a few hundred points high.
    let [width, height] = [size.0, size.1].map(|length| (length * SCALE).round() as u32);
    let mut page = Pixmap::new(width, height).ok_or("the page has no size")?;
    page.fill(Fill::WHITE);
    for shape in &canvas.shapes {
        match shape {
            Shape::Path(path) => draw_path(path, &mut page),
            Shape::Text(line) => draw_text(line, &mut page),
        }
    }
    encode(&page).map_err(|error| error.to_string())
}

fn paint((red, green, blue): Color, alpha: f64) -> Paint<'static> {
    let mut paint = Paint::default();
    paint.set_color_rgba8(red, green, blue, (alpha * 255.0).round() as u8);
    paint
}

fn draw_path(path: &Path, page: &mut Pixmap) {
    let mut builder = PathBuilder::new();
    for (place, &at) in path.points.iter().enumerate() {
        let (x, y) = (at.0 as f32, at.1 as f32);
        if place == 0 {
            builder.move_to(x, y);
        } else {
            builder.line_to(x, y);
        }
    }
    if path.closed {
        builder.close();
    }
    // A line without length draws nothing.
    let Some(outline) = builder.finish() else {
        return;
    };
    let to_page = Transform::from_scale(SCALE as f32, SCALE as f32);
    if let Some((color, alpha)) = path.fill {
        let mut paint = paint(color, alpha);
        // Rectangles that touch leave no seam between them.
        paint.anti_alias = !is_upright(&path.points);
        page.fill_path(&outline, &paint, FillRule::Winding, to_page, None);
    }
    if let Some(stroke) = path.stroke {
        let dash: Vec<f32> = stroke.dash.iter().map(|&length| length as f32).collect();
        let pen = Pen {
            width: stroke.width as f32,
            dash: StrokeDash::new(dash, 0.0),
            ..Pen::default()
        };
        page.stroke_path(&outline, &paint(stroke.color, 1.0), &pen, to_page, None);
    }
}

/// Whether it is a rectangle with level sides.
fn is_upright(points: &[At]) -> bool {
    let ends = points.iter().zip(points.iter().cycle().skip(1));
    points.len() == 4 && { ends }.all(|(a, b)| a.0 == b.0 || a.1 == b.1)
}

fn draw_text(line: &Line, page: &mut Pixmap) {
    let turn = if line.upwards { -90.0 } else { 0.0 };
    let (scale, unit) = (SCALE as f32, text::unit(line.size) as f32);
    let paint = paint(line.color, 1.0);
    for glyph in &line.glyphs {
        let mut builder = PathBuilder::new();
        let at = |(x, y): At| (x as f32, y as f32);
        for piece in text::outline(glyph.number()) {
            match piece {
                Piece::Move(to) => {
                    builder.close();
                    let to = at(to);
                    builder.move_to(to.0, to.1);
                }
                Piece::Line(to) => {
                    let to = at(to);
                    builder.line_to(to.0, to.1);
                }
                Piece::Quad(over, to) => {
                    let (over, to) = (at(over), at(to));
                    builder.quad_to(over.0, over.1, to.0, to.1);
                }
                Piece::Cubic(first, second, to) => {
                    let (a, b, to) = (at(first), at(second), at(to));
                    builder.cubic_to(a.0, a.1, b.0, b.1, to.0, to.1);
                }
            }
        }
        builder.close();
        let Some(outline) = builder.finish() else {
            continue;
        };
        let to_page = Transform::from_translate(line.start.0 as f32, line.start.1 as f32)
            .pre_rotate(turn)
            .pre_translate(glyph.x as f32, 0.0)
            .pre_scale(unit, -unit)
            .post_scale(scale, scale);
        page.fill_path(&outline, &paint, FillRule::Winding, to_page, None);
    }
}

/// Opaque pixels as a PNG that knows how large it is on paper.
fn encode(page: &Pixmap) -> Result<Vec<u8>, png::EncodingError> {
    let pixels = page.pixels().iter();
    let bytes: Vec<u8> = pixels
        .flat_map(|pixel| [pixel.red(), pixel.green(), pixel.blue()])
        .collect();
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, page.width(), page.height());
    encoder.set_color(png::ColorType::Rgb);
    // Lines and plain areas on white repeat as they are: no filter is smaller than any, adaptive ones included.
    encoder.set_compression(png::Compression::Best);
    encoder.set_filter(png::FilterType::NoFilter);
    encoder.set_pixel_dims(Some(png::PixelDimensions {
        xppu: PER_METRE,
        yppu: PER_METRE,
        unit: png::Unit::Meter,
    }));
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&bytes)?;
    writer.finish()?;
    Ok(file)
}
