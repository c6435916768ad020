use interlock_core::code::Code;
use interlock_core::plan::{Input, Plan, Resize};
use interlock_core::preprocess::{ImageView, Preprocessor, TensorData};
use proptest::prelude::*;

use super::plans::{observation, plan, with_camera};

fn noise_image(height: usize, width: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    (0..height * width * 3)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
        .collect()
}

/// The slow way, in real numbers: every target pixel by its definition. `[height, width, 3]`.
fn slow_resize(rule: Resize, pixels: &[u8], source: [usize; 2], target: [usize; 2]) -> Vec<f64> {
    let at = |y: usize, x: usize, c: usize| f64::from(pixels[(y * source[1] + x) * 3 + c]);
    let ratio = [0, 1].map(|axis| source[axis] as f64 / target[axis] as f64);
    let mut out = Vec::new();
    for y in 0..target[0] {
        for x in 0..target[1] {
            for c in 0..3 {
                let place = [y, x];
                out.push(match rule {
                    Resize::None => at(y, x, c),
                    Resize::Nearest => {
                        let [sy, sx] = [0, 1].map(|axis| place[axis] * source[axis] / target[axis]);
                        at(sy, sx, c)
                    }
                    Resize::Bilinear => {
                        let clamp = |axis: usize| {
                            let centre = (place[axis] as f64 + 0.5) * ratio[axis] - 0.5;
                            centre.clamp(0.0, source[axis] as f64 - 1.0)
                        };
                        let [cy, cx] = [clamp(0), clamp(1)];
                        let (y0, x0) = (cy.floor() as usize, cx.floor() as usize);
                        let (y1, x1) = ((y0 + 1).min(source[0] - 1), (x0 + 1).min(source[1] - 1));
                        let (v, u) = (cy - y0 as f64, cx - x0 as f64);
                        (at(y0, x0, c) * (1.0 - u) + at(y0, x1, c) * u) * (1.0 - v)
                            + (at(y1, x0, c) * (1.0 - u) + at(y1, x1, c) * u) * v
                    }
                    Resize::Area => {
                        let overlap = |axis: usize, cell: usize| {
                            let from = place[axis] as f64 * ratio[axis];
                            let to = from + ratio[axis];
                            ((cell as f64 + 1.0).min(to) - (cell as f64).max(from)).max(0.0)
                        };
                        let mut sum = 0.0;
                        for sy in 0..source[0] {
                            for sx in 0..source[1] {
                                sum += at(sy, sx, c) * overlap(0, sy) * overlap(1, sx);
                            }
                        }
                        sum / (ratio[0] * ratio[1])
                    }
                });
            }
        }
    }
    out
}

fn image_plan(source: [usize; 2], target: [usize; 2], resize: Resize) -> Plan {
    let mut plan = plan(2);
    with_camera(&mut plan, source.map(|s| s as u32), target.map(|s| s as u32), resize);
    plan
}

fn change(
    plan: &mut Plan,
    with: impl FnOnce(&mut bool, &mut bool, &mut [f64; 2], &mut [f64; 3], &mut [f64; 3], &mut bool),
) {
    if let Input::Image { bgr, chw, range, mean, std, uint8, .. } = &mut plan.inputs[1] {
        with(bgr, chw, range, mean, std, uint8);
    }
}

fn built(plan: &Plan, pixels: &[u8], [height, width]: [usize; 2]) -> TensorData {
    let mut preprocessor = Preprocessor::new(plan).unwrap();
    let view = ImageView { pixels, height, width, seq: 1, capture_ns: 0 };
    preprocessor.build(&observation(2), &[view]).unwrap();
    preprocessor.tensors()[1].data.clone()
}

