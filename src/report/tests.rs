//! The whole report from made-up rows.

mod made_up;

use std::fs;

use serde_json::json;

use super::*;
use made_up::{made_up, manifest, swept};

/// The figures in a folder, as text.
fn pictures(folder: &Path, extension: &str) -> Vec<String> {
    let entries = fs::read_dir(folder.join("figures")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let wanted = paths.filter(|path| path.extension().is_some_and(|known| known == extension));
    wanted
        .map(|path| fs::read_to_string(path).unwrap())
        .collect()
}

#[test]
fn a_report_has_every_figure_twice_every_table_twice_and_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let Written { files, notes } = build(folder.path(), &made_up(&[0, 1, 2]), &manifest()).unwrap();
    assert!(notes.is_empty(), "none was asked for by name");
    // Without a sweep there is neither scaling nor a heat map.
    // Five tables: summary, traffic, claims, and two of budgets. No run has a target.
    assert_eq!(files.len(), 2 * (KINDS.len() - 2) + 2 * 5 + 1);
    for path in &files {
        assert!(
            fs::metadata(path).unwrap().len() > 100,
            "{}",
            path.display()
        );
    }
    let png = fs::read(folder.path().join("figures/accuracy-vs-epoch.png")).unwrap();
    assert_eq!(&png[1..4], b"PNG");
    assert_eq!(
        u32::from_be_bytes(png[16..20].try_into().unwrap()),
        1360,
        "3.4 in at 400 dpi"
    );
}

#[test]
fn figures_need_no_font_and_nothing_from_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path(), &made_up(&[0, 1]), &manifest()).unwrap();
    for svg in pictures(folder.path(), "svg") {
        assert!(
            !svg.contains("<text") && !svg.contains("font"),
            "{svg:.200}"
        );
        assert!(svg.contains("<title>"), "{svg:.200}");
        // Text is there, and made of outlines that the same file has.
        let used: Vec<&str> = (svg.split("href=\"#").skip(1))
            .filter_map(|rest| rest.split('"').next())
            .collect();
        assert!(!used.is_empty(), "{svg:.200}");
        for name in used {
            assert!(
                svg.contains(&format!("<path id=\"{name}\" d=\"M")),
                "{name}"
            );
        }
        // What has three panels takes two columns.
        let width = if svg.contains("<title>Test accuracy against its price") {
            "width=\"504.0pt\""
        } else {
            "width=\"244.8pt\""
        };
        assert!(svg.contains(width), "{svg:.200}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg:.200}");
    }
    let page = fs::read_to_string(folder.path().join("report.html")).unwrap();
    for outside in ["src=", "<link", "@import", "url(", "<script"] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn a_sweep_is_drawn_as_small_multiples_over_two_columns() {
    let folder = tempfile::tempdir().unwrap();
    let tables = swept(&made_up(&[0, 1]), "workers", &[2.0, 4.0, 8.0]);
    build(folder.path(), &tables, &manifest()).unwrap();
    let drawn = pictures(folder.path(), "svg");
    assert_eq!(drawn.len(), KINDS.len() - 1, "all but the timeline");
    let wide = |svg: &&String| svg.contains("width=\"504.0pt\"");
    assert_eq!(
        drawn.iter().filter(wide).count(),
        drawn.len() - 2,
        "all but scaling, and compression, which is the same in all"
    );
    let page = fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.contains("The same in every setting of the sweep."));
    assert!(
        drawn
            .iter()
            .all(|svg| !svg.contains("NaN") && !svg.contains("inf"))
    );
}

#[test]
fn settings_that_do_not_fit_a_figure_are_said_to_be_left_out() {
    let values: Vec<f64> = (0..14).map(|number| f64::from(number) / 100.0).collect();
    let folder = tempfile::tempdir().unwrap();
    build(
        folder.path(),
        &swept(&made_up(&[0]), "dropout", &values),
        &manifest(),
    )
    .unwrap();
    let page = fs::read_to_string(folder.path().join("report.html")).unwrap();
    let left_out = "The first 12 of 14 settings; the others are in the tables alone.";
    assert!(page.contains(left_out));
}

#[test]
fn without_a_traced_run_there_is_no_timeline() {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path(), &made_up(&[0]), &manifest()).unwrap();
    let figure = folder.path().join("figures/timeline.svg");
    let svg = fs::read_to_string(&figure).unwrap();
    assert!(svg.contains("Epoch 3: full takes 21.0 ms"), "{svg:.400}");
    let untraced = Tables {
        timeline: Vec::new(),
        ..made_up(&[0])
    };
    build(folder.path(), &untraced, &manifest()).unwrap();
    assert!(!figure.exists());
}

