//! The file of `grapevine net`: a network and a list of flows, and nothing about graphs.

use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use toml::Value;

use super::check::{self, Checks};
use super::decode::decode;
use super::error::ConfigError;
use super::locate::Document;
use super::path::KeyPath;
use super::{opened, optional, required, settings, text_of};
use crate::net::{
    FlowSpec, Framing, Links, NamedLinkSpec, NetError, NetworkSpec, RouteSpec, Topology, run_flows,
};

/// A checked file of flows.
#[derive(Clone, Debug)]
pub(crate) struct FlowFile {
    /// The network, with the file's `seed`.
    pub topology: Arc<Topology>,
    /// Headers around messages.
    pub framing: Framing,
    /// `[[flow]]`, at least one.
    pub flows: Vec<FlowSpec>,
}

/// What became of one flow, as a row of a table. Times are seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct FlowRow {
    /// Its place in the file, from 0.
    pub flow: usize,
    /// Sending worker.
    pub from: usize,
    /// Receiving worker.
    pub to: usize,
    /// What was handed over.
    pub payload_bytes: u64,
    /// With framing; packets sent again after a loss do not count.
    pub wire_bytes: u64,
    /// When it was handed over.
    pub start: f64,
    /// When its last byte arrived.
    pub finish: f64,
    /// Wire bits over the time between; `None` where that is no time.
    pub mean_rate_bps: Option<f64>,
}

impl FlowFile {
    const KEYS: [&'static str; 7] = [
        "name",
        "description",
        "seed",
        "network",
        "link",
        "route",
        "flow",
    ];

    /// Reads a file of flows; `sets` are `key.path=value` overrides.
    ///
    /// # Errors
    /// [`ConfigError`]: the file cannot be read, is not TOML, or says something that makes no
    /// sense.
    pub(crate) fn read(path: &Path, sets: &[String]) -> Result<Self, ConfigError> {
        let (file, text) = text_of(path)?;
        Self::parse(&text, &file, sets, path.parent().unwrap_or(Path::new("")))
    }

    /// Reads the text of such a file, which goes by the name `file` in messages and lies in the
    /// folder `base`.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(crate) fn parse(
        text: &str,
        file: &str,
        sets: &[String],
        base: &Path,
    ) -> Result<Self, ConfigError> {
        let document = opened(text, file, sets, &Self::KEYS)?;
        // Nothing is done with them, but a name that is no text is a mistake all the same.
        let _: Option<String> = optional(&document, "name")?;
        let _: Option<String> = optional(&document, "description")?;
        let seed = optional(&document, "seed")?.unwrap_or(0);
        let (spec, workers) = network(&document)?;
        let topology = spec
            .topology(workers)
            .and_then(|topology| spec.with_background(topology, base))
            .map_err(|error| located(&document, &spec, error))?
            .with_seed(seed);
        let flows = flows(&document, &topology)?;
        Ok(Self {
            topology: Arc::new(topology),
            framing: spec.framing(),
            flows,
        })
    }

    /// Carries the flows, and returns a row for each in the order of the file.
    ///
    /// # Errors
    /// [`NetError::LinkDown`] if a flow needs a link that fails and never comes back.
    pub(crate) fn run(&self) -> Result<Vec<FlowRow>, NetError> {
        let results = run_flows(&self.topology, self.framing, &self.flows)?;
        let rows = self.flows.iter().zip(results).enumerate();
        let row = |(flow, (spec, result)): (usize, (&FlowSpec, crate::net::FlowResult))| FlowRow {
            flow,
            from: spec.from,
            to: spec.to,
            payload_bytes: spec.bytes.0,
            wire_bytes: result.wire.0,
            start: result.start.0,
            finish: result.finish.0,
            mean_rate_bps: Some(result.mean_rate_bps()).filter(|rate| rate.is_finite()),
        };
        Ok(rows.map(row).collect())
    }
}

/// The `[network]` section, with links and routes from the top level if they stand there, and its
/// number of workers.
fn network(document: &Document) -> Result<(NetworkSpec, usize), ConfigError> {
    let path = KeyPath::dotted("network");
    let mut section = match settings::required(document, "network")? {
        Value::Table(table) => table.clone(),
        _ => return Err(document.bad(&path, "must be a table [network]")),
    };
    let workers: usize = required(document, "network.workers")?;
    let of_network = Checks {
        document,
        section: path.clone(),
    };
    of_network.workers(workers)?;
    // In experiments [partition] has that number, and the section of a network has no such key.
    section.remove("workers");
    let mut spec: NetworkSpec = decode(document, &path, &Value::Table(section))?;
    let once = |key: &str, there: bool| {
        if there {
            return Err(document.bad(&KeyPath::dotted(key), "stands in [network] too; keep one"));
        }
        Ok(())
    };
    if let Some(links) = optional::<Vec<NamedLinkSpec>>(document, "link")? {
        once("link", spec.link.is_some())?;
        spec.link = Some(Links::Named(links));
    }
    if let Some(routes) = optional::<Vec<RouteSpec>>(document, "route")? {
        once("route", !spec.routes.is_empty())?;
        spec.routes = routes;
    }
    Ok((spec, workers))
}

