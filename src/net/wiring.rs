//! From the `[network]` section to a [`Topology`].

use std::collections::{BTreeMap, BTreeSet};

use super::presets::{self, Preset};
use super::topology::{Switch, Tcp, Wiring, block_of};
use super::{
    Bandwidth, Duplex, FailureSpec, Framing, FramingKind, Jitter, Link, LinkId, LinkSpec, Links,
    Loss, NamedLinkSpec, NetError, NetworkSpec, Seconds, TcpModel, TcpSpec, Topology, TopologyKind,
};

/// `SimGrid`'s default window of TCP: 4 MiB.
const WINDOW: f64 = 4_194_304.0;

/// LV08's factors on latencies and bandwidths.
const LV08: (f64, f64) = (13.01, 0.97);

/// A worker's own link.
#[derive(Clone, Copy, Debug)]
struct End {
    up: Bandwidth,
    down: Bandwidth,
    latency: Seconds,
}

fn wrong(key: impl Into<String>, reason: impl Into<String>) -> NetError {
    NetError::description(key, reason)
}

impl Topology {
    /// One switch that never blocks, and for each worker, with its own figures, a link to the
    /// switch and one back.
    #[must_use]
    pub fn star(ends: &[LinkSpec]) -> Self {
        let end = |link: &LinkSpec| End {
            up: link.bandwidth,
            down: link.bandwidth,
            latency: link.latency,
        };
        let ends: Vec<End> = ends.iter().map(end).collect();
        let mut star = Self::bare(Wiring::Star, &ends);
        star.links = nics(&ends, false);
        star
    }

    /// A topology that has no links yet.
    fn bare(wiring: Wiring, ends: &[End]) -> Self {
        Self {
            wiring,
            links: Vec::new(),
            latency: ends.iter().map(|end| Some(end.latency)).collect(),
            compute: vec![1.0; ends.len()],
            half_duplex: false,
            tcp: None,
            switches: Vec::new(),
            seed: 0,
        }
    }
}

fn link(name: String, bandwidth: Bandwidth, latency: Seconds) -> Link {
    Link {
        name,
        bandwidth,
        latency,
        jitter: None,
        loss: 0.0,
    }
}

/// The workers' own links: all `out`, then all `in`; or one for both.
fn nics(ends: &[End], half: bool) -> Vec<Link> {
    let ranks = || ends.iter().enumerate();
    if half {
        return ranks()
            .map(|(rank, end)| link(format!("worker {rank}"), end.up, end.latency))
            .collect();
    }
    let out = ranks().map(|(rank, end)| link(format!("worker {rank} out"), end.up, end.latency));
    let into = ranks().map(|(rank, end)| link(format!("worker {rank} in"), end.down, end.latency));
    out.chain(into).collect()
}

/// The cables of a ring, as fast as the slower and as far as the farther of their ends.
fn cables(ends: &[End], half: bool) -> Vec<Link> {
    let workers = ends.len();
    let cable = |from: usize, to: usize, name: String| {
        let (a, b) = (ends[from], ends[to]);
        let bandwidth = if a.up < b.down { a.up } else { b.down };
        link(name, bandwidth, a.latency.max(b.latency))
    };
    let ranks = || 0..workers;
    let next = |rank| (rank + 1) % workers;
    let last = |rank| (rank + workers - 1) % workers;
    if half {
        let name = |rank| format!("worker {rank} and {}", next(rank));
        return ranks()
            .map(|rank| cable(rank, next(rank), name(rank)))
            .collect();
    }
    let name = |from, to| format!("worker {from} to {to}");
    let ahead = ranks().map(|rank| cable(rank, next(rank), name(rank, next(rank))));
    let back = ranks().map(|rank| cable(rank, last(rank), name(rank, last(rank))));
    ahead.chain(back).collect()
}

