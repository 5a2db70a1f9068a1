//! Where the exchange of a layer stands: the same training, and the bytes of VARCO's paper and of its authors' code.

use std::sync::Arc;

use crate::common::{CORA, Case, KINDS, assert_close, losses, planned};
use grapevine::graph::BatchSpec;
use grapevine::model::{ModelKind, NormKind, OptimizerConfig};
use grapevine::net::{Traffic, TrafficKind};
use grapevine::sim::Setting;

const NODE_DATA: [TrafficKind; 3] = [
    TrafficKind::Feature,
    TrafficKind::Activation,
    TrafficKind::ActivationGradient,
];

/// A graph of so many features and classes; what crosses of a row does not depend on the rest.
macro_rules! rows_of {
    ($features:literal, $classes:literal) => {
        concat!(
            "synthetic = { kind = \"sbm\", nodes = 120, classes = ",
            $classes,
            ", features = ",
            $features,
            ", degree_within = 1.0, degree_between = 4.0 }\nsplit = { train = 0.5, val = 0.2 }"
        )
    };
}

/// The set-up of VARCO's authors: GraphSAGE of three layers, 256 hidden columns.
fn authors(data: &'static str, epochs: usize) -> Case {
    Case {
        data,
        kind: ModelKind::Sage,
        layers: 3,
        hidden: 256,
        epochs,
        ..Case::default()
    }
}

/// Rows that cross the cut, one way, counted from the graph.
fn boundary(setting: &Setting) -> u64 {
    let (graph, owner) = (&setting.dataset.graph, &setting.partition.assignment);
    let readers = |v: usize| {
        let read = graph.neighbours(v).iter();
        let mut readers: Vec<_> = read.map(|&u| owner[u as usize]).collect();
        readers.retain(|&reader| reader != owner[v]);
        readers.sort_unstable();
        readers.dedup();
        readers.len() as u64
    };
    (0..graph.nodes()).map(readers).sum()
}

fn setting(case: &Case, kind: &str, options: &str) -> Arc<Setting> {
    case.setting(Case::strategy(kind, options).as_ref())
}

/// Bytes of node data that a strategy plans, of the whole training.
fn node_data(case: &Case, kind: &str, options: &str) -> u64 {
    let strategy = Case::strategy(kind, options);
    let plans = planned(strategy.as_ref(), &case.setting(strategy.as_ref()));
    let of = |traffic: &Traffic| {
        NODE_DATA
            .map(|kind| traffic.payload_of(kind).0)
            .iter()
            .sum::<u64>()
    };
    plans.iter().map(|(_, traffic)| of(traffic)).sum()
}

const RESENT: &str = "cache_features = false";

#[test]
fn the_shares_of_full_are_those_of_varcos_table() {
    // The table counts int(n / c) columns, none of a hundred at ratios above 100; here one goes
    // always, of 706 that a row has in full.
    let arxiv = authors(rows_of!("128", "40"), 300);
    let products = authors(rows_of!("100", "47"), 300);
    let more = 1.0 / 706.0;
    let tables: [(&Case, [f64; 10]); 2] = [
        (
            &arxiv,
            [
                0.1475, 0.5731, 0.7147, 0.8282, 0.8768, 0.5556, 0.3333, 0.2222, 0.1389, 0.1181,
            ],
        ),
        (
            &products,
            [
                0.1684,
                0.5836,
                0.7217,
                0.8324,
                0.8798,
                0.5666,
                0.3499,
                0.2408,
                0.1601,
                0.1388 + more,
            ],
        ),
    ];
    for (case, shares) in tables {
        let full = node_data(case, "full", RESENT) as f64;
        let slopes = [1, 2, 3, 5, 7].map(|slope| {
            let schedule =
                format!("schedule = {{ kind = \"linear\", from = 128, to = 1, slope = {slope} }}");
            ("varco", schedule)
        });
        let ratios = [2, 4, 8, 32, 128].map(|ratio| ("fixed", format!("ratio = {ratio}")));
        for ((kind, options), share) in slopes.iter().chain(&ratios).zip(shares) {
            let found = node_data(case, kind, options) as f64 / full;
            assert!(
                (found - share).abs() < 5e-4,
                "{kind} {options}: {found}, not {share}"
            );
        }
        // In which form of the layers, the shares tell.
        let input = |kind, options: &str| {
            node_data(case, kind, &format!("{options}\nexchange = \"input\"")) as f64
        };
        let wide = input("fixed", "ratio = 128") / input("full", RESENT);
        assert!(wide > 0.4, "{wide}");
    }
}

