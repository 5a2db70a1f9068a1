use super::*;

fn folder(edges: &str, target: &str, json: Option<&str>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tiny_edges.csv"), edges).unwrap();
    std::fs::write(folder.path().join("tiny_target.csv"), target).unwrap();
    if let Some(json) = json {
        std::fs::write(folder.path().join("tiny_features.json"), json).unwrap();
    }
    folder
}

fn of(folder: &Path, form: Form) -> Result<RawDataset, GraphError> {
    read(folder, form, &DatasetSpec::default(), None)
}

#[test]
fn ids_with_gaps_and_features_of_some_nodes_are_read() {
    let folder = folder(
        "a,b\n30,10\n10,30\n20,20\n",
        "id,name,kind\n30,\"x, y\",tv\n10,z,shop\n20,w,tv\n",
        Some("{\"30\": [4, 0, 4], \"10\": []}"),
    );
    let data = of(folder.path(), Form::Json).unwrap();
    assert_eq!(data.name, "tiny");
    assert_eq!(data.labels.classes()[..], [Some(0), Some(1), Some(1)]);
    assert_eq!(
        data.graph.iter_edges().collect::<Vec<_>>(),
        [(2, 0), (0, 2)]
    );
    assert_eq!(data.features.width(), 5);
    assert_eq!(data.features.values(), [1.0, 1.0]);
}

#[test]
fn a_path_may_name_the_target_file_of_several() {
    let folder = folder("a,b\n1,2\n", "id,target\n1,10\n2,9\n", None);
    let other = folder.path().join("other_target.csv");
    std::fs::write(&other, "id,target\n1,10\n").unwrap();
    assert!(of(folder.path(), Form::Plain).is_err());
    let data = of(&folder.path().join("tiny_target.csv"), Form::Plain).unwrap();
    assert_eq!((data.name.as_str(), data.graph.edges()), ("tiny", 2));
    let error = of(&other, Form::Plain).unwrap_err().to_string();
    assert!(error.contains("other_edges.csv"), "{error}");
    let edges = of(&folder.path().join("tiny_edges.csv"), Form::Plain);
    let error = edges.unwrap_err().to_string();
    assert!(error.contains("is not a file `*target.csv`"), "{error}");
}

#[test]
fn nodes_csv_is_a_file_of_nodes_too() {
    let folder = folder("a,b\n1,2\n", "id,target\n1,10\n2,9\n", None);
    let path = |name: &str| folder.path().join(name);
    std::fs::rename(path("tiny_target.csv"), path("tiny_nodes.csv")).unwrap();
    for path in [folder.path(), &path("tiny_nodes.csv")] {
        let data = of(path, Form::Plain).unwrap();
        assert_eq!((data.name.as_str(), data.graph.edges()), ("tiny", 2));
    }
    std::fs::copy(path("tiny_nodes.csv"), path("other_nodes.csv")).unwrap();
    let error = of(folder.path(), Form::Plain).unwrap_err().to_string();
    assert!(error.contains("has 2 files `*nodes.csv`"), "{error}");
    std::fs::remove_file(path("other_nodes.csv")).unwrap();
    std::fs::remove_file(path("tiny_nodes.csv")).unwrap();
    let error = of(folder.path(), Form::Plain).unwrap_err().to_string();
    assert!(
        error.contains("has no file `*target.csv` or `*nodes.csv`"),
        "{error}"
    );
}

