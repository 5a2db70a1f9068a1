//! What workers share: uplinks of racks, links between regions, a server side.

use super::{check_jitter, checked_loss, link, wrong};
use crate::net::topology::{Wiring, block_of};
use crate::net::{Link, NetError, NetworkSpec, Seconds};

impl NetworkSpec {
    pub(super) fn racks(
        &self,
        places: usize,
        half: bool,
        links: &mut Vec<Link>,
    ) -> Result<Wiring, NetError> {
        let (racks, Some(uplink)) = (self.racks.unwrap_or(0), self.uplink) else {
            return Err(wrong("network.uplink", "is missing; add it"));
        };
        check_groups("network.racks", racks, places)?;
        let loss = checked_loss("network.uplink.loss", uplink.loss)?;
        check_jitter("network.uplink.jitter", uplink.jitter.as_ref())?;
        let trunk = |name: String| link(name, uplink.bandwidth, uplink.latency);
        let way = if half { "link" } else { "up" };
        links.extend((0..racks).map(|rack| Link {
            jitter: uplink.jitter,
            loss,
            ..trunk(format!("rack {rack} {way}"))
        }));
        if !half {
            links.extend((0..racks).map(|rack| trunk(format!("rack {rack} down"))));
        }
        Ok(Wiring::Racks {
            racks,
            latency: uplink.latency,
        })
    }

    pub(super) fn regions(
        &self,
        places: usize,
        half: bool,
        links: &mut Vec<Link>,
    ) -> Result<Wiring, NetError> {
        let Some(spec) = &self.regions else {
            return Err(wrong("network.regions", "is missing; add it"));
        };
        let regions = spec.latency.len();
        check_groups("network.regions.latency", regions, places)?;
        for (row, latencies) in spec.latency.iter().enumerate() {
            let key = format!("network.regions.latency.{row}");
            if latencies.len() != regions {
                let reason = format!(
                    "has {} entries, but there are {regions} regions, one a row",
                    latencies.len()
                );
                return Err(wrong(key, reason));
            }
            if latencies[row] != Seconds::ZERO {
                let reason = "must be 0: within a region, `link` has the latency";
                return Err(wrong(format!("{key}.{row}"), reason));
            }
        }
        let loss = checked_loss("network.regions.loss", spec.loss)?;
        check_jitter("network.regions.jitter", spec.jitter.as_ref())?;
        for (a, row) in spec.latency.iter().enumerate() {
            for (b, &latency) in row.iter().enumerate() {
                let name = if half {
                    format!("region {} and {}", a.min(b), a.max(b))
                } else {
                    format!("region {a} to {b}")
                };
                // Also from a region to itself, which no route uses: so a link's number follows
                // from its two ends.
                links.push(Link {
                    jitter: spec.jitter,
                    loss,
                    ..link(name, spec.bandwidth, latency)
                });
            }
        }
        Ok(Wiring::Regions {
            latency: spec.latency.clone(),
        })
    }

    pub(super) fn edge(&self, workers: usize, links: &mut Vec<Link>) -> Result<Wiring, NetError> {
        let Some(server) = self.server else {
            return Err(wrong("network.server", "is missing; add it"));
        };
        if let Some(rank) = server.rank.filter(|&rank| rank >= workers) {
            let reason = format!("must be below the number of workers, {workers}, not {rank}");
            return Err(wrong("network.server.rank", reason));
        }
        for name in ["server in", "server out"] {
            links.push(link(name.to_owned(), server.bandwidth, server.latency));
        }
        Ok(Wiring::Edge {
            latency: server.latency,
            server: server.rank,
        })
    }
}

/// Racks and regions have a worker each at least, or a machine.
fn check_groups(key: &str, groups: usize, places: usize) -> Result<(), NetError> {
    if (1..=places).contains(&groups) {
        debug_assert_eq!(block_of(places - 1, places, groups), groups - 1);
        return Ok(());
    }
    let reason =
        format!("there must be 1 to {places} of them, as there are {places} workers, or machines");
    Err(wrong(key, reason))
}
