//! Figures of what is projected: those of runs, in words of their own.

use super::{bytes_by_kind, scaling, time_breakdown, what_counts};
use crate::report::plot::Figure;
use crate::report::series::Entrant;

/// What is said below the figure of time.
const TIME: &str = "Time of an epoch, projected: the mean over the training, and over workers. Exposed communication is \
                    the part that computation does not hide, and waiting is for workers that had not begun to send.";

/// Names of the figures.
pub(in crate::report) const KINDS: [&str; 3] =
    ["projected-bytes", "projected-time", "projected-scaling"];

/// Bytes by kind of the whole training, time of a mean epoch (of `epoch`, cells in which there is
/// one), and both by what is swept, with crosses where `trained` cells lie.
pub(in crate::report) fn figures(
    cells: &[Entrant],
    epoch: &[Entrant],
    trained: &[Entrant],
) -> Vec<Figure> {
    let of_kind = |place: usize, figure: Option<Figure>, caption: String| {
        figure.map(|figure| Figure {
            kind: KINDS[place],
            caption,
            ..figure
        })
    };
    let beside = if trained.is_empty() {
        ""
    } else {
        " Crosses are runs that were trained."
    };
    let bytes = "Payload of the whole training by kind, projected. Plain: node data (features, activations and their gradients). \
                 Hatched: everything else. The number at the end of a bar is its total.";
    let time = time_breakdown::of(epoch, "time of an epoch").map(|figure| Figure {
        title: "Where the time of an epoch goes".into(),
        ..figure
    });
    let scaling = scaling::beside(cells, trained);
    let counts = what_counts(cells);
    [
        of_kind(0, bytes_by_kind::figure(cells), bytes.to_owned()),
        of_kind(1, time, TIME.to_owned()),
        of_kind(
            2,
            scaling,
            format!("Time and payload of an epoch, projected: the mean over the training, on logarithmic axes.{beside}{counts}"),
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}