#[test]
fn what_may_be_wrong_with_a_table_is_said() {
    let named = |key: &str, name: &str| DatasetSpec {
        features: Some(FeatureSource::Columns(vec![name.to_owned()])),
        id: (key == "id").then(|| "id".to_owned()),
        ..DatasetSpec::default()
    };
    for (nodes, spec, expected) in [
        (
            "id;age;team\n1;2;a\n",
            named("id", "age"),
            "its columns: id;age;team (columns are separated by commas)",
        ),
        (
            "1,0.5,a\n2,0.7,b\n",
            named("", "age"),
            "its columns: 1, 0.5, a (is its first line a header?)",
        ),
        (
            "id,age\n1,2\n",
            named("", "age"),
            "without `label` the last column is the class",
        ),
        (
            "id,age,team\nn0,2,a\n",
            named("", "age"),
            "go with format = \"linqs\"), found `n0`",
        ),
        ("", DatasetSpec::default(), "tiny_target.csv: has no nodes"),
    ] {
        let folder = folder("a,b\n1,2\n", nodes, None);
        let error = read(folder.path(), Form::Plain, &spec, None)
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn without_a_feature_file_each_node_is_its_own_feature() {
    let folder = folder("a,b\n1,2\n", "id,target\n1,10\n2,9\n", None);
    let data = of(folder.path(), Form::Plain).unwrap();
    assert_eq!(*data.features, Features::identity(2));
    assert_eq!(
        data.labels.classes()[..],
        [Some(1), Some(0)],
        "9 comes before 10 among numbers"
    );
    assert!(
        of(folder.path(), Form::Json)
            .unwrap_err()
            .to_string()
            .contains("features.json")
    );
}

#[test]
fn columns_that_may_be_features_and_names_that_may_stand_for_no_class_are_told() {
    let folder = folder(
        "a,b\n1,2\n",
        "id,x,y,label\n1,3,4,-1\n2,5,6,0\n3,5,6,1\n",
        None,
    );
    let notes = of(folder.path(), Form::Plain)
        .unwrap()
        .reading
        .notes
        .join(" ");
    assert!(notes.contains("are not read: x, y"), "{notes}");
    assert!(notes.contains("`-1` is read as a class"), "{notes}");
}

#[test]
fn an_edge_of_an_unknown_node_is_named_by_line() {
    let folder = folder("a,b\n1,2\n1,3\n", "id,target\n1,0\n2,1\n", None);
    let error = of(folder.path(), Form::Plain).unwrap_err().to_string();
    assert!(
        error.ends_with("tiny_edges.csv:3: node 3 has no line in `tiny_target.csv`"),
        "{error}"
    );
}

#[test]
fn without_a_header_the_first_line_is_data_and_that_is_said() {
    let folder = folder("1,2\n2,3\n", "1,a\n2,b\n3,a\n", None);
    let data = of(folder.path(), Form::Plain).unwrap();
    assert_eq!((data.graph.nodes(), data.graph.edges()), (3, 4));
    let notes = data.reading.notes.join("; ");
    for said in [
        "`tiny_target.csv` has no header",
        "`tiny_edges.csv` has no header",
        "an identity matrix",
    ] {
        assert!(notes.contains(said), "{notes}");
    }
    let skipped = DatasetSpec {
        header: Some(true),
        ..DatasetSpec::default()
    };
    assert_eq!(
        read(folder.path(), Form::Plain, &skipped, None)
            .unwrap()
            .graph
            .nodes(),
        2
    );
}

#[test]
fn a_first_line_that_may_be_either_is_asked_about() {
    let folder = folder("1,b\n1,2\n", "id,target\n1,0\n2,1\n", None);
    let error = of(folder.path(), Form::Plain).unwrap_err().to_string();
    assert!(
        error.contains("tiny_edges.csv:1: this may be a header or data (`1,b`)"),
        "{error}"
    );
}

#[test]
fn empty_and_nan_labels_are_no_classes() {
    let folder = folder("a,b\n1,2\n", "id,target\n1,\n2,7\n3,NaN\n4,10\n", None);
    let data = of(folder.path(), Form::Plain).unwrap();
    assert_eq!(data.labels.classes()[..], [None, Some(0), None, Some(1)]);
    assert_eq!(data.classes, 2);
}

#[test]
fn features_come_from_a_csv_file_that_is_named() {
    let folder = folder("a,b\n1,2\n", "id,target\n1,0\n2,1\n", None);
    let path = folder.path().join("x.csv");
    let options = DatasetSpec {
        features: Some(FeatureSource::File("x.csv".into())),
        ..DatasetSpec::default()
    };
    let of = |text: &str| {
        std::fs::write(&path, text).unwrap();
        read(folder.path(), Form::Plain, &options, None)
    };
    let data = of("id,x,y\n2,0.5,1\n1,-3,4e-1\n").unwrap();
    let values = vec![-3.0, 0.4, 0.5, 1.0];
    assert_eq!(*data.features, Features::Dense { width: 2, values });
    assert!(data.reading.notes.is_empty() && data.reading.files.contains(&path));
    for (text, message) in [
        ("id,x\n1,2\n", "x.csv: has no line for 1 of the 2 nodes"),
        ("id,x\n1,2\n1,3\n", "x.csv:3: node 1 is there a second time"),
        (
            "id,x\n1,2\n3,3\n",
            "x.csv:3: node 3 is not in the target file",
        ),
        (
            "id,x,y\n1,2,nan\n2,3,1\n",
            "x.csv:2: column 3: expected a number, and `nan` is not finite",
        ),
        (
            "id\n1\n2\n",
            "x.csv: expected a node id and at least one number",
        ),
    ] {
        let error = of(text).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn columns_are_found_by_name_as_the_twitch_graphs_need() {
    let edges = "from,to,weight\n1,0,x\n";
    let target = "id,days,mature,views,partner,new_id\n73045350,1459,False,7,False,1\n61573865,1629,True,3,True,0\n";
    let folder = folder(edges, target, None);
    let text = |text: &str| Some(text.to_owned());
    let mut spec = DatasetSpec {
        id: text("new_id"),
        label: text("mature").map(LabelColumns::One),
        source: text("from"),
        target: text("to"),
        features: Some(FeatureSource::Columns(vec![
            "views".to_owned(),
            "partner".to_owned(),
        ])),
        ..DatasetSpec::default()
    };
    let named = spec.clone();
    let data = read(folder.path(), Form::Plain, &spec, None).unwrap();
    assert_eq!((data.graph.nodes(), data.graph.edges()), (2, 2));
    assert_eq!(data.labels.classes()[..], [Some(1), Some(0)]);
    let values = vec![3.0, 1.0, 7.0, 0.0];
    assert_eq!(*data.features, Features::Dense { width: 2, values });
    spec.label = text("matur").map(LabelColumns::One);
    let error = read(folder.path(), Form::Plain, &spec, None)
        .unwrap_err()
        .to_string();
    assert!(
        error.ends_with("has no column `matur`, which `label` of [dataset] names; its columns: id, days, mature, views, partner, new_id"),
        "{error}"
    );
    spec = DatasetSpec::default();
    let error = read(folder.path(), Form::Plain, &spec, None)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("`source` and `target` of [dataset] name the columns"),
        "{error}"
    );
    let twice = target.replace("days", "views");
    let again = self::folder(edges, &twice, None);
    let error = read(again.path(), Form::Plain, &named, None)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("has more than one column `views`"),
        "{error}"
    );
}

#[test]
fn a_node_twice_and_a_class_that_is_a_quantity_are_refused() {
    for (target, message) in [
        ("id,target\n1,10\n2,9\n1,9\n", "lists node 1 twice"),
        (
            "id,target\n1,1.5\n2,9\n",
            "has the class 1.5; classes are whole numbers or words",
        ),
    ] {
        let folder = folder("a,b\n1,2\n", target, None);
        let error = of(folder.path(), Form::Plain).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    // Blanks around a class make no other class.
    let folder = folder(
        "a,b\n1,2\n2,3\n",
        "id,target\n1,red\n2,red \n3,blue\n",
        None,
    );
    let data = of(folder.path(), Form::Plain).unwrap();
    assert_eq!(data.labels.classes()[..], [Some(1), Some(1), Some(0)]);
}

#[test]
fn a_column_is_for_one_thing_named_or_by_default() {
    let nodes = "number,age,team\n1,3,red\n2,4,blue\n";
    let folder = folder("from,to\n1,2\n", nodes, None);
    let read = |set: &dyn Fn(&mut DatasetSpec)| {
        let mut spec = DatasetSpec::default();
        set(&mut spec);
        read(folder.path(), Form::Plain, &spec, None)
    };
    let features = |spec: &mut DatasetSpec, names: &[&str]| {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        spec.features = Some(FeatureSource::Columns(names));
    };
    assert!(read(&|spec| features(spec, &["age"])).is_ok());
    for (names, twice) in [
        (
            ["age", "age"],
            "`age` would be used twice, as `features` and as `features`",
        ),
        (
            ["number", "age"],
            "`number` would be used twice, as `id` and as `features`",
        ),
        (
            ["age", "team"],
            "`team` would be used twice, as `label` and as `features`",
        ),
    ] {
        let error = read(&|spec| features(spec, &names))
            .unwrap_err()
            .to_string();
        assert!(error.contains(twice), "{error}");
    }
    let error = read(&|spec| spec.source = Some("to".to_owned()));
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("`to` would be used twice, as `source` and as `target`"),
        "{error}"
    );
}
