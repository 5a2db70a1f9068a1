//! Machines of several workers, and cables between switches.

use super::{check_jitter, checked_loss, link, wrong};
use crate::net::topology::{Dragonfly, Ends, FatTree, Machines, Wiring};
use crate::net::{
    Bandwidth, DragonflySpec, Link, MachineSpec, NetError, NetworkSpec, Seconds, TrunkSpec,
};

/// What a topology joins: workers, or the NICs of machines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ports {
    /// How many.
    pub count: usize,
    /// Of each, each way.
    pub bandwidth: Bandwidth,
    pub half: bool,
}

impl NetworkSpec {
    /// The machines that the section or its preset describes.
    pub(super) fn machine_spec(&self) -> Option<MachineSpec> {
        // An unknown preset has no machines here; where its figures are needed it is an error.
        let preset = || self.found_preset().ok()??.machine;
        self.machine.or_else(preset)
    }

    /// Deals workers to machines, and adds their NICs.
    pub(super) fn machines(
        &self,
        workers: usize,
        half: bool,
        links: &mut Vec<Link>,
    ) -> Result<Option<Machines>, NetError> {
        let Some(MachineSpec { gpus, nics, nic }) = self.machine_spec() else {
            return Ok(None);
        };
        if gpus == 0 {
            let reason = "must be at least 1: how many workers a machine has";
            return Err(wrong("network.machine.gpus", reason));
        }
        if !(1..=gpus).contains(&nics) {
            let reason = format!("must be 1 to {gpus}, one for each GPU, not {nics}");
            return Err(wrong("network.machine.nics", reason));
        }
        let count = workers.div_ceil(gpus);
        let machines = Machines { gpus, nics, count };
        for way in if half { &[""][..] } else { &[" out", " in"] } {
            links.extend((0..machines.all_nics()).map(|number| {
                let name = format!("nic {}.{}{way}", number / nics, number % nics);
                link(name, nic.bandwidth, nic.latency)
            }));
        }
        Ok(Some(machines))
    }

    pub(super) fn fat_tree(&self, ports: Ports, links: &mut Vec<Link>) -> Result<Wiring, NetError> {
        let spec = self.fat_tree.unwrap_or_default();
        let tree = match spec.k {
            None => FatTree::smallest(ports.count, spec.routing),
            Some(k) if (2..=MOST_PORTS).contains(&k) && k.is_multiple_of(2) => {
                FatTree::new(k / 2, spec.routing)
            }
            Some(k) => {
                let reason =
                    format!("must be an even number of ports, from 2 to {MOST_PORTS}, not {k}");
                return Err(wrong("network.fat_tree.k", reason));
            }
        };
        check_room("network.fat_tree.k", tree.ports(), ports.count)?;
        let up = Trunk::of("network.uplink", self.uplink, ports)?;
        let cables: Vec<(Ends, &Trunk)> =
            tree.cables().into_iter().map(|ends| (ends, &up)).collect();
        // Downwards: jitter and loss of an uplink are drawn once, on the way up.
        let upwards = |trunk: &Trunk| Trunk {
            jitter: None,
            loss: 0.0,
            ..*trunk
        };
        both_ways(&cables, upwards, ports.half, links);
        Ok(Wiring::FatTree(tree))
    }

    pub(super) fn dragonfly(
        &self,
        ports: Ports,
        links: &mut Vec<Link>,
    ) -> Result<Wiring, NetError> {
        let spec = self.dragonfly.unwrap_or_default();
        let fly = dragonfly_of(&spec, ports.count)?;
        check_room("network.dragonfly.*", fly.ports(), ports.count)?;
        let local = Trunk::of("network.dragonfly.local", spec.local, ports)?;
        let global = Trunk::of("network.dragonfly.global", spec.global, ports)?;
        let cables = fly.cables().into_iter().enumerate();
        let cables: Vec<(Ends, &Trunk)> = cables
            .map(|(number, ends)| {
                (
                    ends,
                    if number < fly.local() {
                        &local
                    } else {
                        &global
                    },
                )
            })
            .collect();
        both_ways(&cables, |trunk| *trunk, ports.half, links);
        Ok(Wiring::Dragonfly(fly))
    }
}

