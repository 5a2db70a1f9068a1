//! A run's timeline in the format of Chrome's trace viewer (*Trace Event Format*, Google, 2016),
//! which Perfetto opens too.
//!
//! Three groups of tracks: what each worker does (`compute`, `wait`), the messages each worker
//! sends, and for each link how many messages are on it or stand in line for it. Times are virtual,
//! in microseconds.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::net::{Seconds, Topology};
use crate::sim::{Flight, Trace};

const WORKERS: u32 = 1;
const MESSAGES: u32 = 2;
const LINKS: u32 = 3;

/// Tracks of messages a worker can have: more than are ever under way at once, and less than would
/// run into the next worker's.
const LANES: usize = 100_000;

/// One JSON document, an event a line.
pub(super) fn chrome_trace(timeline: &Trace, topology: &Topology) -> String {
    let mut events = vec![
        named_process(WORKERS, "workers"),
        named_process(MESSAGES, "messages"),
        named_process(LINKS, "links: messages on them or in line"),
    ];
    for rank in 0..topology.workers() {
        events.push(named_thread(WORKERS, rank, &format!("worker {rank}")));
    }
    events.extend(timeline.spans().iter().map(|span| {
        let name = span.doing.name();
        let place = (WORKERS, span.worker);
        let arguments = json!({ "epoch": span.epoch });
        complete(name, place, (span.start, span.end), &arguments)
    }));
    messages(timeline.flights(), &mut events);
    occupancy(timeline.flights(), topology, &mut events);
    let lines: Vec<String> = events.iter().map(Value::to_string).collect();
    format!(
        "{{\"displayTimeUnit\":\"ms\",\"otherData\":{},\"traceEvents\":[\n{}\n]}}\n",
        json!({ "epochs": timeline.epochs(), "cut": timeline.is_cut() }),
        lines.join(",\n")
    )
}

/// Messages on tracks of their senders, as few as they fit on without overlapping.
fn messages(flights: &[Flight], events: &mut Vec<Value>) {
    let mut order: Vec<&Flight> = flights.iter().collect();
    // Flights come in the order of their arrival. To find the first track that is free they must
    // come as they start.
    order.sort_by_key(|flight| (flight.start, flight.lane));
    let mut ends: BTreeMap<usize, Vec<Seconds>> = BTreeMap::new();
    for flight in order {
        let (from, to) = (flight.lane.from as usize, flight.lane.to);
        let tracks = ends.entry(from).or_default();
        let free = tracks.iter().position(|end| *end <= flight.start);
        let track = free.unwrap_or_else(|| {
            let name = format!("worker {from} sends");
            let place = from * LANES + tracks.len();
            events.push(named_thread(MESSAGES, place, &name));
            tracks.push(flight.end);
            tracks.len() - 1
        });
        tracks[track] = flight.end;
        let arguments = json!({
            "from": from,
            "to": to,
            "layer": flight.lane.layer,
            "payload_bytes": flight.payload.0,
            "epoch": flight.epoch,
        });
        let name = format!("{} to {to}", flight.lane.kind);
        let place = (MESSAGES, from * LANES + track);
        events.push(complete(
            &name,
            place,
            (flight.start, flight.end),
            &arguments,
        ));
    }
}

/// How many messages occupy each link, whenever that changes: from their start until their last
/// byte has left, a latency before they arrive.
fn occupancy(flights: &[Flight], topology: &Topology, events: &mut Vec<Value>) {
    // Changes of one moment are summed first: a message that takes the place of another leaves the
    // count as it is.
    let mut changes: BTreeMap<(Seconds, usize), i64> = BTreeMap::new();
    for flight in flights {
        let route = topology.route(flight.lane.from as usize, flight.lane.to as usize);
        // Rounding must not let it leave before it starts.
        let left = Seconds((flight.end.0 - route.latency.0).max(flight.start.0));
        for link in &route.links {
            *changes.entry((flight.start, link.0)).or_default() += 1;
            *changes.entry((left, link.0)).or_default() -= 1;
        }
    }
    let mut on: BTreeMap<usize, i64> = BTreeMap::new();
    for ((at, link), change) in changes.into_iter().filter(|(_, change)| *change != 0) {
        let count = on.entry(link).or_default();
        *count += change;
        events.push(json!({
            "name": topology.links()[link].name,
            "ph": "C",
            "pid": LINKS,
            "ts": microseconds(at),
            "args": { "messages": *count },
        }));
    }
}

fn complete(
    name: &str,
    (process, thread): (u32, usize),
    (start, end): (Seconds, Seconds),
    arguments: &Value,
) -> Value {
    json!({
        "name": name,
        "ph": "X",
        "pid": process,
        "tid": thread,
        "ts": microseconds(start),
        // From the ends as they are written, so that a span that follows another begins where that
        // one ends.
        "dur": microseconds(end) - microseconds(start),
        "args": arguments,
    })
}

fn named_process(process: u32, name: &str) -> Value {
    json!({ "name": "process_name", "ph": "M", "pid": process, "args": { "name": name } })
}

fn named_thread(process: u32, thread: usize, name: &str) -> Value {
    json!({ "name": "thread_name", "ph": "M", "pid": process, "tid": thread, "args": { "name": name } })
}

fn microseconds(time: Seconds) -> f64 {
    time.0 * 1e6
}

/// Most bytes of a cell in a file name: file systems take 255 in all.
const LONGEST_NAME: usize = 200;

/// Names of files that there is one of for each run: those of cells, with a dash for what not every
/// file system takes, and the seed.
#[derive(Debug, Default)]
pub(super) struct RunNames {
    taken: BTreeSet<String>,
}

impl RunNames {
    /// A name that no other run of the experiment has.
    pub(super) fn name(&mut self, cell: &str, seed: u64, extension: &str) -> String {
        let plain = |c: char| c.is_alphanumeric() || "._=,".contains(c);
        let words: Vec<&str> = cell
            .split(|c| !plain(c))
            .filter(|word| !word.is_empty())
            .collect();
        // A point in front would hide the file.
        let mut cell = words.join("-").trim_start_matches(['.', '-']).to_owned();
        cell.truncate(cell.floor_char_boundary(LONGEST_NAME));
        let stem = format!("{cell}-{seed}");
        let mut name = stem.clone();
        let mut number = 2;
        while !self.taken.insert(name.clone()) {
            name = format!("{stem}-{number}");
            number += 1;
        }
        format!("{name}.{extension}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_plain_and_never_meet() {
        let mut names = RunNames::default();
        assert_eq!(
            names.name("workers=4 fixed(ratio=8)", 0, "json"),
            "workers=4-fixed-ratio=8-0.json"
        );
        assert_eq!(
            names.name("workers=4/fixed ratio=8", 0, "json"),
            "workers=4-fixed-ratio=8-0-2.json"
        );
        assert_eq!(names.name("../full", 1, "json"), "full-1.json");
        for (cell, most) in [
            ("é".repeat(300), "é".repeat(100)),
            ("漢".repeat(300), "漢".repeat(66)),
        ] {
            assert_eq!(names.name(&cell, 2, "json"), format!("{most}-2.json"));
            assert_eq!(names.name(&cell, 2, "json"), format!("{most}-2-2.json"));
        }
    }
}