#[test]
fn the_page_escapes_what_users_write_and_puts_claims_before_figures() {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path(), &made_up(&[0, 1, 2]), &manifest()).unwrap();
    let page = fs::read_to_string(folder.path().join("report.html")).unwrap();
    // As a shell reads it, and as HTML shows it.
    let again = "grapevine run &#x27;made up.toml&#x27; --set &#x27;seeds=[0, 1]&#x27;</code>";
    assert!(page.contains(again), "{page}");
    assert!(page.contains("numbers nobody measured &amp; &lt;nobody&gt; should quote"));
    assert!(page.contains("fewer bytes &lt;in total&gt;"));
    assert!(page.contains("1 of 3 reproduced"));
    assert!(page.contains(" Measured: ") && !page.contains("Projected: "));
    let asked = "Is retexo at least as fast as full on your network?";
    assert!(page.contains(asked), "{page}");
    assert!(page.contains("cora, metis, 4 workers: 401 edges, 633 boundary rows<"));
    assert!(page.find("id=\"claims\"") < page.find("id=\"summary\""));
    assert!(page.find("id=\"summary\"") < page.find("id=\"figures\""));
    assert!(page.contains("86.9 % of it inside model computation"));
}

#[test]
fn the_same_tables_give_the_same_files() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let tables = made_up(&[0, 1]);
    let first = build(one.path(), &tables, &manifest()).unwrap();
    let second = build(two.path(), &tables, &manifest()).unwrap();
    for (a, b) in first.files.iter().zip(&second.files) {
        assert_eq!(
            fs::read(a).unwrap(),
            fs::read(b).unwrap(),
            "{}",
            a.display()
        );
    }
}

#[test]
fn no_rows_and_no_manifest_still_make_a_page() {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path(), &Tables::default(), &Value::Null).unwrap();
    let page = fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.contains("No run has finished yet"));
}

#[test]
fn failed_runs_are_named_and_one_seed_is_enough() {
    let mut tables = made_up(&[0]);
    tables.runs[0].measured = None;
    tables.runs[0].status = "failed: the device was lost".into();
    let folder = tempfile::tempdir().unwrap();
    build(folder.path(), &tables, &manifest()).unwrap();
    let page = fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.contains("full, seed 0: failed: the device was lost"));
    let summary = fs::read_to_string(folder.path().join("tables/summary.md")).unwrap();
    assert!(
        !summary.contains("| full |") && !summary.contains('±'),
        "{summary}"
    );
}

#[test]
fn only_the_figures_asked_for_are_drawn_under_the_titles_given() {
    let mut manifest = manifest();
    manifest["figures"] =
        json!([{ "kind": "pareto", "title": "What it costs" }, { "kind": "scaling" }]);
    let folder = tempfile::tempdir().unwrap();
    let written = build(folder.path(), &made_up(&[0, 1]), &manifest).unwrap();
    assert_eq!(
        fs::read_dir(folder.path().join("figures")).unwrap().count(),
        2
    );
    let page = fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.contains("<h3>What it costs</h3>"));
    let note = "the figure scaling is left out, for it needs a sweep over two or more sizes";
    assert_eq!(written.notes, [note]);
    assert!(page.contains(note));
}

#[test]
fn an_unknown_figure_is_an_error_that_lists_the_known_ones() {
    let manifest = json!({ "figures": [{ "kind": "pie" }] });
    let folder = tempfile::tempdir().unwrap();
    let error = build(folder.path(), &Tables::default(), &manifest)
        .unwrap_err()
        .to_string();
    assert!(error.contains("figure 1: unknown kind `pie`"), "{error}");
    assert!(
        error.contains("accuracy-vs-epoch, accuracy-vs-bytes"),
        "{error}"
    );
}

#[test]
fn nothing_else_in_the_folder_is_touched() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("figures")).unwrap();
    let mine = folder.path().join("figures/mine.svg");
    fs::write(&mine, "kept").unwrap();
    build(folder.path(), &made_up(&[0]), &manifest()).unwrap();
    assert_eq!(fs::read_to_string(&mine).unwrap(), "kept");
}

#[test]
fn pictures_are_small_files() {
    let folder = tempfile::tempdir().unwrap();
    let written = build(folder.path(), &made_up(&[0, 1]), &json!({})).unwrap();
    let pictures: Vec<_> = written
        .files
        .iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "png"))
        .collect();
    assert!(!pictures.is_empty());
    for path in pictures {
        let size = fs::metadata(path).unwrap().len();
        assert!(size < 160_000, "{}: {size} bytes", path.display());
    }
}

#[test]
fn a_target_that_varies_is_nobodys() {
    let config = |sweep: Value, with: Value| {
        json!({
            "training": { "target_accuracy": 0.8 },
            "sweep": sweep,
            "strategy": [{ "kind": "full" }, { "kind": "varco", "with": with }],
        })
    };
    let varied = json!({ "training.target_accuracy": [0.8, 0.9] });
    assert_eq!(target(&config(json!({}), json!({}))), Some(0.8));
    assert_eq!(target(&config(varied.clone(), json!({}))), None);
    assert_eq!(target(&config(json!({}), varied)), None);
    assert_eq!(target(&json!({})), None);
    let of_data =
        json!({ "dataset": [{ "name": "cora" }, { "with": { "training.target_accuracy": 0.7 } }] });
    assert_eq!(target(&config(of_data, json!({}))), None);
    let without = json!({ "dataset": [{ "name": "cora" }], "model.layers": [2, 3] });
    assert_eq!(target(&config(without, json!({}))), Some(0.8));
    let whole = json!({ "training": [{ "epochs": 3, "target_accuracy": 0.7 }] });
    assert_eq!(target(&config(whole, json!({}))), None);
}
