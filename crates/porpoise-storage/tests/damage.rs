//! Damaged files: right answers or a clear error, nothing else.
//!
//! `PORPOISE_DAMAGES=2000 cargo test --release -p porpoise-storage --test damage -- --nocapture`
//! tries so many random damages; `PORPOISE_SEED` begins with another one.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Once, mpsc};
use std::thread;
use std::time::Duration;

use porpoise_storage::{Direction, Error, Options, Salvage, SpaceId, Store, salvage};

const SPACES: u32 = 6;
const PAGE: usize = 4096;
/// So long one try may take.
const PATIENCE: Duration = Duration::from_secs(60);

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;
/// All rows of all spaces after a commit.
type Model = BTreeMap<u32, Rows>;

static PANICS: AtomicU64 = AtomicU64::new(0);

/// Counts panics. Damage that unwinds out of the B-tree's library is none: it calls no hook.
fn count_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            PANICS.fetch_add(1, Ordering::SeqCst);
            before(info);
        }));
    });
}

fn options(folder: &Path) -> Options {
    let mut options = Options::path(folder);
    options.log_segment_bytes = 32 << 10;
    options.cache_bytes = 256 << 10;
    options
}

fn key(row: u32) -> Vec<u8> {
    format!("key-{row:08}").into_bytes()
}

fn value(space: u32, row: u32, version: u32) -> Vec<u8> {
    let len = match row % 50 {
        0 => 9000,
        _ => 40 + (row % 7) as usize * 30,
    };
    let mut value = format!("{space}:{row}:{version}:").into_bytes();
    value.resize(len, b'a' + (row % 26) as u8);
    value
}

struct Image {
    name: &'static str,
    folder: tempfile::TempDir,
    /// What was acknowledged, after each of the last commits; the last is all of it.
    history: Vec<Model>,
    /// Whether the last commits' records may be lost with their bytes: nothing on disk tells yet
    /// that they were there.
    is_fresh: bool,
}

/// Rows of all spaces, in commits of many rows each.
fn fill(store: &Store, model: &mut Model, rows: std::ops::Range<u32>, version: u32) {
    for space in 1..=SPACES {
        let mut work = store.begin();
        for row in rows.clone() {
            let value = value(space, row, version);
            work.put(SpaceId(space), &key(row), &value);
            model.entry(space).or_default().insert(key(row), value);
        }
        work.commit().unwrap().wait().unwrap();
    }
}

/// Small commits, the model after each of them noted.
fn trickle(store: &Store, history: &mut Vec<Model>, commits: u32) {
    for commit in 0..commits {
        let mut model = history.last().unwrap().clone();
        let mut work = store.begin();
        for space in 1..=SPACES {
            let (changed, deleted) = (commit * 7 + space, 300 + commit * 3 + space);
            let value = value(space, changed, 100 + commit);
            work.put(SpaceId(space), &key(changed), &value);
            work.delete(SpaceId(space), &key(deleted));
            let rows = model.entry(space).or_default();
            rows.insert(key(changed), value);
            rows.remove(&key(deleted));
        }
        work.commit().unwrap().wait().unwrap();
        history.push(model);
    }
}

fn copy_of(from: &Path) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
    }
    folder
}

fn closed() -> Image {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&options(folder.path())).unwrap();
    let mut model = Model::new();
    fill(&store, &mut model, 0..600, 0);
    store.close().unwrap();
    drop(store);
    Image {
        name: "closed",
        folder,
        history: vec![model],
        is_fresh: false,
    }
}

/// As a crash leaves it, so long after the last commit.
fn crashed(name: &'static str, quiet: Duration) -> Image {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&options(folder.path())).unwrap();
    let mut model = Model::new();
    fill(&store, &mut model, 0..600, 0);
    store.checkpoint().unwrap();
    fill(&store, &mut model, 550..650, 1);
    let mut history = vec![model];
    trickle(&store, &mut history, 30);
    thread::sleep(quiet);
    let folder = copy_of(folder.path());
    Image {
        name,
        folder,
        history,
        is_fresh: quiet.is_zero(),
    }
}