/// What is wrong with the network, at the place where it was written.
fn located(document: &Document, spec: &NetworkSpec, error: NetError) -> ConfigError {
    let error = match error {
        NetError::Description { key, reason } => {
            let top = key.strip_prefix("network.").unwrap_or(&key);
            let first = KeyPath::dotted(top.split('.').next().unwrap_or(top));
            // The network was checked with links and routes in it. The message names the place
            // where they were written.
            let moved = matches!(top.split('.').next(), Some("link" | "route"))
                && document.get(&first).is_some();
            let key = if moved { top.to_owned() } else { key };
            NetError::Description { key, reason }
        }
        other => other,
    };
    check::network_error(document, spec, error)
}

/// Seconds after which no flow may start: beyond, a double cannot tell what is 10 ns apart.
const LATEST: f64 = 1e8;

fn flows(document: &Document, topology: &Topology) -> Result<Vec<FlowSpec>, ConfigError> {
    let path = KeyPath::dotted("flow");
    let flows: Vec<FlowSpec> = required(document, "flow")?;
    if flows.is_empty() {
        return Err(document.bad(&path, "must have at least one entry; write [[flow]]"));
    }
    let workers = topology.workers();
    for (index, flow) in flows.iter().enumerate() {
        let path = path.join(&index.to_string());
        for (key, rank) in [("from", flow.from), ("to", flow.to)] {
            if rank >= workers {
                let message = format!("must be less than the {workers} workers, not {rank}");
                return Err(document.bad(&path.join(key), message));
            }
        }
        if flow.start.0 > LATEST {
            let message = format!("must be at most {LATEST:e} seconds, not {:e}", flow.start.0);
            return Err(document.bad(&path.join("start"), message));
        }
        if topology.check_route(flow.from, flow.to).is_err() {
            let message = format!(
                "cannot be reached from worker {}; add a [[route]]",
                flow.from
            );
            return Err(document.bad(&path.join("to"), message));
        }
    }
    Ok(flows)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAR: &str = "[network]\nworkers = 3\nframing = \"none\"\n\
        link = { bandwidth = \"8Mbps\", latency = \"100ms\" }\n\
        [[flow]]\nfrom = 0\nto = 2\nbytes = 1_000_000\n\
        [[flow]]\nfrom = 1\nto = 2\nbytes = \"1MB\"\nstart = 1\n";

    #[test]
    fn rows_are_in_the_order_of_the_file() {
        let rows = FlowFile::parse(STAR, "x.toml", &[], Path::new(""))
            .unwrap()
            .run()
            .unwrap();
        let finish: Vec<f64> = rows.iter().map(|row| row.finish).collect();
        assert_eq!(finish, [1.1, 2.1]);
        assert_eq!(rows[1].mean_rate_bps.map(f64::round), Some(7_272_727.0));
    }

    #[test]
    fn links_and_routes_stand_in_the_section_or_at_the_top_level() {
        let text = |table: &str| {
            format!(
                "[network]\ntopology = \"custom\"\nworkers = 2\nframing = \"none\"\n\
                 [[{table}link]]\nname = \"a\"\nbandwidth = \"8Mbps\"\nlatency = \"1s\"\n\
                 [[{table}route]]\nfrom = 0\nto = 1\nlinks = [\"a\"]\n\
                 [[flow]]\nfrom = 0\nto = 1\nbytes = 1_000_000\n"
            )
        };
        for table in ["", "network."] {
            let file = FlowFile::parse(&text(table), "x.toml", &[], Path::new("")).unwrap();
            assert_eq!(file.run().unwrap()[0].finish, 2.0);
            let wrong = text(table).replace("[\"a\"]", "[\"b\"]");
            let error = FlowFile::parse(&wrong, "x.toml", &[], Path::new(""))
                .unwrap_err()
                .to_string();
            let section = format!("x.toml:12: in [{table}route]");
            assert!(
                error.starts_with(&section) || error.starts_with(&section.replace('[', "[[")),
                "{error}"
            );
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (from, to, expected) in [
            (
                "from = 1",
                "from = 9",
                "x.toml:10: in [[flow]]: `from` must be less than the 3 workers",
            ),
            (
                "workers = 3\n",
                "",
                "x.toml:1: in [network]: the key `workers` is missing",
            ),
            ("start = 1", "start = -1", "x.toml:13: in [[flow]]: `start`"),
            (
                "start = 1",
                "start = 1e9",
                "x.toml:13: in [[flow]]: `start` must be at most 1e8 seconds, not 1e9",
            ),
            (
                "start",
                "begin",
                "x.toml:13: in [[flow]]: unknown key `begin`",
            ),
            (
                "[network]",
                "[network]\nracks = 2",
                "x.toml:2: in [network]: `racks` goes with",
            ),
            (
                "link = { bandwidth = \"8Mbps\", latency = \"100ms\" }",
                "preset = \"wam\"",
                "x.toml:4: in [network]: `preset` cannot be \"wam\"; did you mean `wan`?",
            ),
            (
                "[network]",
                "[network]\nloss = 0.7",
                "x.toml:2: in [network]: `loss` must be at least 0",
            ),
            (
                "[network]",
                "[network]\ntcp = 3",
                "x.toml:2: in [network]: `tcp`",
            ),
            (
                "[network]",
                "[network]\njitter = { kind = \"normal\" }",
                "x.toml:2: in [network",
            ),
            ("[network]", "name = 3\n[network]", "x.toml:1: `name`"),
        ] {
            let text = STAR.replacen(from, to, 1);
            let error = FlowFile::parse(&text, "x.toml", &[], Path::new(""))
                .expect_err(&text)
                .to_string();
            assert!(
                error.starts_with(expected),
                "{error}\ninstead of\n{expected}"
            );
        }
    }
}