impl NetworkSpec {
    /// The network described, for this many workers: the preset's figures, replaced by `link`,
    /// replaced by `up` and `down`, replaced by each `[[network.worker]]`.
    ///
    /// # Errors
    /// All are input errors, and name a key of the section: no worker, neither preset nor link, an
    /// unknown preset, keys of another topology or none of this one, a worker or a link that does
    /// not exist or is described twice, figures out of range.
    pub fn topology(&self, workers: usize) -> Result<Topology, NetError> {
        if workers == 0 {
            return Err(wrong("partition.workers", "at least one worker is needed"));
        }
        self.check_keys()?;
        let mut topology = match self.topology {
            TopologyKind::Custom => self.custom(workers)?,
            _ => self.wired(workers)?,
        };
        topology.compute = self.compute(workers)?;
        topology.tcp = self.tcp(&mut topology.links)?;
        topology.switches = self.switches(&topology)?;
        Ok(topology)
    }

    /// Refuses keys that the topology does not have, and misses those that it needs.
    fn check_keys(&self) -> Result<(), NetError> {
        use TopologyKind::{Custom, Edge, Racks, Regions};
        let is = |kind| self.topology == kind;
        let needs = [
            ("racks", self.racks.is_some(), Racks, "racks"),
            ("uplink", self.uplink.is_some(), Racks, "racks"),
            ("regions", self.regions.is_some(), Regions, "regions"),
            ("server", self.server.is_some(), Edge, "edge"),
            ("route", !self.routes.is_empty(), Custom, "custom"),
        ];
        for (key, given, kind, name) in needs {
            let key = format!("network.{key}");
            if given && !is(kind) {
                let reason = format!("goes with topology = \"{name}\"; remove it");
                return Err(wrong(key, reason));
            }
            if !given && is(kind) {
                let reason = format!("topology = \"{name}\" needs it; add it");
                return Err(wrong(key, reason));
            }
        }
        let named = matches!(self.link, Some(Links::Named(_)));
        if named && !is(Custom) {
            let reason = "a list of links goes with topology = \"custom\"; write link = { \
                          bandwidth = …, latency = … }";
            return Err(wrong("network.link", reason));
        }
        if is(Custom) {
            let not_here = [
                ("preset", self.preset.is_some()),
                ("up", self.up.is_some()),
                ("down", self.down.is_some()),
                ("duplex", self.duplex.is_some()),
                ("jitter", self.jitter.is_some()),
                ("loss", self.loss.is_some()),
            ];
            if let Some((key, _)) = not_here.iter().find(|(_, given)| *given) {
                let reason = "does not go with topology = \"custom\", whose links have their own \
                              figures; remove it";
                return Err(wrong(format!("network.{key}"), reason));
            }
            if !named {
                let reason = "topology = \"custom\" needs links with names: [[network.link]]";
                return Err(wrong("network.link", reason));
            }
        }
        Ok(())
    }

    /// Every worker's own link.
    fn ends(&self, workers: usize) -> Result<Vec<End>, NetError> {
        let preset = self.preset.as_deref().map(presets::find).transpose()?;
        let given = match self.link {
            Some(Links::Each(link)) => Some(link),
            _ => None,
        };
        let base = given.or_else(|| preset.map(Preset::link)).ok_or_else(|| {
            wrong(
                "network",
                "say how fast it is: preset = \"ethernet-10g\", or link = { bandwidth = \"10Gbps\", latency = \"100us\" }",
            )
        })?;
        // Where clients do not talk to each other directly, the faster way down counts too.
        let edge = self.topology == TopologyKind::Edge && given.is_none();
        let down = preset.and_then(|preset| preset.down).filter(|_| edge);
        let base = End {
            up: self.up.unwrap_or(base.bandwidth),
            down: self.down.or(down).unwrap_or(base.bandwidth),
            latency: base.latency,
        };
        let mut ends = vec![base; workers];
        for own in self.overrides(workers)? {
            let end = &mut ends[own.rank];
            end.up = own.up.or(own.bandwidth).unwrap_or(end.up);
            end.down = own.down.or(own.bandwidth).unwrap_or(end.down);
            end.latency = own.latency.unwrap_or(end.latency);
        }
        Ok(ends)
    }

