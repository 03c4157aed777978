//! Linux: a sealed memfd, an eventfd, SCM_RIGHTS.

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};
use rustix::fs::{
    MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create,
};
use rustix::io::{Errno, IoSlice, IoSliceMut, ReadWriteFlags};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind, connect,
    listen, recv, recvmsg, send, sendmsg, socket_with,
};
use std::fs::File;
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::time::Duration;

/// The memory can neither shrink under a process that has mapped it (an access would be a SIGBUS)
/// nor grow, nor can anybody add a seal.
const SEALS: SealFlags = SealFlags::SHRINK
    .union(SealFlags::GROW)
    .union(SealFlags::SEAL);

/// Zeroed memory that can be handed to another process.
pub(crate) fn create_memory(length: usize) -> io::Result<OwnedFd> {
    let memory = memfd_create(
        "porpoise-ring",
        MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING,
    )?;
    ftruncate(&memory, length as u64)?;
    fcntl_add_seals(&memory, SEALS)?;
    Ok(memory)
}

/// Checks that `memory`, received from another process, has the announced length and keeps it.
pub(crate) fn check_memory(memory: &OwnedFd, length: usize) -> io::Result<()> {
    let seals = fcntl_get_seals(memory)?;
    let found = fstat(memory)?.st_size;
    if seals.contains(SEALS) && usize::try_from(found) == Ok(length) {
        Ok(())
    } else {
        Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the shared memory isn't sealed, or has another size than announced",
        ))
    }
}

/// Memory shared with another process, mapped until this is dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    length: usize,
    /// Not mapped at all, but memory of this process.
    #[cfg(test)]
    block: Option<std::sync::Arc<Block>>,
}

// SAFETY: it owns the mapping, which has no ties to a thread.
unsafe impl Send for Mapping {}
// SAFETY: it gives a pointer and a length only; whoever uses them argues what is done with them.
unsafe impl Sync for Mapping {}

impl Mapping {
    pub fn new(memory: &OwnedFd, length: usize) -> io::Result<Mapping> {
        // SAFETY: the system chooses the address, so that nothing that is mapped already is
        // replaced.
        let base = unsafe {
            mmap(
                std::ptr::null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                memory,
                0,
            )?
        };
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping {
            base,
            length,
            #[cfg(test)]
            block: None,
        })
    }

    /// Where it begins: at a page.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    pub fn length(&self) -> usize {
        self.length
    }

    /// Gives the pages of a range of whole pages back to the system: its bytes are zeros then, for
    /// every process that has mapped them.
    pub fn release(&self, range: Range<usize>) -> io::Result<()> {
        #[cfg(test)]
        if self.block.is_some() {
            return Ok(());
        }
        assert!(range.start <= range.end && range.end <= self.length);
        // SAFETY: the range lies in the mapping, of which nothing is borrowed but the words at its
        // beginning, which callers leave out; any bytes are valid ones.
        unsafe {
            let from = self.base.as_ptr().byte_add(range.start);
            madvise(from.cast(), range.len(), Advice::LinuxRemove)?;
        }
        Ok(())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        #[cfg(test)]
        if self.block.is_some() {
            return;
        }
        // SAFETY: this is what `mmap` returned, and pointers into it live no longer than this.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.length) };
    }
}

/// Memory that two mappings of one process share, for a checker that knows no shared mappings.
#[cfg(test)]
#[derive(Debug)]
pub(crate) struct Block(NonNull<u8>, std::alloc::Layout);

// SAFETY: it owns memory, which has no ties to a thread.
#[cfg(test)]
unsafe impl Send for Block {}
// SAFETY: nothing is done with it but freeing it.
#[cfg(test)]
unsafe impl Sync for Block {}

#[cfg(test)]
impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout, and the mappings over it are gone.
        unsafe { std::alloc::dealloc(self.0.as_ptr(), self.1) };
    }
}

#[cfg(test)]
impl Mapping {
    pub fn pair_in_heap(length: usize) -> [Mapping; 2] {
        let layout = std::alloc::Layout::from_size_align(length, 4096).expect("a small length");
        // SAFETY: the length isn't 0.
        let base = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) }).expect("memory");
        let block = std::sync::Arc::new(Block(base, layout));
        [(); 2].map(|()| Mapping {
            base,
            length,
            block: Some(block.clone()),
        })
    }
}