fn bytes(plan: &mut Plan, pixels: &[u8], source: [usize; 2]) -> Vec<u8> {
    change(plan, |_, chw, _, _, _, uint8| (*chw, *uint8) = (false, true));
    match built(plan, pixels, source) {
        TensorData::U8(values) => values,
        _ => panic!("uint8 was asked for"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn bilinear_is_within_one_grey_level_of_its_definition(
        source in prop::array::uniform2(1usize..40), target in prop::array::uniform2(1usize..40), seed: u64,
    ) {
        let pixels = noise_image(source[0], source[1], seed);
        let values = bytes(&mut image_plan(source, target, Resize::Bilinear), &pixels, source);
        for (value, expected) in values.iter().zip(slow_resize(Resize::Bilinear, &pixels, source, target)) {
            prop_assert!((f64::from(*value) - expected).abs() < 1.0, "{value} {expected}");
        }
    }

    #[test]
    fn area_is_within_one_grey_level_of_its_definition(
        target in prop::array::uniform2(1usize..16), more in prop::array::uniform2(0usize..30), seed: u64,
    ) {
        let source = [target[0] + more[0], target[1] + more[1]];
        let pixels = noise_image(source[0], source[1], seed);
        let values = bytes(&mut image_plan(source, target, Resize::Area), &pixels, source);
        for (value, expected) in values.iter().zip(slow_resize(Resize::Area, &pixels, source, target)) {
            prop_assert!((f64::from(*value) - expected).abs() < 1.0, "{value} {expected}");
        }
    }

    #[test]
    fn nearest_takes_the_pixel_of_its_definition_or_its_neighbour_on_a_tie(
        source in prop::array::uniform2(1usize..40), target in prop::array::uniform2(1usize..40),
    ) {
        // Every pixel says where it comes from; the reference computes floor(x * scale) in float64.
        let pixels: Vec<u8> = (0..source[0]).flat_map(|y| (0..source[1]).flat_map(move |x| [y as u8, x as u8, 0])).collect();
        let values = bytes(&mut image_plan(source, target, Resize::Nearest), &pixels, source);
        for (index, pixel) in values.chunks(3).enumerate() {
            for (axis, place) in [index / target[1], index % target[1]].into_iter().enumerate() {
                let scale = 1.0 / (target[axis] as f64 / source[axis] as f64);
                let expected = ((place as f64 * scale).floor() as usize).min(source[axis] - 1);
                prop_assert_eq!(usize::from(pixel[axis]), expected);
            }
        }
    }

    #[test]
    fn every_layout_and_colour_order_holds_the_same_numbers(
        height in 1usize..8, width in 1usize..8, bgr: bool, camera_bgr: bool, chw: bool, seed: u64,
        range in Just([-1.0, 1.0]), mean in prop::array::uniform3(-1.0f64..1.0), std in prop::array::uniform3(0.1f64..2.0),
    ) {
        let mut plan = image_plan([height, width], [height, width], Resize::None);
        plan.cameras[0].bgr = camera_bgr;
        change(&mut plan, |b, c, r, m, s, _| (*b, *c, *r, *m, *s) = (bgr, chw, range, mean, std));
        let pixels = noise_image(height, width, seed);
        let data = built(&plan, &pixels, [height, width]);
        let values = data.as_f32();
        for y in 0..height {
            for x in 0..width {
                for c in 0..3 {
                    let channel = if bgr == camera_bgr { c } else { 2 - c };
                    let byte = f64::from(pixels[(y * width + x) * 3 + channel]);
                    let expected = (byte / 255.0 * 2.0 - 1.0 - mean[c]) / std[c];
                    let place = if chw { (c * height + y) * width + x } else { (y * width + x) * 3 + c };
                    prop_assert!((f64::from(values[place]) - expected).abs() < 1e-5);
                }
            }
        }
    }
}

#[test]
fn a_resized_float_image_is_the_resized_byte_image_normalised() {
    let (source, target) = ([480, 640], [224, 224]);
    let pixels = noise_image(480, 640, 3);
    for rule in [Resize::Nearest, Resize::Bilinear, Resize::Area] {
        let mut plan = image_plan(source, target, rule);
        change(&mut plan, |bgr, _, _, mean, std, _| {
            *bgr = true;
            (*mean, *std) = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);
        });
        let data = built(&plan, &pixels, source);
        let grey = bytes(&mut plan, &pixels, source);
        let plane = 224 * 224;
        for (index, pixel) in grey.chunks(3).enumerate() {
            for c in 0..3 {
                let expected = (f64::from(pixel[c]) / 255.0 - [0.485, 0.456, 0.406][c]) / [0.229, 0.224, 0.225][c];
                assert!((f64::from(data.as_f32()[c * plane + index]) - expected).abs() < 1e-5);
            }
        }
    }
}

#[test]
fn a_constant_image_stays_constant_under_every_rule() {
    for rule in [Resize::Nearest, Resize::Bilinear, Resize::Area] {
        for grey in [0u8, 1, 127, 128, 254, 255] {
            let pixels = vec![grey; 48 * 64 * 3];
            let values = bytes(&mut image_plan([48, 64], [21, 30], rule), &pixels, [48, 64]);
            assert!(values.iter().all(|value| *value == grey), "{rule:?} {grey}");
        }
    }
}

#[test]
fn an_image_of_another_size_is_refused() {
    let mut preprocessor = Preprocessor::new(&image_plan([4, 6], [4, 6], Resize::None)).unwrap();
    let pixels = [0u8; 72];
    let view = |pixels, height, width| ImageView { pixels, height, width, seq: 1, capture_ns: 0 };
    let see = &mut |view| preprocessor.build(&observation(2), &[view]);
    assert_eq!(see(view(&pixels, 4, 6)), Ok(()));
    assert_eq!(see(view(&pixels, 6, 4)), Err(Code::Dimension));
    assert_eq!(see(view(&pixels[..71], 4, 6)), Err(Code::Dimension));
    assert_eq!(see(ImageView { seq: 0, ..view(&pixels, 4, 6) }), Err(Code::StaleImage));
    assert_eq!(preprocessor.build(&observation(2), &[]), Err(Code::Dimension));
}
