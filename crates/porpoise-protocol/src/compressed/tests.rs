use super::*;
use crate::frame::PacketWriter;
use proptest::prelude::*;

const ALGORITHMS: [Algorithm; 3] = [
    Algorithm::Zlib,
    Algorithm::Zstd { level: 1 },
    Algorithm::Zstd { level: 22 },
];

/// Text that compresses, but not to nothing.
fn text(length: usize) -> Vec<u8> {
    (0..length)
        .flat_map(|at| format!("{} fish and {} whales; ", at, at * 7919 % 1000).into_bytes())
        .take(length)
        .collect()
}

/// Every payload that `frames`, come in pieces of `cut` bytes, held.
fn read_all(algorithm: Algorithm, frames: &[u8], cut: usize) -> Result<Vec<Vec<u8>>, Error> {
    let mut decompressor = Decompressor::new(algorithm);
    let mut reader = PacketReader::new(64 << 20);
    let mut seen = Vec::new();
    for mut chunk in frames.chunks(cut) {
        while !chunk.is_empty() {
            let spare = decompressor.spare();
            let count = chunk.len().min(spare.len());
            spare[..count].copy_from_slice(&chunk[..count]);
            decompressor.filled(count);
            chunk = &chunk[count..];
            loop {
                while let Some(packet) = reader.next_packet()? {
                    seen.push(packet.payload.to_vec());
                }
                if !decompressor.next_frame(&mut reader)? {
                    break;
                }
            }
        }
    }
    Ok(seen)
}

fn frames_of(algorithm: Algorithm, payloads: &[&[u8]]) -> Vec<u8> {
    let mut writer = PacketWriter::new();
    for payload in payloads {
        writer.write(payload);
    }
    let mut frames = Vec::new();
    Compressor::new(algorithm).compress(writer.bytes(), &mut frames);
    frames
}

#[test]
fn a_short_packet_goes_as_it_is() {
    for algorithm in ALGORITHMS {
        let frames = frames_of(algorithm, &[b"\x03SELECT 1"]);
        assert_eq!(frames, b"\x0d\0\0\0\0\0\0\x09\0\0\0\x03SELECT 1");
        let frames = frames_of(algorithm, &[&[b'a'; 45]]);
        assert_eq!(frames[..7], [49, 0, 0, 0, 0, 0, 0]);
        let frames = frames_of(algorithm, &[&[b'a'; 46]]);
        assert_eq!(frames[4..7], [50, 0, 0], "50 bytes are compressed");
    }
}

#[test]
fn what_does_not_shrink_goes_as_it_is() {
    let mut noise = vec![0; 70_000];
    getrandom::fill(&mut noise).unwrap();
    for algorithm in ALGORITHMS {
        let frames = frames_of(algorithm, &[&noise]);
        assert_eq!(frames.len(), noise.len() + 4 + FRAME_HEADER_BYTES);
        assert_eq!(read_all(algorithm, &frames, 5000), Ok(vec![noise.clone()]));
    }
}

#[test]
fn packets_run_over_frames_and_over_16_mib() {
    let long = text((16 << 20) + 100);
    for algorithm in [Algorithm::Zlib, Algorithm::Zstd { level: 3 }] {
        let frames = frames_of(algorithm, &[b"first", &long, b"", b"last"]);
        assert!(frames.len() < long.len() / 2);
        let seen = read_all(algorithm, &frames, 1 << 16).unwrap();
        assert!(seen == [&b"first"[..], &long, b"", b"last"]);
    }
}

#[test]
fn one_frame_may_hold_16_mib() {
    let content = text(0xFF_FFFF);
    let mut writer = PacketWriter::new();
    writer.write(&content[..content.len() - 4]);
    assert_eq!(writer.len(), 0xFF_FFFF);
    for algorithm in [Algorithm::Zlib, Algorithm::Zstd { level: 3 }] {
        let mut frame = vec![0; 7];
        let shrank =
            CODECS.with_borrow_mut(|codecs| codecs.compress(algorithm, writer.bytes(), &mut frame));
        assert!(shrank);
        let length = ((frame.len() - 7) as u32).to_le_bytes();
        frame[..3].copy_from_slice(&length[..3]);
        frame[4..7].fill(0xFF);
        let seen = read_all(algorithm, &frame, 1 << 20).unwrap();
        assert!(seen == [&content[..content.len() - 4]]);
    }
}

#[test]
fn frames_are_numbered_within_a_packet() {
    for algorithm in ALGORITHMS {
        let mut frames = frames_of(algorithm, &[&text(FRAME_BYTES_MAX * 2)]);
        assert!(read_all(algorithm, &frames, 1000).is_ok());
        let first = FRAME_HEADER_BYTES + frame_header(&frames).unwrap().length;
        assert_eq!(frames[first + 3], 1);
        frames[first + 3] = 9;
        assert_eq!(
            read_all(algorithm, &frames, 1000),
            Err(Error::PacketsOutOfOrder)
        );
    }
}

