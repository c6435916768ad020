//! Compiles the recording's schema to Rust types and to the descriptor sets that every recording carries.

use std::path::{Path, PathBuf};

use protox::prost::Message;
use protox::Compiler;

const ROOTS: &[&str] = &["interlock/v1/recording.proto", "foxglove/CompressedImage.proto", "foxglove/RawImage.proto"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let protos = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../proto");
    println!("cargo::rerun-if-changed={}", protos.display());
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    for root in ROOTS {
        let mut compiler = Compiler::new([&protos])?;
        compiler.include_imports(true).open_file(root)?;
        let name = Path::new(root).file_stem().and_then(|stem| stem.to_str()).ok_or("file name")?;
        std::fs::write(out.join(format!("{name}.fds")), compiler.file_descriptor_set().encode_to_vec())?;
    }
    let mut all = Compiler::new([&protos])?;
    all.include_imports(true).include_source_info(true).open_files(ROOTS)?;
    prost_build::Config::new().btree_map(["."]).compile_fds(all.file_descriptor_set())?;
    Ok(())
}
