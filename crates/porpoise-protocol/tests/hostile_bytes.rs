//! Conversations with a real server, and what becomes of them with bytes changed, cut out and
//! doubled: nothing panics.

mod decode;

use proptest::prelude::*;
use std::fs;

fn corpus(direction: &str) -> Vec<Vec<u8>> {
    let folder = format!("{}/fuzz/corpus/{direction}", env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    files.sort();
    files
        .into_iter()
        .map(|file| fs::read(file).unwrap())
        .collect()
}

#[test]
fn the_corpus_makes_sense() {
    for (direction, decode, packets) in [
        ("to_server", decode::to_server as fn(&[u8]) -> usize, 30),
        ("to_client", decode::to_client, 60),
    ] {
        let sensible: usize = corpus(direction).iter().map(|bytes| decode(bytes)).sum();
        assert!(sensible > packets, "{direction}: {sensible}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn a_changed_conversation_never_panics(
        pick in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3u8), 1..6),
    ) {
        for (direction, decode) in
            [("to_server", decode::to_server as fn(&[u8]) -> usize), ("to_client", decode::to_client)]
        {
            let corpus = corpus(direction);
            let mut bytes = pick.get(&corpus).clone();
            for (at, byte, change) in &changes {
                let at = at.index(bytes.len());
                match change {
                    0 => bytes[at] = *byte,
                    1 => bytes.insert(at, *byte),
                    _ if bytes.len() > 1 => drop(bytes.remove(at)),
                    _ => {}
                }
            }
            decode(&bytes);
        }
    }
}
