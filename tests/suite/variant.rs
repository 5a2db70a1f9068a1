//! Grappa by its definition, `Σ_i w_i b_i ḡ_i / Σ_j b_j`, for one process that sees everything: the terms of all workers.

use rand::seq::SliceRandom;

use crate::reference::Term;
use grapevine::graph::Csr;
use grapevine::model::{Aggregation, Gnn, Input, ModelKind};
use grapevine::rng::{Purpose, mix, stream};
use grapevine::sim::Setting;

/// Options of one run, as text for the strategy and as facts for the reference.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Variant {
    pub schedule: &'static str,
    /// Chunks per worker.
    pub each: usize,
    pub halo: bool,
    pub sampling: f64,
    pub weight: &'static str,
    pub shrinkage: &'static str,
    pub normalise: &'static str,
    pub cap: Option<f64>,
    /// Of coverage, instead of one for each layer.
    pub hops: Option<usize>,
    /// What rows that are read are normalised by.
    pub degrees: &'static str,
}

pub(crate) const EVERY: usize = 2;
const KAPPA: f64 = 3.0;
const LAMBDA: f64 = 0.25;

pub(crate) const PLAIN: Variant = Variant {
    schedule: "sweep",
    each: 1,
    halo: true,
    sampling: 0.0,
    weight: "none",
    shrinkage: "none",
    normalise: "none",
    cap: None,
    hops: None,
    degrees: "global",
};

/// A worker's share: which nodes have in-edges there, which others are sources only, and which train.
struct Share {
    inner: Vec<bool>,
    halo: Vec<bool>,
    train: Vec<u32>,
}

impl Share {
    fn sees(&self, u: u32, v: u32) -> bool {
        self.inner[v as usize] && (self.inner[u as usize] || self.halo[u as usize])
    }

    /// The probability that a walk of `hops` steps from `v` stays; halo nodes end it.
    fn stays(&self, graph: &Csr, v: u32, hops: usize) -> f64 {
        let neighbours = graph.neighbours(v as usize);
        if hops == 0 || neighbours.is_empty() {
            return 1.0;
        }
        let seen = neighbours.iter().filter(|&&u| self.sees(u, v));
        let sum: f64 = seen.map(|&u| self.stays(graph, u, hops - 1)).sum();
        sum / neighbours.len() as f64
    }
}

impl Variant {
    pub(crate) fn options(&self, workers: usize) -> String {
        let Self {
            schedule,
            each,
            halo,
            sampling,
            weight,
            shrinkage,
            normalise,
            cap,
            hops,
            degrees,
        } = self;
        let chunks = each * workers;
        let cap = cap.map_or(String::new(), |cap| format!("cap = {cap}\n"));
        let hops = hops.map_or(String::new(), |hops| format!("coverage_hops = {hops}\n"));
        let every = match *schedule {
            "fixed" => String::new(),
            _ => format!("repartition_every = {EVERY}\n"),
        };
        let degrees = match *degrees {
            "global" => String::new(),
            other => format!("halo_degrees = \"{other}\"\n"),
        };
        let strength = match *shrinkage {
            "kappa" => format!("kappa = {KAPPA}\n"),
            "lambda" => format!("lambda = {LAMBDA}\n"),
            _ => String::new(),
        };
        format!(
            "chunks = {chunks}\nhalo = {halo}\nremote_sampling = {sampling}\nschedule = \"{schedule}\"\n\
             weight = \"{weight}\"\nshrinkage = \"{shrinkage}\"\nnormalise = \"{normalise}\"\n\
             {every}{strength}{cap}{hops}{degrees}"
        )
    }

    pub(crate) fn switches(&self, epoch: usize) -> bool {
        epoch == 0 || (self.schedule != "fixed" && epoch.is_multiple_of(EVERY))
    }

    /// Whether workers tell each other anything about weights before an epoch.
    pub(crate) fn talks(&self, epoch: usize, layers: usize) -> bool {
        let weighs = !matches!(self.weight, "none" | "edge_ht");
        // A mean on which nothing else depends travels with the gradients.
        let of_batch = self.weight.starts_with("batch");
        let shrinks = of_batch && ["lambda", "james_stein"].contains(&self.shrinkage);
        let apart = self.normalise == "mean" && (self.cap.is_some() || shrinks);
        let agrees = weighs && (apart || self.shrinkage == "james_stein");
        let hops = self.hops.unwrap_or(layers) - usize::from(self.halo);
        let expects = self.normalise == "rho" && self.weight != "node_hajek" && hops > 1;
        (agrees && (self.switches(epoch) || self.sampling > 0.0)) || (expects && epoch == 0)
    }