    /// The overrides of single workers, each of a worker of its own.
    fn overrides(&self, workers: usize) -> Result<&[super::WorkerLinkSpec], NetError> {
        let mut seen = BTreeSet::new();
        for (index, own) in self.workers.iter().enumerate() {
            let key = |field: &str| format!("network.worker.{index}.{field}");
            if own.rank >= workers {
                return Err(NetError::Rank {
                    what: "[[network.worker]]",
                    rank: own.rank,
                    workers,
                });
            }
            if !seen.insert(own.rank) {
                let reason = format!("worker {} has an entry already; merge the two", own.rank);
                return Err(wrong(key("rank"), reason));
            }
        }
        Ok(&self.workers)
    }

    fn compute(&self, workers: usize) -> Result<Vec<f64>, NetError> {
        let mut compute = vec![1.0; workers];
        for (index, own) in self.overrides(workers)?.iter().enumerate() {
            let Some(factor) = own.compute else { continue };
            if !(factor.is_finite() && factor > 0.0) {
                let reason = format!("{factor} is not a number greater than zero");
                return Err(wrong(format!("network.worker.{index}.compute"), reason));
            }
            compute[own.rank] = factor;
        }
        Ok(compute)
    }

    fn wired(&self, workers: usize) -> Result<Topology, NetError> {
        let ends = self.ends(workers)?;
        let half = self.duplex == Some(Duplex::Half);
        if half && let Some(rank) = ends.iter().position(|end| end.up != end.down) {
            let reason = format!(
                "\"half\" shares one capacity, but worker {rank} has {} up and {} down; give it \
                 one bandwidth",
                ends[rank].up, ends[rank].down
            );
            return Err(wrong("network.duplex", reason));
        }
        let mut links = match self.topology {
            TopologyKind::Ring => cables(&ends, half),
            _ => nics(&ends, half),
        };
        let loss = checked_loss("network.loss", self.loss)?;
        check_jitter("network.jitter", self.jitter.as_ref())?;
        let drawing = match self.topology {
            TopologyKind::Ring => links.len(),
            _ => workers,
        };
        for link in &mut links[..drawing] {
            (link.jitter, link.loss) = (self.jitter, loss);
        }
        let wiring = match self.topology {
            TopologyKind::Ring => Wiring::Ring,
            TopologyKind::Racks => self.racks(workers, half, &mut links)?,
            TopologyKind::Regions => self.regions(workers, half, &mut links)?,
            TopologyKind::Edge => self.edge(workers, &mut links)?,
            TopologyKind::Star | TopologyKind::Custom => Wiring::Star,
        };
        let bare = Topology::bare(wiring, &ends);
        Ok(Topology {
            links,
            half_duplex: half,
            ..bare
        })
        .map(without_the_servers_own_latency)
    }

