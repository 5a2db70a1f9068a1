//! Messages of a program that plays all workers: only their sizes, for both ends are in one place.

use super::{Kernel, Phase, Tag};
use crate::net::{NetError, Seconds, Traffic};

/// The worker whose program plays all others.
const CONDUCTOR: usize = 0;

impl Kernel {
    /// Whether `rank` may play everybody: it is the only one with a program.
    pub(crate) fn check_conductor(&self, rank: usize) -> Result<(), NetError> {
        let others_done = self.actors[CONDUCTOR + 1..]
            .iter()
            .all(|actor| matches!(actor.phase, Phase::Done));
        if rank == CONDUCTOR && others_done {
            return Ok(());
        }
        Err(NetError::Protocol {
            rank,
            reason: "it carries messages of others, which run programs of their own".to_owned(),
        })
    }

    /// Those that are `busy` compute, in the epoch of worker `rank`, and the others wait.
    pub(crate) fn compute_all(&mut self, rank: usize, time: Seconds, busy: &[usize]) {
        let epoch = self.actors[rank].epoch;
        let mut computes = vec![false; self.workers()];
        for &worker in busy {
            computes[worker] = true;
        }
        for (other, computes) in computes.into_iter().enumerate() {
            self.set_epoch(other, epoch);
            if computes {
                self.compute(other, time);
            } else {
                self.actors[other].blocked_since = self.actors[other].clock;
                self.actors[other].clock += time;
                self.waited(other);
            }
        }
    }

    /// Sends all of `traffic` at the conductor's clock and in its epoch, and waits for it.
    /// Everybody else waits too.
    pub(crate) fn carry(&mut self, traffic: &Traffic) {
        let belongs = self.begin(CONDUCTOR);
        let (clock, epoch) = (self.actors[CONDUCTOR].clock, belongs.epoch);
        // All begin together: who is behind waits for the conductor, in whose program this is one
        // step.
        for actor in &mut self.actors {
            actor.epoch = epoch;
            actor.blocked_since = actor.clock;
            actor.clock = clock.max(actor.clock);
        }
        let mut waits_for = 0;
        for (lane, bytes, count) in traffic.iter() {
            let (kind, layer) = (lane.kind, lane.layer);
            let tag = Tag::Carried { kind, layer };
            for _ in 0..count {
                let route = (lane.from as usize, lane.to as usize, tag);
                let start = self.actors[route.0].clock;
                self.send(route, Vec::new(), bytes, start, belongs);
                waits_for += 1;
            }
        }
        self.actors[CONDUCTOR].phase = Phase::Carrying(waits_for);
        self.progress(CONDUCTOR);
    }

    /// One of the messages is there.
    pub(super) fn carried(&mut self, at: Seconds) {
        let actor = &mut self.actors[CONDUCTOR];
        actor.clock = actor.clock.max(at);
        if let Phase::Carrying(waits_for) = &mut actor.phase {
            *waits_for -= 1;
            self.progress(CONDUCTOR);
        }
    }

    /// When the last is there, everybody goes on at that time.
    pub(super) fn progress_carrying(&mut self, rank: usize, waits_for: usize) {
        if waits_for > 0 {
            self.actors[rank].phase = Phase::Carrying(waits_for);
            return;
        }
        let clock = self.actors[rank].clock;
        self.unblock(rank);
        for everybody in (0..self.workers()).filter(|&other| other != rank) {
            self.actors[everybody].clock = clock;
            self.waited(everybody);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::net::{Bandwidth, Bytes, Framing, Lane, LinkSpec, Topology, TrafficKind};
    use crate::sim::engine::EngineResults;
    use crate::sim::{Cluster, SimError, run_workers};

    const LANES: [(usize, usize); 2] = [(0, 1), (0, 2)];

    fn traffic() -> Traffic {
        let mut traffic = Traffic::new();
        for (from, to) in LANES {
            let kind = TrafficKind::Parameter;
            traffic.add(Lane::new(1, from, to, kind), Bytes(1_000_000));
        }
        traffic
    }

    /// Three workers with links of 1 MB/s and half a second.
    fn cluster() -> Cluster {
        let link = LinkSpec {
            bandwidth: Bandwidth::new(8e6).unwrap(),
            latency: Seconds(0.5),
        };
        let topology = Arc::new(Topology::star(&[link; 3]));
        Cluster::new(topology, Framing::none())
    }

    fn run(actors: usize, clocks: &Mutex<Vec<f64>>) -> Result<EngineResults, SimError> {
        run_workers(&cluster(), actors, |mut worker| {
            worker.begin_epoch(7);
            worker.elapse_all(Seconds(1.0), &[0, 1, 2]);
            worker.elapse(Seconds(0.25));
            for _ in 0..2 {
                worker.carry(&traffic())?;
                clocks.lock().unwrap().push(worker.now().0);
            }
            worker.carry(&Traffic::new())?;
            Ok(())
        })
    }

    #[test]
    fn who_is_not_busy_waits_for_those_who_are() {
        let results = run_workers(&cluster(), 1, |mut worker| {
            worker.elapse_all(Seconds(2.0), &[1]);
            Ok(())
        });
        let times = results.unwrap().times;
        let clocks: Vec<f64> = times.iter().map(|times| times.clock.0).collect();
        let computes: Vec<f64> = times.iter().map(|times| times.compute.0).collect();
        assert_eq!((clocks, computes), (vec![2.0; 3], vec![0.0, 2.0, 0.0]));
    }

    #[test]
    fn carried_messages_share_links_and_are_counted_like_others() {
        // 1.25 s of computing; two messages of 1 s share the link out of worker 0; half a second of
        // latency. Twice.
        let clocks = Mutex::new(Vec::new());
        let results = run(1, &clocks).unwrap();
        assert_eq!(*clocks.lock().unwrap(), [3.75, 6.25]);
        let mut expected = traffic();
        expected.merge(&traffic());
        assert_eq!(results.ledger.epoch(7), Some(&expected));
        for (rank, times) in results.times.iter().enumerate() {
            assert_eq!(times.clock, Seconds(6.25), "worker {rank}");
            let compute = if rank == 0 { 1.25 } else { 1.0 };
            assert_eq!(times.compute, Seconds(compute), "worker {rank}");
            assert_eq!(times.communication, Seconds(5.0), "worker {rank}");
            assert_eq!(times.exposed, Seconds(5.0), "worker {rank}");
        }
    }

    #[test]
    fn who_is_not_alone_cannot_carry() {
        let error = run(2, &Mutex::new(Vec::new())).err().unwrap().to_string();
        assert!(error.contains("run programs of their own"), "{error}");
    }
}
