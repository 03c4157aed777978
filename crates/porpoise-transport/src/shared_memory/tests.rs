use super::offer::Offer;
use super::*;
use crate::Stream;
use crate::memory::{DEFAULT_SIZES, KEPT_BYTES, RingSizes};
use crate::ring::{RingInterest, RingMemory, Wake};
use crate::sys;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

fn pair() -> (SharedMemory, ServerEnd) {
    pair_of_sizes(DEFAULT_SIZES)
}

fn pair_of_sizes(sizes: RingSizes) -> (SharedMemory, ServerEnd) {
    let (near, far) = UnixStream::pair().unwrap();
    let server = ServerEnd::offer_with_sizes(far, sizes).unwrap();
    let client = SharedMemory::accept(near, Some(Duration::from_secs(5))).unwrap();
    (client, server)
}

/// As an event loop would wait.
fn wait(server: &mut ServerEnd, interest: RingInterest) {
    if !server.arm(interest) {
        sys::wait_for(
            [server.doorbell.as_fd(), server.socket().as_fd()],
            Some(Duration::from_secs(10)),
        )
        .unwrap();
        sys::clear_doorbell(&server.doorbell);
    }
}

fn echo(mut server: ServerEnd) {
    let mut bytes = vec![0; 3000];
    loop {
        let count = match server.read(&mut bytes) {
            Ok(0) => return,
            Ok(count) => count,
            Err(_) => {
                wait(&mut server, RingInterest::READABLE);
                continue;
            }
        };
        let mut rest = &bytes[..count];
        while !rest.is_empty() {
            match server.write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(_) => {
                    server
                        .wait_for(RingInterest::WRITABLE, Duration::from_secs(1))
                        .unwrap();
                }
            }
        }
    }
}

#[test]
fn requests_are_answered_whether_anybody_sleeps_or_not() {
    let (mut client, server) = pair();
    let serving = thread::spawn(move || echo(server));
    for turn in 0..2000u32 {
        if turn % 500 == 0 {
            thread::sleep(Duration::from_millis(2));
        }
        let request = turn.to_le_bytes();
        client.write_all(&request).unwrap();
        let mut reply = [0; 4];
        client.read_exact(&mut reply).unwrap();
        assert_eq!(reply, request);
    }
    assert_eq!(client.kind(), "shared memory");
    assert!(client.is_private() && client.is_local());
    drop(client);
    serving.join().unwrap();
}

#[test]
fn a_message_many_times_longer_than_the_rings_goes_through() {
    let (client, server) = pair_of_sizes(RingSizes {
        to_server: 4096,
        to_client: 4096,
    });
    let serving = thread::spawn(move || echo(server));
    let sent: Vec<u8> = (0..20_000_000u32).map(|n| ((n * 7) >> 3) as u8).collect();
    let mut client = client;
    let mut got = Vec::with_capacity(sent.len());
    let mut piece = vec![0; 9000];
    for chunk in sent.chunks(2500) {
        client.write_all(chunk).unwrap();
        let end = got.len() + chunk.len();
        while got.len() < end {
            let count = client.read(&mut piece).unwrap();
            got.extend_from_slice(&piece[..count]);
        }
    }
    assert!(got == sent);
    drop(client);
    serving.join().unwrap();
}

#[test]
fn what_a_client_wrote_before_it_left_is_read_before_its_end() {
    let (mut client, mut server) = pair();
    client.write_all(b"goodbye").unwrap();
    drop(client);
    let mut bytes = [0; 20];
    assert_eq!(server.read(&mut bytes).unwrap(), 7);
    assert_eq!(server.read(&mut bytes).unwrap(), 0);
}

#[test]
fn a_client_whose_server_is_gone_reads_the_end_at_once() {
    let (mut client, mut server) = pair();
    server.write(b"last words").unwrap();
    let leaving = thread::spawn(move || {
        thread::sleep(Duration::from_millis(20));
        drop(server);
    });
    let mut bytes = [0; 20];
    assert_eq!(client.read(&mut bytes).unwrap(), 10);
    assert_eq!(client.read(&mut bytes).unwrap(), 0);
    let long = vec![0; DEFAULT_SIZES.to_server + 1];
    let error = client.write_all(&long).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    leaving.join().unwrap();
}

