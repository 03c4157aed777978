//! What the steps of a query cost in storage. `cargo bench -p porpoise-storage [rows]`.

use std::hint::black_box;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use porpoise_storage::{Direction, Flush, LockMode, Options, SpaceId, Store, Wait};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const VALUE_BYTES: usize = 190;

fn main() {
    let rows = std::env::args()
        .skip(1)
        .find_map(|a| a.parse().ok())
        .unwrap_or(100_000u32);
    let folder = std::env::temp_dir().join(format!("porpoise-bench-{}", std::process::id()));
    let store = Store::open(&Options::path(&folder)).expect("open");
    let space = store.allocate_space();
    let load = Instant::now();
    for chunk in (0..rows).collect::<Vec<_>>().chunks(1000) {
        let mut work = store.begin();
        for row in chunk {
            work.insert(space, &key(*row), &[7; VALUE_BYTES]);
        }
        work.commit().and_then(|c| c.wait()).expect("load");
    }
    println!(
        "load                 {:9.2} µs a row",
        micros(load.elapsed()) / f64::from(rows)
    );
    println!("memory               {:9.1} MB", resident_mb());
    store.checkpoint().expect("checkpoint");
    println!("memory, checkpointed {:9.1} MB", resident_mb());
    reads(&store, space, rows, "tree only");
    let old = store.snapshot();
    let mut work = store.begin();
    for row in (0..rows).step_by(10) {
        work.put(space, &key(row), &[8; VALUE_BYTES]);
    }
    work.commit().and_then(|c| c.wait()).expect("update");
    reads(&store, space, rows, "1 in 10 in versions");
    drop(old);
    store.checkpoint().expect("checkpoint");
    let begin = time(1_000_000, |_| drop(black_box(store.begin())));
    let snapshot = time(1_000_000, |_| drop(black_box(store.snapshot())));
    println!("begin {begin:.0} ns, snapshot {snapshot:.0} ns");
    let lock = time(1_000_000, |i| {
        let mut work = store.begin();
        let _ = work.lock(space, &key(i), LockMode::Exclusive, Wait::NoWait);
    });
    println!("begin, lock a row, roll back: {lock:.0} ns");
    let flushes = [
        ("policy 1", Flush::AtCommit),
        ("policy 2", Flush::WriteAtCommit),
        ("policy 0", Flush::EachSecond),
    ];
    for (name, flush) in flushes {
        store.flush_policy().set(flush);
        for threads in [1, 8] {
            if flush == Flush::AtCommit {
                println!(
                    "one write + fdatasync after another    {:9.0} /s",
                    raw_syncs(&folder)
                );
            }
            let rate = updates(&store, space, rows, threads);
            let memory = resident_mb();
            println!("{name}: update + commit, {threads} committers {rate:9.0} /s, {memory:.0} MB");
        }
    }
    println!("memory, at the end   {:9.1} MB", resident_mb());
    println!("{:?}", store.stats());
    store.checkpoint().expect("checkpoint");
    println!("memory, checkpointed {:9.1} MB", resident_mb());
    let close = Instant::now();
    store.close().expect("close");
    println!("close {:.1} ms", micros(close.elapsed()) / 1000.0);
    let open = Instant::now();
    drop(Store::open(&Options::path(&folder)).expect("open again"));
    println!("open and drop {:.1} ms", micros(open.elapsed()) / 1000.0);
    cold(&folder, space, rows);
    let _ = std::fs::remove_dir_all(&folder);
}

/// Reads of what no cache has, and a checkpoint that touches every page.
fn cold(folder: &std::path::Path, space: SpaceId, rows: u32) {
    let mut options = Options::path(folder);
    options.cache_bytes = 1 << 20;
    let store = Store::open(&options).expect("open");
    let mut random = Random(3);
    let get = time(50_000, |_| {
        let row = key(random.below(rows));
        let found = store.snapshot().get(space, &row, |v| v[0]).expect("get");
        black_box(found.expect("there"));
    });
    let mut scans = Vec::new();
    for _ in 0..5 {
        let start = Instant::now();
        let all = (Bound::Unbounded, Bound::Unbounded);
        let snapshot = store.snapshot();
        let mut cursor = snapshot
            .range(space, all, Direction::Forward)
            .expect("range");
        while let Some(row) = cursor.next().expect("row") {
            black_box(row);
        }
        scans.push(micros(start.elapsed()) * 1000.0 / f64::from(rows));
    }
    scans.sort_by(f64::total_cmp);
    let mut work = store.begin();
    for row in (0..rows).step_by(10) {
        work.put(space, &key(row), &[3; VALUE_BYTES]);
    }
    work.commit().and_then(|c| c.wait()).expect("update");
    let merge = Instant::now();
    store.checkpoint().expect("checkpoint");
    println!(
        "cold: get {get:.0} ns, full scan {:.0} ns a row; checkpoint of every tenth row {:.1} ms",
        scans[scans.len() / 2],
        micros(merge.elapsed()) / 1000.0
    );
}

