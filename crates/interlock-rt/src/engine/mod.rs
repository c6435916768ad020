//! One ONNX Runtime session. Nothing inside spins, falls back silently or prints.

mod assignment;
mod bound;
mod library;
mod onnx;
mod tensor;
#[cfg(test)]
mod tests;
mod value;

use std::collections::BTreeMap;
use std::ffi::{c_char, CString};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};

use ort::session::builder::{GraphOptimizationLevel, SessionBuilder};
use ort::session::Session;
use ort::value::{Outlet, ValueType};
use ort::AsPointer;

use crate::error::RtError;
use bound::Bound;
pub use library::loaded_library;
use library::Library;
pub use tensor::{DataBuf, DataRef, ElementType, TensorBuf, TensorRef};
use value::{check, CpuMemory, Value};

/// The provider that every library has.
pub const CPU: &str = "CPUExecutionProvider";
/// Providers that can be asked for, with the name by which ONNX Runtime registers them.
const REGISTRABLE: &[(&str, Option<&str>)] = &[(CPU, None), ("OpenVINOExecutionProvider", Some("OpenVINO"))];

/// How a session is made.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// The shared library.
    pub library: PathBuf,
    /// Threads inside one operator.
    pub threads: usize,
    /// Graph optimisation.
    pub optimize: bool,
    /// Every node must run on one of these, in order of preference.
    pub providers: Vec<String>,
}

impl EngineOptions {
    /// One thread, optimised, CPU only.
    pub fn new(library: impl Into<PathBuf>) -> Self {
        EngineOptions { library: library.into(), threads: 1, optimize: true, providers: vec![CPU.to_owned()] }
    }
}

/// How the effective providers are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assignment {
    /// ONNX Runtime recorded every node of the optimised graph (1.24 and newer).
    Recorded,
    /// Only one provider was registered and fallback was forbidden; nodes as written in the graph.
    ByConstruction,
}

/// A graph input or output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Name in the graph.
    pub name: String,
    /// Element type.
    pub element: ElementType,
    /// Sizes, -1 where symbolic.
    pub shape: Vec<i64>,
}

/// A loaded graph.
pub struct Engine {
    // Declared before `session`: bound values go first.
    bound: Option<Bound>,
    memory: CpuMemory,
    session: Session,
    library: Library,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    providers: BTreeMap<String, usize>,
    assignment: Assignment,
}

impl Engine {
    /// Makes a session from verified bytes; everything must be inside them.
    pub fn from_bytes(graph: &[u8], options: &EngineOptions) -> Result<Self, RtError> {
        let summary = onnx::summarize(graph)?;
        if let Some(name) = summary.external.first() {
            let what = format!("the graph keeps tensors in {name:?}, which bytes alone do not bring along");
            return Err(RtError::new("engine-graph", what, "give the path of the graph, with its files beside it"));
        }
        Self::open(summary.nodes, options, |builder| builder.commit_from_memory(graph))
    }

    /// Makes a session from a file; files that it names must lie in the same folder or below.
    pub fn from_path(path: &Path, options: &EngineOptions) -> Result<Self, RtError> {
        let refuse = |what: String| RtError::new("engine-graph", what, "build the policy again: `interlock build`");
        let graph = std::fs::read(path).map_err(|error| refuse(format!("{}: {error}", path.display())))?;
        let summary = onnx::summarize(&graph)?;
        if summary.external.is_empty() {
            return Self::open(summary.nodes, options, |builder| builder.commit_from_memory(&graph));
        }
        let path = path.canonicalize().map_err(|error| refuse(format!("{}: {error}", path.display())))?;
        let folder = path.parent().unwrap_or(Path::new("/"));
        for name in &summary.external {
            let file = folder.join(name).canonicalize();
            let file = file.map_err(|error| refuse(format!("{}: external data {name:?}: {error}", path.display())))?;
            if !file.starts_with(folder) || !file.is_file() {
                return Err(refuse(format!("{}: external data {name:?} lies outside its folder", path.display())));
            }
        }
        Self::open(summary.nodes, options, |builder| builder.commit_from_file(&path))
    }

