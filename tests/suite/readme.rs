//! What the pages say: the first strategy of docs/add-a-strategy.md, word for word; links that lead somewhere.

use std::fs;
use std::path::{Path, PathBuf};

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
fn the_shortest_strategy_of_the_page_is_this_one_and_trains() {
    let page = include_str!("../../docs/add-a-strategy.md");
    let here = include_str!("readme.rs");
    let start = here.find("const STEPS").expect("it is above");
    let end = start + here[start..].find("\n};").expect("it ends") + 3;
    assert!(page.contains(&here[start..end]), "{}", &here[start..end]);

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

/// Written pages in a folder: tables that the program makes are not looked at.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && !path.ends_with("tables") {
            pages(&path, found);
        } else if path.extension().is_some_and(|name| name == "md") {
            found.push(path);
        }
    }
}

/// Where links to a page's headings lead: in small letters, blanks as hyphens, no other marks.
fn headings(page: &str) -> Vec<String> {
    let mut in_code = false;
    let lines = page.lines().filter(|line| {
        in_code ^= line.starts_with("```");
        !in_code && line.starts_with('#')
    });
    let name = |line: &str| {
        let letters = line.trim_start_matches('#').trim().to_lowercase();
        let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        letters.replace('`', "").chars().filter(kept).collect()
    };
    lines
        .map(name)
        .map(|name: String| name.replace(' ', "-"))
        .collect()
}

#[test]
fn links_of_pages_lead_somewhere_and_nothing_is_left_to_fill_in() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all: Vec<PathBuf> = (["README.md", "CHANGELOG.md", "results/README.md"].iter())
        .map(|page| root.join(page))
        .collect();
    for folder in ["docs", "data", "results/reference", "results/performance"] {
        pages(&root.join(folder), &mut all);
    }
    let mut wrong = Vec::new();
    for page in &all {
        let text = fs::read_to_string(page).expect("it can be read");
        if text.contains("@@") {
            wrong.push(format!("{}: a placeholder", page.display()));
        }
        for link in text.split("](").skip(1) {
            let link = &link[..link.find(')').unwrap_or(link.len())];
            if link.starts_with("http") {
                continue;
            }
            let (path, heading) = link.split_once('#').unwrap_or((link, ""));
            let there = match path {
                "" => page.clone(),
                path => page.with_file_name(path),
            };
            let leads = there.exists()
                && (heading.is_empty()
                    || headings(&fs::read_to_string(&there).expect("a page"))
                        .contains(&heading.to_owned()));
            if !leads {
                wrong.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
