//! Virtual time of small scenarios as readable files: what is expected, why, and what every worker and message did.
//!
//! A file that differs is shown with what would be in its place; with `GRAPEVINE_GOLDEN=write` in the environment it is written.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use grapevine::net::{
    AllReduceKind, Bandwidth, Communicator, ExchangeKind, Framing, LinkSpec, Message, NetError,
    Outbox, Reduce, Seconds, Topology, TrafficKind,
};
use grapevine::sim::{Cluster, run_workers};

/// What happens on a star of equal links of 1 ms and 1 MB/s each way.
struct Scenario {
    name: &'static str,
    what: &'static str,
    /// The formula with its numbers.
    derivation: &'static str,
    /// When the last worker has what it waits for, ms.
    expected: f64,
    workers: usize,
    all_reduce: AllReduceKind,
    exchange: ExchangeKind,
    program: fn(&mut dyn Communicator) -> Result<(), NetError>,
}

const GRADIENT: TrafficKind = TrafficKind::ParameterGradient;

fn reduce(end: &mut dyn Communicator, floats: usize) -> Result<(), NetError> {
    end.all_reduce(&mut vec![1.0; floats], Reduce::Sum, GRADIENT)
}

/// Everybody sends 1,000 bytes to everybody.
fn all_to_all(end: &dyn Communicator) -> Outbox {
    let (rank, size) = (end.rank(), end.size());
    let others: Vec<usize> = (0..size).filter(|&peer| peer != rank).collect();
    let mut outbox = Outbox::new(TrafficKind::Activation, 1);
    outbox.messages = (others.iter())
        .map(|&peer| Message {
            peer,
            payload: vec![0; 1_000],
        })
        .collect();
    outbox.expect = others;
    outbox
}

const PLAIN: Scenario = Scenario {
    name: "",
    what: "",
    derivation: "",
    expected: 0.0,
    workers: 4,
    all_reduce: AllReduceKind::Ring,
    exchange: ExchangeKind::Direct,
    program: |_| Ok(()),
};

/// All-reduce by each algorithm, alone.
fn all_reduces() -> [Scenario; 6] {
    [
        Scenario {
            name: "ring",
            what: "ring all-reduce of 1,000 floats among 4 workers",
            derivation: "2(P-1) a + 2(P-1)/P S b = 6 x 1 ms + 6/4 x 4 ms",
            expected: 12.0,
            program: |end| reduce(end, 1_000),
            ..PLAIN
        },
        Scenario {
            name: "ring-of-three",
            what: "ring all-reduce of 1,000 floats among 3 workers: chunks of 334, 333 and 333 floats",
            derivation: "the longest chunk decides each step: 4 x (1 ms + 1.336 ms)",
            expected: 9.344,
            workers: 3,
            program: |end| reduce(end, 1_000),
            ..PLAIN
        },
        Scenario {
            name: "halving-doubling",
            what: "all-reduce of 1,000 floats among 4 workers by halving and doubling",
            derivation: "2 log2(P) a + 2(P-1)/P S b = 4 x 1 ms + 6/4 x 4 ms",
            expected: 10.0,
            all_reduce: AllReduceKind::HalvingDoubling,
            program: |end| reduce(end, 1_000),
            ..PLAIN
        },
        Scenario {
            name: "halving-doubling-of-three",
            what: "all-reduce of 1,000 floats among 3 workers by halving and doubling: worker 2 folds into worker 0",
            derivation: "2(a + S b) + 2 a + S b = 10 ms + 6 ms, and 2 ms because worker 1 sends its half at once, into the \
                         link over which worker 2 folds",
            expected: 18.0,
            workers: 3,
            all_reduce: AllReduceKind::HalvingDoubling,
            program: |end| reduce(end, 1_000),
            ..PLAIN
        },
        Scenario {
            name: "tree",
            what: "all-reduce of 1,000 floats among 4 workers along a binomial tree",
            derivation: "2 log2(P) (a + S b) = 4 x 5 ms",
            expected: 20.0,
            all_reduce: AllReduceKind::Tree,
            program: |end| reduce(end, 1_000),
            ..PLAIN
        },
        Scenario {
            name: "parameter-server",
            what: "all-reduce of 1,000 floats among 4 workers over worker 0, whose link is shared",
            derivation: "2 a + 2(P-1) S b = 2 ms + 6 x 4 ms",
            expected: 26.0,
            all_reduce: AllReduceKind::ParameterServer,
            program: |end| reduce(end, 1_000),
            ..PLAIN
        },
    ]
}

