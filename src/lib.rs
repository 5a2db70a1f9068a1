//! Train graph neural networks across emulated machines and measure what each way of communicating
//! costs: accuracy, bytes and time.
//!
//! A folder may import only from folders above it in this list:
//!
//! | folder | what it holds |
//! |---|---|
//! | `defaults` | settings that are left out |
//! | `digits` | sizes and times with three digits and a unit |
//! | `names` | enums whose variants have names |
//! | [`rng`] | random streams keyed by their purpose |
//! | `memory` | how much memory there is, before it is taken |
//! | `parquet` | Parquet files, read without panics |
//! | [`graph`] | data sets, generators, partitioners, boundary plans |
//! | [`net`] | links, bandwidth sharing, collectives, codecs, the ledger of bytes |
//! | `fetch` | published graphs, downloaded, checked and unpacked |
//! | [`model`] | sparse aggregation, layers, loss, flat parameters on burn |
//! | [`sim`] | workers, virtual time, devices, recording |
//! | [`strategies`] | one folder per published method, and the parts they share |
//! | `study` | how far estimated gradients are from the full one, on small networks |
//! | [`experiment`] | TOML → cells → runs → tables, claims, verification |
//! | `report` | tables → figures, Markdown and LaTeX tables, HTML |
//! | [`cli`] | one file per subcommand |

pub(crate) mod atomic;
mod defaults;
mod digits;
pub mod graph;
mod memory;
mod names;
pub mod net;
mod parquet;
pub mod rng;
mod simd;

mod fetch;
pub mod model;

pub mod sim;

pub mod strategies;

mod study;

pub mod experiment;

mod report;

pub mod cli;

pub use experiment::Error;
