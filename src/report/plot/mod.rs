//! Figures as data, drawn with plotters as SVG and PNG.
//!
//! A [`Figure`] says what is shown; how it looks is decided here, once for all figures.

mod backend;
mod bars;
mod canvas;
mod curves;
mod frame;
mod heat;
mod lanes;
mod layout;
mod legend;
mod panel;
mod scale;
mod text;

use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::style::WHITE;
use plotters::style::text_anchor::{HPos, VPos};

pub use bars::{Bars, Reach, Row};
pub use curves::{Curves, Guide, Series, Spot};
pub use heat::{Heat, Tint};
pub use lanes::{Group, Lane, Lanes, Piece};
pub use panel::{Headed, Panel};
pub use scale::{Axis, Unit};

use super::style::{LABEL, SMALL, WIDE, WIDTH};
use backend::{Bitmap, Glyphs, Svg, Text};
use canvas::{Canvas, Failure};

/// SVG units to the point: plotters draws on a grid, and this one is finer than print.
const SVG_SCALE: f64 = 20.0;
/// PNG pixels to the point: 400 dots an inch.
const PNG_SCALE: f64 = 400.0 / 72.0;
/// The bitmap backend knows no soft edges: it draws so many times larger, each way, and is averaged down.
const OVERSAMPLE: u32 = 2;

/// A figure: a grid of panels with one legend.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Its kind, also the name of its files.
    pub kind: &'static str,
    /// A few words.
    pub title: String,
    /// What is shown and how it was made, in whole sentences.
    pub caption: String,
    /// What a person who cannot see it should know.
    pub alt: String,
    /// The panels, row by row, each with a heading (empty for none).
    pub rows: Vec<Vec<Headed>>,
    /// A line below them; may be empty.
    pub note: String,
}

/// How far a heading may shrink, as a share of its size.
const SMALLEST: f64 = 0.7;
/// Room for the note, pt.
const NOTE: f64 = 11.0;

impl Figure {
    /// Whether it takes both columns of a page: where panels stand side by side, and maps always.
    pub fn wide(&self) -> bool {
        let map = |(_, panel): &Headed| matches!(panel, Panel::Heat(_));
        (self.rows.iter()).any(|row| row.len() > 1 || row.iter().any(map))
    }

    fn width(&self) -> f64 {
        if self.wide() { WIDE } else { WIDTH }
    }

    /// The figure as an SVG document, 3.4 or 7 inches wide, without a background and without any font: text is
    /// drawn as outlines.
    ///
    /// # Errors
    /// What the drawing library says.
    pub fn svg(&self) -> Result<String, String> {
        let (mut shapes, mut text) = (String::new(), Text::default());
        let size = self.size(SVG_SCALE);
        let area = Svg::new(&mut shapes, &mut text, size).into_drawing_area();
        self.draw_on(&area, SVG_SCALE)?;
        drop(area);
        // The library writes the page's size in units; papers and browsers want it in points.
        let body = shapes.split_once('>').map_or("", |(_, body)| body);
        let body = body.trim_end().trim_end_matches("</svg>");
        Ok(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{:.1}pt\" height=\"{:.1}pt\" \
             viewBox=\"0 0 {} {}\" role=\"img\">\n<title>{}</title>{body}{}</svg>\n",
            self.width(),
            self.height(),
            size.0,
            size.1,
            escape(&self.alt),
            text.elements(),
        ))
    }

    /// The figure as a PNG on white, 400 dots an inch.
    ///
    /// # Errors
    /// What the drawing or the encoding library says.
    pub fn png(&self) -> Result<Vec<u8>, String> {
        let size = self.size(PNG_SCALE);
        let large = (size.0 * OVERSAMPLE, size.1 * OVERSAMPLE);
        let mut pixels = vec![0; large.0 as usize * large.1 as usize * 3];
        let area = Bitmap::new(&mut pixels, large).into_drawing_area();
        area.fill(&WHITE).map_err(|error| error.to_string())?;
        self.draw_on(&area, PNG_SCALE * f64::from(OVERSAMPLE))?;
        drop(area);
        encode(&average(&pixels, size), size).map_err(|error| error.to_string())
    }

    fn legend(&self) -> legend::Entries {
        // Many panels show the same series; entries are not repeated.
        let mut entries: legend::Entries = Vec::new();
        let panels = self.rows.iter().flatten();
        for (sample, label) in panels.flat_map(|(_, panel)| panel.legend()) {
            if !entries.iter().any(|(_, known)| *known == label) {
                entries.push((sample, label));
            }
        }
        entries
    }

    fn height(&self) -> f64 {
        let legend = legend::height(&self.legend(), self.width());
        let panels = layout::grid(&self.rows, self.width(), legend).bottom;
        panels + if self.note.is_empty() { 0.0 } else { NOTE }
    }

    /// Pages are a few hundred points high.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn size(&self, scale: f64) -> (u32, u32) {
        (
            (self.width() * scale).round() as u32,
            (self.height() * scale).round() as u32,
        )
    }

    fn draw_on<B: Glyphs>(&self, area: &DrawingArea<B, Shift>, scale: f64) -> Result<(), String> {
        let canvas = Canvas::new(area, scale);
        let (entries, width) = (self.legend(), self.width());
        let draw = || {
            legend::draw(&canvas, &entries, width)?;
            let grid = layout::grid(&self.rows, width, legend::height(&entries, width));
            for placed in &grid.panels {
                let frame = placed.frame;
                let middle = f64::midpoint(frame.left, frame.right);
                let at = (middle, placed.heading_top);
                // Long headings are smaller, and cut only if that is not enough.
                let (room, width) = (placed.heading_room, text::width(placed.heading, LABEL));
                let size = LABEL * (room / width.max(room)).max(SMALLEST);
                let heading = text::fit(placed.heading, size, room + 0.01);
                canvas.text(&heading, at, size, (HPos::Center, VPos::Top))?;
                placed.panel.draw(&canvas, frame, placed.labels)?;
            }
            let note = text::fit(&self.note, SMALL, width - 4.0);
            let at = (width / 2.0, grid.bottom + 1.0);
            canvas.text(&note, at, SMALL, (HPos::Center, VPos::Top))?;
            area.present()
        };
        draw().map_err(|error: Failure<B>| error.to_string())
    }
}

/// A bitmap of `size` pixels from one `OVERSAMPLE` times larger each way.
fn average(large: &[u8], (width, height): (u32, u32)) -> Vec<u8> {
    let over = OVERSAMPLE as usize;
    let (width, height) = (width as usize, height as usize);
    let mut small = Vec::with_capacity(width * height * 3);
    for y in 0..height {
        for x in 0..width {
            for channel in 0..3 {
                let mut sum = 0;
                for row in y * over..(y + 1) * over {
                    for column in x * over..(x + 1) * over {
                        sum += u32::from(large[(row * width * over + column) * 3 + channel]);
                    }
                }
                // A mean of bytes is a byte.
                small.push(u8::try_from(sum / (OVERSAMPLE * OVERSAMPLE)).unwrap_or(u8::MAX));
            }
        }
    }
    small
}

/// Pixels of three bytes as a PNG that knows how large it is on paper.
fn encode(pixels: &[u8], (width, height): (u32, u32)) -> Result<Vec<u8>, png::EncodingError> {
    /// 400 dots an inch in dots a metre.
    const PER_METRE: u32 = 15_748;
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
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
    writer.write_image_data(pixels)?;
    writer.finish()?;
    Ok(file)
}

/// Text as XML content.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
