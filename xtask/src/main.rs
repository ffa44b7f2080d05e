//! Tasks of the project itself: benches, generated files.
fn main() {}
