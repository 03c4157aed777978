//! The message by which a server offers rings: what a client needs to know to map them.

use crate::memory::RingSizes;
use std::io;

/// What comes with the descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offer {
    pub sizes: RingSizes,
    /// The server keeps its end after a conversation, for the next.
    pub reusable: bool,
}

const MAGIC: [u8; 8] = *b"porpoise";
const VERSION: u32 = 1;
pub(super) const OFFER_BYTES: usize = 24;

impl Offer {
    pub fn to_bytes(self) -> [u8; OFFER_BYTES] {
        let mut bytes = [0; OFFER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        let fields = [
            VERSION,
            self.sizes.to_server as u32,
            self.sizes.to_client as u32,
            u32::from(self.reusable),
        ];
        for (place, field) in bytes[8..].as_chunks_mut::<4>().0.iter_mut().zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }

    pub fn parse(bytes: &[u8; OFFER_BYTES]) -> io::Result<Offer> {
        let field = |at: usize| {
            let bytes = bytes[at..at + 4].try_into().expect("four bytes");
            u32::from_le_bytes(bytes)
        };
        if bytes[..8] != MAGIC || field(8) != VERSION {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "what listens there offers no shared memory of a kind known here",
            ));
        }
        let sizes = RingSizes {
            to_server: field(12) as usize,
            to_client: field(16) as usize,
        };
        sizes.length()?;
        let reusable = field(20) & 1 != 0;
        Ok(Offer { sizes, reusable })
    }
}
