//! Figures as data, drawn with plotters as SVG and PNG.
//!
//! A [`Figure`] says what is shown; how it looks is decided here, once for all figures.

mod backend;
mod bars;
mod canvas;
mod curves;
mod frame;
mod lanes;
mod legend;
mod scale;
mod text;

use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::style::WHITE;
use plotters::style::text_anchor::{HPos, VPos};

pub use bars::{Bars, Row};
pub use curves::{Curves, Series, Spot};
pub use lanes::{Group, Lane, Lanes, Piece};
pub use scale::{Axis, Unit};

use super::style::{LABEL, WIDTH};
use backend::{Bitmap, Glyphs, Svg};
use canvas::{Canvas, Failure};

/// SVG units to the point: plotters draws on a grid, and this one is finer than print.
const SVG_SCALE: f64 = 20.0;
/// PNG pixels to the point: 400 dots an inch.
const PNG_SCALE: f64 = 400.0 / 72.0;
/// The bitmap backend knows no soft edges: it draws so many times larger, each way, and is averaged down.
const OVERSAMPLE: u32 = 2;

/// One part of a figure.
#[derive(Clone, Debug)]
pub enum Panel {
    /// Curves or points.
    Curves(Curves),
    /// Stacked bars.
    Bars(Bars),
    /// What happened when.
    Lanes(Lanes),
}

/// A figure: panels one below the other, with one legend.
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
    /// The parts, top to bottom, each with a heading (empty for none).
    pub panels: Vec<(String, Panel)>,
}

impl Panel {
    fn legend(&self) -> legend::Entries {
        match self {
            Self::Curves(curves) => curves.legend(),
            Self::Bars(bars) => bars.legend(),
            Self::Lanes(lanes) => lanes.legend(),
        }
    }

    fn height(&self) -> f64 {
        match self {
            Self::Curves(_) => Curves::height(),
            Self::Bars(bars) => bars.height(),
            Self::Lanes(lanes) => lanes.height(),
        }
    }

    fn draw<B: Glyphs>(&self, canvas: &Canvas<B>, top: f64) -> Result<(), Failure<B>> {
        match self {
            Self::Curves(curves) => curves.draw(canvas, top),
            Self::Bars(bars) => bars.draw(canvas, top),
            Self::Lanes(lanes) => lanes.draw(canvas, top),
        }
    }
}

/// Room for a panel's heading and above a frame without one, pt.
const HEADING: f64 = 12.0;
const ABOVE: f64 = 4.0;

impl Figure {
    /// The figure as an SVG document, 3.4 inches wide, without a background and without any font: text is
    /// drawn as outlines.
    ///
    /// # Errors
    /// What the drawing library says.
    pub fn svg(&self) -> Result<String, String> {
        let (mut shapes, mut text) = (String::new(), String::new());
        let size = self.size(SVG_SCALE);
        let area = Svg::new(&mut shapes, &mut text, size).into_drawing_area();
        self.draw_on(&area, SVG_SCALE)?;
        drop(area);
        // The library writes the page's size in units; papers and browsers want it in points.
        let body = shapes.split_once('>').map_or("", |(_, body)| body);
        let body = body.trim_end().trim_end_matches("</svg>");
        Ok(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH:.1}pt\" height=\"{:.1}pt\" \
             viewBox=\"0 0 {} {}\" role=\"img\">\n<title>{}</title>{body}{text}</svg>\n",
            self.height(),
            size.0,
            size.1,
            escape(&self.alt),
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
        // Panels of one figure show the same series; entries are not repeated.
        let mut entries: legend::Entries = Vec::new();
        for (sample, label) in self.panels.iter().flat_map(|(_, panel)| panel.legend()) {
            if !entries.iter().any(|(_, known)| *known == label) {
                entries.push((sample, label));
            }
        }
        entries
    }

    fn height(&self) -> f64 {
        let panels = self
            .panels
            .iter()
            .map(|(heading, panel)| above(heading) + panel.height());
        legend::height(&self.legend()) + panels.sum::<f64>()
    }

    /// Pages are a few hundred points high.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn size(&self, scale: f64) -> (u32, u32) {
        (
            (WIDTH * scale).round() as u32,
            (self.height() * scale).round() as u32,
        )
    }

    fn draw_on<B: Glyphs>(&self, area: &DrawingArea<B, Shift>, scale: f64) -> Result<(), String> {
        let canvas = Canvas::new(area, scale);
        let entries = self.legend();
        let draw = || {
            legend::draw(&canvas, &entries, 0.0)?;
            let mut top = legend::height(&entries);
            for (heading, panel) in &self.panels {
                let at = (WIDTH / 2.0, top + 2.0);
                canvas.text(heading, at, LABEL, (HPos::Center, VPos::Top))?;
                top += above(heading);
                panel.draw(&canvas, top)?;
                top += panel.height();
            }
            area.present()
        };
        draw().map_err(|error: Failure<B>| error.to_string())
    }
}

fn above(heading: &str) -> f64 {
    if heading.is_empty() { ABOVE } else { HEADING }
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