#[test]
fn a_new_command_may_begin_between_packets() {
    for algorithm in ALGORITHMS {
        let mut frames = frames_of(algorithm, &[b"one"]);
        frames.extend(frames_of(algorithm, &[b"two", b"three"]));
        let mut decompressor = Decompressor::new(algorithm);
        let mut reader = PacketReader::new(1 << 20);
        decompressor.feed(&frames);
        while decompressor.next_frame(&mut reader).unwrap() {}
        assert_eq!(decompressor.sequence(), 1);
        for wanted in [&b"one"[..], b"two", b"three"] {
            assert_eq!(reader.next_packet().unwrap().unwrap().payload, wanted);
        }
    }
}

#[test]
fn what_is_longer_or_shorter_than_announced_is_refused() {
    for algorithm in ALGORITHMS {
        let good = frames_of(algorithm, &[&text(10_000)]);
        for wrong in [1u32, 10_003, 10_005, 0xFF_FFFF] {
            let mut frames = good.clone();
            frames[4..7].copy_from_slice(&wrong.to_le_bytes()[..3]);
            assert_eq!(
                read_all(algorithm, &frames, 999),
                Err(Error::Uncompress),
                "{algorithm:?} {wrong}"
            );
        }
        // A byte behind what was compressed.
        let mut frames = good.clone();
        frames.push(0);
        let length = ((frames.len() - 7) as u32).to_le_bytes();
        frames[..3].copy_from_slice(&length[..3]);
        assert_eq!(read_all(algorithm, &frames, 999), Err(Error::Uncompress));
    }
}

#[test]
fn an_announced_length_alone_gets_no_memory() {
    for algorithm in ALGORITHMS {
        let mut decompressor = Decompressor::new(algorithm);
        let mut reader = PacketReader::new(1 << 20);
        decompressor.feed(b"\xff\xff\xff\0\xff\xff\xff");
        assert_eq!(decompressor.next_frame(&mut reader), Ok(false));
        assert!(decompressor.spare().len() <= 2 * READ_BYTES_MIN);
        assert!(decompressor.capacity() + reader.capacity() < 64 << 10);
    }
}

#[test]
fn a_reader_keeps_no_memory_of_a_large_frame() {
    let frames = frames_of(Algorithm::Zlib, &[&vec![b'a'; 8 << 20]]);
    let mut decompressor = Decompressor::new(Algorithm::Zlib);
    let mut reader = PacketReader::new(64 << 20);
    decompressor.feed(&frames);
    while !reader.has_packet() && decompressor.next_frame(&mut reader).unwrap() {}
    assert!(reader.next_packet().unwrap().is_some());
    decompressor.feed(&frames_of(Algorithm::Zlib, &[b"small"]));
    assert_eq!(decompressor.next_frame(&mut reader), Ok(true));
    assert!(reader.next_packet().unwrap().is_some());
    assert!(decompressor.capacity() + reader.capacity() < 2 << 20);
}

proptest! {
    #[test]
    fn any_packets_survive_any_cutting(
        payloads in prop::collection::vec(
            prop_oneof![
                prop::collection::vec(any::<u8>(), 0..300),
                (0usize..200_000).prop_map(text),
            ],
            0..6,
        ),
        cut in prop_oneof![1usize..64, 1000usize..100_000],
        which in 0usize..2,
        first in any::<u8>(),
    ) {
        let mut writer = PacketWriter::new();
        for payload in &payloads {
            writer.write(payload);
        }
        let mut compressor = Compressor::new(ALGORITHMS[which]);
        compressor.set_sequence(first);
        let mut frames = Vec::new();
        let half = writer.len() / 2;
        compressor.compress(&writer.bytes()[..half], &mut frames);
        compressor.compress(&writer.bytes()[half..], &mut frames);
        prop_assert_eq!(read_all(ALGORITHMS[which], &frames, cut), Ok(payloads));
    }

    #[test]
    fn random_bytes_never_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..2000),
        announced in 0u32..100_000,
        which in 0usize..3,
    ) {
        let _ = read_all(ALGORITHMS[which], &bytes, 100);
        let length = (bytes.len() as u32).to_le_bytes();
        let mut frame = length[..3].to_vec();
        frame.push(0);
        frame.extend_from_slice(&announced.to_le_bytes()[..3]);
        frame.extend_from_slice(&bytes);
        let _ = read_all(ALGORITHMS[which], &frame, 100);
    }

    #[test]
    fn a_changed_byte_never_panics(
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        which in 0usize..3,
    ) {
        let mut frames = frames_of(ALGORITHMS[which], &[&text(5000), &text(20)]);
        let at = at.index(frames.len());
        frames[at] = byte;
        let _ = read_all(ALGORITHMS[which], &frames, 1 << 20);
    }
}

#[test]
fn frames_of_whole_packets_end_with_packets() {
    let lengths = [10, 5000, 130_000, 70_000, 70_000, 1, 0, 400_000, 3];
    let mut writer = PacketWriter::new();
    for length in lengths {
        writer.write(&vec![b'x'; length]);
    }
    let mut frames = Vec::new();
    Compressor::new(Algorithm::Zlib).compress_packets(writer.bytes(), &mut frames);
    let mut decompressor = Decompressor::new(Algorithm::Zlib);
    decompressor.feed(&frames);
    let mut came = Vec::new();
    let mut reader = PacketReader::new(64 << 20);
    while decompressor.next_frame(&mut reader).unwrap() {
        while let Some(packet) = reader.next_packet().unwrap() {
            came.push(packet.payload.len());
        }
        assert!(!reader.is_mid_packet());
    }
    assert_eq!(came, lengths);
}
