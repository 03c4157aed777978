//! zlib and zstd, one frame at a time.

use super::Algorithm;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use std::cell::RefCell;
use zstd::bulk;

thread_local! {
    /// What this thread compresses with. Frames don't depend on one another, so connections share
    /// it.
    pub(super) static CODECS: RefCell<Codecs> = RefCell::default();
}

/// The state of each algorithm in each direction, made when it is first needed and kept.
#[derive(Default)]
pub(super) struct Codecs {
    deflate: Option<Compress>,
    inflate: Option<Decompress>,
    zstd_out: Option<(u8, bulk::Compressor<'static>)>,
    zstd_in: Option<bulk::Decompressor<'static>>,
}

impl Codecs {
    /// Appends `content`, compressed, to `out`. False if that saves nothing: `out` then has bytes
    /// behind what it held.
    pub fn compress(&mut self, algorithm: Algorithm, content: &[u8], out: &mut Vec<u8>) -> bool {
        let start = out.len();
        // What doesn't fit into one byte less saves nothing.
        out.resize(start + content.len() - 1, 0);
        let room = &mut out[start..];
        let written = match algorithm {
            Algorithm::Zlib => self.deflate(content, room),
            Algorithm::Zstd { level } => self.zstd_compress(level, content, room),
        };
        out.truncate(start + written.unwrap_or(0));
        written.is_some()
    }

    /// Fills `room` with what `payload` holds. None if `payload` isn't compressed in this way, holds
    /// more or less, or has bytes behind it.
    pub fn decompress(
        &mut self,
        algorithm: Algorithm,
        payload: &[u8],
        room: &mut [u8],
    ) -> Option<()> {
        let written = match algorithm {
            Algorithm::Zlib => self.inflate(payload, room),
            Algorithm::Zstd { .. } => self.zstd_decompress(payload, room),
        };
        (written? == room.len()).then_some(())
    }

    fn deflate(&mut self, content: &[u8], room: &mut [u8]) -> Option<usize> {
        let deflate = self
            .deflate
            .get_or_insert_with(|| Compress::new(Compression::default(), true));
        deflate.reset();
        let status = deflate.compress(content, room, FlushCompress::Finish);
        matches!(status, Ok(Status::StreamEnd)).then_some(deflate.total_out() as usize)
    }

    fn inflate(&mut self, payload: &[u8], room: &mut [u8]) -> Option<usize> {
        let inflate = self.inflate.get_or_insert_with(|| Decompress::new(true));
        inflate.reset(true);
        let status = inflate.decompress(payload, room, FlushDecompress::Finish);
        let whole =
            matches!(status, Ok(Status::StreamEnd)) && inflate.total_in() == payload.len() as u64;
        whole.then_some(inflate.total_out() as usize)
    }

    fn zstd_compress(&mut self, level: u8, content: &[u8], room: &mut [u8]) -> Option<usize> {
        let level = level.clamp(1, 22);
        if self
            .zstd_out
            .as_ref()
            .is_none_or(|(made, _)| *made != level)
        {
            let mut made = match self.zstd_out.take() {
                Some((_, made)) => made,
                None => bulk::Compressor::new(i32::from(level)).ok()?,
            };
            made.set_compression_level(i32::from(level)).ok()?;
            self.zstd_out = Some((level, made));
        }
        let (_, compressor) = self.zstd_out.as_mut()?;
        compressor.compress_to_buffer(content, room).ok()
    }

    fn zstd_decompress(&mut self, payload: &[u8], room: &mut [u8]) -> Option<usize> {
        if self.zstd_in.is_none() {
            self.zstd_in = Some(bulk::Decompressor::new().ok()?);
        }
        let decompressor = self.zstd_in.as_mut()?;
        decompressor.decompress_to_buffer(payload, room).ok()
    }
}
