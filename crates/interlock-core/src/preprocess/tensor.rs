//! What the engine reads.

/// A named buffer with its shape; made once, refilled every time.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    /// Name of the graph's input.
    pub name: String,
    /// Full shape, batch axis included.
    pub shape: Vec<i64>,
    /// Values, C order.
    pub data: TensorData,
}

/// Values of one element type.
#[derive(Debug, Clone, PartialEq)]
pub enum TensorData {
    /// float32.
    F32(Vec<f32>),
    /// int64.
    I64(Vec<i64>),
    /// uint8.
    U8(Vec<u8>),
}

impl TensorData {
    /// Number of elements.
    pub fn len(&self) -> usize {
        match self {
            TensorData::F32(values) => values.len(),
            TensorData::I64(values) => values.len(),
            TensorData::U8(values) => values.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The float values, empty for another type.
    pub fn as_f32(&self) -> &[f32] {
        match self {
            TensorData::F32(values) => values,
            _ => &[],
        }
    }
}
