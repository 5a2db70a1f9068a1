//! Published graphs by name, as a user meets them: without a network, from files that are there.

use std::fs::{self, File};
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::command::{EXPERIMENT, folder_with, grapevine, grapevine_with};

/// A folder with an experiment on `ca-astroph` and, in `downloads`, a file of its name.
fn folder() -> tempfile::TempDir {
    let data = EXPERIMENT.split_once("[dataset]\n").unwrap();
    let rest = data.1.split_once("[model]").unwrap().1;
    let text = format!("{}[dataset]\nname = \"ca-astroph\"\n[model]{rest}", data.0);
    let folder = folder_with(&text);
    fs::create_dir(folder.path().join("downloads")).unwrap();
    let file = File::create(folder.path().join("downloads/ca-AstroPh.txt.gz")).unwrap();
    let mut packed = GzEncoder::new(file, Compression::fast());
    for node in 0..40 {
        writeln!(packed, "{}\t{}", 10 * node, 10 * (node + 1)).unwrap();
    }
    packed.finish().unwrap();
    folder
}

#[test]
fn a_set_that_is_missing_is_asked_for_by_every_command() {
    let folder = folder();
    for arguments in [
        &["run", "x.toml", "--data", "data"][..],
        &["project", "x.toml", "--data", "data"],
        &["info", "ca-astroph", "--data", "data"],
        &["partition", "ca-astroph", "-w", "2", "--data", "data"],
    ] {
        let ran = grapevine(folder.path(), arguments).expect(2);
        let says = "`grapevine fetch ca-astroph` brings it";
        assert!(ran.stderr.contains(says), "{arguments:?}: {}", ran.stderr);
    }
}

#[test]
fn what_was_downloaded_by_hand_is_fetched_read_and_listed() {
    let folder = folder();
    let fetch = [
        "fetch",
        "ca-astroph",
        "cora",
        "--from",
        "downloads",
        "--data",
        "data",
        "--json",
    ];
    let ran = grapevine(folder.path(), &fetch).expect(0);
    assert_eq!(ran.json()[0]["fetched"], true, "{}", ran.stdout);
    assert_eq!(ran.json()[1]["bundled"], true, "{}", ran.stdout);
    assert!(
        ran.stderr.contains("no sum is published to check it by"),
        "{}",
        ran.stderr
    );
    let again = grapevine(folder.path(), &fetch).expect(0);
    assert_eq!(again.json()[0]["fetched"], false, "{}", again.stdout);

    let info = [
        "info",
        "ca-astroph",
        "--data",
        "data",
        "--json",
        "--figure",
        "degrees.svg",
    ];
    let found = grapevine(folder.path(), &info).expect(0).json();
    assert_eq!((&found["nodes"], &found["edges"]), (&41.into(), &40.into()));
    assert_eq!(
        (&found["name"], &found["components"]),
        (&"ca-astroph".into(), &1.into())
    );
    assert!(folder.path().join("degrees.svg").is_file());
    let info = ["info", "cora", "--figure", "degrees.jpg"];
    let ran = grapevine(folder.path(), &info).expect(2);
    let said = "--figure: degrees.jpg ends neither in .svg nor in .png";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    assert_eq!(ran.stdout, "", "before anything is read");
    assert!(!folder.path().join("degrees.jpg").exists());

    let partition = [
        "partition",
        "ca-astroph",
        "-w",
        "2",
        "--data",
        "data",
        "--json",
    ];
    let stats = grapevine(folder.path(), &partition).expect(0).json();
    assert_eq!(stats["nodes"], 41);

    for list in [&["list", "datasets"][..], &["fetch", "--list"]] {
        let arguments = [list, &["--data", "data", "--json"]].concat();
        let listed = grapevine(folder.path(), &arguments).expect(0).json();
        let entries = listed.as_array().unwrap();
        let own = entries
            .iter()
            .find(|entry| entry["name"] == "ca-astroph")
            .unwrap();
        assert_eq!(own["here"], true);
        let other = entries
            .iter()
            .find(|entry| entry["name"] == "ogbn-arxiv")
            .unwrap();
        assert_eq!(
            (&other["here"], &other["nodes"]),
            (&false.into(), &169_343.into())
        );
        assert!(
            other["files"][0]["sum"]
                .as_str()
                .unwrap()
                .starts_with("sha256:")
        );
    }
}

#[test]
fn what_cannot_be_fetched_says_what_to_do_and_ends_with_code_2() {
    let folder = folder();
    for (arguments, says) in [
        (
            &["fetch", "ogbn-arxv"][..],
            &[
                "NAME",
                "`ogbn-arxv`; did you mean ogbn-arxiv? `grapevine fetch --list` has",
            ][..],
        ),
        (
            &["fetch", "citeseer", "--from", "downloads"],
            &["has no file ind.citeseer.x", "check     sha256sum"],
        ),
        (
            &["fetch", "ogbn-products"],
            &["`ogbn-products` is 1.38 GB", "--yes"],
        ),
        (
            &["fetch", "citeseer", "--sum", "md5:1"],
            &["`md5:1` is no sum"],
        ),
        (&["fetch"], &["NAMES"]),
    ] {
        let arguments = [arguments, &["--data", "data"]].concat();
        let ran = grapevine(folder.path(), &arguments).expect(2);
        for text in says {
            assert!(ran.stderr.contains(text), "{text}: {}", ran.stderr);
        }
        assert_eq!(ran.stdout, "");
    }
}

#[test]
fn a_variable_moves_the_folder_of_data_and_the_option_moves_it_for_one_command() {
    let folder = folder();
    let here = folder.path();
    let fetch = ["fetch", "ca-astroph", "--from", "downloads", "--json"];
    let cache = here.join("cache").display().to_string();
    let home = [("XDG_CACHE_HOME", cache.as_str())];
    let elsewhere = [("GRAPEVINE_DATA", "elsewhere"), home[0]];
    let empty = [("GRAPEVINE_DATA", ""), home[0]];
    let by_option = [&fetch[..], &["--data", "option"]].concat();
    let mut places = vec![
        ("elsewhere", grapevine_with(here, &fetch, &elsewhere)),
        ("option", grapevine_with(here, &by_option, &elsewhere)),
    ];
    if cfg!(target_os = "linux") {
        places.push(("cache/grapevine", grapevine_with(here, &fetch, &empty)));
    }
    for (place, ran) in places {
        let ran = ran.expect(0);
        assert_eq!(ran.json()[0]["fetched"], true, "{place}: {}", ran.stdout);
        assert!(here.join(place).join("ca-astroph").exists(), "{place}");
    }
}
