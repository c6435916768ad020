//! Compiles the recording's schema to Rust types and to the descriptor sets that every recording carries.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use prost_types::{DescriptorProto, FileDescriptorSet};
use protox::prost::Message;
use protox::Compiler;

const ROOTS: &[&str] = &[
    "interlock/v1/recording.proto",
    "interlock/v1/probe.proto",
    "foxglove/CompressedImage.proto",
    "foxglove/RawImage.proto",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let protos = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../proto");
    println!("cargo::rerun-if-changed={}", protos.display());
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    for root in ROOTS {
        let mut compiler = Compiler::new([&protos])?;
        compiler.include_imports(true).open_file(root)?;
        let set = compiler.file_descriptor_set();
        let file = set.file.iter().find(|file| file.name() == *root).ok_or("root file")?;
        for message in &file.message_type {
            let only = only(&set, root, message.name());
            std::fs::write(out.join(format!("{}.fds", message.name())), only.encode_to_vec())?;
        }
    }
    let mut all = Compiler::new([&protos])?;
    all.include_imports(true).include_source_info(true).open_files(ROOTS)?;
    prost_build::Config::new().btree_map(["."]).compile_fds(all.file_descriptor_set())?;
    Ok(())
}

/// The set with nothing in `root` but one message and what it refers to: a schema of a few hundred bytes.
fn only(set: &FileDescriptorSet, root: &str, message: &str) -> FileDescriptorSet {
    let mut set = set.clone();
    for file in set.file.iter_mut().filter(|file| file.name() == root) {
        let mut needed = BTreeSet::from([message.to_owned()]);
        loop {
            let used: BTreeSet<String> =
                file.message_type.iter().filter(|each| needed.contains(each.name())).flat_map(referred).collect();
            if used.is_subset(&needed) {
                break;
            }
            needed.extend(used);
        }
        file.message_type.retain(|each| needed.contains(each.name()));
    }
    set
}

/// Last parts of the names of the messages that a message's fields have.
fn referred(message: &DescriptorProto) -> Vec<String> {
    let own =
        message.field.iter().filter_map(|field| field.type_name.as_deref()?.rsplit('.').next().map(str::to_owned));
    own.chain(message.nested_type.iter().flat_map(referred)).collect()
}
