//! `grapevine info`: what a graph is like.

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use serde_json::json;

use super::Verdict;
use super::datasets::thousands;
use super::output::{BadArgument, columns, print, print_json, tell};
use super::source::{DataArgs, asked_split};
use crate::Error;
use crate::atomic::folder_of;
use crate::experiment::can_be_made;
use crate::graph::{DataProfile, DatasetSpec};
use crate::report::{self, Drawing};

/// Classes that are listed; of more, the largest and the smallest.
const LISTED: usize = 12;

/// Arguments of `info`.
#[derive(ClapArgs)]
pub(super) struct Args {
    #[command(flatten)]
    data: DataArgs,
    /// Draw the distribution of degrees into a file that ends in .svg or .png
    #[arg(long, value_name = "FILE")]
    figure: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Verdict> {
    // Before what takes a while.
    let figure = args.figure.as_deref().map(drawing).transpose()?;
    if let Some((path, _)) = figure {
        can_be_made(folder_of(path))?;
    }
    // As published: rows that are divided by their sum say less of the data.
    let spec = DatasetSpec {
        normalise_features: Some(false),
        ..args.data.spec()?
    };
    let data = spec.read(Path::new("")).map_err(Error::from)?;
    let asked = asked_split(&spec, &data, 0)?;
    let profile = DataProfile::new(&data);
    if args.json {
        let mut known = serde_json::to_value(&profile)?;
        if let Some(asked) = asked {
            known["split"] = json!(asked);
        }
        print_json(&known)?;
    } else {
        let mut rows = rows(&profile);
        rows.extend(
            asked.map(|asked| vec!["split asked for, seed 0".to_owned(), set_sizes(asked)]),
        );
        print(&columns(&["", &profile.name], &rows))?;
    }
    for note in &data.reading.notes {
        tell(&format!("note: {note}\n"));
    }
    if let Some((path, drawing)) = figure {
        report::write_degrees(path, drawing, &profile)?;
    }
    Ok(Verdict::Good)
}

/// A figure's file with what its ending asks for.
fn drawing(path: &Path) -> Result<(&Path, Drawing), BadArgument> {
    let drawing = Drawing::of(path).ok_or_else(|| BadArgument {
        flag: "--figure",
        what: format!(
            "{} ends neither in .svg nor in .png; figures are drawn as these",
            path.display()
        ),
    });
    drawing.map(|drawing| (path, drawing))
}

/// What is printed, a row each.
fn rows(profile: &DataProfile) -> Vec<Vec<String>> {
    let count = |number: usize| thousands(number as u64);
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut add = |name: &str, value: String| rows.push(vec![name.to_owned(), value]);
    add("nodes", count(profile.nodes));
    add("edges", count(profile.edges));
    let degrees = &profile.degrees;
    add("degree, mean", format!("{:.2}", degrees.mean));
    for (name, degree) in [
        ("degree, least", degrees.least),
        ("degree, median", degrees.median),
        ("degree, 99th percentile", degrees.percentile_99),
        ("degree, most", degrees.most),
    ] {
        add(name, count(degree));
    }
    add("nodes without a neighbour", count(degrees.isolated));
    add("components", count(profile.components));
    add(
        "largest component",
        share(profile.largest_component, profile.nodes),
    );
    if let Some(homophily) = profile.homophily {
        add("homophily of edges", format!("{:.3}", homophily.edge));
        add("homophily of nodes", format!("{:.3}", homophily.node));
        if let Some(adjusted) = homophily.adjusted {
            add("homophily, adjusted", format!("{adjusted:.3}"));
        }
    }
    let one = if profile.several { "label" } else { "class" };
    let plural = if profile.several { "labels" } else { "classes" };
    add(plural, count(profile.classes.len()));
    let labelled = profile.nodes - profile.unlabelled;
    let mut sizes: Vec<(usize, usize)> = profile.classes.iter().copied().enumerate().collect();
    if sizes.len() > LISTED {
        sizes.sort_by_key(|&(class, size)| (std::cmp::Reverse(size), class));
        sizes.drain(1..sizes.len() - 1);
    }
    for (class, size) in sizes {
        add(&format!("{one} {class}"), share(size, labelled));
    }
    add(&format!("nodes without a {one}"), count(profile.unlabelled));
    add("features", count(profile.features));
    add(
        "feature values not zero",
        format!("{:.3} %", 100.0 * profile.features_filled),
    );
    match &profile.splits[..] {
        [] => add("split of its own", "none".to_owned()),
        [first, more @ ..] => {
            let others = if more.is_empty() {
                String::new()
            } else {
                format!(", and {} more", more.len())
            };
            let sizes = set_sizes(*first);
            add("split of its own", format!("{sizes}{others}"));
        }
    }
    rows
}

/// Numbers of nodes that train, validate and test.
fn set_sizes(sets: [usize; 3]) -> String {
    sets.map(|size| thousands(size as u64)).join(" / ")
}

/// A number, and what share that is; rounded to the whole only if it is all.
fn share(part: usize, whole: usize) -> String {
    let percent = 100.0 * part as f64 / whole.max(1) as f64;
    let most = if part < whole { 99.9 } else { f64::INFINITY };
    let percent = percent.min(most);
    format!("{} ({percent:.1} %)", thousands(part as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::cora;

    #[test]
    fn all_but_a_few_are_not_said_to_be_all() {
        assert_eq!(share(9_998, 10_000), "9,998 (99.9 %)");
        assert_eq!(share(10_000, 10_000), "10,000 (100.0 %)");
        assert_eq!(share(9_984, 10_000), "9,984 (99.8 %)");
        assert_eq!(share(0, 0), "0 (0.0 %)");
    }

    #[test]
    fn cora_is_told_in_rows() {
        let mut profile = DataProfile::new(&cora().unwrap());
        let of = |profile: &DataProfile| columns(&["", "cora"], &rows(profile));
        let text = of(&profile);
        for said in [
            "2,708",
            "2,485 (91.8 %)",
            "818 (30.2 %)",
            "140 / 500 / 1,000",
            "1.268 %",
        ] {
            assert!(text.contains(said), "{said}: {text}");
        }
        profile.classes = vec![1; 40];
        profile.classes[7] = 9;
        let text = of(&profile);
        assert_eq!(text.matches("\nclass ").count(), 2, "{text}");
        assert!(text.contains("class 7 "), "{text}");
    }
}
