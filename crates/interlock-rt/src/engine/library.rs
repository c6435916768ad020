//! Finds out what a shared library is before `ort` sees it.
//!
//! `ort` keeps a failed load as if it had succeeded and then panics or waits for ever, so everything that can be wrong
//! with the file is refused here first. One process runs one library.

use std::ffi::{c_char, c_void, CStr, CString};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use ort::environment::Environment;
use ort::logging::LogLevel;
use ort::sys::OrtApiBase;

use crate::error::RtError;

const HINT: &str = "give the libonnxruntime.so of an `onnxruntime` wheel (in onnxruntime/capi/)";

/// ONNX Runtime, loaded.
#[derive(Clone)]
pub(super) struct Library {
    pub(super) path: PathBuf,
    pub(super) version: String,
    pub(super) base: Base,
    pub(super) environment: Environment,
}

/// The library's entry point.
#[derive(Clone, Copy)]
pub(super) struct Base(pub(super) *const OrtApiBase);
// SAFETY: a pointer to a constant table inside a library that is never unloaded.
unsafe impl Send for Base {}

enum State {
    Empty,
    Loaded(Library),
    Broken(RtError),
}

static STATE: Mutex<State> = Mutex::new(State::Empty);

fn refuse(what: impl Into<String>) -> RtError {
    RtError::new("engine-library", what, HINT)
}

/// Loads the library at `path`, or returns the one that is already loaded from there.
pub(super) fn load(path: &Path) -> Result<Library, RtError> {
    let path = path
        .canonicalize()
        .map_err(|error| refuse(format!("{}: expected a shared library, got: {error}", path.display())))?;
    let mut state = STATE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    match &*state {
        State::Loaded(library) if library.path == path => return Ok(library.clone()),
        State::Loaded(library) => {
            let what = format!("{}: this process already runs {}", path.display(), library.path.display());
            return Err(RtError::new("engine-library", what, "use one ONNX Runtime library per process"));
        }
        State::Broken(error) => return Err(error.clone()),
        State::Empty => {}
    }
    // What fails in here has not touched `ort`, so another path may be tried afterwards.
    check_elf(&path)?;
    let (base, version) = probe(&path)?;
    let started = catch_unwind(AssertUnwindSafe(|| {
        let environment = ort::init_from(&path).map_err(|error| error.to_string())?;
        let environment =
            environment.with_name("interlock").with_telemetry(false).build().map_err(|e| e.to_string())?;
        // Errors are returned to the caller; a library prints nothing.
        environment.set_log_level(LogLevel::Fatal);
        Ok::<_, String>(environment)
    }));
    let environment = match started {
        Ok(Ok(environment)) => environment,
        Ok(Err(message)) => return Err(broken(&mut state, &path, &message)),
        Err(_) => return Err(broken(&mut state, &path, "start-up panicked")),
    };
    let library = Library { path, version, base, environment };
    *state = State::Loaded(library.clone());
    Ok(library)
}

/// Whether this process has loaded a library already, and which.
pub fn loaded_library() -> Option<PathBuf> {
    match &*STATE.lock().unwrap_or_else(std::sync::PoisonError::into_inner) {
        State::Loaded(library) => Some(library.path.clone()),
        State::Empty | State::Broken(_) => None,
    }
}

fn broken(state: &mut State, path: &Path, message: &str) -> RtError {
    let error = refuse(format!("{}: ONNX Runtime does not start: {message}", path.display()));
    *state = State::Broken(error.clone());
    error
}

/// Refuses what is not a whole shared library of this machine's kind; mapping a truncated one ends in SIGBUS.
fn check_elf(path: &Path) -> Result<(), RtError> {
    let fail = |got: &str| refuse(format!("{}: expected a shared library of this machine, got {got}", path.display()));
    let read = || -> std::io::Result<(u64, [u8; 64], Vec<u8>)> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        let mut header = [0; 64];
        file.read_exact(&mut header)?;
        let table = u64::from_le_bytes(field(&header, 32));
        let bytes =
            u64::from(u16::from_le_bytes(field(&header, 54))) * u64::from(u16::from_le_bytes(field(&header, 56)));
        let mut headers = Vec::new();
        file.seek(SeekFrom::Start(table))?;
        file.take(bytes).read_to_end(&mut headers)?;
        Ok((length, header, headers))
    };
    let (length, header, headers) = read().map_err(|_| fail("something shorter than an ELF file"))?;
    if header[..4] != *b"\x7fELF" {
        return Err(fail("a file that is not ELF"));
    }
    let machine = u16::from_le_bytes(field(&header, 18));
    if header[4] != 2 || header[5] != 1 || machine != MACHINE || u16::from_le_bytes(field(&header, 16)) != 3 {
        return Err(fail(&format!("an ELF file of machine {machine}, type {}", header[16])));
    }
    let entry = usize::from(u16::from_le_bytes(field(&header, 54)));
    if entry < 56 || headers.is_empty() {
        return Err(fail("an ELF file without program headers"));
    }
    for program in headers.chunks_exact(entry) {
        let (offset, size) = (u64::from_le_bytes(field(program, 8)), u64::from_le_bytes(field(program, 32)));
        let loaded = u32::from_le_bytes(field(program, 0)) == 1;
        if loaded && offset.checked_add(size).is_none_or(|end| end > length) {
            return Err(fail("a truncated ELF file"));
        }
    }
    Ok(())
}

/// `e_machine` of this build.
const MACHINE: u16 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };

fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    if let Some(found) = bytes.get(at..at + N) {
        out.copy_from_slice(found);
    }
    out
}

/// Opens the library and asks for its version. The handle stays open: its threads may outlive any session.
fn probe(path: &Path) -> Result<(Base, String), RtError> {
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| refuse("path with a zero byte"))?;
    // SAFETY: `name` is a C string. The file is a whole ELF object; its constructors run, as for any library that is used.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() {
        // SAFETY: dlerror returns NULL or a C string valid until the next call on this thread.
        let message = unsafe { text(libc::dlerror()) };
        return Err(refuse(format!("{}: cannot be loaded: {message}", path.display())));
    }
    // SAFETY: an open handle and a C string.
    let symbol: *mut c_void = unsafe { libc::dlsym(handle, c"OrtGetApiBase".as_ptr()) };
    if symbol.is_null() {
        return Err(refuse(format!("{}: expected ONNX Runtime, got a library without OrtGetApiBase", path.display())));
    }
    // SAFETY: the symbol of this name has this type in every version of ONNX Runtime.
    let base = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn() -> *const OrtApiBase>(symbol)() };
    if base.is_null() {
        return Err(refuse(format!("{}: OrtGetApiBase returned nothing", path.display())));
    }
    // SAFETY: `base` is the library's constant table of two functions.
    let version = unsafe { text(((*base).GetVersionString)()) };
    let mut parts = version.split('.').map(|part| part.parse::<u32>().ok());
    let (major, minor) = (parts.next().flatten(), parts.next().flatten());
    if major != Some(1) || minor.is_none_or(|minor| minor < ort::MINOR_VERSION) {
        let expected = ort::MINOR_VERSION;
        return Err(refuse(format!(
            "{}: expected ONNX Runtime 1.{expected} or newer, got {version:?}",
            path.display()
        )));
    }
    Ok((Base(base), version))
}

/// # Safety
/// `pointer` is NULL or a C string.
pub(super) unsafe fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}
