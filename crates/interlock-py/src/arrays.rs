//! Between numpy and slices.

use interlock_rt::engine::{DataBuf, DataRef, TensorBuf, TensorRef};
use interlock_rt::record::ImageMode;
use numpy::{IntoPyArray, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyReadwriteArrayDyn, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::refused::Refused;

fn not_contiguous() -> Refused {
    Refused::new("array", "expected a C-contiguous array", "numpy.ascontiguousarray(...)")
}

/// The elements of a C-contiguous array of any shape.
pub fn slice<'a, T: numpy::Element>(array: &'a PyReadonlyArrayDyn<'_, T>) -> Result<&'a [T], Refused> {
    if !array.is_c_contiguous() {
        return Err(not_contiguous());
    }
    array.as_slice().map_err(|_| not_contiguous())
}

fn bytes_of<T>(values: &[T]) -> &[u8] {
    // SAFETY: called with f64 and u8 only, which have no padding; any byte is a valid u8.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

fn bytes_of_mut<T>(values: &mut [T]) -> &mut [u8] {
    // SAFETY: as above, and any eight bytes are a valid f64.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}

fn not_an_array(any: &Bound<'_, PyAny>) -> Refused {
    Refused::new("array", format!("expected a float64 or uint8 array, got {}", any.get_type()), "")
}

/// A float64 or uint8 array to read bytes from.
pub enum Payload<'py> {
    Bytes(PyReadonlyArrayDyn<'py, u8>),
    Floats(PyReadonlyArrayDyn<'py, f64>),
}

impl<'py> Payload<'py> {
    pub fn new(any: &Bound<'py, PyAny>) -> PyResult<Self> {
        if let Ok(array) = any.cast::<PyArrayDyn<f64>>() {
            return Ok(Payload::Floats(array.try_readonly()?));
        }
        let array = any.cast::<PyArrayDyn<u8>>().map_err(|_| not_an_array(any))?;
        Ok(Payload::Bytes(array.try_readonly()?))
    }

    pub fn bytes(&self) -> Result<&[u8], Refused> {
        match self {
            Payload::Bytes(array) => slice(array),
            Payload::Floats(array) => slice(array).map(bytes_of),
        }
    }
}

/// A float64 or uint8 array to write bytes to.
pub enum Target<'py> {
    Bytes(PyReadwriteArrayDyn<'py, u8>),
    Floats(PyReadwriteArrayDyn<'py, f64>),
}

impl<'py> Target<'py> {
    pub fn new(any: &Bound<'py, PyAny>) -> PyResult<Self> {
        if let Ok(array) = any.cast::<PyArrayDyn<f64>>() {
            return Ok(Target::Floats(array.try_readwrite()?));
        }
        let array = any.cast::<PyArrayDyn<u8>>().map_err(|_| not_an_array(any))?;
        Ok(Target::Bytes(array.try_readwrite()?))
    }

    pub fn bytes(&mut self) -> Result<&mut [u8], Refused> {
        match self {
            Target::Bytes(array) => array.as_slice_mut().map_err(|_| not_contiguous()),
            Target::Floats(array) => array.as_slice_mut().map(bytes_of_mut).map_err(|_| not_contiguous()),
        }
    }
}

/// An array of one of the engine's element types.
#[derive(FromPyObject)]
enum AnyArray<'py> {
    F32(PyReadonlyArrayDyn<'py, f32>),
    F64(PyReadonlyArrayDyn<'py, f64>),
    I64(PyReadonlyArrayDyn<'py, i64>),
    I32(PyReadonlyArrayDyn<'py, i32>),
    U8(PyReadonlyArrayDyn<'py, u8>),
    Bool(PyReadonlyArrayDyn<'py, bool>),
}

/// Named arrays, kept borrowed while an engine reads them.
pub struct NamedArrays<'py>(Vec<(String, Vec<i64>, AnyArray<'py>)>);

impl<'py> NamedArrays<'py> {
    pub fn new(inputs: &Bound<'py, PyDict>) -> PyResult<Self> {
        let mut named = Vec::with_capacity(inputs.len());
        for (name, value) in inputs.iter() {
            let shape = value.getattr("shape")?.extract::<Vec<i64>>()?;
            let name: String = name.extract()?;
            let array: AnyArray<'py> = value.extract().map_err(|_| {
                let got = value.get_type();
                Refused::new("array", format!("{name}: no array of a type that engines read: {got}"), "")
            })?;
            named.push((name, shape, array));
        }
        Ok(NamedArrays(named))
    }

    pub fn tensors(&self) -> Result<Vec<TensorRef<'_>>, Refused> {
        self.0
            .iter()
            .map(|(name, shape, array)| {
                let data = match array {
                    AnyArray::F32(array) => DataRef::F32(slice(array)?),
                    AnyArray::F64(array) => DataRef::F64(slice(array)?),
                    AnyArray::I64(array) => DataRef::I64(slice(array)?),
                    AnyArray::I32(array) => DataRef::I32(slice(array)?),
                    AnyArray::U8(array) => DataRef::U8(slice(array)?),
                    AnyArray::Bool(array) => DataRef::Bool(bytes_of(slice(array)?)),
                };
                Ok(TensorRef { name, shape, data })
            })
            .collect()
    }
}

fn shaped<'py, T: numpy::Element>(py: Python<'py>, values: Vec<T>, shape: &[i64]) -> PyResult<Bound<'py, PyAny>> {
    let shape: Vec<usize> = shape.iter().map(|size| usize::try_from(*size).unwrap_or(0)).collect();
    Ok(values.into_pyarray(py).reshape(shape)?.into_any())
}

/// An owned tensor as a numpy array.
pub fn to_numpy(py: Python<'_>, tensor: TensorBuf) -> PyResult<Bound<'_, PyAny>> {
    match tensor.data {
        DataBuf::F32(values) => shaped(py, values, &tensor.shape),
        DataBuf::F64(values) => shaped(py, values, &tensor.shape),
        DataBuf::I64(values) => shaped(py, values, &tensor.shape),
        DataBuf::I32(values) => shaped(py, values, &tensor.shape),
        DataBuf::U8(values) => shaped(py, values, &tensor.shape),
        DataBuf::Bool(values) => {
            shaped(py, values.into_iter().map(|value| value != 0).collect::<Vec<bool>>(), &tensor.shape)
        }
    }
}

/// Tensors by name.
pub fn to_dict(py: Python<'_>, tensors: Vec<TensorBuf>) -> PyResult<Bound<'_, PyDict>> {
    let out = PyDict::new(py);
    for tensor in tensors {
        let name = tensor.name.clone();
        out.set_item(name, to_numpy(py, tensor)?)?;
    }
    Ok(out)
}

/// How images are recorded, by its word.
pub fn image_mode(word: &str) -> Result<ImageMode, Refused> {
    let modes = [ImageMode::Png, ImageMode::Raw, ImageMode::None];
    let found = modes.into_iter().find(|mode| mode.word() == word);
    found.ok_or_else(|| Refused::new("images", format!("record_images: expected png, raw or none, got {word:?}"), ""))
}

/// A float64 matrix.
pub fn matrix(py: Python<'_>, values: Vec<f64>, rows: usize) -> PyResult<Bound<'_, PyArrayDyn<f64>>> {
    let columns = values.len().checked_div(rows).unwrap_or(0);
    values.into_pyarray(py).reshape(vec![rows, columns])
}
