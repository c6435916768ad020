//! Resizing of 8-bit, three-channel, interleaved images, one finished row at a time.

use crate::plan::Resize;

/// Bits of a bilinear weight.
const WEIGHT_BITS: u32 = 11;
const WEIGHT_ONE: i32 = 1 << WEIGHT_BITS;
/// Bits kept between the vertical and the horizontal step.
const KEPT_BITS: u32 = 7;

/// Two neighbouring source places and the weight of the second.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Tap {
    /// Place of the first, in rows or in values (three per pixel).
    first: usize,
    /// Weight of the second out of [`WEIGHT_ONE`].
    weight: i32,
}

/// Source places that one target place averages.
#[derive(Debug, Clone, PartialEq)]
struct Span {
    first: usize,
    weights: Vec<f32>,
}

/// Tables of one resize.
#[derive(Debug, Clone, PartialEq)]
enum Kernel {
    None,
    Nearest { rows: Vec<usize>, columns: Vec<usize> },
    Bilinear { rows: Vec<Tap>, columns: Vec<Tap>, blended: Vec<i16> },
    Area { rows: Vec<Span>, columns: Vec<Span>, sums: Vec<f32> },
}

/// Resizes images of one size to another.
#[derive(Debug, Clone, PartialEq)]
pub struct Resizer {
    kernel: Kernel,
    /// Values per source row.
    stride: usize,
    target: [usize; 2],
    row: Vec<u8>,
}

impl Resizer {
    /// Tables for `source` to `target`, both `[height, width]` and at least 1.
    pub fn new(rule: Resize, source: [usize; 2], target: [usize; 2]) -> Self {
        let ([source_h, source_w], [target_h, target_w]) = (source, target);
        let stride = source_w.saturating_mul(3);
        let kernel = match rule {
            Resize::None => Kernel::None,
            Resize::Nearest => Kernel::Nearest {
                rows: nearest(source_h, target_h),
                columns: nearest(source_w, target_w).into_iter().map(|x| x.saturating_mul(3)).collect(),
            },
            Resize::Bilinear => Kernel::Bilinear {
                rows: taps(source_h, target_h),
                columns: taps(source_w, target_w)
                    .into_iter()
                    .map(|tap| Tap { first: tap.first.saturating_mul(3), ..tap })
                    .collect(),
                // One pixel more: the second tap of a one-column image has weight 0 but must exist.
                blended: vec![0; stride.saturating_add(3)],
            },
            Resize::Area => Kernel::Area {
                rows: spans(source_h, target_h),
                columns: spans(source_w, target_w),
                sums: vec![0.0; stride],
            },
        };
        Resizer { kernel, stride, target, row: vec![0; target_w.saturating_mul(3)] }
    }

    /// Calls `finish(y, row)` for every target row, top to bottom; `pixels` are `[height, width, 3]` of the source.
    pub fn each_row(&mut self, pixels: &[u8], mut finish: impl FnMut(&[u8])) {
        let [target_h, _] = self.target;
        let stride = self.stride.max(1);
        let source_row = |y: usize| {
            let from = y.saturating_mul(stride);
            pixels.get(from..from.saturating_add(stride)).unwrap_or(&[])
        };
        let row = self.row.as_mut_slice();
        match &mut self.kernel {
            Kernel::None => pixels.chunks_exact(stride).take(target_h).for_each(finish),
            Kernel::Nearest { rows, columns } => {
                for y in rows {
                    let source = source_row(*y);
                    for (out, x) in row.chunks_exact_mut(3).zip(columns.iter()) {
                        if let Some(pixel) = source.get(*x..).and_then(|rest| rest.first_chunk::<3>()) {
                            out.copy_from_slice(pixel);
                        }
                    }
                    finish(row);
                }
            }
            Kernel::Bilinear { rows, columns, blended } => {
                for tap in rows {
                    let above = source_row(tap.first);
                    let below = if tap.weight == 0 { above } else { source_row(tap.first.saturating_add(1)) };
                    blend_rows(above, below, tap.weight, blended);
                    blend_columns(blended, columns, row);
                    finish(row);
                }
            }
            Kernel::Area { rows, columns, sums } => {
                for span in rows {
                    sums.fill(0.0);
                    for (y, weight) in (span.first..).zip(&span.weights) {
                        for (sum, value) in sums.iter_mut().zip(source_row(y)) {
                            *sum += weight * f32::from(*value);
                        }
                    }
                    average_columns(sums, columns, row);
                    finish(row);
                }
            }
        }
    }
}