/// A doorbell: an eventfd. To ring it is to add to its number, to wait for it is to poll it.
pub(crate) fn create_doorbell() -> io::Result<OwnedFd> {
    Ok(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
}

pub(crate) fn ring_doorbell(doorbell: &OwnedFd) {
    // It fails when the number is at its maximum: then the doorbell rings already.
    let _ = rustix::io::write(doorbell, &1u64.to_ne_bytes());
}

/// Makes the doorbell silent. It never blocks, however the other holder of the doorbell has set its
/// flags.
pub(crate) fn clear_doorbell(doorbell: &OwnedFd) {
    let mut number = [0; 8];
    let mut into = [IoSliceMut::new(&mut number)];
    // It fails when the doorbell is silent.
    let _ = rustix::io::preadv2(doorbell, &mut into, u64::MAX, ReadWriteFlags::NOWAIT);
}

/// Sends a byte to the other end of a socket, without waiting for room in it.
pub(crate) fn send_wakeup(socket: impl AsFd) {
    // It fails when the socket is full of bytes that nobody took, or when the other end is closed.
    let _ = send(socket, &[0], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
}

/// What there is on a socket that carries wake-ups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SocketState {
    Empty,
    Wakeups,
    /// The other end has closed it, or is dead.
    Closed,
}

/// Reads wake-ups from the socket; with `wait`, waits for one as long as the socket's receive
/// timeout allows.
pub(crate) fn read_wakeups(socket: impl AsFd, wait: bool) -> io::Result<SocketState> {
    let flags = if wait {
        RecvFlags::empty()
    } else {
        RecvFlags::DONTWAIT
    };
    let mut bytes = [0; 64];
    match recv(socket, &mut bytes, flags) {
        Ok((0, _)) => Ok(SocketState::Closed),
        Ok(_) => Ok(SocketState::Wakeups),
        Err(Errno::AGAIN) => Ok(SocketState::Empty),
        Err(Errno::INTR) => Ok(SocketState::Wakeups),
        Err(Errno::CONNRESET | Errno::PIPE) => Ok(SocketState::Closed),
        Err(error) => Err(error.into()),
    }
}

/// Waits until one of the descriptors has something to read, or has ended.
pub(crate) fn wait_for<const N: usize>(
    descriptors: [BorrowedFd<'_>; N],
    timeout: Option<Duration>,
) -> io::Result<()> {
    let mut polled = descriptors
        .map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN | PollFlags::RDHUP));
    let timeout = timeout.map(crate::stream::timespec);
    match rustix::event::poll(&mut polled, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Sends `message` and two descriptors.
pub(crate) fn send_descriptors(
    socket: impl AsFd,
    message: &[u8],
    descriptors: [&OwnedFd; 2],
) -> io::Result<()> {
    let descriptors = descriptors.map(|descriptor| descriptor.as_fd());
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    let sent = sendmsg(socket, &[IoSlice::new(message)], &mut control, flags)?;
    if sent == message.len() {
        Ok(())
    } else {
        Err(io::ErrorKind::WriteZero.into())
    }
}

/// Receives a message and the two descriptors that come with it, waiting as long as the socket's
/// receive timeout allows.
pub(crate) fn receive_descriptors(
    socket: impl AsFd,
    message: &mut [u8],
) -> io::Result<[OwnedFd; 2]> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let length = message.len();
    let received = loop {
        let mut into = [IoSliceMut::new(message)];
        match recvmsg(&socket, &mut into, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            other => break other?,
        }
    };
    let mut descriptors = Vec::new();
    for item in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = item {
            descriptors.extend(received);
        }
    }
    if received.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    match descriptors.try_into() {
        Ok(descriptors) if received.bytes == length => Ok(descriptors),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "what listens there doesn't offer shared memory",
        )),
    }
}

/// How many may wait to be accepted, of whom one is expected.
const QUEUE_MAX: i32 = 16;

/// Listens at an abstract name: no file, and known in this network namespace only.
pub(crate) fn listen_abstract(name: &str) -> io::Result<UnixListener> {
    let address = SocketAddrUnix::new_abstract_name(name.as_bytes())?;
    let socket = socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    bind(&socket, &address)?;
    listen(&socket, QUEUE_MAX)?;
    Ok(socket.into())
}

/// Connects to an abstract name. Where nobody listens, or the queue is full, it fails at once.
pub(crate) fn connect_abstract(name: &str) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new_abstract_name(name.as_bytes())?;
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &address)?;
    Ok(socket.into())
}

/// How long this thread was ready to run and had to wait for a core, since its start.
pub(crate) fn run_queue_wait() -> Option<Duration> {
    let mut text = [0; 64];
    let length = File::open("/proc/thread-self/schedstat")
        .and_then(|mut file| file.read(&mut text))
        .ok()?;
    // Time on a core and time waiting for one, in nanoseconds, and how often: 2145 2567709 1
    let text = std::str::from_utf8(text.get(..length)?).ok()?;
    let waited = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(Duration::from_nanos(waited))
}

/// Whether there are no more threads that run or want to than cores for them; false where the
/// system doesn't tell.
pub(crate) fn has_idle_core() -> bool {
    let mut text = [0; 64];
    let read = File::open("/proc/loadavg").and_then(|mut file| file.read(&mut text));
    // Averages, those that run or want to among all, and the newest process: 0.20 0.18 0.12 1/80
    // 11206
    let running = read.ok().and_then(|length| {
        let text = std::str::from_utf8(text.get(..length)?).ok()?;
        let (running, _) = text.split_ascii_whitespace().nth(3)?.split_once('/')?;
        running.parse::<usize>().ok()
    });
    static CORES: OnceLock<usize> = OnceLock::new();
    let cores = *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, |n| n.get()));
    running.is_some_and(|running| running <= cores)
}

/// Yields the core to another thread, if one wants it.
pub(crate) fn yield_core() {
    rustix::thread::sched_yield();
}