/// Twice checkpointed: the tree has pages that were freed and written again.
fn worn() -> Image {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&options(folder.path())).unwrap();
    let mut model = Model::new();
    for version in 0..4 {
        let from = version * 100;
        fill(&store, &mut model, from..from + 400, version);
        store.checkpoint().unwrap();
    }
    let mut history = vec![model];
    trickle(&store, &mut history, 5);
    thread::sleep(Duration::from_millis(2500));
    let folder = copy_of(folder.path());
    Image {
        name: "worn",
        folder,
        history,
        is_fresh: false,
    }
}

/// What a damage did, for the report of a failure.
struct Done {
    what: String,
    /// The file, and from where to where its bytes changed.
    path: PathBuf,
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}

/// A random damage to a random file of a folder.
fn damage(folder: &Path, others: &[&Path], random: &mut fastrand::Rng) -> Done {
    let files = files_in(folder);
    // The tree is one file of several, and most of the store.
    let path = match random.u32(..3) {
        0 => folder.join("tree.redb"),
        _ => files[random.usize(..files.len())].clone(),
    };
    let mut bytes = fs::read(&path).unwrap();
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let (len, pages) = (bytes.len().max(1), (bytes.len() / PAGE).max(1));
    let at = random.usize(..len);
    let end = |from: usize, count: usize| (from + count).min(len);
    let what = match random.u32(..11) {
        0 | 1 => {
            let bit = random.u8(..8);
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << bit;
            }
            format!("bit {bit} of byte {at} flipped")
        }
        2 => {
            let from = at / 512 * 512;
            let to = end(from, 512 * (1 + random.usize(..16)));
            bytes.get_mut(from..to).into_iter().for_each(|b| b.fill(0));
            format!("zeros from {from} to {to}")
        }
        3 => {
            let to = end(at, 1 + random.usize(..5000));
            bytes
                .get_mut(at..to)
                .into_iter()
                .flatten()
                .for_each(|b| *b = random.u8(..));
            format!("noise from {at} to {to}")
        }
        4 => {
            let (one, two) = (random.usize(..pages), random.usize(..pages));
            for byte in 0..PAGE {
                if one * PAGE + byte < bytes.len() && two * PAGE + byte < bytes.len() {
                    bytes.swap(one * PAGE + byte, two * PAGE + byte);
                }
            }
            format!("pages {one} and {two} swapped")
        }
        5 => {
            let (one, two) = (random.usize(..pages), random.usize(..pages));
            let page = bytes[(one * PAGE).min(bytes.len())..end(one * PAGE, PAGE)].to_vec();
            for (to, from) in bytes.iter_mut().skip(two * PAGE).zip(page) {
                *to = from;
            }
            format!("page {one} copied over page {two}")
        }
        6 => {
            bytes.truncate(at);
            format!("cut to {at} bytes")
        }
        7 => {
            let more = random.usize(1..20_000);
            bytes.extend((0..more).map(|_| random.u8(..)));
            format!("{more} bytes of noise behind it")
        }
        8 => {
            fs::remove_file(&path).unwrap();
            return Done {
                what: format!("{name}: removed"),
                path,
            };
        }
        9 => {
            // A page that went to the wrong file.
            let other = fs::read(&files[random.usize(..files.len())]).unwrap();
            let from = random.usize(..(other.len() / PAGE).max(1)) * PAGE;
            let to = random.usize(..pages) * PAGE;
            for (to, from) in bytes
                .iter_mut()
                .skip(to)
                .zip(other.iter().skip(from).take(PAGE))
            {
                *to = *from;
            }
            format!("a page of another file at {to}")
        }
        _ => {
            // A file, or a page of one, from another store.
            let other = others[random.usize(..others.len())].join(&name);
            let Ok(other) = fs::read(&other) else {
                return Done {
                    what: "nothing".into(),
                    path,
                };
            };
            if random.bool() {
                bytes = other;
                "the other store's file of the name".to_string()
            } else {
                let page = random.usize(..pages);
                for (to, from) in bytes.iter_mut().zip(other).skip(page * PAGE).take(PAGE) {
                    *to = from;
                }
                format!("page {page} from another store")
            }
        }
    };
    fs::write(&path, bytes).unwrap();
    Done {
        what: format!("{name}: {what}"),
        path,
    }
}