    /// The chunks of each worker in an epoch, those that it trains first.
    pub(crate) fn held(&self, setting: &Setting, epoch: usize) -> Vec<Vec<usize>> {
        let (workers, each) = (setting.workers(), self.each);
        let all = workers * each;
        let round = if self.schedule == "fixed" {
            0
        } else {
            epoch / EVERY
        };
        if self.schedule == "regroup" {
            let mut order: Vec<usize> = (0..all).collect();
            let round = round as u64 + 1;
            order.shuffle(&mut stream(setting.seed, Purpose::Partition, 0, round));
            return order.chunks(each).map(<[usize]>::to_vec).collect();
        }
        (0..workers)
            .map(|w| {
                let next = (w + 1) * each + round % (all - each);
                (w * each..(w + 1) * each).chain([next % all]).collect()
            })
            .collect()
    }

    /// What each worker has in an epoch.
    fn shares(&self, setting: &Setting, epoch: usize) -> Vec<Share> {
        let graph = &setting.dataset.graph;
        let (chunk, nodes) = (chunks(setting), graph.nodes());
        let home = |v: usize| chunk[v] / self.each;
        let trained = |held: &[usize], v: u32| held[..self.each].contains(&chunk[v as usize]);
        let held = self.held(setting, epoch);
        held.iter()
            .enumerate()
            .map(|(worker, held)| {
                let inner: Vec<bool> = (0..nodes).map(|v| held.contains(&chunk[v])).collect();
                let around = |u: usize| {
                    let reads = |&v: &u32| inner[v as usize];
                    !inner[u] && graph.neighbours(u).iter().any(reads)
                };
                let mut halo = vec![false; nodes];
                for from in 0..setting.workers() {
                    let mut rows: Vec<usize> = (0..nodes)
                        .filter(|&u| home(u) == from && around(u))
                        .collect();
                    if self.sampling > 0.0 && from != worker {
                        let pair = mix(from as u64, worker as u64);
                        let mut draw = stream(setting.seed, Purpose::Sampling, pair, epoch as u64);
                        rows.shuffle(&mut draw);
                        rows.truncate((self.sampling * rows.len() as f64).round() as usize);
                    } else if !self.halo && self.sampling == 0.0 {
                        rows.clear();
                    }
                    for row in rows {
                        halo[row] = true;
                    }
                }
                let mine = |v: &&u32| trained(held, **v);
                let train = setting.dataset.split.train.iter().filter(mine).copied();
                Share {
                    train: train.collect(),
                    inner,
                    halo,
                }
            })
            .collect()
    }

    /// Features that travel in an epoch, as rows.
    pub(crate) fn fetched(&self, setting: &Setting, epoch: usize) -> usize {
        let chunk = chunks(setting);
        let shares = self.shares(setting, epoch);
        let remote = |worker: usize, share: &Share| {
            let there = |&(u, halo): &(usize, &bool)| *halo && chunk[u] / self.each != worker;
            share.halo.iter().enumerate().filter(there).count()
        };
        shares
            .iter()
            .enumerate()
            .map(|(worker, share)| remote(worker, share))
            .sum()
    }

    /// The terms of all workers in an epoch. Gradient norms are those of the initial model.
    pub(crate) fn terms(&self, setting: &Setting, epoch: usize) -> Vec<Term> {
        self.terms_of(setting, epoch, &|_, train| train.to_vec())
    }

    /// As [`Self::terms`], where of a worker's training nodes those in its batch train.
    pub(crate) fn terms_of(
        &self,
        setting: &Setting,
        epoch: usize,
        batch: &dyn Fn(usize, &[u32]) -> Vec<u32>,
    ) -> Vec<Term> {
        let mut shares = self.shares(setting, epoch);
        for (worker, share) in shares.iter_mut().enumerate() {
            share.train = batch(worker, &share.train);
        }
        let total = shares.iter().map(|share| share.train.len()).sum::<usize>() as f64;
        let mut terms: Vec<Term> = shares
            .iter()
            .map(|share| self.term(setting, share))
            .collect();
        let norms = terms.iter().zip(&shares);
        let norms: Vec<Vec<f64>> = norms
            .map(|(term, share)| match self.weight {
                "batch_gram" => squared_norms(setting, term, &share.train),
                _ => vec![1.0; share.train.len()],
            })
            .collect();
        let weights = self.weights(setting, &shares, &norms);
        for ((term, share), weights) in terms.iter_mut().zip(&shares).zip(weights) {
            let weights = share.train.iter().zip(weights);
            term.weights = weights.map(|(&v, w)| (v, w / total)).collect();
        }
        terms
    }

