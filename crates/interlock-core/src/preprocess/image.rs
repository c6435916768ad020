//! Camera images to tensors: resize, colour order, range, normalisation, layout, in one pass over finished rows.

use super::resize::Resizer;
use super::tensor::TensorData;
use crate::code::Code;
use crate::plan::{Camera, Input, Resize};

/// A raw image of one camera, `[height, width, 3]` bytes in the camera's colour order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ImageView<'a> {
    /// Exactly `height * width * 3` bytes.
    pub pixels: &'a [u8],
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
    /// Sequence number of the camera, 0 for no image yet.
    pub seq: u64,
    /// Capture time.
    pub capture_ns: i64,
}

/// Value of every byte, per channel of the policy.
type Lut<T> = [[T; 256]; 3];

/// One image input.
#[derive(Debug, Clone, PartialEq)]
pub struct Image {
    camera: usize,
    source: [usize; 2],
    target: [usize; 2],
    chw: bool,
    swap: bool,
    resizer: Resizer,
    float: Box<Lut<f32>>,
    byte: Box<Lut<u8>>,
}

impl Image {
    /// The stage of an image input of a checked plan; `None` for another kind of input.
    pub fn new(input: &Input, cameras: &[Camera]) -> Option<Self> {
        let Input::Image { camera, height, width, bgr, chw, resize, range, mean, std, .. } = input else { return None };
        let source = cameras.get(*camera)?;
        let sides = |height: u32, width: u32| Some([usize::try_from(height).ok()?, usize::try_from(width).ok()?]);
        let (from, to) = (sides(source.height, source.width)?, sides(*height, *width)?);
        let mut float = Box::new([[0.0; 256]; 3]);
        let mut byte = Box::new([[0; 256]; 3]);
        for ((float, byte), (mean, std)) in float.iter_mut().zip(byte.iter_mut()).zip(mean.iter().zip(std)) {
            for ((float, byte), value) in float.iter_mut().zip(byte).zip(0..=u8::MAX) {
                *float = normalised(value, *range, *mean, *std);
                *byte = value;
            }
        }
        // Equal sizes need no kernel, whatever the rule is called.
        let rule = if from == to { Resize::None } else { *resize };
        Some(Image {
            camera: *camera,
            source: from,
            target: to,
            chw: *chw,
            swap: *bgr != source.bgr,
            resizer: Resizer::new(rule, from, to),
            float,
            byte,
        })
    }

    /// Index of the camera that it reads.
    pub fn camera(&self) -> usize {
        self.camera
    }

    /// Shape of the tensor.
    pub fn shape(&self) -> Vec<i64> {
        let [height, width] = self.target.map(|side| i64::try_from(side).unwrap_or(i64::MAX));
        if self.chw {
            vec![1, 3, height, width]
        } else {
            vec![1, height, width, 3]
        }
    }

    /// Refuses an image of another size than the camera's.
    ///
    /// # Errors
    /// `Dimension`, or `StaleImage` for a camera that has not given one yet.
    pub fn check(&self, view: &ImageView<'_>) -> Result<(), Code> {
        let [height, width] = self.source;
        if view.seq == 0 {
            return Err(Code::StaleImage);
        }
        let size = height.saturating_mul(width).saturating_mul(3);
        if view.height != height || view.width != width || view.pixels.len() != size {
            return Err(Code::Dimension);
        }
        Ok(())
    }

    /// Fills the tensor from a checked image.
    pub fn write(&mut self, pixels: &[u8], out: &mut TensorData) {
        match out {
            TensorData::F32(out) => pack(&mut self.resizer, pixels, self.target, self.chw, self.swap, &self.float, out),
            TensorData::U8(out) => pack(&mut self.resizer, pixels, self.target, self.chw, self.swap, &self.byte, out),
            TensorData::I64(_) => {}
        }
    }
}

/// `((byte / 255 * (hi - lo) + lo) - mean) / std`, rounded to float32 once.
fn normalised(byte: u8, range: [f64; 2], mean: f64, std: f64) -> f32 {
    let [lo, hi] = range;
    #[allow(clippy::cast_possible_truncation, reason = "the network reads float32")]
    let value = ((f64::from(byte) / 255.0 * (hi - lo) + lo - mean) / std) as f32;
    value
}

/// Writes resized rows through the table, into planes or pixels.
fn pack<T: Copy>(
    resizer: &mut Resizer,
    pixels: &[u8],
    [height, width]: [usize; 2],
    chw: bool,
    swap: bool,
    lut: &Lut<T>,
    out: &mut [T],
) {
    let [first, second, third] = lut;
    let at = |lut: &[T; 256], byte: u8, slot: &mut T| {
        if let Some(value) = lut.get(usize::from(byte)) {
            *slot = *value;
        }
    };
    let of = |pixel: [u8; 3]| {
        let [a, b, c] = pixel;
        if swap {
            [c, b, a]
        } else {
            pixel
        }
    };
    if chw {
        let plane = height.saturating_mul(width);
        let Some((first_plane, rest)) = out.split_at_mut_checked(plane) else { return };
        let Some((second_plane, third_plane)) = rest.split_at_mut_checked(plane) else { return };
        let width = width.max(1);
        let mut rows = first_plane
            .chunks_exact_mut(width)
            .zip(second_plane.chunks_exact_mut(width))
            .zip(third_plane.chunks_exact_mut(width));
        resizer.each_row(pixels, |row| {
            let Some(((firsts, seconds), thirds)) = rows.next() else { return };
            let (row, _) = row.as_chunks::<3>();
            for (((a, b), c), pixel) in firsts.iter_mut().zip(seconds).zip(thirds).zip(row) {
                let [x, y, z] = of(*pixel);
                at(first, x, a);
                at(second, y, b);
                at(third, z, c);
            }
        });
    } else {
        let mut rows = out.chunks_exact_mut(width.saturating_mul(3).max(1));
        resizer.each_row(pixels, |row| {
            let Some(targets) = rows.next() else { return };
            let (row, _) = row.as_chunks::<3>();
            let (targets, _) = targets.as_chunks_mut::<3>();
            for ([a, b, c], pixel) in targets.iter_mut().zip(row) {
                let [x, y, z] = of(*pixel);
                at(first, x, a);
                at(second, y, b);
                at(third, z, c);
            }
        });
    }
}
