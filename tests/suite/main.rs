//! Tests of the whole: one binary, so that the library is linked once.

mod common;
mod cora;