    fn term(&self, setting: &Setting, share: &Share) -> Term {
        let graph = &setting.dataset.graph;
        let seen = edges(graph).filter(|&(u, v)| share.sees(u, v));
        let local = Csr::from_edges(graph.nodes(), seen);
        let by_edge = self.weight == "edge_ht";
        let readers = |v: usize| {
            let node = v as u32;
            let reads = |&&w: &&u32| share.sees(node, w);
            graph.neighbours(v).iter().filter(reads).count()
        };
        // What a worker sees of its chunks; of halo nodes it knows the degree, or takes what it
        // sees of them.
        let degree = |v: usize| {
            if share.inner[v] && !by_edge {
                local.degree(v)
            } else if self.degrees == "seen" && !by_edge {
                readers(v)
            } else {
                graph.degree(v)
            }
        };
        let degrees: Vec<usize> = (0..graph.nodes()).map(degree).collect();
        let authors = (self.degrees == "authors").then(|| {
            let readers: Vec<usize> = (0..graph.nodes()).map(readers).collect();
            (readers, degrees.clone(), share.inner.clone())
        });
        let mut term = Term::plain(local, degrees, Vec::new());
        if by_edge {
            let (inner, chance, halo) = (share.inner.clone(), self.chances(setting), self.halo);
            term.scale = Box::new(move |layer, v, u| match (v == u, halo && layer == 0) {
                (true, _) | (_, true) => 1.0,
                _ if !inner[u as usize] => 0.0,
                _ => (1.0 / chance(v, u)) as f32,
            });
        }
        if let Some((readers, degrees, inner)) = authors {
            let divides = setting.model.kind == ModelKind::Gcn;
            term.scale = Box::new(move |_, v, u| {
                let row = u as usize;
                if v == u && !inner[row] {
                    return 0.0;
                }
                let (loops, degree) = (usize::from(inner[row]), (degrees[row] + 1) as f64);
                let change = degree / (readers[row] + loops) as f64;
                if divides { change.sqrt() as f32 } else { 1.0 }
            });
        }
        term
    }

    /// The probability that the worker that trains v holds u.
    fn chances(&self, setting: &Setting) -> impl Fn(u32, u32) -> f64 + use<> {
        let (chunk, each) = (chunks(setting), self.each);
        let workers = setting.workers();
        let regroup = self.schedule == "regroup";
        let apart = if regroup {
            (each - 1) as f64 / (each * workers - 1) as f64
        } else {
            1.0 / (each * (workers - 1)) as f64
        };
        move |v, u| {
            let (v, u) = (chunk[v as usize], chunk[u as usize]);
            let together = if regroup {
                v == u
            } else {
                v / each == u / each
            };
            if together { 1.0 } else { apart }
        }
    }

    /// The expected weight of a node before it is smoothed.
    fn expected(&self, setting: &Setting, v: u32, hops: usize) -> f64 {
        let graph = &setting.dataset.graph;
        let (chance, neighbours) = (self.chances(setting), graph.neighbours(v as usize));
        if neighbours.is_empty() {
            return 1.0;
        }
        if self.weight == "node_hajek" {
            let chunk = chunks(setting);
            let near = |&&u: &&u32| chance(v, u) == 1.0;
            if self.halo || neighbours.iter().any(|u| near(&u)) {
                return 1.0;
            }
            let mut met: Vec<usize> = neighbours.iter().map(|&u| chunk[u as usize]).collect();
            met.sort_unstable();
            met.dedup();
            assert_ne!(self.schedule, "regroup", "only the sweep's is counted here");
            return met.len() as f64 * chance(v, neighbours[0]);
        }
        if hops == 0 {
            return 1.0;
        }
        let of = |&u: &u32| chance(v, u) * self.expected(setting, u, hops - 1);
        neighbours.iter().map(of).sum::<f64>() / neighbours.len() as f64
    }

