//! What came of a claim.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What runs say of a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClaimVerdict {
    /// The condition is met.
    #[serde(rename = "reproduced")]
    Reproduced,
    /// The condition is broken.
    #[serde(rename = "not reproduced")]
    NotReproduced,
    /// Neither can be said.
    #[default]
    #[serde(rename = "inconclusive")]
    Inconclusive,
}

impl ClaimVerdict {
    pub(super) const ALL: [Self; 3] = [Self::Reproduced, Self::NotReproduced, Self::Inconclusive];

    /// The name used in tables.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::NotReproduced => "not reproduced",
            Self::Inconclusive => "inconclusive",
        }
    }
}

impl fmt::Display for ClaimVerdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