    fn racks(&self, workers: usize, half: bool, links: &mut Vec<Link>) -> Result<Wiring, NetError> {
        let (racks, Some(uplink)) = (self.racks.unwrap_or(0), self.uplink) else {
            return Err(wrong("network.uplink", "is missing; add it"));
        };
        check_groups("network.racks", racks, workers)?;
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

    fn regions(
        &self,
        workers: usize,
        half: bool,
        links: &mut Vec<Link>,
    ) -> Result<Wiring, NetError> {
        let Some(spec) = &self.regions else {
            return Err(wrong("network.regions", "is missing; add it"));
        };
        let regions = spec.latency.len();
        check_groups("network.regions.latency", regions, workers)?;
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
                let name = match half {
                    true => format!("region {} and {}", a.min(b), a.max(b)),
                    false => format!("region {a} to {b}"),
                };
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

    fn edge(&self, workers: usize, links: &mut Vec<Link>) -> Result<Wiring, NetError> {
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

    fn custom(&self, workers: usize) -> Result<Topology, NetError> {
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

    fn tcp(&self, links: &mut [Link]) -> Result<Option<Tcp>, NetError> {
        let tcp = |window, latency_factor| {
            Ok(Some(Tcp {
                window,
                latency_factor,
            }))
        };
        match self.tcp {
            None => Ok(None),
            Some(TcpSpec::Window(spec)) if spec.window.0 == 0 => {
                Err(wrong("network.tcp.window", "must be more than 0"))
            }
            Some(TcpSpec::Window(spec)) => tcp(spec.window.0 as f64, 1.0),
            Some(TcpSpec::Named(TcpModel::Cm02)) => tcp(WINDOW, 1.0),
            Some(TcpSpec::Named(TcpModel::Lv08)) => {
                for link in links {
                    link.bandwidth = Bandwidth::new(link.bandwidth.bps() * LV08.1)?;
                }
                tcp(WINDOW, LV08.0)
            }
        }
    }

    fn switches(&self, topology: &Topology) -> Result<Vec<Switch>, NetError> {
        let mut switches = Vec::new();
        for (index, failure) in self.failures.iter().enumerate() {
            let key = |field: &str| format!("network.failure.{index}.{field}");
            if failure.until.is_some_and(|until| until <= failure.from) {
                let reason = format!("must be later than `from`, {}", failure.from);
                return Err(wrong(key("until"), reason));
            }
            for link in failing(failure, topology, &key)? {
                let switch = |time, up| Switch { time, link, up };
                switches.push(switch(failure.from, false));
                switches.extend(failure.until.map(|until| switch(until, true)));
            }
        }
        // Ups first: one outage may end where the next begins.
        switches.sort_by_key(|switch| (switch.time, !switch.up));
        Ok(switches)
    }

    /// The headers to count: what the file says, else what the preset says, else Ethernet.
    #[must_use]
    pub fn framing(&self) -> Framing {
        let preset = self
            .preset
            .as_deref()
            .and_then(|name| presets::find(name).ok());
        match self
            .framing
            .or(preset.map(|preset| preset.framing))
            .unwrap_or_default()
        {
            FramingKind::Ethernet => Framing::ethernet(),
            FramingKind::None => Framing::none(),
        }
    }
}

/// A worker on the server side has no link of its own, and no latency of it.
fn without_the_servers_own_latency(mut topology: Topology) -> Topology {
    if let Wiring::Edge {
        server: Some(rank), ..
    } = topology.wiring
    {
        topology.latency[rank] = None;
    }
    topology
}

/// The links that a `[[network.failure]]` takes down.
fn failing(
    failure: &FailureSpec,
    topology: &Topology,
    key: &impl Fn(&str) -> String,
) -> Result<Vec<LinkId>, NetError> {
    let links = topology.links();
    match (&failure.link, failure.worker) {
        (Some(name), None) => match links.iter().position(|link| link.name == *name) {
            Some(number) => Ok(vec![LinkId(number)]),
            None => {
                let known: Vec<&str> = links.iter().map(|link| link.name.as_str()).collect();
                Err(wrong(key("link"), no_such_link(name, &known)))
            }
        },
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
    own.dedup();
    own
}

fn no_such_link(name: &str, known: &[&str]) -> String {
    let near = known
        .iter()
        .map(|known| (strsim::jaro_winkler(known, name), known))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(similarity, _)| *similarity > 0.6);
    let advice = match near {
        Some((_, near)) => format!("did you mean \"{near}\"?"),
        None => {
            let some: Vec<&str> = known.iter().copied().take(6).collect();
            let more = if known.len() > some.len() {
                ", …"
            } else {
                ""
            };
            format!("links are {}{more}", some.join(", "))
        }
    };
    format!("there is no link \"{name}\"; {advice}")
}

fn checked_loss(key: &str, loss: Option<f64>) -> Result<f64, NetError> {
    let loss = loss.unwrap_or(0.0);
    if (0.0..Loss::LIMIT).contains(&loss) {
        return Ok(loss);
    }
    let limit = Loss::LIMIT;
    let reason = format!(
        "must be at least 0 and below {limit}, where the expected delay becomes infinite, not \
         {loss}"
    );
    Err(wrong(key, reason))
}

fn check_jitter(key: &str, jitter: Option<&Jitter>) -> Result<(), NetError> {
    match jitter.and_then(Jitter::fault) {
        Some(fault) => Err(wrong(key, fault)),
        None => Ok(()),
    }
}

/// Racks and regions have a worker each at least.
fn check_groups(key: &str, groups: usize, workers: usize) -> Result<(), NetError> {
    if (1..=workers).contains(&groups) {
        debug_assert_eq!(block_of(workers - 1, workers, groups), groups - 1);
        return Ok(());
    }
    let reason = format!("there must be 1 to {workers} of them, as there are {workers} workers");
    Err(wrong(key, reason))
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // of values that are exact
mod tests {
    use super::*;
    use crate::net::Bandwidth;

    fn spec(text: &str) -> NetworkSpec {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_star_route_leaves_one_nic_and_enters_the_other() {
        let star = spec("preset = \"ethernet-1g\"").topology(3).unwrap();
        let route = star.route(2, 0);
        let names: Vec<_> = route
            .links
            .iter()
            .map(|link| star.links()[link.0].name.as_str())
            .collect();
        assert_eq!(names, ["worker 2 out", "worker 0 in"]);
        assert!(star.route(1, 1).links.is_empty());
    }

    #[test]
    fn a_straggler_has_its_own_bandwidth_latency_and_speed() {
        let text = "link = { bandwidth = \"1Gbps\", latency = \"100us\" }\n\
            [[worker]]\nrank = 1\nbandwidth = \"100Mbps\"\nlatency = \"1ms\"\ncompute = 0.5";
        let star = spec(text).topology(3).unwrap();
        assert_eq!(star.route(0, 2).latency, Seconds(1e-4));
        assert_eq!(star.route(0, 1).latency, Seconds(1e-3));
        assert_eq!(star.route(1, 0).latency, Seconds(1e-3));
        for link in star
            .route(1, 0)
            .links
            .into_iter()
            .chain(star.route(0, 1).links)
        {
            let own = star.links()[link.0].name.contains("worker 1");
            let expected = if own { 1e8 } else { 1e9 };
            assert_eq!(
                star.links()[link.0].bandwidth,
                Bandwidth::new(expected).unwrap()
            );
        }
        assert_eq!(
            [0, 1, 2].map(|rank| star.compute_factor(rank)),
            [1.0, 0.5, 1.0]
        );
    }

    #[test]
    fn a_link_in_the_file_replaces_the_presets_and_keeps_its_framing() {
        let text = "preset = \"nvlink\"\nlink = { bandwidth = \"1Gbps\", latency = \"1us\" }";
        assert_eq!(
            spec(text).topology(1).unwrap().links()[0].bandwidth.bps(),
            1e9
        );
        assert_eq!(spec(text).framing(), Framing::none());
        assert_eq!(
            spec("framing = \"ethernet\"\npreset = \"nvlink\"").framing(),
            Framing::ethernet()
        );
        assert_eq!(spec("").framing(), Framing::ethernet());
    }

    #[test]
    fn descriptions_that_make_no_network_are_refused_by_key() {
        for (text, workers, expected) in [
            ("", 2, "network: say how fast"),
            ("preset = \"wan\"", 0, "at least one worker"),
            ("preset = \"lan\"", 2, "did you mean \"wan\"?"),
            (
                "preset = \"wan\"\n[[worker]]\nrank = 2",
                2,
                "names worker 2, but the workers are numbered 0 to 1",
            ),
            (
                "preset = \"wan\"\n[[worker]]\nrank = 1\n[[worker]]\nrank = 1",
                2,
                "network.worker.1.rank",
            ),
            (
                "preset = \"wan\"\n[[worker]]\nrank = 1\ncompute = -1.0",
                2,
                "network.worker.0.compute",
            ),
        ] {
            let error = spec(text).topology(workers).expect_err(text);
            assert!(
                error.is_input() && error.to_string().contains(expected),
                "{text}: {error}"
            );
        }
    }
}