    fn open(
        nodes: usize,
        options: &EngineOptions,
        commit: impl FnOnce(&mut SessionBuilder) -> ort::Result<Session>,
    ) -> Result<Self, RtError> {
        let library = library::load(&options.library)?;
        check_providers(options)?;
        let made = catch_unwind(AssertUnwindSafe(|| {
            let mut builder = configure(&library, options).map_err(|error| refuse_options(&error))?;
            commit(&mut builder).map_err(|error| refuse_session(&error, options))
        }));
        let session =
            made.unwrap_or_else(|_| Err(RtError::new("engine-graph", "ONNX Runtime's binding panicked", "")))?;
        let inputs = session.inputs().iter().map(port).collect::<Result<Vec<_>, _>>()?;
        let outputs = session.outputs().iter().map(port).collect::<Result<Vec<_>, _>>()?;
        let (providers, assignment) = effective(&library, &session, nodes, options)?;
        let memory = CpuMemory::new()?;
        Ok(Engine { bound: None, memory, session, library, inputs, outputs, providers, assignment })
    }

    /// Version of ONNX Runtime that runs it.
    pub fn runtime_version(&self) -> &str {
        &self.library.version
    }

    /// What it reads.
    pub fn inputs(&self) -> &[Port] {
        &self.inputs
    }

    /// What it writes.
    pub fn outputs(&self) -> &[Port] {
        &self.outputs
    }

    /// Provider -> number of nodes that it runs; only providers that were asked for.
    pub fn effective_providers(&self) -> &BTreeMap<String, usize> {
        &self.providers
    }

    /// How [`Engine::effective_providers`] is known.
    pub fn assignment(&self) -> Assignment {
        self.assignment
    }

    /// Fixes all shapes and makes all buffers. Every input must be named; outputs not named are not computed.
    pub fn bind(&mut self, inputs: &[(&str, &[i64])], outputs: &[(&str, &[i64])]) -> Result<(), RtError> {
        self.bound = None;
        self.bound = Some(Bound::new(&self.memory, (&self.inputs, inputs), (&self.outputs, outputs))?);
        Ok(())
    }

    /// Runs on buffers made by [`Engine::bind`]; allocates nothing on this side unless it fails.
    ///
    /// `inputs` names every input once, in any order.
    pub fn run<'a>(&mut self, inputs: impl IntoIterator<Item = TensorRef<'a>>) -> Result<(), RtError> {
        let Some(bound) = &mut self.bound else {
            return Err(RtError::new("engine-run", "run before bind", "bind the plan's shapes first"));
        };
        bound.fill(inputs)?;
        bound.run(&mut self.session)
    }

    /// Outputs of the last successful run, in the order given to [`Engine::bind`].
    pub fn results(&self) -> impl ExactSizeIterator<Item = &TensorBuf> {
        self.bound.as_ref().map_or(&[][..], Bound::outputs).iter().map(bound::Slot::tensor)
    }

    /// Runs once with any shapes that the graph takes; for verification, not for the loop.
    pub fn run_once(&mut self, inputs: &[TensorRef<'_>]) -> Result<Vec<TensorBuf>, RtError> {
        let shapes: Vec<(&str, &[i64])> = inputs.iter().map(|tensor| (tensor.name, tensor.shape)).collect();
        let mut bound = Bound::new(&self.memory, (&self.inputs, &shapes), (&self.outputs, &[]))?;
        bound.fill(inputs.iter().copied())?;
        let names = self.outputs.iter().map(|port| c_name(&port.name)).collect::<Result<Vec<_>, _>>()?;
        let names: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
        let mut values = vec![null_mut(); names.len()];
        // SAFETY: names and values have the lengths given and outlive the call; NULL outputs are made by the library.
        unsafe { bound.run_into(&mut self.session, &names, &mut values) }?;
        // Taken over before any can fail, so that none leaks.
        // SAFETY: a successful run gives every output to the caller.
        let values: Vec<Option<Value>> = values.into_iter().map(|value| unsafe { Value::take(value) }).collect();
        let missing = |port: &Port| RtError::new("engine-run", format!("output {} was not computed", port.name), "");
        let read = |(value, port): (Option<Value>, &Port)| value.ok_or_else(|| missing(port))?.read(&port.name);
        values.into_iter().zip(&self.outputs).map(read).collect()
    }
}

fn c_name(name: &str) -> Result<CString, RtError> {
    CString::new(name).map_err(|_| RtError::new("engine-graph", format!("tensor name {name:?} holds a zero byte"), ""))
}

fn port(outlet: &Outlet) -> Result<Port, RtError> {
    let refuse = |got: String| {
        let what =
            format!("{}: expected a tensor of float32, float64, int64, int32, uint8 or bool, got {got}", outlet.name());
        RtError::new("engine-graph", what, "export the graph with such inputs and outputs")
    };
    let ValueType::Tensor { ty, shape, .. } = outlet.dtype() else {
        return Err(refuse(outlet.dtype().to_string()));
    };
    let element = ElementType::from_ort((*ty).into()).ok_or_else(|| refuse(ty.to_string()))?;
    Ok(Port { name: outlet.name().to_owned(), element, shape: shape.iter().copied().collect() })
}