/// What came of a try.
#[derive(Default, Debug)]
struct Outcome {
    is_refused: bool,
    errors: u64,
    is_shorter: bool,
}

/// Reads everything there is, each way, and compares.
fn read_all(store: &Store, model: &Model) -> Result<u64, String> {
    let mut errors = 0;
    let now = store.snapshot();
    for space in 1..=SPACES {
        let expected = model.get(&space).cloned().unwrap_or_default();
        for direction in [Direction::Forward, Direction::Backward] {
            let mut rows: Box<dyn Iterator<Item = (&Vec<u8>, &Vec<u8>)>> = match direction {
                Direction::Forward => Box::new(expected.iter()),
                Direction::Backward => Box::new(expected.iter().rev()),
            };
            let all = (Bound::Unbounded, Bound::Unbounded);
            let mut cursor = match now.range(SpaceId(space), all, direction) {
                Ok(cursor) => cursor,
                Err(error) => {
                    errors += clear(&error)?;
                    continue;
                }
            };
            loop {
                match cursor.next() {
                    Ok(found) => {
                        let wanted = rows.next().map(|(k, v)| (&k[..], &v[..]));
                        if found != wanted {
                            let found = found.map(|(k, v)| (k.escape_ascii().to_string(), v.len()));
                            let wanted = wanted.map(|(k, _)| k.escape_ascii().to_string());
                            return Err(format!(
                                "space {space}, {direction:?}: {found:?} where {wanted:?} is due"
                            ));
                        }
                        if found.is_none() {
                            break;
                        }
                    }
                    Err(error) => {
                        errors += clear(&error)?;
                        break;
                    }
                }
            }
        }
        for row in (0..700).step_by(13) {
            match now.get(SpaceId(space), &key(row), |value| value.to_vec()) {
                Ok(found) if found.as_ref() == expected.get(&key(row)) => {}
                Ok(found) => {
                    let len = found.map(|found| found.len());
                    return Err(format!(
                        "space {space}, row {row}: a value of {len:?} bytes"
                    ));
                }
                Err(error) => errors += clear(&error)?,
            }
        }
    }
    Ok(errors)
}

/// An error that names the file, or says that nothing more is written.
fn clear(error: &Error) -> Result<u64, String> {
    match error {
        Error::Damaged(place) if place.space.is_some() => Ok(1),
        Error::ReadOnly { .. } => Ok(1),
        error => Err(format!("not clear: {error:?}")),
    }
}

fn is_clear_refusal(error: &Error) -> bool {
    matches!(
        error,
        Error::Corrupt { .. }
            | Error::Damaged(_)
            | Error::NewerFormat { .. }
            | Error::OlderFormat { .. }
    )
}

