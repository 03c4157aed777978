//! The transport alone: 100 bytes there, 200 back, between processes.
//!
//! ```text
//! cargo run --release -p porpoise-transport --example ipc -- CLIENTS [SECONDS]
//! ```
//!
//! One server thread serves all clients, each a process of its own, the way the server's event loop
//! does: it looks at the rings of those it heard from lately, and sleeps in epoll when there is
//! nothing for a while.

use porpoise_transport::spin::Spin;
use porpoise_transport::{RingInterest, ServerEnd, SharedMemory};
use rustix::event::epoll;
use std::error::Error;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const REQUEST: usize = 100;
const REPLY: usize = 200;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u64| {
        words
            .get(at)
            .map_or(Ok(default), |word| word.parse::<u64>())
    };
    if let [client, path, seconds] = &words[..]
        && client == "client"
    {
        return run_client(path, Duration::from_secs(seconds.parse()?));
    }
    let clients = number(0, 1)? as usize;
    let seconds = number(1, 3)?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("ipc.sock");
    let listener = UnixListener::bind(&path)?;
    let server = std::thread::spawn(move || serve(&listener, clients));
    let mut running = Vec::new();
    for _ in 0..clients {
        let client = Command::new(std::env::current_exe()?)
            .arg("client")
            .arg(&path)
            .arg(seconds.to_string())
            .stdout(Stdio::piped())
            .spawn()?;
        running.push(client);
    }
    let (mut calls, mut won, mut lost) = (0, 0, 0);
    for client in &mut running {
        let output = client.stdout.take().ok_or("no output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let mut figures = line.split_whitespace().map(str::parse::<u64>);
        let mut next = || {
            figures
                .next()
                .ok_or("no figure")
                .and_then(|f| f.map_err(|_| "no number"))
        };
        calls += next()?;
        won += next()?;
        lost += next()?;
        client.wait()?;
    }
    let (wakeups, spin) = server.join().map_err(|_| "the server panicked")??;
    println!(
        "shared memory clients={clients} {:.0} round trips/s, {:.2} us each; \
         clients' spins won {won} lost {lost}, woken {wakeups}; server's won {} lost {}",
        calls as f64 / seconds as f64,
        clients as f64 * seconds as f64 * 1e6 / calls as f64,
        spin.won(),
        spin.lost(),
    );
    Ok(())
}

fn run_client(path: &str, time: Duration) -> Outcome<()> {
    let mut stream = SharedMemory::accept(UnixStream::connect(path)?, None)?;
    let mut calls = 0u64;
    let (request, mut reply) = ([7; REQUEST], [0; REPLY]);
    let began = Instant::now();
    while began.elapsed() < time {
        for _ in 0..16 {
            stream.write_all(&request)?;
            stream.read_exact(&mut reply)?;
            calls += 1;
        }
    }
    println!("{calls} {} {}", stream.spin().won(), stream.spin().lost());
    Ok(())
}

fn serve(listener: &UnixListener, clients: usize) -> Outcome<(u64, Spin)> {
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let mut ends = Vec::new();
    for (stream, at) in listener.incoming().take(clients).zip(0..) {
        let end = ServerEnd::offer(stream?)?;
        let edge = epoll::EventFlags::IN | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
        let data = epoll::EventData::new_u64(at);
        epoll::add(&poll, end.doorbell(), data, edge)?;
        epoll::add(&poll, end.socket().as_fd(), data, edge)?;
        ends.push(Some(end));
    }
    let mut spin = Spin::default();
    let mut request = [0; 4096];
    let mut events = Vec::with_capacity(64);
    let mut wakeups = 0;
    let mut left = clients;
    // Those that the system said something about: their client may be gone.
    let mut told = vec![false; clients];
    while left > 0 {
        let mut served = false;
        for (place, told) in ends.iter_mut().zip(&mut told) {
            let Some(end) = place else { continue };
            if !end.is_ready(RingInterest::READABLE) && !std::mem::take(told) {
                continue;
            }
            match end.read(&mut request) {
                Ok(0) => {
                    wakeups += end.take_wakeups();
                    *place = None;
                    left -= 1;
                }
                Ok(count) => {
                    served = true;
                    for _ in 0..count / REQUEST {
                        end.write(&[request[3]; REPLY])?;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
        }
        let ready = || {
            ends.iter()
                .flatten()
                .any(|end| end.is_ready(RingInterest::READABLE))
        };
        if served || spin.wait(ready) {
            continue;
        }
        let arm = |ready, end: &mut ServerEnd| end.arm(RingInterest::READABLE) | ready;
        if left == 0 || ends.iter_mut().flatten().fold(false, arm) {
            continue;
        }
        events.clear();
        epoll::wait(&poll, rustix::buffer::spare_capacity(&mut events), None)?;
        spin.woke();
        for end in ends.iter_mut().flatten() {
            end.disarm();
        }
        for event in &events {
            told[event.data.u64() as usize] = true;
        }
    }
    Ok((wakeups, spin))
}
