//! Which execution provider every node of a session got, as ONNX Runtime itself recorded it.
//!
//! The record exists since API 24. The pinned API level is older, so that older libraries are served; the table of
//! functions only ever grows at its end, so newer entries are reached by their position.

use std::collections::BTreeMap;
use std::ffi::{c_char, c_void};

use ort::sys::{OrtSession, OrtStatusPtr};

use super::library::{text, Library};

/// First API level with the record.
const API: u32 = 24;
/// Positions in `OrtApi` (`onnxruntime_c_api.h`, API 24, computed from `ort-sys` with `offset_of!`).
const SESSION_GET_EP_GRAPH_ASSIGNMENT_INFO: usize = 407;
const EP_ASSIGNED_SUBGRAPH_GET_EP_NAME: usize = 408;
const EP_ASSIGNED_SUBGRAPH_GET_NODES: usize = 409;

/// Switches the record on; older libraries ignore it.
pub(super) const CONFIG: (&str, &str) = ("session.record_ep_graph_assignment_info", "1");

type GetAssignment =
    unsafe extern "system" fn(*const OrtSession, *mut *const *const c_void, *mut usize) -> OrtStatusPtr;
type GetName = unsafe extern "system" fn(*const c_void, *mut *const c_char) -> OrtStatusPtr;
type GetNodes = unsafe extern "system" fn(*const c_void, *mut *const *const c_void, *mut usize) -> OrtStatusPtr;

/// Nodes per provider, None where the library keeps no record or the session was made without one.
///
/// # Safety
/// `session` is a live session of `library`.
pub(super) unsafe fn recorded(library: &Library, session: *const OrtSession) -> Option<BTreeMap<String, usize>> {
    // SAFETY: `base` is the library's constant table. GetApi returns NULL for a level that it does not serve, else its
    // table of functions, which has at least the entries of that level. Their types are those of the C header; every
    // returned pointer belongs to the session and outlives this call.
    unsafe {
        let api = ((*library.base.0).GetApi)(API).cast::<*const c_void>();
        if api.is_null() {
            return None;
        }
        let get_assignment: GetAssignment = std::mem::transmute(*api.add(SESSION_GET_EP_GRAPH_ASSIGNMENT_INFO));
        let get_name: GetName = std::mem::transmute(*api.add(EP_ASSIGNED_SUBGRAPH_GET_EP_NAME));
        let get_nodes: GetNodes = std::mem::transmute(*api.add(EP_ASSIGNED_SUBGRAPH_GET_NODES));

        let (mut subgraphs, mut count) = (std::ptr::null(), 0);
        succeeded(get_assignment(session, &raw mut subgraphs, &raw mut count))?;
        let mut nodes = BTreeMap::new();
        for index in 0..count {
            let subgraph = *subgraphs.add(index);
            let (mut name, mut members, mut size) = (std::ptr::null(), std::ptr::null(), 0);
            succeeded(get_name(subgraph, &raw mut name))?;
            succeeded(get_nodes(subgraph, &raw mut members, &raw mut size))?;
            *nodes.entry(text(name)).or_insert(0) += size;
        }
        Some(nodes)
    }
}

/// # Safety
/// `status` was just returned by the library.
unsafe fn succeeded(status: OrtStatusPtr) -> Option<()> {
    // SAFETY: the caller's promise; this takes the status over and frees it.
    unsafe { ort::Error::result_from_status(status) }.ok()
}
