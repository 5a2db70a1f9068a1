//! Topologies of named links and routes.

use std::collections::BTreeMap;

use super::{check_jitter, checked_loss, link, no_such_link, wrong};
use crate::net::topology::Wiring;
use crate::net::{Link, LinkId, Links, NamedLinkSpec, NetError, NetworkSpec, Seconds, Topology};

impl NetworkSpec {
    pub(super) fn custom(&self, workers: usize) -> Result<Topology, NetError> {
        let Some(Links::Named(named)) = &self.link else {
            return Err(wrong("network.link", "is missing; add [[network.link]]"));
        };
        let mut numbers = BTreeMap::new();
        let mut links = Vec::with_capacity(named.len());
        for (index, spec) in named.iter().enumerate() {
            let key = |field: &str| format!("network.link.{index}.{field}");
            if numbers.insert(spec.name.as_str(), LinkId(index)).is_some() {
                let reason = format!("\"{}\" is the name of an earlier link", spec.name);
                return Err(wrong(key("name"), reason));
            }
            check_jitter(&key("jitter"), spec.jitter.as_ref())?;
            links.push(Link {
                jitter: spec.jitter,
                loss: checked_loss(&key("loss"), spec.loss)?,
                ..link(spec.name.clone(), spec.bandwidth, spec.latency)
            });
        }
        let routes = self.custom_routes(workers, named, &numbers)?;
        let mut latency = vec![None; workers];
        let mut nics = BTreeMap::new();
        for own in self.overrides(workers)? {
            latency[own.rank] = own.latency;
            let (up, down) = (own.up.or(own.bandwidth), own.down.or(own.bandwidth));
            // A worker with a figure one way only has the same the other way.
            let (up, down) = (up.or(down), down.or(up));
            if let (Some(up), Some(down)) = (up, down) {
                let rank = own.rank;
                nics.insert(rank, (LinkId(links.len()), LinkId(links.len() + 1)));
                links.push(link(format!("worker {rank} out"), up, Seconds::ZERO));
                links.push(link(format!("worker {rank} in"), down, Seconds::ZERO));
            }
        }
        Ok(Topology {
            links,
            latency,
            compute: vec![1.0; workers],
            ..Topology::bare(Wiring::Custom { routes, nics }, &[])
        })
    }

    fn custom_routes(
        &self,
        workers: usize,
        named: &[NamedLinkSpec],
        numbers: &BTreeMap<&str, LinkId>,
    ) -> Result<BTreeMap<(usize, usize), Vec<LinkId>>, NetError> {
        let mut routes = BTreeMap::new();
        for (index, route) in self.routes.iter().enumerate() {
            let key = |field: &str| format!("network.route.{index}.{field}");
            for (field, rank) in [("from", route.from), ("to", route.to)] {
                if rank >= workers {
                    let reason =
                        format!("must be below the number of workers, {workers}, not {rank}");
                    return Err(wrong(key(field), reason));
                }
            }
            if route.from == route.to {
                let reason = "is where it starts; a worker needs no route to itself";
                return Err(wrong(key("to"), reason));
            }
            if route.links.is_empty() {
                return Err(wrong(key("links"), "must name at least one link"));
            }
            let mut links = Vec::with_capacity(route.links.len());
            for (place, name) in route.links.iter().enumerate() {
                let Some(&id) = numbers.get(name.as_str()) else {
                    let known: Vec<&str> = named.iter().map(|link| link.name.as_str()).collect();
                    let reason = no_such_link(name, &known);
                    return Err(wrong(key(&format!("links.{place}")), reason));
                };
                if links.contains(&id) {
                    let reason = format!("\"{name}\" is there twice; a route uses a link once");
                    return Err(wrong(key(&format!("links.{place}")), reason));
                }
                links.push(id);
            }
            if routes.insert((route.from, route.to), links).is_some() {
                let reason = format!(
                    "there is a route from {} to {} already; keep one",
                    route.from, route.to
                );
                return Err(wrong(key("from"), reason));
            }
        }
        Ok(routes)
    }
}