/// The model that the store agrees with: the whole history, or, where that is allowed, a part of
/// it.
fn judge(folder: &Path, image: &Image, lost_allowed: usize) -> Result<Outcome, String> {
    let mut outcome = Outcome::default();
    let store = match Store::open(&options(folder)) {
        Ok(store) => store,
        Err(error) if is_clear_refusal(&error) => {
            outcome.is_refused = true;
            return Ok(outcome);
        }
        Err(error) => return Err(format!("the start is refused by {error:?}")),
    };
    let whole = image.history.len() - 1;
    let mut failure = String::new();
    let agrees = (whole - lost_allowed.min(whole)..=whole).rev().find(|at| {
        match read_all(&store, &image.history[*at]) {
            Ok(errors) => {
                outcome.errors = errors;
                true
            }
            Err(why) => {
                if *at == whole {
                    failure = why;
                }
                false
            }
        }
    });
    let Some(at) = agrees else {
        return Err(failure);
    };
    outcome.is_shorter = at < whole;
    // And it goes on: what is written now is there, or is refused.
    let mut model = image.history[at].clone();
    for space in 1..=SPACES {
        let mut work = store.begin();
        let fresh = value(space, 5, 9);
        work.put(SpaceId(space), &key(5), &fresh);
        work.put(SpaceId(space), &key(640), &fresh);
        work.delete(SpaceId(space), &key(77));
        match work.commit().and_then(|commit| commit.wait()) {
            Ok(()) => {
                let rows = model.entry(space).or_default();
                rows.insert(key(5), fresh.clone());
                rows.insert(key(640), fresh);
                rows.remove(&key(77));
            }
            Err(error) => outcome.errors += clear(&error)?,
        }
    }
    let _ = store.checkpoint();
    outcome.errors +=
        read_all(&store, &model).map_err(|why| format!("after a checkpoint: {why}"))?;
    let _ = store.close();
    drop(store);
    match Store::open(&options(folder)) {
        Ok(store) => {
            outcome.errors +=
                read_all(&store, &model).map_err(|why| format!("after a restart: {why}"))?;
        }
        Err(error) if is_clear_refusal(&error) => outcome.is_refused = true,
        Err(error) => return Err(format!("the second start is refused by {error:?}")),
    }
    Ok(outcome)
}

/// All rows of a store that is sound.
fn rows_of(folder: &Path) -> Model {
    let store = Store::open(&options(folder)).unwrap();
    let mut model = Model::new();
    for space in 1..=SPACES {
        let all = (Bound::Unbounded, Bound::Unbounded);
        let mut cursor = store
            .snapshot()
            .range(SpaceId(space), all, Direction::Forward)
            .unwrap();
        let rows = model.entry(space).or_default();
        while let Some((key, value)) = cursor.next().unwrap() {
            rows.insert(key.to_vec(), value.to_vec());
        }
    }
    model
}

/// Whether a value is one that the row has had at some time.
fn was_ever(space: u32, key: &[u8], found: &[u8]) -> bool {
    let row = std::str::from_utf8(&key[4..])
        .ok()
        .and_then(|row| row.parse().ok());
    row.is_some_and(|row| (0..200).any(|version| value(space, row, version) == found))
}

/// What is saved of a damaged folder: all of it, or what isn't is told, and nothing that never was.
fn saved(folder: &Path, image: &Image, at_stake: usize) -> Result<Option<Salvage>, String> {
    let into = tempfile::tempdir().unwrap();
    let before: Vec<_> = files_in(folder)
        .iter()
        .map(|path| fs::read(path).unwrap())
        .collect();
    let found = match salvage(folder, &options(into.path()), |_| {}) {
        Ok(found) => found,
        Err(error) if is_clear_refusal(&error) => return Ok(None),
        Err(error) => return Err(format!("nothing is saved: {error:?}")),
    };
    let after: Vec<_> = files_in(folder)
        .iter()
        .map(|path| fs::read(path).unwrap())
        .collect();
    if before != after {
        return Err("the damaged folder was written to".to_string());
    }
    let rows = rows_of(into.path());
    let whole = image.history.len() - 1;
    if found.is_whole() {
        let range = whole - at_stake.min(whole)..=whole;
        let is_right = image.history[range].contains(&rows);
        return is_right
            .then_some(Some(found))
            .ok_or("all is said to be saved".to_string());
    }
    let is_wrong = |(space, rows): (&u32, &Rows)| {
        rows.iter()
            .find(|(key, value)| !was_ever(*space, key, value))
            .is_some()
    };
    match rows.iter().find(|of| is_wrong((of.0, of.1))) {
        Some((space, _)) => Err(format!("a row of space {space} was saved that never was")),
        None => Ok(Some(found)),
    }
}

/// How many of the last commits a damage may take away: those whose records it touched, if it
/// touched all of them up to the last.
fn commits_at_stake(image: &Image, folder: &Path, done: &Done) -> usize {
    if !image.is_fresh {
        return 0;
    }
    let name = done.path.file_name().unwrap();
    let before = fs::read(image.folder.path().join(name)).unwrap();
    let after = fs::read(folder.join(name)).unwrap_or_default();
    let changed = |range: std::ops::Range<usize>| before.get(range.clone()) != after.get(range);
    let records = records_of(&before);
    records
        .iter()
        .rev()
        .take_while(|range| changed((*range).clone()))
        .count()
}

