//! `grapevine net` as a user starts it.

use std::fs;
use std::path::Path;

use crate::command::grapevine;

const FLOWS: &str = "[network]\nworkers = 3\nframing = \"none\"\n\
    link = { bandwidth = \"8Mbps\", latency = \"100ms\" }\n\
    [[flow]]\nfrom = 0\nto = 2\nbytes = 1_000_000\n\
    [[flow]]\nfrom = 1\nto = 2\nbytes = 1_000_000\nstart = 1.5\n";

fn folder(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("x.toml"), text).expect("it can be written");
    folder
}

#[test]
fn flows_are_printed_in_the_order_of_the_file() {
    let folder = folder(FLOWS);
    let ran = grapevine(folder.path(), &["net", "x.toml"]).expect(0);
    assert_eq!(
        ran.stdout,
        "flow  from  to  payload_bytes  wire_bytes        start       finish  mean_rate_bps\n\
         0        0   2        1000000     1000000  0.000000000  1.100000000        7272727\n\
         1        1   2        1000000     1000000  1.500000000  2.600000000        7272727\n"
    );
    let json = grapevine(folder.path(), &["net", "x.toml", "--json"])
        .expect(0)
        .json();
    assert_eq!(json["flows"][1]["flow"], 1);
    assert_eq!(json["flows"][1]["finish"], 2.6);
    let slower = [
        "net",
        "x.toml",
        "--json",
        "--set",
        "network.link.bandwidth=4Mbps",
    ];
    let json = grapevine(folder.path(), &slower).expect(0).json();
    assert_eq!(json["flows"][0]["finish"], 2.6);
}

#[test]
fn the_example_ends_as_its_comment_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let ran = grapevine(root, &["net", "experiments/net/incast.toml", "--json"]).expect(0);
    let json = ran.json();
    let wire = json["flows"][0]["wire_bytes"].as_f64().expect("a number");
    let all = 7.0 * wire * 8.0 / 1e9 + 1e-4;
    for flow in 0..7 {
        let finish = json["flows"][flow]["finish"].as_f64().expect("a number");
        assert!(
            (finish - all).abs() < 1e-9 * all,
            "{finish} instead of {all}"
        );
    }
    let bystander = json["flows"][7]["finish"].as_f64().expect("a number");
    let alone = 0.01 + wire * 8.0 / (1e9 * 6.0 / 7.0) + 1e-4;
    assert!(
        (bystander - alone).abs() < 1e-9 * alone,
        "{bystander} instead of {alone}"
    );
}

#[test]
fn a_link_that_stays_down_is_wrong_input_to_a_projection_and_ends_a_run_that_has_begun() {
    let text = "name = \"down\"\nseeds = [0]\ndataset = { name = \"cora\" }\nmodel = { kind = \"gcn\", hidden = 4 }\n\
        training = { epochs = 1 }\npartition = { workers = 2 }\nstrategy = [{ kind = \"full\" }]\n\
        network = { preset = \"ethernet-1g\", failure = [{ link = \"worker 0 out\", from = 0 }] }\n";
    let folder = folder(text);
    for (command, code) in [("project", 2), ("run", 1)] {
        let ran = grapevine(folder.path(), &[command, "x.toml"]).expect(code);
        let expected = "link \"worker 0 out\" is down since 0 s and never comes back";
        assert!(ran.stderr.contains(expected), "{command}: {}", ran.stderr);
        let named = ran.stderr.contains("x.toml:");
        assert_eq!(named, command == "project", "{command}: {}", ran.stderr);
    }
}

#[test]
fn what_is_wrong_ends_with_2_and_names_the_line() {
    let cases = [
        (
            FLOWS.replace("to = 2", "to = 3"),
            "x.toml:7: in [[flow]]: `to` must be less than the 3 workers",
        ),
        (
            FLOWS.replace("bytes", "byts"),
            "x.toml:8: in [[flow]]: unknown key `byts`; did you mean `bytes`?",
        ),
        (
            format!("{FLOWS}[[network.failure]]\nworker = 2\nfrom = 0.5\n"),
            "link \"worker 2 in\" is down since 500 ms and never comes back, but message 0 needs it",
        ),
    ];
    for (text, expected) in cases {
        let folder = folder(&text);
        let ran = grapevine(folder.path(), &["net", "x.toml"]).expect(2);
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    }
}
