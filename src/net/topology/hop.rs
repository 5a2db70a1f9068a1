//! A step of a way over cables between switches.

/// One cable in one of its two directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::net) struct Hop {
    /// Number of the cable.
    pub(crate) cable: usize,
    /// Whether from its second end to its first.
    pub back: bool,
}

/// The names of a cable's two ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::net) struct Ends(pub String, pub String);
