//! Capacity that other traffic takes, over time, from a file.
//!
//! ```text
//!   time,link,taken
//!   0,nic 0.0 out,0.3          three tenths of it, from the beginning
//!   "2.5s",nic 0.0 out,4Gbps   from then on 4 Gb/s
//!   10,*,0                     nothing, on any link
//! ```
//!
//! A name with a comma stands in quotes.

use std::path::Path;

use super::{no_such_link, wrong};
use crate::net::topology::{Change, Switch};
use crate::net::{Bandwidth, Link, LinkId, NetError, NetworkSpec, Seconds, Topology};

const KEY: &str = "network.background";
const HEADER: &str = "time,link,taken";

impl NetworkSpec {
    /// The same network with the background traffic of the section's file, if it names one; a
    /// relative path starts at `base`.
    ///
    /// # Errors
    /// Input errors at `network.background`, with the line: the file cannot be read, a time is
    /// before that of the line above, there is no such link, or as much is taken as it has.
    pub(crate) fn with_background(
        &self,
        topology: Topology,
        base: &Path,
    ) -> Result<Topology, NetError> {
        let Some(file) = &self.background else {
            return Ok(topology);
        };
        let path = base.join(file);
        let text = std::fs::read_to_string(&path).map_err(|error| {
            let reason = format!("cannot read {}: {error}", path.display());
            wrong(KEY, reason)
        })?;
        let changes = read(&text, topology.links()).map_err(|(line, reason)| {
            let reason = format!("line {line} of {}: {reason}", path.display());
            wrong(KEY, reason)
        })?;
        Ok(topology.with_changes(changes))
    }
}

/// The changes that a file lists, or the line that is wrong and why.
fn read(text: &str, links: &[Link]) -> Result<Vec<Switch>, (usize, String)> {
    // Some programs write a byte order mark first.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = (1..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty());
    let header = lines.next().map(|(_, line)| line.replace(' ', ""));
    if header.as_deref() != Some(HEADER) {
        return Err((1, format!("must be the header `{HEADER}`")));
    }
    let (mut changes, mut last) = (Vec::new(), Seconds::ZERO);
    for (number, line) in lines {
        let wrong = |reason: String| (number, reason);
        let (time, link, taken) = fields(line)
            .ok_or_else(|| wrong(format!("has not three fields, `{HEADER}`: \"{line}\"")))?;
        let time = time_of(time).map_err(|error| wrong(error.to_string()))?;
        if time < last {
            let reason = format!("goes back in time, from {last} to {time}; sort the lines");
            return Err(wrong(reason));
        }
        last = time;
        for id in named(link, links).map_err(wrong)? {
            let left = left(taken, &links[id.0]).map_err(wrong)?;
            let change = Change::Left(left);
            changes.push(Switch {
                time,
                link: id,
                change,
            });
        }
    }
    Ok(changes)
}

fn fields(line: &str) -> Option<(&str, &str, &str)> {
    let (time, rest) = line.split_once(',')?;
    let (link, taken) = rest.rsplit_once(',')?;
    let link = link.trim();
    if link.contains(',') && !(link.starts_with('"') && link.ends_with('"')) {
        return None;
    }
    let [time, link, taken] = [time, link, taken].map(|field| field.trim().trim_matches('"'));
    Some((time, link, taken))
}

/// Seconds, or with a unit.
fn time_of(text: &str) -> Result<Seconds, NetError> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds.is_finite() && seconds >= 0.0 => Ok(Seconds(seconds)),
        _ => text.parse(),
    }
}

/// The link of a name; all for `*`.
fn named(name: &str, links: &[Link]) -> Result<Vec<LinkId>, String> {
    if name == "*" {
        return Ok((0..links.len()).map(LinkId).collect());
    }
    let found = links.iter().position(|link| link.name == name);
    let found = found.ok_or_else(|| {
        let known: Vec<&str> = links.iter().map(|link| link.name.as_str()).collect();
        no_such_link(name, &known)
    })?;
    Ok(vec![LinkId(found)])
}

