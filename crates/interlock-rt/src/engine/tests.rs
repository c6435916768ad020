use std::path::{Path, PathBuf};

use super::*;

/// Writes the protobuf wire format of tiny ONNX models.
mod model {
    pub(super) fn varint(tag: u32, mut value: u64) -> Vec<u8> {
        let mut out = vec![];
        let mut key = u64::from(tag << 3);
        for part in [&mut key, &mut value] {
            while *part >= 0x80 {
                out.push(part.to_le_bytes()[0] | 0x80);
                *part >>= 7;
            }
            out.push(part.to_le_bytes()[0]);
        }
        out
    }

    pub(super) fn bytes(tag: u32, value: &[u8]) -> Vec<u8> {
        let mut out = varint(tag, value.len() as u64);
        // Wire type 2 instead of 0.
        out[0] |= 2;
        out.extend_from_slice(value);
        out
    }

    /// A `ValueInfoProto`; a size of -1 is symbolic.
    pub(super) fn value(name: &str, element: u64, shape: &[i64]) -> Vec<u8> {
        let dims: Vec<u8> = shape
            .iter()
            .flat_map(|&size| {
                let dim = if size < 0 { bytes(2, b"batch") } else { varint(1, size.cast_unsigned()) };
                bytes(1, &dim)
            })
            .collect();
        let tensor = [varint(1, element), bytes(2, &dims)].concat();
        [bytes(1, name.as_bytes()), bytes(2, &bytes(1, &tensor))].concat()
    }

    pub(super) fn node(op: &str, inputs: &[&str], outputs: &[&str]) -> Vec<u8> {
        let inputs: Vec<u8> = inputs.iter().flat_map(|name| bytes(1, name.as_bytes())).collect();
        let outputs: Vec<u8> = outputs.iter().flat_map(|name| bytes(2, name.as_bytes())).collect();
        [inputs, outputs, bytes(4, op.as_bytes())].concat()
    }

    pub(super) fn model(
        nodes: &[Vec<u8>],
        initializers: &[Vec<u8>],
        inputs: &[Vec<u8>],
        outputs: &[Vec<u8>],
    ) -> Vec<u8> {
        let all = |tag, parts: &[Vec<u8>]| parts.iter().flat_map(|part| bytes(tag, part)).collect::<Vec<u8>>();
        let graph = [all(1, nodes), bytes(2, b"g"), all(5, initializers), all(11, inputs), all(12, outputs)].concat();
        [varint(1, 8), bytes(7, &graph), bytes(8, &varint(2, 17))].concat()
    }
}

const FLOAT: u64 = 1;
const INT64: u64 = 7;
const FLOAT16: u64 = 10;

/// sum = a + b over `[rows, 3]`; copy = k.
fn adder(rows: i64) -> Vec<u8> {
    model::model(
        &[model::node("Add", &["a", "b"], &["sum"]), model::node("Identity", &["k"], &["copy"])],
        &[],
        &[model::value("a", FLOAT, &[rows, 3]), model::value("b", FLOAT, &[rows, 3]), model::value("k", INT64, &[2])],
        &[model::value("sum", FLOAT, &[rows, 3]), model::value("copy", INT64, &[2])],
    )
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The library named by `INTERLOCK_ORT`, else that of the repository's environment; None skips the test.
pub(crate) fn library() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("INTERLOCK_ORT") {
        return Some(path.into());
    }
    let python = std::fs::read_dir(repository().join(".venv/lib")).ok()?.flatten().next()?.path();
    let capi = python.join("site-packages/onnxruntime/capi");
    let found = std::fs::read_dir(capi)
        .ok()?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libonnxruntime.so")));
    if found.is_none() {
        eprintln!("skipped: no ONNX Runtime library; set INTERLOCK_ORT");
    }
    found
}

fn open(graph: &[u8]) -> Option<Result<Engine, RtError>> {
    Some(Engine::from_bytes(graph, &EngineOptions::new(library()?)))
}

const OPENVINO: &str = "OpenVINOExecutionProvider";

