//! What came of a claim.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::names::named;

named! {
    /// What runs say of a claim.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub enum ClaimVerdict {
        /// The condition is met.
        #[serde(rename = "reproduced")]
        Reproduced = "reproduced",
        /// The condition is broken.
        #[serde(rename = "not reproduced")]
        NotReproduced = "not reproduced",
        /// Neither can be said.
        #[default]
        #[serde(rename = "inconclusive")]
        Inconclusive = "inconclusive",
    }
}

impl fmt::Display for ClaimVerdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
