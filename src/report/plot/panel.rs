//! What every kind of panel can do.

use super::bars::Bars;
use super::canvas::Canvas;
use super::curves::Curves;
use super::frame::{self, BELOW, Frame, Labels};
use super::heat::Heat;
use super::lanes::Lanes;
use super::legend;

/// One part of a figure.
#[derive(Clone, Debug)]
// An enumeration and no trait: neighbours are compared with each other, for labels that both have.
pub(crate) enum Panel {
    /// Curves or points.
    Curves(Curves),
    /// Stacked bars.
    Bars(Bars),
    /// A map of numbers.
    Heat(Heat),
    /// What happened when.
    Lanes(Lanes),
}

/// A panel under its heading, which may be empty.
pub(crate) type Headed = (String, Panel);

impl Panel {
    /// The legend's entries.
    pub(crate) fn legend(&self) -> legend::Entries {
        match self {
            Self::Curves(curves) => curves.legend(),
            Self::Bars(bars) => bars.legend(),
            Self::Heat(_) => Vec::new(),
            Self::Lanes(lanes) => lanes.legend(),
        }
    }

    /// Room for the labels on the left, pt.
    pub(crate) fn beside(&self) -> f64 {
        match self {
            Self::Curves(curves) => frame::beside(&curves.y),
            Self::Bars(bars) => bars.beside(),
            Self::Heat(heat) => heat.beside(),
            Self::Lanes(lanes) => lanes.beside(),
        }
    }

    /// Room for the labels below a data rectangle of `width` pt, pt.
    pub(crate) fn below(&self, width: f64) -> f64 {
        match self {
            Self::Heat(heat) => heat.below(width),
            _ => BELOW,
        }
    }

    /// Room between heading and data rectangle, pt.
    pub(crate) fn above(&self) -> f64 {
        match self {
            Self::Heat(_) => Heat::ABOVE,
            _ => 0.0,
        }
    }

    /// Height of a data rectangle of `width` pt, pt.
    pub(crate) fn inside(&self, width: f64) -> f64 {
        match self {
            Self::Curves(_) => Curves::inside(width),
            Self::Bars(bars) => bars.inside(),
            Self::Heat(heat) => heat.inside(),
            Self::Lanes(lanes) => lanes.inside(),
        }
    }

    /// Whether what stands on the left says the same.
    pub(crate) fn same_left(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Curves(one), Self::Curves(other)) => one.y == other.y,
            (Self::Bars(one), Self::Bars(other)) => one.same_rows(other),
            (Self::Heat(one), Self::Heat(other)) => one.rows == other.rows,
            _ => false,
        }
    }

    /// Whether what stands below says the same.
    pub(crate) fn same_below(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Curves(one), Self::Curves(other)) => one.x == other.x,
            (Self::Bars(one), Self::Bars(other)) => one.same_axis(other),
            (Self::Heat(one), Self::Heat(other)) => one.columns == other.columns,
            _ => false,
        }
    }

    /// Draws the panel.
    pub(crate) fn draw(&self, canvas: &mut Canvas, frame: Frame, labels: Labels) {
        match self {
            Self::Curves(curves) => curves.draw(canvas, frame, labels),
            Self::Bars(bars) => bars.draw(canvas, frame, labels),
            Self::Heat(heat) => heat.draw(canvas, frame, labels),
            Self::Lanes(lanes) => lanes.draw(canvas, frame, labels),
        }
    }
}
