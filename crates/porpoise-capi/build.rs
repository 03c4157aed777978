//! The name and the version nodes of the library; which symbol is of which node, `src/exports.rs`
//! says.

fn main() {
    let folder = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    println!("cargo:rerun-if-changed=versions.map");
    println!("cargo:rustc-cdylib-link-arg=-Wl,--version-script={folder}/versions.map");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libmariadb.so.3");
}
