//! The strategy that the README shows, word for word.

use grapevine::strategies::parts::{RowExchange, Schedule};
use grapevine::strategies::{Registration, Registry, StrategyInfo};

use crate::common::{Case, losses};

const STEPS: Registration = Registration {
    info: StrategyInfo {
        name: "steps",
        paper: "ours",
        sends: "boundary rows, at a ratio that halves every ten epochs; gradients",
        options: &[],
    },
    read: |table| {
        let schedule = Schedule::Steps {
            from: 32.0,
            to: 1.0,
            every: 10,
        };
        let strategy = RowExchange::compressed(schedule).read(table, &[])?;
        Ok(Box::new(strategy))
    },
};

#[test]
fn the_strategy_of_the_readme_is_this_one_and_trains() {
    let readme = include_str!("../../README.md");
    let here = include_str!("readme.rs");
    let start = here.find("const STEPS").expect("it is above");
    let end = start + here[start..].find("\n};").expect("it ends") + 3;
    assert!(readme.contains(&here[start..end]), "{}", &here[start..end]);

    let registry = Registry::builtin().with(STEPS);
    let strategy = registry.read("steps", &toml::Table::new()).unwrap();
    let case = Case {
        epochs: 6,
        ..Case::default()
    };
    // Plan and ledger are compared inside.
    let outcome = case.train("steps", strategy.as_ref());
    assert!(losses(&outcome)[5] < losses(&outcome)[0], "it learns");
}
