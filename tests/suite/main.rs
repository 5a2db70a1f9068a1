//! Tests of the whole: one binary, so that the library is linked once.

mod accuracy;
mod anchors;
mod backends;
mod bad_input;
mod batches;
mod clients;
mod codecs;
mod command;
mod common;
mod determinism;
mod estimator;
mod golden;
mod grappa;
mod layers;
mod neighbours;
mod net;
mod outside;
mod overlap;
mod probe;
mod program;
mod reference;
mod retexo;
mod sparse;
mod trace;
mod variant;
mod volume;