/// Where the records of a segment lie, if it is one.
fn records_of(segment: &[u8]) -> Vec<std::ops::Range<usize>> {
    let mut records = Vec::new();
    if !segment.starts_with(b"PORPLOG\0") {
        return records;
    }
    let word = |at: usize| u64::from_le_bytes(segment[at..at + 8].try_into().unwrap());
    let start = word(16);
    let mut at = 1024;
    while at + 40 <= segment.len() && word(at + 8) == start + at as u64 {
        let payload = (word(at) as u32) as usize;
        records.push(at..at + 40 + payload);
        at += 40 + payload.next_multiple_of(8);
    }
    records
}

/// Judges in a thread of its own, so that a hang is noticed.
fn judged(folder: PathBuf, image: &'static Image, at_stake: usize) -> Result<Outcome, String> {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let outcome = std::panic::catch_unwind(|| judge(&folder, image, at_stake));
        let _ = tell.send(outcome.unwrap_or_else(|_| Err("a panic".to_string())));
    });
    told.recv_timeout(PATIENCE)
        .unwrap_or_else(|_| Err("a hang".to_string()))
}

fn images() -> &'static [Image] {
    static IMAGES: std::sync::OnceLock<Vec<Image>> = std::sync::OnceLock::new();
    IMAGES.get_or_init(|| {
        vec![
            closed(),
            crashed("crashed", Duration::from_millis(2500)),
            crashed("just crashed", Duration::ZERO),
            worn(),
        ]
    })
}

