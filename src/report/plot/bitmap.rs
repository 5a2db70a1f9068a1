//! A page as a PNG on white, 400 dots an inch.

use tiny_skia::{
    Color as Ground, FillRule, Paint, Path, Pixmap, Stroke as Pen, StrokeDash, Transform,
};

use super::canvas::{At, Canvas, Shape};
use super::text;
use crate::report::style::Color;

/// Pixels to the point.
const SCALE: f64 = 400.0 / 72.0;
/// Pixels to the metre.
// 400 dots in 25.4 mm.
const PER_METRE: u32 = 15_748;

/// The file of a page of `size` pt.
///
/// # Errors
/// A page without a size, or what the encoding library says.
pub(super) fn png(canvas: &Canvas, size: At) -> Result<Vec<u8>, String> {
    // Pages are a few hundred points high.
    let [width, height] = [size.0, size.1].map(|length| (length * SCALE).round() as u32);
    let mut page = Pixmap::new(width, height).ok_or("the page has no size")?;
    page.fill(Ground::WHITE);
    let to_page = Transform::from_scale(SCALE as f32, SCALE as f32);
    let fill = |page: &mut Pixmap, path: &Path, paint: &Paint<'_>, at: Transform| {
        page.fill_path(path, paint, FillRule::Winding, at, None);
    };
    for shape in &canvas.shapes {
        match shape {
            Shape::Fill(path, color, alpha) => {
                fill(&mut page, path, &paint(*color, *alpha), to_page);
            }
            Shape::Bar(path, color) => {
                let mut paint = paint(*color, 1.0);
                // Where bars touch, soft edges of both would let the ground through as a seam.
                paint.anti_alias = false;
                fill(&mut page, path, &paint, to_page);
            }
            Shape::Stroke(path, stroke) => {
                let dash: Vec<f32> = stroke.dash.iter().map(|&length| length as f32).collect();
                let pen = Pen {
                    width: stroke.width as f32,
                    dash: StrokeDash::new(dash, 0.0),
                    ..Pen::default()
                };
                page.stroke_path(path, &paint(stroke.color, 1.0), &pen, to_page, None);
            }
            Shape::Text(line) => {
                let paint = paint(line.color, 1.0);
                let turn = if line.upwards { -90.0 } else { 0.0 };
                let unit = text::unit(line.size) as f32;
                let start = to_page
                    .pre_translate(line.start.0 as f32, line.start.1 as f32)
                    .pre_rotate(turn);
                for glyph in &line.glyphs {
                    let at = start.pre_translate(glyph.x as f32, 0.0);
                    if let Some(outline) = text::outline(glyph.number()) {
                        // Fonts count upwards and pages downwards.
                        fill(&mut page, &outline, &paint, at.pre_scale(unit, -unit));
                    }
                }
            }
        }
    }
    encode(&page).map_err(|error| error.to_string())
}

fn paint((red, green, blue): Color, alpha: f64) -> Paint<'static> {
    let mut paint = Paint::default();
    paint.set_color_rgba8(red, green, blue, (alpha * 255.0).round() as u8);
    paint
}

/// Opaque pixels as a PNG that knows how large it is on paper.
fn encode(page: &Pixmap) -> Result<Vec<u8>, png::EncodingError> {
    // On an opaque ground, premultiplied colours are the colours themselves.
    let pixels = page.pixels().iter();
    let bytes: Vec<u8> = pixels
        .flat_map(|pixel| [pixel.red(), pixel.green(), pixel.blue()])
        .collect();
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, page.width(), page.height());
    encoder.set_color(png::ColorType::Rgb);
    // Lines and plain areas on white repeat as they are: no filter is smaller than any, adaptive
    // ones included.
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