#[test]
fn the_bytes_are_those_of_varcos_code_on_cora() {
    let case = authors(rows_of!("128", "7"), 60);
    // Theirs had 4,600 boundary rows.
    let ours = boundary(&setting(&case, "full", RESENT));
    let of_theirs = |kind, options: &str| {
        let bytes = node_data(&case, kind, options) * 4600;
        assert_eq!(bytes % ours, 0, "as many of each row");
        bytes / ours
    };
    assert_eq!(of_theirs("full", RESENT), 722_016_000);
    assert_eq!(of_theirs("varco", ""), 584_439_200);
    assert_eq!(of_theirs("fixed", "ratio = 4"), 192_096_000);
    assert_eq!(of_theirs("fixed", "ratio = 128"), 20_976_000);
}

/// Bytes of each kind that a strategy plans for an epoch.
fn payload(
    case: &Case,
    (kind, options): (&str, &str),
    epoch: usize,
) -> impl Fn(TrafficKind) -> u64 {
    let strategy = Case::strategy(kind, options);
    let plans = planned(strategy.as_ref(), &case.setting(strategy.as_ref()));
    let traffic = plans.epoch(epoch).expect("it is planned").clone();
    move |kind| traffic.payload_of(kind).0
}

#[test]
fn the_bytes_are_those_of_retexos_code_on_cora() {
    // retexo-distributed at 05a04d7, a GCN of two layers, 200 rounds each, four processes: 4,600
    // boundary rows. Their counter is of both ends.
    let case = Case {
        data: CORA,
        layers: 2,
        hidden: 256,
        norm: NormKind::Layer,
        self_loops: Some(false),
        epochs: 200,
        ..Case::default()
    };
    let strategy = Case::strategy("retexo", "");
    let plans = planned(strategy.as_ref(), &case.setting(strategy.as_ref()));
    let of = |kind| -> u64 {
        let bytes = plans.iter().map(|(_, traffic)| traffic.payload_of(kind).0);
        bytes.sum()
    };
    let rows = of(TrafficKind::Feature) + of(TrafficKind::Activation);
    let ours = boundary(&setting(&case, "retexo", ""));
    assert_eq!(rows % ours, 0, "as many bytes of each row");
    let theirs = of(TrafficKind::ParameterGradient) + rows / ours * 4600;
    assert_eq!(2 * theirs, 3_625_809_600);
}

#[test]
fn the_bytes_are_those_of_bns_gcns_code_on_cora() {
    // BNS-GCN at b4a48bd, GraphSAGE of three layers with 16 columns, four random parts: 4,616
    // boundary rows, of which at p = 0.1 an epoch drew 457.
    let case = Case {
        data: CORA,
        kind: ModelKind::Sage,
        hidden: 16,
        epochs: 2,
        ..Case::default()
    };
    let setting = setting(&case, "bns", "");
    let ours = boundary(&setting);
    let whole = ("bns", "share = 1.0");
    // Products on both sides: a division would hide a rest.
    let are = |found: u64, theirs: u64| assert_eq!(found * 4616, theirs * ours);
    are(payload(&case, whole, 0)(TrafficKind::Feature), 26_458_912);
    // Of the two layers that read hidden rows, each: rows and ids.
    let each = payload(&case, whole, 1);
    are(each(TrafficKind::Activation), 2 * 295_424);
    are(each(TrafficKind::ActivationGradient), 2 * 295_424);
    are(each(TrafficKind::Sample), 36_928);
    let tenth = payload(&case, ("bns", "share = 0.1"), 1);
    let sends = setting.counts.parts.iter().flat_map(|part| &part.sends);
    let drawn: u64 = sends.map(|&(_, rows)| rows as u64 / 10).sum();
    assert_eq!(tenth(TrafficKind::Activation) * 457, 2 * 29_248 * drawn);
    assert_eq!(tenth(TrafficKind::Sample) * 457, 3_656 * drawn);
}

#[test]
fn features_wider_than_the_hidden_layer_cross_after_their_product_unless_they_are_kept() {
    let case = Case {
        data: "name = \"cora\"",
        kind: ModelKind::Sage,
        layers: 3,
        hidden: 256,
        epochs: 2,
        ..Case::default()
    };
    let rows = 4 * boundary(&setting(&case, "full", ""));
    let of = |options| {
        let strategy = Case::strategy("full", options);
        let setting = case.setting(strategy.as_ref());
        let plans = planned(strategy.as_ref(), &setting);
        NODE_DATA.map(|kind| plans.epoch(1).expect("it is planned").payload_of(kind).0)
    };
    // With 1,433 features the authors' first layer crosses with 256 columns both ways.
    let both = rows * (256 + 256 + 7);
    assert_eq!(of(RESENT), [0, both, both]);
    let above = rows * (256 + 7);
    assert_eq!(of(""), [0, above, above]);
    let input = rows * (256 + 256);
    assert_eq!(of("exchange = \"input\""), [0, input, input]);
    let all = [rows * 1433, input, input];
    assert_eq!(of("exchange = \"input\"\ncache_features = false"), all);
}