#[test]
fn a_client_waits_no_longer_than_its_timeouts() {
    let (mut client, server) = pair();
    let timeout = Some(Duration::from_millis(20));
    client.set_read_timeout(timeout).unwrap();
    client.set_write_timeout(timeout).unwrap();
    let error = client.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    client.write_all(&vec![0; DEFAULT_SIZES.to_server]).unwrap();
    let error = client.write(&[0]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    drop(server);
}

#[test]
fn a_server_waits_for_room_only_while_its_client_lives() {
    let (client, mut server) = pair();
    while server.write(&[0; 1000]).is_ok() {}
    assert!(
        !server
            .wait_for(RingInterest::WRITABLE, Duration::from_millis(10))
            .unwrap()
    );
    drop(client);
    let error = server
        .wait_for(RingInterest::WRITABLE, Duration::from_secs(10))
        .unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}

#[test]
fn memory_that_could_shrink_or_has_another_size_is_refused() {
    let length = DEFAULT_SIZES.length().unwrap();
    let sealed = sys::create_memory(length).unwrap();
    sys::check_memory(&sealed, length).unwrap();
    assert!(sys::check_memory(&sealed, length + 4096).is_err());
    assert!(rustix::fs::ftruncate(&sealed, 0).is_err());
    let flags = rustix::fs::MemfdFlags::CLOEXEC | rustix::fs::MemfdFlags::ALLOW_SEALING;
    let loose = rustix::fs::memfd_create("loose", flags).unwrap();
    rustix::fs::ftruncate(&loose, length as u64).unwrap();
    assert!(sys::check_memory(&loose, length).is_err());
}

#[test]
fn an_offer_of_nonsense_is_refused() {
    for reusable in [false, true] {
        let sizes = DEFAULT_SIZES;
        let offer = Offer { sizes, reusable };
        assert_eq!(Offer::parse(&offer.to_bytes()).unwrap(), offer);
    }
    let (sizes, reusable) = (DEFAULT_SIZES, false);
    let offer = Offer { sizes, reusable }.to_bytes();
    for (at, byte) in [(0, 0), (8, 9), (12, 1), (13, 0), (15, 0x80), (16, 3)] {
        let mut offer = offer;
        offer[at] = byte;
        assert!(Offer::parse(&offer).is_err(), "{at}");
    }
}

#[test]
fn a_client_that_writes_to_the_socket_breaks_the_rules() {
    let (client, mut server) = pair();
    (&client.socket).write_all(b"hello").unwrap();
    let error = server.read(&mut [0; 10]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
}

#[test]
fn a_client_that_makes_its_doorbell_blocking_and_full_blocks_nobody() {
    let (client, mut server) = pair();
    let doorbell = &client.end.waker().0;
    rustix::fs::fcntl_setfl(doorbell, rustix::fs::OFlags::empty()).unwrap();
    // Silent and blocking: clearing it mustn't wait.
    sys::clear_doorbell(&server.doorbell);
    rustix::io::write(doorbell, &(u64::MAX - 1).to_ne_bytes()).unwrap();
    while server.write(&[0; 1000]).is_ok() {}
    assert!(
        !server
            .wait_for(RingInterest::WRITABLE, Duration::from_millis(10))
            .unwrap()
    );
    for _ in 0..100_000 {
        server.end.waker().wake();
    }
}

#[test]
fn rings_are_reused_with_the_same_server_while_it_lives() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let endpoint = crate::Endpoint::SharedMemory(path.clone());
    let connect = |offer: fn(UnixStream) -> io::Result<ServerEnd>| {
        thread::scope(|scope| {
            let server = scope.spawn(|| offer(listener.accept().unwrap().0).unwrap());
            let client = crate::connect(&endpoint, None).unwrap();
            (client, server.join().unwrap())
        })
    };
    let timeout = Some(Duration::from_secs(5));
    let pooled = || crate::take_pooled(&endpoint, b"again", timeout);
    assert!(pooled().is_none());

    // A server that doesn't keep its end for reuse.
    let (client, _server) = connect(ServerEnd::offer);
    client.return_to_pool();
    assert!(pooled().is_none());

    let (mut client, mut server) = connect(ServerEnd::offer_reusable);
    client.write_all(b"one").unwrap();
    server.write(b"answer").unwrap();
    let mut bytes = [0; 10];
    assert_eq!(server.read(&mut bytes).unwrap(), 3);
    assert!(!server.is_drained());
    // A reply is still to be read: the connection hasn't ended in good order.
    client.return_to_pool();
    assert!(pooled().is_none());

    let (mut client, server) = connect(ServerEnd::offer_reusable);
    let serving = thread::spawn(move || echo(server));
    for word in [&b"one"[..], b"two"] {
        client.write_all(word).unwrap();
        client.read_exact(&mut bytes[..3]).unwrap();
        assert_eq!(&bytes[..3], word);
        client.return_to_pool();
        client = pooled().expect("the server replies");
        client.read_exact(&mut bytes[..5]).unwrap();
        assert_eq!(&bytes[..5], b"again");
        assert!(pooled().is_none());
    }
    client.shutdown().unwrap();
    serving.join().unwrap();
    // The server is gone.
    client.return_to_pool();
    assert!(pooled().is_none());

    // It is there, and doesn't reply.
    let (client, _server) = connect(ServerEnd::offer_reusable);
    client.return_to_pool();
    let timeout = Some(Duration::from_millis(20));
    assert!(crate::take_pooled(&endpoint, b"again", timeout).is_none());

    // Another server takes its place.
    let (client, _server) = connect(ServerEnd::offer_reusable);
    client.return_to_pool();
    std::fs::rename(&path, folder.path().join("old")).unwrap();
    assert!(pooled().is_none());
    let _other = std::os::unix::net::UnixListener::bind(&path).unwrap();
    assert!(pooled().is_none());
}

#[test]
fn memory_that_large_messages_have_needed_is_given_back() {
    let (mut client, mut server) = pair();
    let mut bytes = vec![0; KEPT_BYTES * 2];
    let mut exchange = |server: &mut ServerEnd, client: &mut SharedMemory, length: usize| {
        assert_eq!(server.write(&vec![7; length]).unwrap(), length);
        client.read_exact(&mut bytes[..length]).unwrap();
        assert!(bytes[..length].iter().all(|byte| *byte == 7));
    };
    let in_ring = |client: &SharedMemory, index: usize| {
        let mut byte = [0];
        client.end.memory().get(index, &mut byte);
        byte[0]
    };
    exchange(&mut server, &mut client, KEPT_BYTES);
    assert!(!server.has_spare_memory());
    exchange(&mut server, &mut client, KEPT_BYTES * 2);
    assert!(server.has_spare_memory() && in_ring(&client, KEPT_BYTES) == 7);
    server.release_memory();
    assert!(!server.has_spare_memory());
    assert_eq!(
        (
            in_ring(&client, KEPT_BYTES - 1),
            in_ring(&client, KEPT_BYTES)
        ),
        (7, 0)
    );
    exchange(&mut server, &mut client, KEPT_BYTES * 2);
}
