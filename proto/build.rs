//! Compiles `proto/` into the generated module and the descriptor set.
//!
//! Owns the list of packages. `protox` parses the files, so no `protoc` has to be on the machine. A mistake
//! in a proto file fails the build with protox's own report of file, line and column.

use std::path::{Path, PathBuf};
use std::{env, error::Error, fs, io};

/// Root of the imports, relative to this crate.
const PROTO_ROOT: &str = "proto";

/// One folder per package version. A new package is one line here and one `include_proto!` in `lib.rs`.
const PACKAGES: &[&str] = &["runtime/v1"];

/// Messages whose derived `Debug` would print a secret; `src/redact.rs` has theirs.
const SECRET_MESSAGES: &[&str] = &[".runtime.v1.AuthConfig", ".runtime.v1.KeyValue"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    // A folder, so that a new or removed file counts as a change too.
    println!("cargo::rerun-if-changed={PROTO_ROOT}");

    let out_dir = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    let mut compiler = protox::Compiler::new([PROTO_ROOT])?;
    compiler.include_imports(true).include_source_info(true);
    for package in PACKAGES {
        compiler.open_files(proto_files(&Path::new(PROTO_ROOT).join(package))?)?;
    }

    // Comments become rustdoc, so the generator gets them; at run time nobody reads them.
    let with_comments = compiler.file_descriptor_set();
    compiler.include_source_info(false);
    fs::write(
        out_dir.join("descriptor.bin"),
        compiler.encode_file_descriptor_set(),
    )?;

    tonic_prost_build::configure()
        .emit_rerun_if_changed(false)
        .build_client(true)
        .build_server(true)
        // An RPC that the server does not write answers Unimplemented.
        .generate_default_stubs(true)
        // Ordered maps: the same request gives the same bytes, logs and goldens every time.
        .btree_map(".")
        .skip_debug(SECRET_MESSAGES)
        .compile_fds(with_comments)?;
    Ok(())
}

/// The proto files of one package, sorted: the order of a directory listing must not reach the output.
fn proto_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "proto")
        {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
