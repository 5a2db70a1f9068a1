//! The look of every figure: one column wide or two, small type, thin axes, and colours that
//! survive black-and-white print.

use crate::net::TrafficKind;

/// A colour without transparency: red, green, blue.
pub(super) type Color = (u8, u8, u8);

/// Width of a figure of one column, pt: 3.4 inches.
pub(super) const WIDTH: f64 = 3.4 * 72.0;
/// Width of a figure over both columns of a page, pt: 7 inches.
pub(super) const WIDE: f64 = 7.0 * 72.0;
/// Type size of axis labels and panel titles, pt.
pub(super) const LABEL: f64 = 7.5;
/// Type size of ticks, legends and notes, pt.
pub(super) const SMALL: f64 = 7.0;
/// Width of axes and ticks, pt.
pub(super) const THIN: f64 = 0.5;
/// Width of curves, pt.
pub(super) const CURVE: f64 = 1.0;
/// Text and axes.
pub(super) const INK: Color = (0, 0, 0);

// Paul Tol's *bright* palette (<https://personal.sron.nl/~pault/>).

/// Blue.
pub(super) const BLUE: Color = (0x44, 0x77, 0xAA);
/// Red.
pub(super) const RED: Color = (0xEE, 0x66, 0x77);
/// Green.
pub(super) const GREEN: Color = (0x22, 0x88, 0x33);
/// Yellow.
pub(super) const YELLOW: Color = (0xCC, 0xBB, 0x44);
/// Cyan.
pub(super) const CYAN: Color = (0x66, 0xCC, 0xEE);
/// Purple.
pub(super) const PURPLE: Color = (0xAA, 0x33, 0x77);
/// Grey.
pub(super) const GREY: Color = (0xBB, 0xBB, 0xBB);

/// How one part of a stacked bar is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fill {
    /// Name in the legend.
    pub label: &'static str,
    /// Colour.
    pub color: Color,
    /// Whether diagonal strokes lie over it.
    pub hatched: bool,
}

/// How a kind of traffic is filled: node data plain and cool, everything else hatched and warm.
pub(super) fn fill_of(kind: TrafficKind) -> Fill {
    let (label, color) = match kind {
        TrafficKind::Feature => ("features", BLUE),
        TrafficKind::Activation => ("activations", CYAN),
        TrafficKind::ActivationGradient => ("activation gradients", GREEN),
        TrafficKind::ParameterGradient => ("parameter gradients", RED),
        TrafficKind::Parameter => ("parameters", PURPLE),
        TrafficKind::Repartition => ("repartition", YELLOW),
        TrafficKind::Sample => ("sampled ids", GREY),
        TrafficKind::Control => ("control", (0x77, 0x77, 0x77)),
    };
    fill(label, color, !kind.is_node_data())
}

const fn fill(label: &'static str, color: Color, hatched: bool) -> Fill {
    Fill {
        label,
        color,
        hatched,
    }
}

/// Where a run's simulated time goes: computing, waiting for the network, waiting for other
/// workers.
pub(super) const TIMES: [Fill; 3] = [
    fill("compute", BLUE, false),
    fill("exposed communication", RED, true),
    fill("waiting for others", GREY, false),
];

/// What a worker does, in timelines: computing and waiting fill its lane, messages are a thin line
/// below.
pub(super) const DOINGS: [Fill; 3] = [
    fill("compute", BLUE, false),
    fill("wait for a message", GREY, false),
    fill("messages on their way", RED, false),
];
