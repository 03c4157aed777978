//! Clients of shared memory that write anything into it, at any moment: those of the fuzzer's
//! corpus, and random ones.

#![cfg(target_os = "linux")]

mod hostile;

use proptest::prelude::*;
use std::fs;

#[test]
fn the_corpus_makes_sense() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/ring");
    let mut taken = 0;
    for file in fs::read_dir(folder).unwrap() {
        taken += hostile::play(&fs::read(file.unwrap().path()).unwrap());
    }
    assert!(taken > 1000, "{taken}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn whatever_a_client_writes_the_servers_end_goes_on_or_fails(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        hostile::play(&bytes);
    }
}