fn available_in(library: &Path) -> Vec<String> {
    Engine::from_bytes(&adder(1), &EngineOptions::new(library)).unwrap();
    available_providers().unwrap()
}

fn code<T>(result: Result<T, RtError>) -> &'static str {
    result.err().map_or("none", |error| error.code)
}

const AT: &[i64] = &[1, 3];

fn inputs<'a>(a: &'a [f32], b: &'a [f32], k: &'a [i64]) -> [TensorRef<'a>; 3] {
    [
        TensorRef { name: "a", shape: AT, data: DataRef::F32(a) },
        TensorRef { name: "b", shape: AT, data: DataRef::F32(b) },
        TensorRef { name: "k", shape: &[2], data: DataRef::I64(k) },
    ]
}

fn bound(rows: i64) -> Option<Engine> {
    let mut engine = open(&adder(rows))?.unwrap();
    engine.bind(&[("a", AT), ("b", AT), ("k", &[2])], &[("copy", &[2]), ("sum", AT)]).unwrap();
    Some(engine)
}

#[test]
fn a_bound_engine_runs_again_and_again_on_the_same_buffers() {
    let Some(mut engine) = bound(1) else { return };
    for step in 0..3_u8 {
        let a = [f32::from(step); 3];
        engine.run(inputs(&a, &[1.0, 2.0, 3.0], &[7, -7])).unwrap();
        let results: Vec<_> = engine.results().collect();
        assert_eq!(results[0].data.as_i64().unwrap(), [7, -7]);
        assert_eq!(results[1].data.as_f32().unwrap(), [a[0] + 1.0, a[0] + 2.0, a[0] + 3.0]);
    }
}

#[test]
fn a_symbolic_size_is_fixed_by_the_plan_and_free_in_a_single_run() {
    let Some(mut engine) = bound(-1) else { return };
    assert_eq!(engine.inputs()[0].shape, [-1, 3]);
    engine.run(inputs(&[1.0; 3], &[1.0; 3], &[0, 0])).unwrap();
    let two = [1.0_f32; 6];
    let wide = |name| TensorRef { name, shape: &[2, 3], data: DataRef::F32(&two) };
    let k = TensorRef { name: "k", shape: &[2], data: DataRef::I64(&[1, 2]) };
    assert_eq!(code(engine.run([wide("a"), wide("b"), k])), "engine-input");
    let outputs = engine.run_once(&[k, wide("b"), wide("a")]).unwrap();
    assert_eq!((outputs[0].name.as_str(), outputs[0].shape.as_slice()), ("sum", &[2, 3][..]));
    assert_eq!(outputs[0].data.as_f32().unwrap(), [2.0; 6]);
}

#[test]
fn every_node_is_seen_on_the_provider_that_was_asked_for() {
    let Some(engine) = bound(1) else { return };
    assert_eq!(engine.effective_providers().keys().collect::<Vec<_>>(), [CPU]);
    assert!(engine.effective_providers()[CPU] >= 1);
    let minor: u32 = engine.runtime_version().split('.').nth(1).unwrap().parse().unwrap();
    assert_eq!(engine.assignment() == Assignment::Recorded, minor >= 24);
}

#[test]
fn a_provider_that_the_library_lacks_is_refused_instead_of_replaced() {
    let Some(library) = library() else { return };
    for wanted in ["CUDAExecutionProvider", "TensorrtExecutionProvider", "cpu", ""] {
        let options =
            EngineOptions { providers: vec![wanted.to_owned(), CPU.to_owned()], ..EngineOptions::new(library.clone()) };
        assert_eq!(code(Engine::from_bytes(&adder(1), &options)), "engine-provider", "{wanted}");
    }
}

