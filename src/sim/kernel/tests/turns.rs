//! Who computes beside the turn changes nothing but how long the run takes here.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::*;
use crate::net::NetError;
use crate::sim::trace::{Flight, Span, Trace};

const WORKERS: usize = 5;

/// How workers compute for a time, given a number of the piece of work.
type Computes<'a> = &'a (dyn Fn(&mut dyn Communicator, Seconds, usize) + Sync);

/// Pieces of computing of unequal lengths between, during and after exchanges and sums.
fn program(end: &mut dyn Communicator, computes: Computes<'_>) -> Result<(), SimError> {
    let rank = end.rank();
    for round in 0..4 {
        end.begin_epoch(round);
        let short = Seconds(0.01 * ((rank * 7 + round * 3) % 5) as f64);
        computes(end, short, round);
        computes(end, Seconds(0.02), round + 1);
        let mut outbox = Outbox::new(TrafficKind::Activation, 0);
        for peer in (0..WORKERS).filter(|&peer| peer != rank) {
            let payload = vec![0; 1000 * (1 + (rank + 2 * peer + round) % 4)];
            outbox.messages.push(Message { peer, payload });
            outbox.expect.push(peer);
        }
        let pending = end.start_exchange(outbox)?;
        computes(end, Seconds(0.003), round);
        end.finish_exchange(pending)?;
        let values = vec![rank as f32; 2000];
        let kind = TrafficKind::ParameterGradient;
        let pending = end.start_all_reduce(values, Reduce::Sum, kind)?;
        computes(end, short, rank);
        assert_eq!(end.finish_collective(pending)?[0], 10.0);
        computes(end, Seconds(0.001), round);
    }
    Ok(())
}

/// What happened, whatever the order in which it was written down.
fn told(timeline: &Trace) -> (Vec<Span>, Vec<Flight>) {
    let (mut spans, mut flights) = (timeline.spans().to_vec(), timeline.flights().to_vec());
    spans.sort_by_key(|span| (span.start, span.worker));
    flights.sort_by_key(|flight| (flight.end, flight.lane));
    (spans, flights)
}

#[test]
fn computing_beside_the_turn_takes_the_same_virtual_time_and_no_more_cores_than_there_are() {
    let kinds = [AllReduceKind::Ring, AllReduceKind::Tree];
    let ways = [ExchangeKind::Direct, ExchangeKind::Pairwise];
    for (all_reduce, exchange) in kinds.into_iter().zip(ways) {
        let cluster = Cluster {
            all_reduce,
            exchange,
            timeline_epochs: 4,
            ..cluster(WORKERS)
        };
        let expected = run(&cluster, |end| {
            program(end, &|end, time, _| end.elapse(time))
        });
        let mut beside: Option<Trace> = None;
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        for uneven in [3, 5, 7] {
            let found = run(&cluster, |end| {
                program(end, &|end, time, piece| {
                    end.elapse_ahead(time);
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    let millis = (end.rank() * 5 + piece * 11) % uneven;
                    thread::sleep(Duration::from_millis(millis as u64));
                    now.fetch_sub(1, Ordering::SeqCst);
                    end.caught_up();
                })
            });
            assert_eq!(found.times, expected.times);
            assert_eq!(found.ledger, expected.ledger);
            assert_eq!(told(&found.timeline), told(&expected.timeline));
            // In one order, whoever has computed first here.
            let first = beside.get_or_insert_with(|| found.timeline.clone());
            assert!(found.timeline == *first, "another order");
        }
        assert!(most.into_inner() <= rayon::current_num_threads());
    }
}

#[test]
fn others_go_on_while_one_computes() {
    let (told, heard) = mpsc::channel();
    let (told, heard) = (Mutex::new(told), Mutex::new(heard));
    run(&cluster(2), |end| {
        if end.rank() == 0 {
            end.elapse_ahead(Seconds(2.0));
            // It computes until the other, earlier in virtual time, has come so far.
            let clock = heard.lock().unwrap().recv_timeout(Duration::from_mins(1));
            assert_eq!(clock, Ok(1.0));
            end.caught_up();
        } else {
            end.elapse(Seconds(1.0));
            let clock = end.now().0;
            told.lock().unwrap().send(clock).unwrap();
        }
        end.barrier(TrafficKind::Parameter)?;
        assert!(end.now().0 >= 2.0);
        Ok(())
    });
}

#[test]
fn who_computes_when_others_fail_hears_of_it_and_has_their_seat() {
    // More than have a seat at once.
    let workers = rayon::current_num_threads() + 1;
    let outcome = run_workers(&cluster(workers), workers, |mut end| {
        end.elapse_ahead(Seconds(1.0));
        // Their seats are given back by their end.
        assert_eq!(end.rank(), workers - 1, "out of luck");
        end.caught_up();
        // After a failure neither is of consequence.
        end.begin_epoch(1);
        end.elapse(Seconds(1.0));
        let heard = end.barrier(TrafficKind::Parameter);
        assert!(matches!(heard, Err(NetError::PeerFailed { .. })));
        Ok(heard?)
    });
    let error = outcome.err().unwrap().to_string();
    assert!(error.contains("out of luck"), "{error}");
}
