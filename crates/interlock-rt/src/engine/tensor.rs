//! Tensors on both sides of the engine: borrowed going in, owned coming out.

use std::ffi::c_void;

use ort::sys::ONNXTensorElementDataType as OrtType;

/// Element types that cross the boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElementType {
    /// 32-bit float.
    F32,
    /// 64-bit float.
    F64,
    /// 64-bit signed integer.
    I64,
    /// 32-bit signed integer.
    I32,
    /// Byte.
    U8,
    /// Byte that is 0 or 1.
    Bool,
}

impl ElementType {
    /// Name as numpy writes it.
    pub const fn name(self) -> &'static str {
        match self {
            ElementType::F32 => "float32",
            ElementType::F64 => "float64",
            ElementType::I64 => "int64",
            ElementType::I32 => "int32",
            ElementType::U8 => "uint8",
            ElementType::Bool => "bool",
        }
    }

    pub(super) const fn from_ort(value: OrtType) -> Option<Self> {
        match value {
            OrtType::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT => Some(ElementType::F32),
            OrtType::ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE => Some(ElementType::F64),
            OrtType::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64 => Some(ElementType::I64),
            OrtType::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32 => Some(ElementType::I32),
            OrtType::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8 => Some(ElementType::U8),
            OrtType::ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL => Some(ElementType::Bool),
            _ => None,
        }
    }

    pub(super) const fn to_ort(self) -> OrtType {
        match self {
            ElementType::F32 => OrtType::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
            ElementType::F64 => OrtType::ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE,
            ElementType::I64 => OrtType::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64,
            ElementType::I32 => OrtType::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32,
            ElementType::U8 => OrtType::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8,
            ElementType::Bool => OrtType::ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL,
        }
    }
}

/// Borrowed elements, row-major.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DataRef<'a> {
    /// 32-bit floats.
    F32(&'a [f32]),
    /// 64-bit floats.
    F64(&'a [f64]),
    /// 64-bit integers.
    I64(&'a [i64]),
    /// 32-bit integers.
    I32(&'a [i32]),
    /// Bytes.
    U8(&'a [u8]),
    /// Bytes of which 0 is false.
    Bool(&'a [u8]),
}

impl DataRef<'_> {
    /// Their type.
    pub const fn element_type(&self) -> ElementType {
        match self {
            DataRef::F32(_) => ElementType::F32,
            DataRef::F64(_) => ElementType::F64,
            DataRef::I64(_) => ElementType::I64,
            DataRef::I32(_) => ElementType::I32,
            DataRef::U8(_) => ElementType::U8,
            DataRef::Bool(_) => ElementType::Bool,
        }
    }

    pub(super) const fn len(&self) -> usize {
        match self {
            DataRef::F32(values) => values.len(),
            DataRef::F64(values) => values.len(),
            DataRef::I64(values) => values.len(),
            DataRef::I32(values) => values.len(),
            DataRef::U8(values) | DataRef::Bool(values) => values.len(),
        }
    }
}

/// One input of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TensorRef<'a> {
    /// Name in the graph.
    pub name: &'a str,
    /// All sizes, batch included.
    pub shape: &'a [i64],
    /// The elements.
    pub data: DataRef<'a>,
}

/// Owned elements, row-major.
#[derive(Debug, Clone, PartialEq)]
pub enum DataBuf {
    /// 32-bit floats.
    F32(Vec<f32>),
    /// 64-bit floats.
    F64(Vec<f64>),
    /// 64-bit integers.
    I64(Vec<i64>),
    /// 32-bit integers.
    I32(Vec<i32>),
    /// Bytes.
    U8(Vec<u8>),
    /// Bytes that are 0 or 1.
    Bool(Vec<u8>),
}

impl DataBuf {
    pub(super) fn zeros(element: ElementType, count: usize) -> Self {
        match element {
            ElementType::F32 => DataBuf::F32(vec![0.0; count]),
            ElementType::F64 => DataBuf::F64(vec![0.0; count]),
            ElementType::I64 => DataBuf::I64(vec![0; count]),
            ElementType::I32 => DataBuf::I32(vec![0; count]),
            ElementType::U8 => DataBuf::U8(vec![0; count]),
            ElementType::Bool => DataBuf::Bool(vec![0; count]),
        }
    }

    /// Their type.
    pub const fn element_type(&self) -> ElementType {
        match self {
            DataBuf::F32(_) => ElementType::F32,
            DataBuf::F64(_) => ElementType::F64,
            DataBuf::I64(_) => ElementType::I64,
            DataBuf::I32(_) => ElementType::I32,
            DataBuf::U8(_) => ElementType::U8,
            DataBuf::Bool(_) => ElementType::Bool,
        }
    }

    /// The elements, None when they are of another type.
    pub fn as_f32(&self) -> Option<&[f32]> {
        if let DataBuf::F32(values) = self {
            Some(values)
        } else {
            None
        }
    }

    /// The elements, None when they are of another type.
    pub fn as_i64(&self) -> Option<&[i64]> {
        if let DataBuf::I64(values) = self {
            Some(values)
        } else {
            None
        }
    }

    /// Address and size in bytes; the address stays valid while the vector is neither resized nor dropped.
    pub(super) fn raw(&mut self) -> (*mut c_void, usize) {
        fn of<T>(values: &mut [T]) -> (*mut c_void, usize) {
            (values.as_mut_ptr().cast(), std::mem::size_of_val(values))
        }
        match self {
            DataBuf::F32(values) => of(values),
            DataBuf::F64(values) => of(values),
            DataBuf::I64(values) => of(values),
            DataBuf::I32(values) => of(values),
            DataBuf::U8(values) | DataBuf::Bool(values) => of(values),
        }
    }

    /// Copies elements of the same type and number; false otherwise.
    pub(super) fn fill(&mut self, from: DataRef<'_>) -> bool {
        fn copy<T: Copy>(to: &mut [T], from: &[T]) -> bool {
            if to.len() == from.len() {
                to.copy_from_slice(from);
            }
            to.len() == from.len()
        }
        match (self, from) {
            (DataBuf::F32(to), DataRef::F32(from)) => copy(to, from),
            (DataBuf::F64(to), DataRef::F64(from)) => copy(to, from),
            (DataBuf::I64(to), DataRef::I64(from)) => copy(to, from),
            (DataBuf::I32(to), DataRef::I32(from)) => copy(to, from),
            (DataBuf::U8(to), DataRef::U8(from)) => copy(to, from),
            (DataBuf::Bool(to), DataRef::Bool(from)) if to.len() == from.len() => {
                // A bool that is neither 0 nor 1 is undefined behaviour on the other side.
                to.iter_mut().zip(from).for_each(|(to, from)| *to = u8::from(*from != 0));
                true
            }
            _ => false,
        }
    }
}

/// One output of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct TensorBuf {
    /// Name in the graph.
    pub name: String,
    /// All sizes, batch included.
    pub shape: Vec<i64>,
    /// The elements.
    pub data: DataBuf,
}

/// Number of elements of a fixed shape; None when a size is negative or the product overflows.
pub(super) fn count(shape: &[i64]) -> Option<usize> {
    shape.iter().try_fold(1_usize, |product, &size| product.checked_mul(usize::try_from(size).ok()?))
}
