//! Tables of what is projected: one row for each cell.

use crate::experiment::rows::{BesideRow, ClaimRow};
use crate::experiment::{Beside, Projection};
use crate::net::{TrafficKind, median};
use crate::report::format::{bytes, percent, quantity, seconds, signed, upper};
use crate::report::tables::{self as report_tables, Entry, Table, columns};

/// Name of the table of claims.
pub(super) const CLAIMS: &str = "projected-claims";

/// Names of all tables.
pub(super) const NAMES: [&str; 5] = [
    "projected-bytes",
    "projected-time",
    "projected-memory",
    "projected-errors",
    CLAIMS,
];

/// All but the claims.
pub(super) fn all(projections: &[Projection], beside: Option<&Beside>) -> Vec<Table> {
    let mut tables = vec![
        sent(projections),
        time(projections, beside),
        memory(projections),
    ];
    tables.extend(beside.map(errors));
    tables
}

/// The claims, of which no seeds are known.
pub(super) fn claims(claims: &[ClaimRow]) -> Table {
    Table {
        name: CLAIMS,
        caption: "Claims, judged by what is projected; nothing was trained.".to_owned(),
        ..report_tables::claims(claims, None)
    }
}

fn table<'a>(
    name: &'static str,
    (caption, notes): (&str, &[(&str, &str)]),
    headings: &[&'static str],
    projections: &'a [Projection],
    row: impl Fn(&'a Projection) -> Vec<String>,
) -> Table {
    let rows = projections.iter().map(|projection| {
        let cell = std::iter::once(projection.cell.clone());
        cell.chain(row(projection)).map(Entry::new).collect()
    });
    let mut rows: Vec<Vec<Entry>> = rows.collect();
    let mut headings = headings.to_vec();
    // Of no graph that is held are there two ends, and of few settings is it known how far
    // projections are from trainings.
    for (heading, nothing) in [(BETWEEN, "–"), (WHERE_TRAINED, "–, –")] {
        let place = headings.iter().position(|one| *one == heading);
        if let Some(at) = place
            && rows.iter().all(|row| row[at].text == nothing)
        {
            headings.remove(at);
            for row in &mut rows {
                row.remove(at);
            }
        }
    }
    let said = notes.iter().filter(|(of, _)| headings.contains(of));
    let caption = said.fold(caption.to_owned(), |caption, (_, note)| {
        format!("{caption} {note}")
    });
    Table {
        name,
        caption,
        columns: columns(&headings),
        rows,
    }
}

/// The heading of what is known of a number that is not known exactly.
const BETWEEN: &str = "#between";

/// The heading of the errors of projections.
const WHERE_TRAINED: &str = "#bytes and time where trained";

fn sent(projections: &[Projection]) -> Table {
    const HEADINGS: [(&str, TrafficKind); 8] = [
        ("#features", TrafficKind::Feature),
        ("#activations", TrafficKind::Activation),
        ("#their gradients", TrafficKind::ActivationGradient),
        ("#parameter gradients", TrafficKind::ParameterGradient),
        ("#parameters", TrafficKind::Parameter),
        ("#repartition", TrafficKind::Repartition),
        ("#sampled ids", TrafficKind::Sample),
        ("#control", TrafficKind::Control),
    ];
    let of = |projection: &Projection, kind| projection.bytes_by_kind.get(&kind).copied();
    // What nobody sends has no column.
    let used: Vec<_> = (HEADINGS.into_iter())
        .filter(|(_, kind)| projections.iter().any(|one| of(one, *kind).is_some()))
        .collect();
    let first = ["cell", "#epochs"].into_iter();
    let kinds = used.iter().map(|(heading, _)| *heading);
    let last = ["#payload", BETWEEN, "#on the wire"];
    let headings: Vec<&str> = first.chain(kinds).chain(last).collect();
    let caption = "Bytes of the whole training by kind, and their sum; on the wire with framing.";
    let ends = "Where a cut is known by a fit, or a published graph by its size alone, the payload is between these ends.";
    let caption = (caption, &[(BETWEEN, ends)][..]);
    table(NAMES[0], caption, &headings, projections, |projection| {
        let kinds = used.iter().map(|(_, kind)| {
            of(projection, *kind).map_or("–".to_owned(), |sent| bytes(sent as f64))
        });
        let ends = projection.between.map(|ends| ends.payload_bytes);
        let ends = between(ends, |end| bytes(end as f64));
        let payload = upper(projection, bytes(projection.payload_bytes as f64));
        let wire = upper(projection, bytes(projection.wire_bytes as f64));
        std::iter::once(projection.epochs.to_string())
            .chain(kinds)
            .chain([payload, ends, wire])
            .collect()
    })
}

/// Both ends of a number, where it has two.
fn between<T>(ends: Option<(T, T)>, said: impl Fn(T) -> String) -> String {
    ends.map_or("–".to_owned(), |(low, high)| {
        format!("{} and {}", said(low), said(high))
    })
}

fn time(projections: &[Projection], beside: Option<&Beside>) -> Table {
    let headings = [
        "cell",
        "#an epoch",
        "#set-up and switches",
        "#that, by the epoch",
        "#computing",
        "#exposed",
        "#hidden",
        "#waiting",
        "#the whole",
        BETWEEN,
        WHERE_TRAINED,
    ];
    let caption = "A mean epoch without set-up; set-up and switches of the whole training, and that shared out among its epochs. Then a mean \
                   epoch with them, over workers: computing, communication that computing does not hide and that it hides, and waiting for \
                   others that had not begun to send.";
    let trained = "The last column has the largest errors of the strategy wherever it was trained, too: in the runs beside it, or else where \
                   settings as these were, GraphSAGE on R-MAT graphs of 2¹¹ to 2¹⁶ nodes in random parts.";
    let caption = (caption, &[(WHERE_TRAINED, trained)][..]);
    table(NAMES[1], caption, &headings, projections, |projection| {
        let each = |all: f64| seconds(all / projection.epochs.max(1) as f64);
        let hidden = projection.communication_seconds - projection.exposed_communication_seconds;
        let ends = projection.between.map(|ends| ends.simulated_seconds);
        vec![
            upper(projection, seconds(projection.epoch_seconds)),
            seconds(projection.setup_seconds),
            each(projection.setup_seconds),
            each(projection.compute_seconds),
            each(projection.exposed_communication_seconds),
            each(hidden.max(0.0)),
            each(projection.waiting_seconds),
            upper(projection, seconds(projection.simulated_seconds)),
            between(ends, seconds),
            where_trained(projection, beside),
        ]
    })
}

/// The largest errors of a strategy wherever it was trained, too, as `+1.2 %, −3.4 %`: in the runs
/// beside it, or else those of a projection from counts in random parts.
pub(crate) fn where_trained(projection: &Projection, beside: Option<&Beside>) -> String {
    let here = beside.map(|beside| beside.worst(&projection.strategy));
    let here = here.filter(|errors| errors.iter().any(Option::is_some));
    let errors = here.or(projection.validated).unwrap_or([None; 2]);
    let of = |share: Option<f64>| share.map_or("–".to_owned(), error);
    let [bytes, time] = errors.map(of);
    format!("{bytes}, {time}")
}

fn error(share: f64) -> String {
    signed(share, percent(share.abs()))
}

fn memory(projections: &[Projection]) -> Table {
    let headings = [
        "cell",
        "#workers",
        "#boundary rows",
        "#memory of a worker",
        BETWEEN,
        "#least and median of all",
        "#while evaluating",
        "#of the device",
        "verdict",
        "#of all machines",
    ];
    let caption = "The memory of the worker whose device is the fullest, the least and the median of all workers, and whether that \
                   fullest device has so much; the most that a worker holds while all evaluate the model, which the verdict leaves out; the time of all \
                   workers together.";
    let ends = "Where the payload is between two ends, this memory is between those.";
    let caption = (caption, &[(BETWEEN, ends)][..]);
    table(NAMES[2], caption, &headings, projections, |projection| {
        let known = |size: Option<u64>| size.map_or("?".to_owned(), |size| bytes(size as f64));
        let ends = projection.between.and_then(|ends| ends.memory_bytes);
        let verdict = match (projection.fits, ends.and(projection.device_memory_bytes)) {
            (Some(true), _) => "fits",
            (Some(false), _) => "too small",
            (None, Some(_)) => "fits at one end alone",
            (None, None) => "not known",
        };
        vec![
            projection.workers.to_string(),
            quantity(projection.boundary_rows as f64),
            known(projection.memory_bytes),
            between(ends, |end| bytes(end as f64)),
            spread(&projection.memory_bytes_by_worker),
            known(projection.evaluation_memory_bytes),
            known(projection.device_memory_bytes),
            verdict.to_owned(),
            seconds(projection.machine_hours * 3600.0),
        ]
    })
}

/// What the emptiest worker and the one in the middle hold.
fn spread(each: &[u64]) -> String {
    // Of a worker without a pass no plan says what it holds.
    let mut each: Vec<f64> = (each.iter().filter(|bytes| **bytes > 0))
        .map(|&bytes| bytes as f64)
        .collect();
    each.sort_by(f64::total_cmp);
    match each.first().copied() {
        Some(least) => format!("{} and {}", bytes(least), bytes(median(each))),
        None => "?".to_owned(),
    }
}

fn errors(beside: &Beside) -> Table {
    let number = |row: &BesideRow, value: f64| match row.measure.as_str() {
        measure if measure.contains("bytes") => bytes(value),
        measure if measure.contains("seconds") => seconds(value),
        _ => quantity(value),
    };
    let row = |row: &BesideRow| {
        let share = row.error.map_or("–".to_owned(), error);
        let (trained, projected) = (number(row, row.trained), number(row, row.projected));
        [
            row.cell.clone(),
            row.measure.replace('_', " "),
            trained,
            projected,
            share,
        ]
        .map(Entry::new)
        .to_vec()
    };
    Table {
        name: NAMES[3],
        caption: "Cells that were trained, too: what was measured there, mean over seeds, and what was projected.".to_owned(),
        columns: columns(&["cell", "measure", "#trained", "#projected", "#error"]),
        rows: beside.rows.iter().map(row).collect(),
    }
}