/// A cable between switches, checked.
#[derive(Clone, Copy)]
struct Trunk {
    bandwidth: Bandwidth,
    latency: Seconds,
    jitter: Option<crate::net::Jitter>,
    loss: f64,
}

impl Trunk {
    fn of(key: &str, spec: Option<TrunkSpec>, ports: Ports) -> Result<Self, NetError> {
        let Some(spec) = spec else {
            return Ok(Self {
                bandwidth: ports.bandwidth,
                latency: Seconds::ZERO,
                jitter: None,
                loss: 0.0,
            });
        };
        check_jitter(&format!("{key}.jitter"), spec.jitter.as_ref())?;
        Ok(Self {
            bandwidth: spec.bandwidth,
            latency: spec.latency,
            jitter: spec.jitter,
            loss: checked_loss(&format!("{key}.loss"), spec.loss)?,
        })
    }

    fn link(&self, name: String) -> Link {
        Link {
            jitter: self.jitter,
            loss: self.loss,
            ..link(name, self.bandwidth, self.latency)
        }
    }
}

/// One direction of all cables, then the other, which is as `back` says; or one for both.
fn both_ways(
    cables: &[(Ends, &Trunk)],
    back: impl Fn(&Trunk) -> Trunk,
    half: bool,
    links: &mut Vec<Link>,
) {
    if half {
        let names = cables.iter();
        links.extend(names.map(|(Ends(a, b), trunk)| trunk.link(format!("{a} and {b}"))));
        return;
    }
    let ahead = cables.iter();
    links.extend(ahead.map(|(Ends(a, b), trunk)| trunk.link(format!("{a} to {b}"))));
    let backwards = cables.iter();
    links.extend(backwards.map(|(Ends(a, b), trunk)| back(trunk).link(format!("{b} to {a}"))));
}

fn dragonfly_of(spec: &DragonflySpec, ports: usize) -> Result<Dragonfly, NetError> {
    let smallest = Dragonfly::smallest(ports);
    let global_links = spec.global_links.unwrap_or(smallest.global_links);
    let routers = spec.routers.unwrap_or(2 * global_links);
    // Saturating, as the numbers are checked below, where the messages can name them.
    let most = routers.saturating_mul(global_links).saturating_add(1);
    let fly = Dragonfly {
        terminals: spec.terminals.unwrap_or(global_links),
        routers,
        global_links,
        groups: spec.groups.unwrap_or(most),
    };
    let counts = [
        ("terminals", fly.terminals),
        ("routers", fly.routers),
        ("global_links", fly.global_links),
    ];
    for (key, count) in counts {
        if !(1..=MOST).contains(&count) {
            let reason = format!("must be 1 to {MOST}, not {count}");
            return Err(wrong(format!("network.dragonfly.{key}"), reason));
        }
    }
    if !(1..=most).contains(&fly.groups) {
        let reason = format!(
            "must be 1 to {most}, as a group of {routers} routers has {} cables to others, not {}",
            most - 1,
            fly.groups
        );
        return Err(wrong("network.dragonfly.groups", reason));
    }
    // Routers and groups are at least 1 here.
    let pairs = |of: usize| of.saturating_mul(of - 1) / 2;
    let cables = (fly.groups.saturating_mul(pairs(fly.routers))).saturating_add(pairs(fly.groups));
    if cables > MOST_CABLES {
        let reason = format!(
            "{} groups have {cables} cables, more than {MOST_CABLES}; say fewer groups, routers or global links",
            fly.groups
        );
        return Err(wrong("network.dragonfly.groups", reason));
    }
    Ok(fly)
}

/// Ports of a switch of a fat tree: half a million workers, and as many cables twice.
const MOST_PORTS: usize = 128;

/// Cables of a dragonfly: each is held, with its name, in both directions.
const MOST_CABLES: usize = 1_000_000;

/// Ports, routers or cables: more than any router has, and little enough to count with.
const MOST: usize = 256;

fn check_room(key: &str, room: usize, ports: usize) -> Result<(), NetError> {
    if ports <= room {
        return Ok(());
    }
    let reason = format!(
        "makes room for {room} workers, or NICs of machines, and there are {ports}; make it larger, or \
         leave it out for the smallest that holds them"
    );
    Err(wrong(key, reason))
}
