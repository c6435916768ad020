use interlock_core::observe::history::History;
use interlock_core::plan;
use proptest::prelude::*;

/// Everything since the reset as a plain list, laid out by definition.
fn naive(rule: &plan::History, dims: &[usize], frames: &[Vec<f32>]) -> Vec<f32> {
    let width: usize = dims.iter().sum();
    let mut past: Vec<Vec<f32>> = Vec::new();
    for age in (0..rule.steps).rev() {
        past.push(match frames.len().checked_sub(age + 1) {
            Some(index) => frames[index].clone(),
            None if rule.repeat_first => frames[0].clone(),
            None => vec![0.0; width],
        });
    }
    if !rule.oldest_first {
        past.reverse();
    }
    let mut out = Vec::new();
    if rule.per_term {
        let mut first = 0;
        for dim in dims {
            for frame in &past {
                out.extend(&frame[first..first + dim]);
            }
            first += dim;
        }
    } else {
        out.extend(past.concat());
    }
    out
}

proptest! {
    #[test]
    fn every_layout_equals_the_plain_list(
        steps in 1usize..7,
        per_term: bool,
        oldest_first: bool,
        repeat_first: bool,
        dims in prop::collection::vec(1usize..5, 1..5),
        episodes in prop::collection::vec(1usize..20, 1..3),
    ) {
        let rule = plan::History { steps, per_term, oldest_first, repeat_first };
        let mut history = History::new(&rule, dims.clone());
        let width: usize = dims.iter().sum();
        let mut value = 0.0f32;
        for frames in episodes {
            history.reset();
            let mut seen = Vec::new();
            for _ in 0..frames {
                let frame: Vec<f32> = (0..width).map(|_| { value += 1.0; value }).collect();
                history.push(&frame);
                seen.push(frame);
                let mut out = vec![f32::NAN; history.len()];
                history.write(&mut out);
                prop_assert_eq!(&out, &naive(&rule, &dims, &seen));
            }
        }
    }
}