/// Exchanges, and what goes on while workers compute.
fn exchanges() -> [Scenario; 4] {
    [
        Scenario {
            name: "exchange-direct",
            what: "4 workers send 1,000 bytes to each other, all at once",
            derivation: "a + (P-1) m b = 1 ms + 3 x 1 ms",
            expected: 4.0,
            program: |end| {
                let outbox = all_to_all(end);
                end.exchange(outbox).map(drop)
            },
            ..PLAIN
        },
        Scenario {
            name: "exchange-pairwise",
            what: "4 workers send 1,000 bytes to each other, in rounds",
            derivation: "(P-1)(a + m b) = 3 x 2 ms",
            expected: 6.0,
            exchange: ExchangeKind::Pairwise,
            program: |end| {
                let outbox = all_to_all(end);
                end.exchange(outbox).map(drop)
            },
            ..PLAIN
        },
        Scenario {
            name: "overlapped-exchange",
            what: "4 workers send 1,000 bytes to each other and compute 3 ms meanwhile",
            derivation: "max(compute, a + (P-1) m b) = max(3 ms, 4 ms), of which 1 ms is exposed",
            expected: 4.0,
            program: |end| {
                let outbox = all_to_all(end);
                let pending = end.start_exchange(outbox)?;
                end.elapse(Seconds(3e-3));
                end.finish_exchange(pending).map(drop)
            },
            ..PLAIN
        },
        Scenario {
            name: "overlapped-buckets",
            what: "backward pass of two layers of 5 ms each on 4 workers; the 400 floats of the upper layer are summed \
                   around a ring while the lower computes, then the 1,000 of the lower",
            derivation: "upper: from 5 ms on, 6 x (1 ms + 0.4 ms) = 8.4 ms, until 13.4 ms; lower: ready at 10 ms, behind the \
                         upper, 12 ms",
            expected: 25.4,
            program: |end| {
                end.elapse(Seconds(5e-3));
                let upper = end.start_all_reduce(vec![1.0; 400], Reduce::Sum, GRADIENT)?;
                end.elapse(Seconds(5e-3));
                let lower = end.start_all_reduce(vec![1.0; 1_000], Reduce::Sum, GRADIENT)?;
                end.finish_collective(upper)?;
                end.finish_collective(lower).map(drop)
            },
            ..PLAIN
        },
    ]
}

/// The file of a scenario, and when its last worker ended, ms.
fn played(scenario: &Scenario) -> (String, f64) {
    let link = LinkSpec {
        bandwidth: Bandwidth::new(8e6).expect("positive"),
        latency: Seconds(1e-3),
    };
    let topology = Arc::new(Topology::star(&vec![link; scenario.workers]));
    let cluster = Cluster {
        all_reduce: scenario.all_reduce.clone(),
        exchange: scenario.exchange,
        timeline_epochs: 1,
        ..Cluster::new(topology, Framing::none())
    };
    let program = scenario.program;
    let results = run_workers(&cluster, scenario.workers, |mut end| {
        Ok(program(end.as_mut())?)
    });
    let results = results.expect("nobody fails");
    let ms = |time: Seconds| time.0 * 1e3;
    let mut lines: Vec<(f64, usize, String)> = Vec::new();
    for span in results.timeline.spans() {
        let text = format!(
            "{:>8.3}  worker {} {}s",
            ms(span.end),
            span.worker,
            span.doing.name()
        );
        lines.push((ms(span.start), span.worker, text));
    }
    for flight in results.timeline.flights() {
        let (from, to) = (flight.lane.from, flight.lane.to);
        let text = format!(
            "{:>8.3}  {} from {from} to {to}",
            ms(flight.end),
            flight.payload
        );
        lines.push((ms(flight.start), from as usize, text));
    }
    // To a millionth of a millisecond: rounding does not decide the order.
    lines
        .sort_by_key(|(start, worker, text)| ((start * 1e6).round() as u64, *worker, text.clone()));
    let clocks = results.times.iter().map(|times| ms(times.clock));
    let end = clocks.fold(0.0, f64::max);
    let mut text = format!(
        "{}\n\nOn a star of equal links: a = 1 ms, 1/b = 1 MB/s each way; no framing.\n\n\
         expectation  {:.3} ms\nderivation   {}\nresult       {end:.3} ms\n\n   start       end  ms\n",
        scenario.what, scenario.expected, scenario.derivation
    );
    for (start, _, line) in lines {
        writeln!(text, "{start:>8.3}  {line}").expect("text grows");
    }
    text.push_str("\n         compute  communication  exposed  ms\n");
    for (rank, times) in results.times.iter().enumerate() {
        let [a, b, c] = [times.compute, times.communication, times.exposed].map(ms);
        writeln!(text, "worker {rank}  {a:>6.3}  {b:>13.3}  {c:>7.3}").expect("text grows");
    }
    (text, end)
}

#[test]
fn small_scenarios_take_the_virtual_time_that_their_files_derive() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/collectives");
    let write = std::env::var("GRAPEVINE_GOLDEN").is_ok_and(|value| value == "write");
    for scenario in all_reduces().into_iter().chain(exchanges()) {
        let (found, end) = played(&scenario);
        let close = (end - scenario.expected).abs() < 1e-9;
        assert!(close, "{}: {end} ms\n{found}", scenario.name);
        let path = folder.join(scenario.name).with_extension("txt");
        if write {
            fs::write(&path, &found).expect("the folder is there");
        }
        let kept = fs::read_to_string(&path).unwrap_or_default();
        assert!(kept == found, "{} should be\n{found}", path.display());
    }
}
