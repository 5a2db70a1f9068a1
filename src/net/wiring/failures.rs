//! When which links are down.

use super::{no_such_link, wrong};
use crate::net::topology::{Change, Switch, Wiring};
use crate::net::{FailureSpec, LinkId, NetError, NetworkSpec, Topology};

impl NetworkSpec {
    pub(super) fn switches(&self, topology: &Topology) -> Result<Vec<Switch>, NetError> {
        let mut switches = Vec::new();
        for (index, failure) in self.failures.iter().enumerate() {
            let key = |field: &str| format!("network.failure.{index}.{field}");
            if failure.until.is_some_and(|until| until <= failure.from) {
                let reason = format!("must be later than `from`, {}", failure.from);
                return Err(wrong(key("until"), reason));
            }
            for link in failing(failure, topology, &key)? {
                let switch = |time, change| Switch { time, link, change };
                switches.push(switch(failure.from, Change::Down));
                switches.extend(failure.until.map(|until| switch(until, Change::Up)));
            }
        }
        // Ups first: one outage may end where the next begins.
        switches.sort_by_key(|switch| (switch.time, switch.change != Change::Up));
        Ok(switches)
    }
}

/// The links that a `[[network.failure]]` takes down.
fn failing(
    failure: &FailureSpec,
    topology: &Topology,
    key: &impl Fn(&str) -> String,
) -> Result<Vec<LinkId>, NetError> {
    let links = topology.links();
    match (&failure.link, failure.worker) {
        (Some(name), None) => {
            let number = links.iter().position(|link| link.name == *name);
            let number = number.ok_or_else(|| {
                let known: Vec<&str> = links.iter().map(|link| link.name.as_str()).collect();
                wrong(key("link"), no_such_link(name, &known))
            })?;
            Ok(vec![LinkId(number)])
        }
        (None, Some(rank)) if rank >= topology.workers() => {
            let workers = topology.workers();
            let reason = format!("must be below the number of workers, {workers}, not {rank}");
            Err(wrong(key("worker"), reason))
        }
        (None, Some(rank)) => {
            let own = own_links(topology, rank);
            if own.is_empty() {
                let reason = format!("worker {rank} has no link of its own; name links");
                return Err(wrong(key("worker"), reason));
            }
            Ok(own)
        }
        _ => {
            let reason = "takes either `link`, a name, or `worker`, a rank";
            Err(wrong(key("*"), reason))
        }
    }
}

/// The links that only exist because of this worker.
fn own_links(topology: &Topology, rank: usize) -> Vec<LinkId> {
    let workers = topology.workers();
    let mut own = match &topology.wiring {
        Wiring::Custom { nics, .. } => nics
            .get(&rank)
            .map_or_else(Vec::new, |&(out, into)| vec![out, into]),
        Wiring::Edge { server, .. } if *server == Some(rank) => Vec::new(),
        Wiring::Ring if topology.half_duplex => {
            vec![LinkId(rank), LinkId((rank + workers - 1) % workers)]
        }
        Wiring::Ring => {
            let (next, last) = ((rank + 1) % workers, (rank + workers - 1) % workers);
            let ahead = [LinkId(rank), LinkId(last)];
            let back = [LinkId(workers + rank), LinkId(workers + next)];
            [ahead, back].concat()
        }
        _ if topology.half_duplex => vec![LinkId(rank)],
        _ => vec![LinkId(rank), LinkId(workers + rank)],
    };
    own.sort_unstable();
    // Among two workers the next and the last are the same one.
    own.dedup();
    own
}
