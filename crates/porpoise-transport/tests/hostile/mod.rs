//! A client of shared memory that does what it likes, played from bytes: each step is a byte that
//! says what, and its parameters. The server's end may fail; it must not panic, block, or take what
//! isn't there.

use porpoise_transport::memory::RingSizes;
use porpoise_transport::{RingInterest, ServerEnd};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::fs::File;
use std::io::{IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;

const DEFAULT_SIZES: RingSizes = RingSizes {
    to_server: 4096,
    to_client: 4096,
};
/// Where each end's words lie, and the rings behind them.
const CONTROL_BYTES: [u64; 2] = [0, 128];
const RINGS: u64 = 4096;
const STEPS_MAX: usize = 2000;

struct Steps<'a>(&'a [u8]);

impl Steps<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    /// What is missing at the end is zeros.
    fn number(&mut self) -> u64 {
        let bytes = [(); 8].map(|()| self.byte().unwrap_or(0));
        u64::from_le_bytes(bytes)
    }
}

/// The memory that the server handed over.
fn take_memory(socket: &UnixStream) -> File {
    let mut offer = [0; 24];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut into = [IoSliceMut::new(&mut offer)];
    recvmsg(socket, &mut into, &mut control, RecvFlags::CMSG_CLOEXEC).unwrap();
    let descriptors = control.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => descriptors.collect::<Vec<OwnedFd>>(),
        _ => Vec::new(),
    });
    // The doorbell is of no interest: it goes at once.
    descriptors.into_iter().next().unwrap().into()
}

/// Plays the steps. Returns how many bytes the server read.
pub fn play(bytes: &[u8]) -> usize {
    let (near, far) = UnixStream::pair().unwrap();
    let mut server = ServerEnd::offer_with_sizes(near, DEFAULT_SIZES).unwrap();
    let memory = take_memory(&far);
    // It says more than the socket takes, and doesn't wait for that.
    far.set_nonblocking(true).unwrap();
    let mut far = Some(far);
    let mut steps = Steps(bytes);
    let mut taken = 0;
    for _ in 0..STEPS_MAX {
        let Some(step) = steps.byte() else { break };
        let parameter = steps.byte().unwrap_or(0);
        let word = CONTROL_BYTES[usize::from(parameter >> 2 & 1)] + u64::from(parameter & 3) * 8;
        match step % 8 {
            // Any number in any word, its own or the server's.
            0 => memory
                .write_all_at(&steps.number().to_le_bytes(), word)
                .unwrap(),
            // A word goes on by a little, as an honest client's would.
            1 => {
                let mut bytes = [0; 8];
                memory.read_exact_at(&mut bytes, word).unwrap();
                let more = u64::from_le_bytes(bytes).wrapping_add(u64::from(parameter >> 3));
                memory.write_all_at(&more.to_le_bytes(), word).unwrap();
            }
            // Bytes anywhere in the rings.
            2 => {
                let at =
                    steps.number() % (DEFAULT_SIZES.to_server + DEFAULT_SIZES.to_client) as u64;
                memory.write_all_at(&[parameter], RINGS + at).unwrap();
            }
            3 => {
                let mut into = [0; 600];
                let room = usize::from(parameter) * 2;
                if let Ok(count) = server.read(&mut into[..room]) {
                    assert!(count <= room);
                    taken += count;
                }
            }
            4 => {
                let from = [parameter; 700];
                let count = server.write(&from[..usize::from(parameter) * 2]);
                assert!(count.unwrap_or(0) <= DEFAULT_SIZES.to_client);
            }
            5 => {
                let interest = [
                    RingInterest::READABLE,
                    RingInterest::WRITABLE,
                    RingInterest::EITHER,
                ][usize::from(parameter % 3)];
                server.is_ready(interest);
                server.arm(interest);
                server.disarm();
            }
            6 => {
                if let Some(far) = &mut far {
                    // Not allowed; the server says so when it looks.
                    let _ = far.write(&[parameter]);
                }
            }
            // Dead once in a while.
            _ => {
                if parameter == 0xFF {
                    far = None;
                }
            }
        }
    }
    taken
}
