//! Figures as data, drawn as SVG and PNG.
//!
//! A [`Figure`] says what is shown; how it looks is decided here, once for all figures.

mod bars;
mod bitmap;
mod canvas;
mod curves;
mod frame;
mod heat;
mod lanes;
mod layout;
mod legend;
mod panel;
mod scale;
mod svg;
mod text;

pub(super) use bars::{Bars, Reach, Row};
pub(super) use curves::{Curves, Guide, Series, Spot};
pub(super) use heat::{Heat, Tint};
pub(super) use lanes::{Group, Lane, Lanes, Piece};
pub(super) use panel::{Headed, Panel};
pub(super) use scale::{Axis, Unit};

use super::style::{LABEL, SMALL, WIDE, WIDTH};
use canvas::{Anchor, Canvas};

/// A figure: a grid of panels with one legend.
#[derive(Clone, Debug)]
pub(super) struct Figure {
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
    pub(super) fn wide(&self) -> bool {
        let map = |(_, panel): &Headed| matches!(panel, Panel::Heat(_));
        (self.rows.iter()).any(|row| row.len() > 1 || row.iter().any(map))
    }

    fn width(&self) -> f64 {
        if self.wide() { WIDE } else { WIDTH }
    }

    /// The figure as an SVG document, 3.4 or 7 inches wide, without any font: text is drawn as
    /// outlines.
    pub(super) fn svg(&self) -> String {
        svg::document(&self.drawn(), self.size(), &self.alt, &self.caption)
    }

    /// The figure as a PNG on white, 400 dots an inch.
    ///
    /// # Errors
    /// What the encoding library says.
    pub(super) fn png(&self) -> Result<Vec<u8>, String> {
        bitmap::png(&self.drawn(), self.size())
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

    /// Width and height, pt.
    fn size(&self) -> (f64, f64) {
        let width = self.width();
        let legend = legend::height(&self.legend(), width);
        let panels = layout::grid(&self.rows, width, legend).bottom;
        let note = if self.note.is_empty() { 0.0 } else { NOTE };
        (width, panels + note)
    }

    fn drawn(&self) -> Canvas {
        let mut canvas = Canvas::default();
        let (entries, width) = (self.legend(), self.width());
        legend::draw(&mut canvas, &entries, width);
        let grid = layout::grid(&self.rows, width, legend::height(&entries, width));
        for placed in &grid.panels {
            let frame = placed.frame;
            let middle = f64::midpoint(frame.left, frame.right);
            let at = (middle, placed.heading_top);
            // Long headings are smaller, and cut only if that is not enough.
            let (room, width) = (placed.heading_room, text::width(placed.heading, LABEL));
            let size = LABEL * (room / width.max(room)).max(SMALLEST);
            // A hair of room, for a heading that was shrunk to fit exactly.
            let heading = text::fit(placed.heading, size, room + 0.01);
            canvas.text(&heading, at, size, Anchor::Top);
            placed.panel.draw(&mut canvas, frame, placed.labels);
        }
        if !self.note.is_empty() {
            let note = text::fit(&self.note, SMALL, width - 4.0);
            let at = (width / 2.0, grid.bottom + 1.0);
            canvas.text(&note, at, SMALL, Anchor::Top);
        }
        canvas
    }
}