fn reads(store: &Store, space: SpaceId, rows: u32, what: &str) {
    let snapshot = store.snapshot();
    let mut random = Random(1);
    let get = time(500_000, |_| {
        let found = snapshot
            .get(space, &key(random.below(rows)), |v| v[0])
            .expect("get");
        black_box(found.expect("there"));
    });
    let fresh = time(500_000, |_| {
        let found = store
            .snapshot()
            .get(space, &key(random.below(rows)), |v| v[0])
            .expect("get");
        black_box(found.expect("there"));
    });
    let range = |direction| {
        let mut random = Random(2);
        time(20_000, |_| {
            let low = key(random.below(rows.saturating_sub(100).max(1)));
            let high = Bound::Unbounded;
            let (low, high) = match direction {
                Direction::Forward => (Bound::Included(&low[..]), high),
                Direction::Backward => (high, Bound::Included(&low[..])),
            };
            let mut cursor = snapshot
                .range(space, (low, high), direction)
                .expect("range");
            for _ in 0..100 {
                black_box(cursor.next().expect("row"));
            }
        })
    };
    let scan = {
        let start = Instant::now();
        let all = (Bound::Unbounded, Bound::Unbounded);
        let mut cursor = snapshot
            .range(space, all, Direction::Forward)
            .expect("range");
        while let Some(row) = cursor.next().expect("row") {
            black_box(row);
        }
        micros(start.elapsed()) * 1000.0 / f64::from(rows)
    };
    println!(
        "{what}: get {get:.0} ns, with a new snapshot {fresh:.0} ns; 100 rows {:.1} µs, backward \
         {:.1} µs; full scan {scan:.0} ns a row",
        range(Direction::Forward) / 1000.0,
        range(Direction::Backward) / 1000.0
    );
}

fn updates(store: &Store, space: SpaceId, rows: u32, threads: u64) -> f64 {
    let done = AtomicU64::new(0);
    let start = Instant::now();
    let deadline = start + Duration::from_secs(2);
    std::thread::scope(|scope| {
        for seed in 0..threads {
            let done = &done;
            scope.spawn(move || {
                let mut random = Random(seed + 10);
                while Instant::now() < deadline {
                    let row = key(random.below(rows));
                    let mut work = store.begin();
                    let wait = Wait::Timeout(Duration::from_secs(9));
                    work.lock(space, &row, LockMode::Exclusive, wait)
                        .expect("lock");
                    work.latest_get(space, &row, |v| v[0]).expect("get");
                    work.put(space, &row, &[9; VALUE_BYTES]);
                    work.commit().and_then(|c| c.wait()).expect("commit");
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    done.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64()
}

/// What the disk does for one that writes 300 bytes and syncs, again and again: the limit of a lone
/// committer, and what it is to be compared with.
fn raw_syncs(folder: &std::path::Path) -> f64 {
    use std::os::unix::fs::FileExt;
    let path = folder.join("raw");
    std::fs::write(&path, vec![0; 4 << 20]).expect("write");
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .expect("open");
    file.sync_all().expect("sync");
    let start = Instant::now();
    let mut done = 0;
    while start.elapsed() < Duration::from_secs(1) {
        file.write_all_at(&[7; 300], done * 300 % (4 << 20))
            .expect("write");
        file.sync_data().expect("sync");
        done += 1;
    }
    done as f64 / start.elapsed().as_secs_f64()
}

fn time(times: u32, mut work: impl FnMut(u32)) -> f64 {
    let start = Instant::now();
    for i in 0..times {
        work(i);
    }
    micros(start.elapsed()) * 1000.0 / f64::from(times)
}

fn key(row: u32) -> [u8; 8] {
    (u64::from(row) | 1 << 63).to_be_bytes()
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn resident_mb() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm
        .split(' ')
        .nth(1)
        .and_then(|p| p.parse::<f64>().ok())
        .unwrap_or(0.0);
    pages * 4096.0 / 1e6
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % u64::from(limit)) as u32
    }
}
