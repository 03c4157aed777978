//! The command line of Porpoise.

fn main() {
    println!("porpoise {}", env!("CARGO_PKG_VERSION"));
}