/// Vertical step: `KEPT_BITS` fractional bits.
fn blend_rows(above: &[u8], below: &[u8], weight: i32, out: &mut [i16]) {
    const SHIFT: u32 = WEIGHT_BITS - KEPT_BITS;
    const HALF: i32 = 1 << (SHIFT - 1);
    for ((slot, above), below) in out.iter_mut().zip(above).zip(below) {
        let above = i32::from(*above);
        let step = i32::from(*below).wrapping_sub(above);
        let value = above.wrapping_mul(WEIGHT_ONE).wrapping_add(step.wrapping_mul(weight)).wrapping_add(HALF) >> SHIFT;
        #[allow(clippy::cast_possible_truncation, reason = "at most 255 << 7")]
        let value = value as i16;
        *slot = value;
    }
}

/// Horizontal step, rounded to the nearest grey level.
fn blend_columns(blended: &[i16], columns: &[Tap], out: &mut [u8]) {
    const SHIFT: u32 = WEIGHT_BITS + KEPT_BITS;
    const HALF: i32 = 1 << (SHIFT - 1);
    for (out, tap) in out.chunks_exact_mut(3).zip(columns) {
        let Some([a0, a1, a2, b0, b1, b2]) = blended.get(tap.first..).and_then(|rest| rest.first_chunk::<6>()) else {
            return;
        };
        for (slot, (left, right)) in out.iter_mut().zip([(a0, b0), (a1, b1), (a2, b2)]) {
            let left = i32::from(*left);
            let step = i32::from(*right).wrapping_sub(left);
            let value = left.wrapping_mul(WEIGHT_ONE).wrapping_add(step.wrapping_mul(tap.weight)).wrapping_add(HALF);
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 255")]
            let value = (value >> SHIFT) as u8;
            *slot = value;
        }
    }
}

fn average_columns(sums: &[f32], columns: &[Span], out: &mut [u8]) {
    for (out, span) in out.chunks_exact_mut(3).zip(columns) {
        let mut total = [0.0_f32; 3];
        let pixels = sums.get(span.first.saturating_mul(3)..).unwrap_or(&[]).chunks_exact(3);
        for (pixel, weight) in pixels.zip(&span.weights) {
            total.iter_mut().zip(pixel).for_each(|(total, value)| *total += weight * value);
        }
        for (slot, total) in out.iter_mut().zip(total) {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "float to int saturates")]
            let value = total.round_ties_even() as u8;
            *slot = value;
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "image sides are below 2^14")]
fn side(value: usize) -> f64 {
    value as f64
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "float to int saturates at 0")]
fn place(value: f64) -> usize {
    value as usize
}

/// `floor(x * scale)` with the scale computed as the reference does, double rounding included.
fn nearest(source: usize, target: usize) -> Vec<usize> {
    let scale = 1.0 / (side(target) / side(source));
    (0..target).map(|x| place((side(x) * scale).floor()).min(source.saturating_sub(1))).collect()
}

/// Half-pixel centres, the edge repeated. The first tap stays one before the last source place where there are two.
fn taps(source: usize, target: usize) -> Vec<Tap> {
    let scale = 1.0 / (side(target) / side(source));
    let last = source.saturating_sub(1);
    let tap = |x: usize| {
        let centre = ((side(x) + 0.5) * scale - 0.5).clamp(0.0, side(last));
        let first = place(centre.floor()).min(last.saturating_sub(1));
        #[allow(clippy::cast_possible_truncation, reason = "between 0 and 2048")]
        let weight = ((centre - side(first)) * f64::from(WEIGHT_ONE)).round() as i32;
        Tap { first, weight }
    };
    (0..target).map(tap).collect()
}

/// Overlaps of the target cell with source cells, as shares of the cell; slivers below 1e-3 are left out as the
/// reference does.
fn spans(source: usize, target: usize) -> Vec<Span> {
    let scale = 1.0 / (side(target) / side(source));
    let span = |x: usize| {
        let (from, to) = (side(x) * scale, (side(x) * scale + scale));
        let cell = scale.min(side(source) - from);
        let last_full = to.floor().min(side(source.saturating_sub(1)));
        let first_full = from.ceil().min(last_full);
        let mut weights = Vec::new();
        let has_head = first_full - from > 1e-3;
        if has_head {
            weights.push(first_full - from);
        }
        let full = place(last_full).saturating_sub(place(first_full));
        weights.extend(std::iter::repeat_n(1.0, full));
        if to - last_full > 1e-3 {
            weights.push((to - last_full).min(1.0).min(cell));
        }
        let first = place(first_full).saturating_sub(usize::from(has_head));
        #[allow(clippy::cast_possible_truncation, reason = "weights are float32 in the reference")]
        let weights = weights.into_iter().map(|weight| (weight / cell) as f32).collect();
        Span { first, weights }
    };
    (0..target).map(span).collect()
}