    /// Weights of the training nodes of each worker.
    fn weights(&self, setting: &Setting, shares: &[Share], norms: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let graph = &setting.dataset.graph;
        let hops = self.hops.unwrap_or(setting.model.layers());
        let weigh = |share: &Share, v: u32| {
            let d = graph.degree(v as usize) as f64;
            let shrink = match self.shrinkage {
                "kappa" if d > 0.0 => d / (d + KAPPA),
                _ => 1.0,
            };
            let smooth = |covered: f64| match self.shrinkage {
                "authors" => (covered * d + 1.0) / (d + 2.0),
                _ => 1.0 + shrink * (covered - 1.0),
            };
            let expected = || self.expected(setting, v, hops - usize::from(self.halo));
            let (weight, expected) = match self.weight {
                "none" | "edge_ht" => return 1.0,
                "node_hajek" => {
                    let some = graph
                        .neighbours(v as usize)
                        .iter()
                        .any(|&u| share.sees(u, v));
                    (f64::from(u8::from(some || d == 0.0)), expected())
                }
                _ => (smooth(share.stays(graph, v, hops)), smooth(expected())),
            };
            if self.normalise == "rho" {
                weight / expected
            } else {
                weight
            }
        };
        let of_share = |share: &Share| share.train.iter().map(|&v| weigh(share, v)).collect();
        let mut all: Vec<Vec<f64>> = shares.iter().map(of_share).collect();
        let mean = |weights: &[f64]| weights.iter().sum::<f64>() / weights.len() as f64;
        let overall = mean(&all.concat());
        for weight in all.iter_mut().flatten() {
            if self.normalise == "mean" {
                *weight /= overall;
            }
            *weight = weight.min(self.cap.unwrap_or(f64::INFINITY));
        }
        if !self.weight.starts_with("batch") {
            return all;
        }
        let workers = all.len() as f64;
        let (mut batches, mut noise) = (Vec::new(), 0.0);
        for (weights, norms) in all.iter().zip(norms) {
            let weighted = weights.iter().zip(norms).map(|(w, norm)| w * norm);
            let batch = weighted.sum::<f64>() / norms.iter().sum::<f64>();
            // A worker without training nodes wants nothing; of one node no variance can be told.
            batches.push(if weights.is_empty() { 1.0 } else { batch });
            let (m, b) = (mean(weights), weights.len() as f64);
            let squares: f64 = weights.iter().map(|w| (w - m).powi(2)).sum();
            if weights.len() > 1 {
                noise += squares / (b - 1.0) / b / workers;
            }
        }
        let signal: f64 = batches.iter().map(|w| (w - 1.0).powi(2)).sum();
        let lambda = match self.shrinkage {
            "lambda" => LAMBDA,
            "james_stein" if signal > 0.0 => (1.0 - (workers - 2.0) * noise / signal).max(0.0),
            _ => 1.0,
        };
        for (weights, batch) in all.iter_mut().zip(batches) {
            weights.fill(1.0 + lambda * (batch - 1.0));
        }
        all
    }
}

/// The chunk of each node.
pub(crate) fn chunks(setting: &Setting) -> Vec<usize> {
    let Some(chunks) = &setting.chunks else {
        let owner = setting.partition.assignment.iter();
        return owner.map(|&worker| worker as usize).collect();
    };
    let mut of = vec![0; setting.dataset.graph.nodes()];
    for (chunk, part) in chunks.plan.parts.iter().enumerate() {
        for &node in &part.owned {
            of[node as usize] = chunk;
        }
    }
    of
}

/// `‖softmax − onehot‖² (1 + ‖h‖²)` of the initial model.
fn squared_norms(setting: &Setting, term: &Term, train: &[u32]) -> Vec<f64> {
    let place = &setting.devices[0].place;
    let model = Gnn::new(&setting.model, setting.seed, &place.device);
    let aggregation = Aggregation::from(setting.model.kind);
    let mut input = Input::from_features((*setting.dataset.features).clone(), place);
    let mut values = Vec::new();
    for layer in 0..model.layers() {
        let output = model.layer(layer, &term.block(aggregation, layer), &input);
        values.push((output.clone().into_values(), output.width()));
        input = Input::Dense(output);
    }
    let row = |layer: usize, v: u32| {
        let (values, width) = &values[layer];
        let row = &values[v as usize * width..][..*width];
        row.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>()
    };
    train
        .iter()
        .map(|&v| {
            let powers: Vec<f64> = row(model.layers() - 1, v).iter().map(|x| x.exp()).collect();
            let sum: f64 = powers.iter().sum();
            let class = setting.dataset.labels.classes()[v as usize].expect("labelled") as usize;
            let error = |(c, p): (usize, &f64)| (p / sum - f64::from(u8::from(c == class))).powi(2);
            let error: f64 = powers.iter().enumerate().map(error).sum();
            let hidden: f64 = row(model.layers() - 2, v).iter().map(|x| x * x).sum();
            error * (1.0 + hidden)
        })
        .collect()
}

/// All stored edges as (source, destination).
pub(crate) fn edges(graph: &Csr) -> impl Iterator<Item = (u32, u32)> + Clone + '_ {
    (0_u32..)
        .take(graph.nodes())
        .flat_map(|v| graph.neighbours(v as usize).iter().map(move |&u| (u, v)))
}
