//! Compresses the page of the HTML report, which the program contains.

use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::env;
use std::error::Error;
use std::fs;
use std::io::Write;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../..");
    let page = root.join("web/dist/report.html");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", page.display());
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&fs::read(page)?)?;
    let compressed = PathBuf::from(env::var("OUT_DIR")?).join("report.html.zlib");
    Ok(fs::write(compressed, encoder.finish()?)?)
}