/// Needs the library of an `onnxruntime-openvino` wheel in `INTERLOCK_ORT`.
#[test]
fn a_provider_that_runs_only_part_of_a_graph_is_refused_instead_of_helped_out() {
    let Some(library) = library() else { return };
    if !available_in(&library).iter().any(|name| name == OPENVINO) {
        eprintln!("skipped: {} has no OpenVINO", library.display());
        return;
    }
    let only = EngineOptions { providers: vec![OPENVINO.to_owned()], ..EngineOptions::new(library) };
    let all_of_it = Engine::from_bytes(&adder(1), &only).unwrap();
    assert_eq!(all_of_it.effective_providers().keys().collect::<Vec<_>>(), [OPENVINO]);
    // OpenVINO has no determinant.
    let part = model::model(
        &[model::node("Add", &["x", "x"], &["y"]), model::node("Det", &["y"], &["z"])],
        &[],
        &[model::value("x", FLOAT, &[2, 2])],
        &[model::value("y", FLOAT, &[2, 2]), model::value("z", FLOAT, &[])],
    );
    assert_eq!(code(Engine::from_bytes(&part, &only)), "engine-provider");
    let helped = EngineOptions { providers: vec![OPENVINO.to_owned(), CPU.to_owned()], ..only };
    let engine = Engine::from_bytes(&part, &helped).unwrap();
    assert_eq!(engine.effective_providers().keys().collect::<Vec<_>>(), [CPU, OPENVINO]);
}

#[test]
fn inputs_that_do_not_fit_are_refused() {
    let Some(mut engine) = bound(1) else { return };
    let good = inputs(&[0.0; 3], &[0.0; 3], &[0, 0]);
    let mut wrong_type = good;
    wrong_type[0].data = DataRef::F64(&[0.0; 3]);
    let mut wrong_count = good;
    wrong_count[0].data = DataRef::F32(&[0.0; 4]);
    let mut wrong_shape = good;
    wrong_shape[0].shape = &[3, 1];
    let mut twice = good;
    twice[1].name = "a";
    let mut unknown = good;
    unknown[1].name = "c";
    for bad in [wrong_type, wrong_count, wrong_shape, twice, unknown] {
        assert_eq!(code(engine.run(bad)), "engine-input");
    }
    assert_eq!(code(engine.run(good[..2].iter().copied())), "engine-input");
    assert_eq!(code(engine.run(good)), "none");
}

#[test]
fn a_plan_that_contradicts_the_graph_cannot_be_bound() {
    let Some(mut engine) = bound(1) else { return };
    let k: (&str, &[i64]) = ("k", &[2]);
    let cases: [&[(&str, &[i64])]; 5] = [
        &[("a", AT), ("b", AT)],
        &[("a", AT), ("b", &[2, 3]), k],
        &[("a", AT), ("b", &[1, 3, 1]), k],
        &[("a", AT), ("b", AT), k, ("c", AT)],
        &[("a", AT), ("b", &[1, -3]), k],
    ];
    for case in cases {
        assert_eq!(code(engine.bind(case, &[])), "engine-input", "{case:?}");
    }
    assert_eq!(code(engine.bind(&[("a", AT), ("b", AT), k], &[("total", AT)])), "engine-input");
    assert_eq!(code(engine.run([])), "engine-run");
}

#[test]
fn graphs_that_are_damaged_or_of_types_that_nobody_reads_are_refused() {
    let good = adder(1);
    let half = model::model(
        &[model::node("Identity", &["x"], &["y"])],
        &[],
        &[model::value("x", FLOAT16, &[1])],
        &[model::value("y", FLOAT16, &[1])],
    );
    let unknown_operator = model::model(
        &[model::node("Frobnicate", &["x"], &["y"])],
        &[],
        &[model::value("x", FLOAT, &[1])],
        &[model::value("y", FLOAT, &[1])],
    );
    for graph in [&good[..good.len() / 2], &[], &half, &unknown_operator] {
        let Some(result) = open(graph) else { return };
        assert_eq!(code(result), "engine-graph");
    }
}

