//! A session's inputs and outputs at fixed shapes, over buffers that stay where they are.

use std::ffi::{c_char, CString};
use std::ptr::null;

use ort::session::Session;
use ort::sys::OrtValue;
use ort::AsPointer;

use super::tensor::{count, DataBuf, TensorBuf, TensorRef};
use super::value::{check, CpuMemory, Value};
use super::{c_name, Port};
use crate::error::RtError;

/// One tensor and the value over its memory.
pub(super) struct Slot {
    // Declared before `tensor`: the value goes before its memory.
    value: Value,
    tensor: TensorBuf,
    given: bool,
}

impl Slot {
    fn new(memory: &CpuMemory, port: &Port, shape: &[i64]) -> Result<Self, RtError> {
        let fits = |(&fixed, &asked): (&i64, &i64)| fixed < 0 || fixed == asked;
        let elements = count(shape);
        let (true, Some(elements)) =
            (shape.len() == port.shape.len() && port.shape.iter().zip(shape).all(fits), elements)
        else {
            let what = format!("{}: expected shape {:?}, got {shape:?}", port.name, port.shape);
            return Err(RtError::new(
                "engine-input",
                what,
                "contract and graph do not belong together: `interlock build`",
            ));
        };
        let mut data = DataBuf::zeros(port.element, elements);
        // SAFETY: a vector's memory stays where it is when the vector itself moves into the slot; it is never resized,
        // and the value is dropped first.
        let value = unsafe { Value::over(memory, data.raw(), shape, port.element) }?;
        Ok(Slot { value, tensor: TensorBuf { name: port.name.clone(), shape: shape.to_vec(), data }, given: false })
    }

    pub(super) fn tensor(&self) -> &TensorBuf {
        &self.tensor
    }
}

/// Everything that one run needs.
pub(super) struct Bound {
    inputs: Vec<Slot>,
    outputs: Vec<Slot>,
    // The C strings own the memory to which the pointers point.
    _names: Vec<CString>,
    input_names: Vec<*const c_char>,
    output_names: Vec<*const c_char>,
    input_values: Vec<*const OrtValue>,
    output_values: Vec<*mut OrtValue>,
}

// SAFETY: all pointers point into what the struct owns, and nothing else uses them.
unsafe impl Send for Bound {}

type Asked<'a> = (&'a [Port], &'a [(&'a str, &'a [i64])]);

impl Bound {
    pub(super) fn new(
        memory: &CpuMemory,
        (input_ports, inputs): Asked<'_>,
        (output_ports, outputs): Asked<'_>,
    ) -> Result<Self, RtError> {
        if let Some(port) = input_ports.iter().find(|port| !inputs.iter().any(|(name, _)| *name == port.name)) {
            let given: Vec<_> = inputs.iter().map(|(name, _)| *name).collect();
            let what = format!("input {} is missing; given are {}", port.name, given.join(", "));
            return Err(RtError::new("engine-input", what, "give every input of the graph"));
        }
        let inputs = slots(memory, "input", input_ports, inputs)?;
        let outputs = slots(memory, "output", output_ports, outputs)?;
        let names =
            inputs.iter().chain(&outputs).map(|slot| c_name(&slot.tensor.name)).collect::<Result<Vec<_>, _>>()?;
        let pointers: Vec<_> = names.iter().map(|name| name.as_ptr()).collect();
        let (input_names, output_names) = pointers.split_at(inputs.len());
        Ok(Bound {
            input_names: input_names.to_vec(),
            output_names: output_names.to_vec(),
            input_values: inputs.iter().map(|slot| slot.value.pointer().cast_const()).collect(),
            output_values: outputs.iter().map(|slot| slot.value.pointer()).collect(),
            _names: names,
            inputs,
            outputs,
        })
    }

    pub(super) fn outputs(&self) -> &[Slot] {
        &self.outputs
    }

    /// Copies every input in; refuses a missing, unknown, doubled, misshapen or mistyped one.
    pub(super) fn fill<'a>(&mut self, inputs: impl IntoIterator<Item = TensorRef<'a>>) -> Result<(), RtError> {
        self.inputs.iter_mut().for_each(|slot| slot.given = false);
        for input in inputs {
            let slot = self.inputs.iter_mut().find(|slot| slot.tensor.name == input.name && !slot.given);
            let Some(slot) = slot else {
                let what = format!("input {} is unknown or given twice", input.name);
                return Err(RtError::new("engine-input", what, "give every input of the graph once"));
            };
            if slot.tensor.shape != input.shape || !slot.tensor.data.fill(input.data) {
                return Err(mismatch(slot, &input));
            }
            slot.given = true;
        }
        if let Some(slot) = self.inputs.iter().find(|slot| !slot.given) {
            let what = format!("input {} is missing", slot.tensor.name);
            return Err(RtError::new("engine-input", what, "give every input of the graph once"));
        }
        Ok(())
    }

    /// Runs into the bound outputs.
    pub(super) fn run(&mut self, session: &mut Session) -> Result<(), RtError> {
        // SAFETY: the arrays have equal lengths; names and values live as long as this struct; outputs are ours and are
        // written in place.
        unsafe {
            check(
                (ort::api().Run)(
                    session.ptr_mut(),
                    null(),
                    self.input_names.as_ptr(),
                    self.input_values.as_ptr(),
                    self.input_values.len(),
                    self.output_names.as_ptr(),
                    self.output_values.len(),
                    self.output_values.as_mut_ptr(),
                ),
                "engine-run",
            )
        }
    }

    /// Runs into values of the caller; NULL ones are made by the library and belong to the caller afterwards.
    ///
    /// # Safety
    /// `names` are C strings, as many as `values`.
    pub(super) unsafe fn run_into(
        &mut self,
        session: &mut Session,
        names: &[*const c_char],
        values: &mut [*mut OrtValue],
    ) -> Result<(), RtError> {
        let (count, names, values) = (values.len(), names.as_ptr(), values.as_mut_ptr());
        let (inputs, input_values) = (self.input_names.as_ptr(), self.input_values.as_ptr());
        // SAFETY: as in `run`, and the caller's promise.
        unsafe {
            let run = ort::api().Run;
            let status =
                run(session.ptr_mut(), null(), inputs, input_values, self.input_values.len(), names, count, values);
            check(status, "engine-run")
        }
    }
}

fn slots(memory: &CpuMemory, what: &str, ports: &[Port], asked: &[(&str, &[i64])]) -> Result<Vec<Slot>, RtError> {
    let mut slots: Vec<Slot> = Vec::with_capacity(asked.len());
    for (name, shape) in asked {
        let port = ports.iter().find(|port| port.name == *name);
        let Some(port) = port.filter(|_| !slots.iter().any(|slot| slot.tensor.name == *name)) else {
            let existing: Vec<_> = ports.iter().map(|port| port.name.as_str()).collect();
            let what = format!("{what} {name} is unknown or given twice; the graph has {}", existing.join(", "));
            return Err(RtError::new(
                "engine-input",
                what,
                "contract and graph do not belong together: `interlock build`",
            ));
        };
        slots.push(Slot::new(memory, port, shape)?);
    }
    Ok(slots)
}

fn mismatch(slot: &Slot, input: &TensorRef<'_>) -> RtError {
    let (wanted, got) = (slot.tensor.data.element_type().name(), input.data.element_type().name());
    let what = format!(
        "{}: expected {wanted} {:?}, got {got} {:?} with {} elements",
        input.name,
        slot.tensor.shape,
        input.shape,
        input.data.len()
    );
    RtError::new("engine-input", what, "")
}