/// Which share of a link is left, where a share or a bandwidth is taken.
fn left(taken: &str, link: &Link) -> Result<f64, String> {
    let share = if let Ok(share) = taken.parse::<f64>() {
        share
    } else {
        let rate: Bandwidth = taken.parse().map_err(|error: NetError| error.to_string())?;
        rate.bps() / link.bandwidth.bps()
    };
    // All of it is not to be taken: a flow without any rate would never end, and nobody would say
    // why.
    if (0.0..1.0).contains(&share) {
        return Ok(1.0 - share);
    }
    Err(format!(
        "{taken} cannot be taken of \"{}\", which has {}: write a share of at least 0 and below 1, or a \
         bandwidth below it; for a link that carries nothing, [[network.failure]]",
        link.name, link.bandwidth
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::net::{FlowSpec, Framing, run_flows};

    /// Three workers with links of 1 MB/s and 0.1 s.
    fn spec(more: &str) -> NetworkSpec {
        let link = "link = { bandwidth = \"8Mbps\", latency = \"100ms\" }";
        toml::from_str(&format!("{link}\n{more}")).unwrap()
    }

    fn finish(lines: &str, more: &str, flows: &[(usize, usize, u64)]) -> Vec<f64> {
        let quiet = spec(more).topology(3).unwrap();
        // Some programs write a byte order mark first.
        let changes = read(&format!("\u{feff}{HEADER}\n{lines}"), quiet.links()).unwrap();
        let flow = |&(from, to, bytes): &(usize, usize, u64)| FlowSpec {
            from,
            to,
            bytes: crate::net::Bytes(bytes),
            start: Seconds::ZERO,
        };
        let flows: Vec<FlowSpec> = flows.iter().map(flow).collect();
        let network = Arc::new(quiet.with_changes(changes));
        let results = run_flows(&network, Framing::none(), &flows).unwrap();
        results.iter().map(|result| result.finish.0).collect()
    }

    #[track_caller]
    fn expect(found: &[f64], expected: &[f64]) {
        assert_eq!(found.len(), expected.len());
        let close = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-9;
        assert!(found.iter().zip(expected).all(close), "{found:?}");
    }

    #[test]
    fn a_flow_gets_what_other_traffic_leaves_step_by_step() {
        // Half until 2, so 1 MB; all until 2.5, 0.5 MB; a quarter until the rest has gone, at 4.5.
        let lines = "0,worker 0 out,0.5\n2,*,0\n\"2500ms\",worker 0 out,6Mbps";
        expect(&finish(lines, "", &[(0, 1, 2_000_000)]), &[4.6]);
    }

    #[test]
    fn others_are_given_what_one_can_no_longer_take() {
        // Both have half a megabyte at 1. Then a quarter is left into worker 1, and the other flow
        // gets three: until 1.6667, when the first has a third of a megabyte left, at 0.25 MB/s.
        let flows = [(0, 1, 1_000_000), (0, 2, 1_000_000)];
        let found = finish("1,worker 1 in,75e-2", "", &flows);
        expect(&found, &[3.1, 1.0 + 2.0 / 3.0 + 0.1]);
    }

    #[test]
    fn a_link_that_is_back_has_what_is_left_and_caps_still_hold() {
        let failure = "[[failure]]\nlink = \"worker 0 out\"\nfrom = 1\nuntil = 2";
        // 0.5 MB at 1, and 0.5 MB at half the rate from 2 on.
        let found = finish("0,worker 0 out,0.5", failure, &[(0, 1, 1_000_000)]);
        expect(&found, &[3.1]);
        // 100 kB in 0.2 s are 0.5 MB/s: 0.1 MB until 1, and then no more than that.
        let window = "tcp = { window = \"100kB\" }";
        let found = finish("0,*,0.9\n1,*,0", window, &[(0, 1, 1_000_000)]);
        expect(&found, &[2.9]);
    }

    #[test]
    fn a_name_in_quotes_may_have_commas() {
        let mut links = spec("").topology(3).unwrap().links().to_vec();
        "up, down, all".clone_into(&mut links[1].name);
        let of = |line: &str| read(&format!("{HEADER}\n{line}"), &links);
        let changes = of("\"1s\", \"up, down, all\" ,0.5").unwrap();
        let found: Vec<_> = changes.iter().map(|it| (it.time, it.link)).collect();
        assert_eq!(found, [(Seconds(1.0), LinkId(1))]);
        let (line, reason) = of("1,up, down, all,0.5").unwrap_err();
        assert!(line == 2 && reason.contains("three fields"), "{reason}");
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let links = spec("").topology(3).unwrap().links().to_vec();
        for (text, line, expected) in [
            ("", 1, "must be the header"),
            ("time,link\n", 1, "must be the header"),
            ("time,link,taken\n\n0,worker 0 out\n", 3, "three fields"),
            (
                "time,link,taken\n0,worker 0 outt,0.5",
                2,
                "did you mean \"worker 0 out\"",
            ),
            ("time,link,taken\n-1,*,0.5", 2, "negative"),
            ("time,link,taken\n2,*,0.5\n1,*,0.5", 3, "goes back in time"),
            ("time,link,taken\n2,*,1", 2, "cannot be taken"),
            ("time,link,taken\n2,*,nan", 2, "cannot be taken"),
            ("time,link,taken\n2,*,8Mbps", 2, "[[network.failure]]"),
            ("time,link,taken\n2,*,much", 2, "bandwidth"),
        ] {
            let (found, reason) = read(text, &links).expect_err(text);
            assert!(
                found == line && reason.contains(expected),
                "{text}: {found}, {reason}"
            );
        }
        let quiet = spec("").topology(3).unwrap();
        let absent = spec("background = \"no.csv\"");
        let error = absent
            .with_background(quiet, Path::new("nowhere"))
            .unwrap_err();
        let text = error.to_string();
        assert!(
            error.is_input() && text.contains("cannot read nowhere/no.csv"),
            "{text}"
        );
    }
}
