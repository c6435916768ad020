//! ONNX Runtime values over memory of ours, and reading values that it made.

use std::ffi::c_void;
use std::ptr::{null_mut, NonNull};

use ort::sys::{
    ONNXTensorElementDataType as OrtType, OrtAllocatorType, OrtMemType, OrtMemoryInfo, OrtStatusPtr, OrtValue,
};

use super::tensor::{count, DataBuf, ElementType, TensorBuf};
use crate::error::RtError;

/// Turns a status into an error with `code`.
///
/// # Safety
/// `status` was just returned by the C API and is not used afterwards.
pub(super) unsafe fn check(status: OrtStatusPtr, code: &'static str) -> Result<(), RtError> {
    // SAFETY: the caller's promise.
    unsafe { ort::Error::result_from_status(status) }.map_err(|error| RtError::new(code, error.message(), ""))
}

/// "This tensor lies in ordinary memory."
pub(super) struct CpuMemory(NonNull<OrtMemoryInfo>);
// SAFETY: immutable after creation.
unsafe impl Send for CpuMemory {}

impl CpuMemory {
    pub(super) fn new() -> Result<Self, RtError> {
        let mut out = null_mut();
        // SAFETY: `out` is a valid place for the result.
        unsafe {
            let create = ort::api().CreateCpuMemoryInfo;
            check(
                create(OrtAllocatorType::OrtDeviceAllocator, OrtMemType::OrtMemTypeDefault, &raw mut out),
                "engine-library",
            )?;
        }
        NonNull::new(out).map(CpuMemory).ok_or_else(|| RtError::new("engine-library", "no memory description", ""))
    }
}

impl Drop for CpuMemory {
    fn drop(&mut self) {
        // SAFETY: made by CreateCpuMemoryInfo, released once.
        unsafe { (ort::api().ReleaseMemoryInfo)(self.0.as_ptr()) }
    }
}

/// An owned `OrtValue`.
pub(super) struct Value(NonNull<OrtValue>);
// SAFETY: a value is used by one thread at a time, as every user holds it exclusively.
unsafe impl Send for Value {}

impl Value {
    /// A tensor over `data`.
    ///
    /// # Safety
    /// `data` points to the elements of `shape` and outlives the value, unmoved.
    pub(super) unsafe fn over(
        memory: &CpuMemory,
        (data, bytes): (*mut c_void, usize),
        shape: &[i64],
        element: ElementType,
    ) -> Result<Self, RtError> {
        let (mut out, element) = (null_mut(), element.to_ort());
        // SAFETY: the caller's promise for `data`; the rest are valid references for the time of the call.
        unsafe {
            let create = ort::api().CreateTensorWithDataAsOrtValue;
            check(
                create(memory.0.as_ptr(), data, bytes, shape.as_ptr(), shape.len(), element, &raw mut out),
                "engine-input",
            )?;
        }
        NonNull::new(out).map(Value).ok_or_else(|| RtError::new("engine-input", "no tensor made", ""))
    }

    /// Takes over a value that a run returned.
    ///
    /// # Safety
    /// `value` is NULL or owned by the caller, who gives it away.
    pub(super) unsafe fn take(value: *mut OrtValue) -> Option<Self> {
        NonNull::new(value).map(Value)
    }

    pub(super) const fn pointer(&self) -> *mut OrtValue {
        self.0.as_ptr()
    }

    /// Copies the tensor out.
    pub(super) fn read(&self, name: &str) -> Result<TensorBuf, RtError> {
        let fail = |what: &str| RtError::new("engine-run", format!("output {name}: {what}"), "");
        let (api, mut info) = (ort::api(), null_mut());
        let (mut raw_type, mut rank) = (OrtType::ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED, 0);
        let mut data: *mut c_void = null_mut();
        // SAFETY: a live tensor; `info` is released on the only path after its creation that leaves this block.
        let shape = unsafe {
            check((api.GetTensorTypeAndShape)(self.pointer(), &raw mut info), "engine-run")?;
            let mut read = || {
                check((api.GetTensorElementType)(info, &raw mut raw_type), "engine-run")?;
                check((api.GetDimensionsCount)(info, &raw mut rank), "engine-run")?;
                let mut shape = vec![0_i64; rank];
                check((api.GetDimensions)(info, shape.as_mut_ptr(), rank), "engine-run")?;
                check((api.GetTensorMutableData)(self.pointer(), &raw mut data), "engine-run")?;
                Ok(shape)
            };
            let shape = read();
            (api.ReleaseTensorTypeAndShapeInfo)(info);
            shape?
        };
        let element = ElementType::from_ort(raw_type).ok_or_else(|| fail("of a type that is not read"))?;
        let count = count(&shape).ok_or_else(|| fail("with an impossible shape"))?;
        let mut buffer = DataBuf::zeros(element, count);
        let (to, bytes) = buffer.raw();
        if bytes > 0 {
            if data.is_null() {
                return Err(fail("without data"));
            }
            // SAFETY: the tensor holds `count` elements of `element`, as it just said, and `to` has room for them.
            unsafe { std::ptr::copy_nonoverlapping(data.cast::<u8>(), to.cast::<u8>(), bytes) };
        }
        Ok(TensorBuf { name: name.to_owned(), shape, data: buffer })
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        // SAFETY: owned, released once.
        unsafe { (ort::api().ReleaseValue)(self.0.as_ptr()) }
    }
}
