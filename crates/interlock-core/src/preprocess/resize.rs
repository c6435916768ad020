//! Resizing of 8-bit, three-channel, interleaved images, one finished row at a time.

use crate::plan::Resize;

/// Bits of a bilinear weight.
const WEIGHT_BITS: u32 = 15;
/// Bits kept between the vertical and the horizontal step: 255 << 6 and all below fit 16-bit lanes.
const KEPT_BITS: u32 = 6;

/// Two neighbouring source places and the weight of the second.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Tap {
    /// Place of the first, in rows or in values (three per pixel).
    first: usize,
    /// Weight of the second, in 1 / 2^15; at most 1 - 2^-15.
    weight: i16,
}

/// Source places that one target place averages.
#[derive(Debug, Clone, PartialEq)]
struct Span {
    first: usize,
    weights: Vec<f32>,
}

/// Tables and rows of a bilinear resize. Weights are spread over whole rows, so that each step is one simple loop over
/// 16-bit lanes.
#[derive(Debug, Clone, PartialEq)]
struct Bilinear {
    rows: Vec<Tap>,
    row_weights: Vec<i16>,
    columns: Vec<usize>,
    column_weights: Vec<i16>,
    /// One source row, blended vertically; one pixel more, for the second tap of a one-column image.
    blended: Vec<i16>,
    left: Vec<i16>,
    right: Vec<i16>,
}

/// Tables of one resize.
#[derive(Debug, Clone, PartialEq)]
enum Kernel {
    None,
    Nearest { rows: Vec<usize>, columns: Vec<usize> },
    Bilinear(Bilinear),
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
            Resize::Bilinear => Kernel::Bilinear(Bilinear::new(source, target)),
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
            Kernel::Bilinear(kernel) => {
                for at in 0..target_h {
                    let Some(tap) = kernel.rows.get(at).copied() else { return };
                    let above = source_row(tap.first);
                    let below = if tap.weight == 0 { above } else { source_row(tap.first.saturating_add(1)) };
                    kernel.blend_rows(above, below, tap.weight);
                    kernel.blend_columns(row);
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

impl Bilinear {
    fn new([source_h, source_w]: [usize; 2], [target_h, target_w]: [usize; 2]) -> Self {
        let stride = source_w.saturating_mul(3);
        let columns = taps(source_w, target_w);
        let values = target_w.saturating_mul(3);
        Bilinear {
            rows: taps(source_h, target_h),
            row_weights: vec![0; stride],
            columns: columns.iter().map(|tap| tap.first.saturating_mul(3)).collect(),
            column_weights: columns.iter().flat_map(|tap| [tap.weight; 3]).collect(),
            blended: vec![0; stride.saturating_add(3)],
            left: vec![0; values],
            right: vec![0; values],
        }
    }

    /// Vertical step: `KEPT_BITS` fractional bits, the last of them cut.
    fn blend_rows(&mut self, above: &[u8], below: &[u8], weight: i16) {
        self.row_weights.fill(weight);
        let pairs = above.iter().zip(below).zip(&self.row_weights);
        for (slot, ((above, below), weight)) in self.blended.iter_mut().zip(pairs) {
            let (above, below) = (i16::from(*above), i16::from(*below));
            let step = below.wrapping_sub(above) << (KEPT_BITS + 1);
            *slot = (above << KEPT_BITS).wrapping_add(high_half(step, *weight));
        }
    }

    /// Horizontal step, rounded to the nearest grey level.
    fn blend_columns(&mut self, out: &mut [u8]) {
        const HALF: i16 = 1 << (KEPT_BITS - 1);
        let ((left, _), (right, _)) = (self.left.as_chunks_mut::<3>(), self.right.as_chunks_mut::<3>());
        for ((left, right), first) in left.iter_mut().zip(right).zip(&self.columns) {
            let taps = self.blended.get(*first..).and_then(|rest| rest.first_chunk::<6>());
            let Some([a0, a1, a2, b0, b1, b2]) = taps else { return };
            *left = [*a0, *a1, *a2];
            *right = [*b0, *b1, *b2];
        }
        let pairs = self.left.iter().zip(&self.right).zip(&self.column_weights);
        for (slot, ((left, right), weight)) in out.iter_mut().zip(pairs) {
            let step = right.wrapping_sub(*left) << 1;
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 255")]
            let level = (left.wrapping_add(high_half(step, *weight)).wrapping_add(HALF) >> KEPT_BITS) as u8;
            *slot = level;
        }
    }
}

/// Upper 16 bits of a product: one instruction per eight lanes.
fn high_half(a: i16, b: i16) -> i16 {
    #[allow(clippy::cast_possible_truncation, reason = "32 bits less 16")]
    let high = (i32::from(a).wrapping_mul(i32::from(b)) >> 16) as i16;
    high
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
        #[allow(clippy::cast_possible_truncation, reason = "float to int saturates at 32767")]
        let weight = ((centre - side(first)) * f64::from(1u32 << WEIGHT_BITS)).round() as i16;
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