#[test]
fn random_damages_give_right_answers_or_a_clear_error() {
    count_panics();
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
    let tries = number("PORPOISE_DAMAGES").unwrap_or(100);
    let first = number("PORPOISE_SEED").unwrap_or(0);
    let images = images();
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let mut failures = Vec::new();
    for seed in first..first + tries {
        let mut random = fastrand::Rng::with_seed(seed);
        let image = &images[random.usize(..images.len())];
        let folder = copy_of(image.folder.path());
        let others: Vec<&Path> = images
            .iter()
            .filter(|other| other.name != image.name)
            .map(|other| other.folder.path())
            .collect();
        let done = damage(folder.path(), &others, &mut random);
        let at_stake = commits_at_stake(image, folder.path(), &done);
        let panics = PANICS.load(Ordering::SeqCst);
        match saved(folder.path(), image, at_stake) {
            Ok(Some(found)) if found.is_whole() => *counts.entry("saved whole").or_default() += 1,
            Ok(Some(_)) => *counts.entry("saved in part").or_default() += 1,
            Ok(None) => *counts.entry("not saved").or_default() += 1,
            Err(why) => failures.push(format!(
                "seed {seed}, {}: {}: salvage: {why}",
                image.name, done.what
            )),
        }
        let outcome = judged(folder.path().to_path_buf(), image, at_stake);
        let panicked = PANICS.load(Ordering::SeqCst) > panics;
        let fate = match outcome {
            Ok(_) if panicked => Err("a panic inside".to_string()),
            Ok(Outcome {
                is_refused: true, ..
            }) => Ok("start refused"),
            Ok(Outcome {
                is_shorter: true, ..
            }) => Ok("torn tail"),
            Ok(Outcome { errors: 0, .. }) => Ok("all right"),
            Ok(_) => Ok("errors"),
            Err(why) => Err(why),
        };
        match fate {
            Ok(fate) => *counts.entry(fate).or_default() += 1,
            Err(why) => failures.push(format!("seed {seed}, {}: {}: {why}", image.name, done.what)),
        }
    }
    println!("{tries} damages: {counts:?}");
    assert!(
        failures.is_empty(),
        "{}:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

/// Where the page lies that has these bytes, in the tree's file.
fn page_with(tree: &Path, bytes: &[u8]) -> usize {
    let file = fs::read(tree).unwrap();
    // The last one: pages that were freed come before, as a rule.
    let at = file
        .windows(bytes.len())
        .rposition(|window| window == bytes);
    at.expect("the row is in the tree") / PAGE * PAGE
}

fn edit(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

/// A closed store one row of which lies on a damaged page, space 1's; and what it had.
fn damaged_in_space_1() -> (tempfile::TempDir, Model) {
    let image = &images()[0];
    let folder = copy_of(image.folder.path());
    let tree = folder.path().join("tree.redb");
    let at = page_with(&tree, &value(1, 333, 0));
    edit(&tree, |bytes| bytes[at + 2000] ^= 1);
    (folder, image.history[0].clone())
}

fn is_of_space(error: &Error, space: u32) -> bool {
    matches!(error, Error::Damaged(place) if place.space == Some(SpaceId(space)))
}

#[test]
fn a_flipped_byte_anywhere_in_the_tree_is_noticed_or_harmless() {
    count_panics();
    let image = &images()[0];
    let len = fs::metadata(image.folder.path().join("tree.redb"))
        .unwrap()
        .len() as usize;
    let mut noticed = 0;
    for number in 0..152 {
        let folder = copy_of(image.folder.path());
        let at = len / 152 * number + number * 37 % 512;
        edit(&folder.path().join("tree.redb"), |bytes| bytes[at] ^= 0x40);
        let panics = PANICS.load(Ordering::SeqCst);
        let outcome =
            judge(folder.path(), image, 0).unwrap_or_else(|why| panic!("byte {at}: {why}"));
        assert_eq!(PANICS.load(Ordering::SeqCst), panics, "byte {at}");
        noticed += u32::from(outcome.is_refused || outcome.errors > 0);
    }
    assert!(noticed > 30, "{noticed}: the tree has more pages than that");
}

#[test]
fn every_byte_of_the_trees_header_is_verified() {
    let image = &images()[0];
    for at in 0..512 {
        let folder = copy_of(image.folder.path());
        edit(&folder.path().join("tree.redb"), |bytes| bytes[at] ^= 1);
        let error = Store::open(&options(folder.path())).map(drop).unwrap_err();
        assert!(is_clear_refusal(&error), "byte {at}: {error}");
        assert!(
            error.to_string().contains("tree.redb"),
            "byte {at}: {error}"
        );
    }
}

#[test]
fn a_damaged_page_fails_what_needs_it_and_nothing_else() {
    let (folder, model) = damaged_in_space_1();
    let store = Store::open(&options(folder.path())).unwrap();
    let now = store.snapshot();
    for _ in 0..2 {
        let error = now.get(SpaceId(1), &key(333), |_| ()).unwrap_err();
        assert!(is_of_space(&error, 1), "{error:?}");
        assert!(error.to_string().contains("tree.redb"), "{error}");
        let found = now
            .get(SpaceId(1), &key(1), |value| value.to_vec())
            .unwrap();
        assert_eq!(
            found.as_ref(),
            model[&1].get(&key(1)),
            "another page of the space"
        );
    }
    assert!(read_all(&store, &model).unwrap() > 0);
    for space in 2..=SPACES {
        let verified = store.verify(SpaceId(space), || true).unwrap();
        assert!(verified.damage.is_empty());
        assert_eq!(verified.rows, model[&space].len() as u64);
        assert!(verified.pages > 1);
    }
    let verified = store.verify(SpaceId(1), || true).unwrap();
    assert_eq!(verified.damage.len(), 1);
    assert!(is_of_space(&verified.damage[0], 1));
}

#[test]
fn damage_that_comes_while_the_rows_are_cached_is_found_on_disk() {
    let image = &images()[0];
    let folder = copy_of(image.folder.path());
    let mut options = options(folder.path());
    options.cache_bytes = 64 << 20;
    let store = Store::open(&options).unwrap();
    assert_eq!(read_all(&store, &image.history[0]), Ok(0));
    assert!(store.verify(SpaceId(2), || true).unwrap().damage.is_empty());
    let tree = folder.path().join("tree.redb");
    let at = page_with(&tree, &value(2, 123, 0));
    use std::os::unix::fs::FileExt;
    let file = fs::OpenOptions::new().write(true).open(&tree).unwrap();
    file.write_all_at(b"!", at as u64 + 1000).unwrap();
    assert_eq!(read_all(&store, &image.history[0]), Ok(0), "cached");
    let verified = store.verify(SpaceId(2), || true).unwrap();
    assert_eq!(verified.damage.len(), 1);
    assert!(store.verify(SpaceId(3), || true).unwrap().damage.is_empty());
}

#[test]
fn a_checkpoint_goes_around_a_damaged_space() {
    let (folder, mut model) = damaged_in_space_1();
    let open = || Store::open(&options(folder.path())).unwrap();
    let store = open();
    let before = store.snapshot();
    for space in 1..=SPACES {
        let mut work = store.begin();
        work.put(SpaceId(space), &key(333), b"new");
        work.commit().unwrap().wait().unwrap();
        model
            .entry(space)
            .or_default()
            .insert(key(333), b"new".to_vec());
    }
    store.checkpoint().unwrap();
    assert_eq!(store.stats().log_bytes, 0, "the log is let go of");
    let refused = |store: &Store| {
        let error = store
            .snapshot()
            .get(SpaceId(1), &key(1), |_| ())
            .unwrap_err();
        assert!(is_of_space(&error, 1), "{error:?}");
        assert_eq!(store.verify(SpaceId(1), || true).unwrap().damage.len(), 1);
    };
    refused(&store);
    read_all(&store, &model).unwrap();
    // Who began before still reads what was there.
    assert_eq!(
        before
            .get(SpaceId(2), &key(333), |value| value.to_vec())
            .unwrap(),
        Some(value(2, 333, 0))
    );
    for round in 0..3 {
        let mut work = store.begin();
        work.put(SpaceId(1), &key(round), b"kept beside");
        work.put(SpaceId(2), &key(round), b"newer");
        work.commit().unwrap().wait().unwrap();
        model
            .entry(2)
            .or_default()
            .insert(key(round), b"newer".to_vec());
        store.checkpoint().unwrap();
    }
    store.close().unwrap();
    drop(store);
    let store = open();
    refused(&store);
    assert!(read_all(&store, &model).unwrap() > 0);
    // Dropped, it is gone.
    let mut work = store.begin();
    work.drop_space(SpaceId(1));
    work.commit().unwrap().wait().unwrap();
    store.checkpoint().unwrap();
    store.close().unwrap();
    drop(store);
    let store = open();
    for space in 2..=SPACES {
        let found = store
            .snapshot()
            .get(SpaceId(space), &key(333), |v| v.to_vec());
        assert_eq!(found.unwrap(), Some(b"new".to_vec()));
    }
}

#[test]
fn the_name_of_a_space_is_told_with_its_damage() {
    use porpoise_storage::SpaceOwner;
    let (folder, _) = damaged_in_space_1();
    let store = Store::open(&options(folder.path())).unwrap();
    store.set_space_names(Some(std::sync::Arc::new(|space| {
        Some(SpaceOwner {
            table: format!("fish{}", space.0),
            index: None,
        })
    })));
    match store.snapshot().get(SpaceId(1), &key(333), |_| ()) {
        Err(Error::Damaged(place)) => assert_eq!(place.owner.as_ref().unwrap().table, "fish1"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_sound_store_is_saved_whole() {
    for image in images() {
        let found = saved(image.folder.path(), image, 0).unwrap().unwrap();
        assert!(found.is_whole(), "{}: {:?}", image.name, found.losses);
    }
}

#[test]
fn all_but_the_rows_of_a_damaged_page_are_saved() {
    let (folder, model) = damaged_in_space_1();
    let into = tempfile::tempdir().unwrap();
    let found = salvage(folder.path(), &options(into.path()), |_| {}).unwrap();
    let space = &found.spaces[&SpaceId(1)];
    assert_eq!((found.losses.len(), space.gaps.len()), (0, 1), "{found:?}");
    let rows = rows_of(into.path());
    let lost: Vec<_> = model[&1]
        .keys()
        .filter(|key| !rows[&1].contains_key(*key))
        .collect();
    assert!(
        lost.contains(&&key(333)) && lost.len() < 60,
        "{}",
        lost.len()
    );
    assert_eq!(space.rows + lost.len() as u64, space.rows_in_tree);
    for space in 2..=SPACES {
        assert_eq!(rows[&space], model[&space]);
    }
}

#[test]
fn rows_below_a_damaged_branch_are_saved() {
    let image = &images()[0];
    // A branch begins with its kind, and says how many keys it has.
    let tree = fs::read(image.folder.path().join("tree.redb")).unwrap();
    let is_branch =
        |page: &&[u8]| page[0] == 2 && page[1] == 0 && page[2] > 3 && page[4..8] == [0; 4];
    let mut rescued = 0;
    for (number, _) in tree
        .chunks(PAGE)
        .enumerate()
        .skip(1)
        .filter(|(_, page)| is_branch(page))
    {
        let folder = copy_of(image.folder.path());
        edit(&folder.path().join("tree.redb"), |bytes| {
            bytes[number * PAGE + 600] ^= 1
        });
        let into = tempfile::tempdir().unwrap();
        let found = salvage(folder.path(), &options(into.path()), |_| {}).unwrap();
        let orphans = |found: &Salvage| {
            found
                .spaces
                .values()
                .map(|space| space.rows_of_orphans)
                .max()
                .unwrap_or(0)
        };
        if orphans(&found) > 100 && found.losses.is_empty() {
            assert_eq!(rows_of(into.path()), image.history[0], "page {number}");
            rescued += 1;
        }
    }
    assert!(rescued >= SPACES, "{rescued}: each space has a branch");
}

#[test]
fn what_was_kept_beside_a_damaged_space_is_saved() {
    let (folder, mut model) = damaged_in_space_1();
    let store = Store::open(&options(folder.path())).unwrap();
    for (round, checkpointed) in [(0, true), (1, true), (2, false)] {
        let mut work = store.begin();
        work.put(SpaceId(1), &key(333), &value(1, 333, round));
        work.put(SpaceId(1), &key(900 + round), &value(1, 900 + round, 0));
        work.delete(SpaceId(1), &key(round));
        work.commit().unwrap().wait().unwrap();
        let rows = model.entry(1).or_default();
        rows.insert(key(333), value(1, 333, round));
        rows.insert(key(900 + round), value(1, 900 + round, 0));
        rows.remove(&key(round));
        if checkpointed {
            store.checkpoint().unwrap();
        }
    }
    drop(store);
    let into = tempfile::tempdir().unwrap();
    let found = salvage(folder.path(), &options(into.path()), |_| {}).unwrap();
    assert_eq!(found.spaces[&SpaceId(1)].gaps.len(), 1);
    let rows = rows_of(into.path());
    for (key, value) in &rows[&1] {
        assert_eq!(Some(value), model[&1].get(key));
    }
    assert_eq!(rows[&1].get(&key(333)), Some(&value(1, 333, 2)));
    assert!(rows[&1].contains_key(&key(902)));
    assert!(model[&1].len() - rows[&1].len() < 60);
}

#[test]
fn rows_are_saved_from_a_tree_without_a_header_and_a_log_without_a_tree() {
    let image = &images()[1];
    let folder = copy_of(image.folder.path());
    edit(&folder.path().join("tree.redb"), |bytes| bytes[330] ^= 1);
    let found = saved(folder.path(), image, 0).unwrap().unwrap();
    assert!(!found.is_whole());
    assert!(found.spaces[&SpaceId(3)].rows > 500, "{found:?}");
    fs::remove_file(folder.path().join("tree.redb")).unwrap();
    let found = saved(folder.path(), image, 0).unwrap().unwrap();
    assert!(!found.is_whole());
    assert!(
        found.commits_from_log >= 30 && found.spaces[&SpaceId(3)].rows > 30,
        "{found:?}"
    );
}