#[test]
fn external_data_is_read_from_the_graph_s_folder_and_from_nowhere_else() {
    let Some(library) = library() else { return };
    let folder = std::env::temp_dir().join(format!("interlock-engine-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("graph")).unwrap();
    let weights: Vec<u8> = [1.0_f32, 2.0, 3.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    std::fs::write(folder.join("graph/w.bin"), &weights).unwrap();
    std::fs::write(folder.join("outside.bin"), &weights).unwrap();
    let with = |location: &str| {
        let entry = [model::bytes(1, b"location"), model::bytes(2, location.as_bytes())].concat();
        let dims = [model::varint(1, 1), model::varint(1, 3)].concat();
        let tensor =
            [dims, model::varint(2, FLOAT), model::bytes(8, b"w"), model::bytes(13, &entry), model::varint(14, 1)];
        model::model(
            &[model::node("Add", &["x", "w"], &["y"])],
            &[tensor.concat()],
            &[model::value("x", FLOAT, AT)],
            &[model::value("y", FLOAT, AT)],
        )
    };
    let options = EngineOptions::new(library);
    let path = folder.join("graph/policy.onnx");
    std::fs::write(&path, with("w.bin")).unwrap();
    let mut engine = Engine::from_path(&path, &options).unwrap();
    let outputs = engine.run_once(&[TensorRef { name: "x", shape: AT, data: DataRef::F32(&[1.0; 3]) }]).unwrap();
    assert_eq!(outputs[0].data.as_f32().unwrap(), [2.0, 3.0, 4.0]);
    assert_eq!(code(Engine::from_bytes(&with("w.bin"), &options)), "engine-graph");
    for location in ["../outside.bin", "missing.bin", "/etc/hostname", ""] {
        std::fs::write(&path, with(location)).unwrap();
        assert_eq!(code(Engine::from_path(&path, &options)), "engine-graph", "{location}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_library_that_is_none_is_refused_before_the_binding_sees_it_and_does_not_spoil_the_next() {
    let folder = std::env::temp_dir().join(format!("interlock-library-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.join(name), bytes).unwrap();
        folder.join(name)
    };
    let mut candidates =
        vec![folder.join("missing.so"), folder.clone(), write("empty.so", b""), write("text.so", &[b'x'; 4096])];
    // Another library of the system: an ELF file without the entry point. Its truncation would fault when mapped.
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let libc = maps.lines().filter_map(|line| line.split_whitespace().nth(5)).find(|path| path.contains("libc.so"));
    let libc = std::fs::read(libc.unwrap()).unwrap();
    candidates.push(write("other.so", &libc));
    candidates.push(write("truncated.so", &libc[..libc.len() / 2]));
    candidates.push(write("header.so", &libc[..64]));
    let was_loaded = loaded_library().is_some();
    for path in candidates {
        let result = Engine::from_bytes(&adder(1), &EngineOptions::new(&path));
        assert_eq!(code(result), "engine-library", "{}", path.display());
    }
    if bound(1).is_some() {
        assert!(was_loaded || loaded_library().is_some());
        let second = Engine::from_bytes(&adder(1), &EngineOptions::new(folder.join("other.so"))).err().unwrap();
        assert!(second.what.contains("already runs"), "{second}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_library_older_than_the_api_level_is_refused_and_nothing_hangs() {
    let folder = std::env::temp_dir().join(format!("interlock-older-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (index, version) in ["1.16.3", "0.9.0", "2.0.0", "nonsense", ""].into_iter().enumerate() {
        let (source, library) = (folder.join("fake.c"), folder.join(format!("fake{index}.so")));
        let text = format!(
            "static const void *api(unsigned level) {{ return 0; }}\n\
             static const char *version(void) {{ return \"{version}\"; }}\n\
             static const struct {{ const void *(*api)(unsigned); const char *(*version)(void); }} base = {{api, version}};\n\
             const void *OrtGetApiBase(void) {{ return &base; }}\n"
        );
        std::fs::write(&source, text).unwrap();
        let compiler =
            std::process::Command::new("cc").args(["-shared", "-fPIC", "-w", "-o"]).arg(&library).arg(&source).status();
        if !compiler.is_ok_and(|status| status.success()) {
            eprintln!("skipped: no C compiler");
            break;
        }
        let error = Engine::from_bytes(&adder(1), &EngineOptions::new(&library)).err().unwrap();
        assert_eq!(error.code, "engine-library");
        let expected = loaded_library().is_some() || error.what.contains("expected ONNX Runtime 1.17 or newer");
        assert!(expected, "{error}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}