/// Small steps, so that rounding does not send the trajectories apart.
const STEADY: OptimizerConfig = OptimizerConfig::Sgd {
    learning_rate: 0.05,
    weight_decay: 0.0,
    momentum: 0.9,
};

#[test]
fn mini_batches_train_alike_wherever_the_exchange_stands() {
    for kind in KINDS {
        let case = Case {
            kind,
            optimizer: STEADY,
            batch: Some(BatchSpec {
                size: 7,
                fanouts: vec![3, 2, 2],
            }),
            ..Case::default()
        };
        let run = |options: &str| losses(&case.run("full", options));
        let expected = run("exchange = \"input\"");
        for point in ["product", "narrower"] {
            for cached in [true, false] {
                let options = format!("exchange = \"{point}\"\ncache_features = {cached}");
                let what = format!("{kind:?}, {options}");
                assert_close(&run(&options), &expected, 1e-5, &what);
            }
        }
    }
}

#[test]
fn all_of_the_boundary_and_rows_of_resting_parameters_are_those_of_full_after_the_product_too() {
    for kind in KINDS {
        let case = Case {
            kind,
            dropout: 0.0,
            epochs: 7,
            optimizer: OptimizerConfig::Sgd {
                learning_rate: 1e-9,
                weight_decay: 0.0,
                momentum: 0.0,
            },
            ..Case::default()
        };
        let options = "exchange = \"product\"\ncache_features = false";
        let full = losses(&case.run("full", ""));
        let what = format!("{kind:?}");
        let share = format!("share = 1\n{options}");
        assert_close(&losses(&case.run("bns", &share)), &full, 1e-5, &what);
        // Rows of layer l are as old as l + 1 epochs, where the first layer's cross as well.
        let late = losses(&case.run("pipe", options));
        assert!(
            (late[0] / full[0] - 1.0).abs() > 1e-4,
            "{what}: zeros first"
        );
        assert_close(&late[3..], &full[3..], 1e-5, &what);
    }
}

#[test]
fn adaqp_quantises_rows_where_they_are_narrower_if_it_is_asked_to() {
    let case = Case {
        kind: ModelKind::Gcn,
        ..Case::default()
    };
    // Ten features, eight hidden columns, three classes; four bytes of parameters a row, and half a
    // byte an entry.
    let of = |options: &str| node_data(&case, "adaqp", &format!("bits = 4\n{options}"));
    let rows = boundary(&setting(&case, "adaqp", ""));
    let epochs = case.epochs as u64;
    assert_eq!(of(""), epochs * rows * (5 * 4 + 5 + 4 * 4));
    let pairs = 4 * 3;
    // Both ways of three layers: an odd number of rows of three columns takes half a byte more.
    let narrower = of("exchange = \"narrower\"");
    let exact = epochs * rows * (6 * 4 + 4 * 4) + epochs * rows * 3;
    assert!(
        (exact..=exact + epochs * pairs).contains(&narrower),
        "{narrower} and {exact}"
    );
}

#[test]
fn rows_of_others_are_not_multiplied_again_where_their_product_arrives() {
    for kind in [ModelKind::Gcn, ModelKind::Sage, ModelKind::Gat] {
        // As wide everywhere, so that what crosses is as wide too.
        let case = Case {
            data: rows_of!("32", "32"),
            kind,
            hidden: 32,
            heads: 1,
            ..Case::default()
        };
        let of = |point: &str| {
            let options = format!("exchange = \"{point}\"");
            let outcome = case.run("full", &options);
            let compute: f64 = outcome.times.iter().map(|times| times.compute.0).sum();
            (node_data(&case, "full", &options), compute)
        };
        let ((input, more), (product, less)) = (of("input"), of("product"));
        assert_eq!(input, product, "{kind:?}");
        assert!(less < more, "{kind:?}: {less} and {more}");
    }
}

#[test]
fn a_point_that_there_is_not_is_refused() {
    for kind in ["full", "fixed", "varco", "bns", "pipe", "adaqp"] {
        let (key, message) = Case::default().refused(kind, "exchange = \"middle\"");
        assert_eq!(key.as_deref(), Some("exchange"), "{kind}");
        let expected = "unknown variant `middle`, expected one of `input`, `product`, `narrower`";
        assert_eq!(message, expected, "{kind}");
    }
}