fn check_providers(options: &EngineOptions) -> Result<(), RtError> {
    let available = available_providers()?;
    let refuse = |what: String| {
        let hint = format!("this library has {}", available.join(", "));
        Err(RtError::new("engine-provider", what, hint))
    };
    for name in &options.providers {
        if !available.contains(name) {
            return refuse(format!("{name}: asked for, but not in {}", options.library.display()));
        }
        if !REGISTRABLE.iter().any(|(known, _)| known == name) {
            return refuse(format!("{name}: asked for, but cannot be registered by this program"));
        }
    }
    if options.providers.is_empty() {
        return refuse("no provider asked for".to_owned());
    }
    Ok(())
}

fn available_providers() -> Result<Vec<String>, RtError> {
    let (api, mut names, mut count) = (ort::api(), null_mut(), 0);
    // SAFETY: on success `names` is an array of `count` C strings, given back below.
    unsafe {
        check((api.GetAvailableProviders)(&raw mut names, &raw mut count), "engine-provider")?;
        let length = usize::try_from(count).unwrap_or(0);
        let out = (0..length).map(|index| library::text(*names.add(index))).collect();
        check((api.ReleaseAvailableProviders)(names, count), "engine-provider")?;
        Ok(out)
    }
}

fn configure(library: &Library, options: &EngineOptions) -> ort::Result<SessionBuilder> {
    let level = if options.optimize { GraphOptimizationLevel::All } else { GraphOptimizationLevel::Disable };
    let mut builder = SessionBuilder::new(&library.environment)?
        .with_intra_threads(options.threads)?
        .with_inter_threads(1)?
        .with_intra_op_spinning(false)?
        .with_inter_op_spinning(false)?
        .with_optimization_level(level)?
        .with_config_entry(assignment::CONFIG.0, assignment::CONFIG.1)?;
    if !options.providers.iter().any(|name| name == CPU) {
        builder = builder.with_disable_cpu_fallback()?;
    }
    let wanted = options.providers.iter().flat_map(|name| REGISTRABLE.iter().filter(move |(known, _)| known == name));
    for name in wanted.filter_map(|(_, short)| *short) {
        let name = CString::new(name)?;
        // SAFETY: live session options and a C string; no provider options.
        let status = unsafe {
            (ort::api().SessionOptionsAppendExecutionProvider)(builder.ptr_mut(), name.as_ptr(), null(), null(), 0)
        };
        // SAFETY: just returned.
        unsafe { ort::Error::result_from_status(status) }?;
    }
    Ok(builder)
}

fn refuse_options(error: &ort::Error) -> RtError {
    RtError::new("engine-provider", format!("ONNX Runtime refuses the session's options: {error}"), "")
}

/// A graph that only the CPU provider could run in part is a provider problem, everything else a graph problem.
fn refuse_session(error: &ort::Error, options: &EngineOptions) -> RtError {
    let fallback = error.message().contains("fallback to CPU EP has been explicitly disabled");
    if fallback {
        let what = format!("part of the graph would run outside {}: {error}", options.providers.join(", "));
        return RtError::new("engine-provider", what, "build for another provider, or list the CPU provider too");
    }
    RtError::new(
        "engine-graph",
        format!("ONNX Runtime refuses the graph: {error}"),
        "build the policy again: `interlock build`",
    )
}

fn effective(
    library: &Library,
    session: &Session,
    nodes: usize,
    options: &EngineOptions,
) -> Result<(BTreeMap<String, usize>, Assignment), RtError> {
    // SAFETY: the session was made by this library a moment ago.
    if let Some(recorded) = unsafe { assignment::recorded(library, session.ptr()) } {
        if let Some((name, count)) = recorded.iter().find(|(name, _)| !options.providers.contains(name)) {
            let what = format!("{count} nodes would run on {name}; asked for {}", options.providers.join(", "));
            return Err(RtError::new("engine-provider", what, "build for another provider"));
        }
        return Ok((recorded, Assignment::Recorded));
    }
    if let [only] = options.providers.as_slice() {
        return Ok((BTreeMap::from([(only.clone(), nodes)]), Assignment::ByConstruction));
    }
    let what = format!("ONNX Runtime {} does not tell which provider runs a node", library.version);
    Err(RtError::new("engine-provider", what, "ask for one provider, or use ONNX Runtime 1.24 or newer"))
}
