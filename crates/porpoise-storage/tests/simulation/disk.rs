//! A disk in memory that knows what would survive a power cut.
//!
//! Of each file it keeps what everybody reads now, and for each sector of 512 bytes that was
//! written since the last sync the contents that the disk may hold instead; of each folder, which
//! names it may hold instead of those that are seen. [`SimDisk::after_cut`] makes of that the disk
//! as it may be found when the power is back: everything unsynced lost, everything kept, or a
//! choice for each sector, each length and each name by itself.
//!
//! ```text
//! sector      synced   write   write   now          after a cut, one of
//!   17          A        B       C      C            A  B  C
//!   18          A                       A            A
//! name
//!   log-00    file 3    gone            gone         file 3, or gone
//!   log.spare  none    file 3           file 3       none, or file 3
//! ```
//!
//! It refuses and errs besides, as told by [`Faults`]: by chance, but the chance comes from a seed.
//! A sync that fails drops some of what it was to write and forgets that it was ever dirty, as
//! Linux does: a later sync succeeds and has not written it.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use fastrand::Rng;
use porpoise_storage::{Disk, DiskFile, DiskFolder, LockOutcome, Metadata, OpenMode};

const SECTOR: usize = 512;
const PAGE: usize = 4096;
/// Of each sector so many states are remembered since the last sync.
const IMAGES_MAX: usize = 4;

type Sector = [u8; SECTOR];

/// How often what goes wrong: chances in 100,000 for each operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// A read fails.
    pub read: u32,
    /// A write fails, some of its sectors written.
    pub write: u32,
    /// A sync fails, some of its sectors lost for good.
    pub sync: u32,
    /// An open finds no descriptor left, or fails.
    pub open: u32,
    /// A rename, a removal or a folder's sync fails.
    pub name: u32,
    /// A read or write does less than it was asked for.
    pub short: u32,
    /// The disk has no room, though it said that it had.
    pub full: u32,
    /// A write lands in another place of the file and reports success.
    pub misdirected: u32,
    /// A bit flips in what is read, on the disk.
    pub rot: u32,
}

impl Faults {
    pub fn only_syncs(self) -> Faults {
        Faults {
            sync: self.sync,
            ..Faults::default()
        }
    }
}

/// What of the unsynced is found after a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerCut {
    LosesAll,
    KeepsAll,
    /// Each sector, length and name by itself.
    Random,
    /// Names as they are seen, sectors at random: what journalling file systems do.
    KeepsNames,
    /// Sectors as they were written, names at random.
    KeepsData,
}

impl PowerCut {
    pub const ALL: [PowerCut; 5] = [
        PowerCut::LosesAll,
        PowerCut::KeepsAll,
        PowerCut::Random,
        PowerCut::KeepsNames,
        PowerCut::KeepsData,
    ];
}

/// An operation that is about to change the disk, or to wait for it.
#[derive(Clone, Debug)]
pub struct Operation {
    pub what: &'static str,
    pub file: String,
    pub number: u64,
}

type Hook = Box<dyn FnMut(&Operation) + Send>;

/// The disk. Clones are the same disk.
#[derive(Clone)]
pub struct SimDisk(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    hook: Mutex<Option<Hook>>,
}

/// Takes something back to where it was before, for tests of the tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IgnoredSyncs {
    /// A folder's sync does nothing.
    pub folder_syncs: bool,
    /// A file's sync does nothing.
    pub file_syncs: bool,
}

#[derive(Clone)]
struct State {
    names: BTreeMap<PathBuf, Node>,
    /// What the names were at their folder's last sync and since, the newest left out.
    unsynced_names: BTreeMap<PathBuf, Vec<Option<Node>>>,
    inodes: BTreeMap<u64, Inode>,
    next_inode: u64,
    random: Rng,
    faults: Faults,
    ignored_syncs: IgnoredSyncs,
    capacity: u64,
    operations: u64,
    injected: u64,
    trace_hash: u64,
    is_off: bool,
    locked: BTreeSet<PathBuf>,
    descriptors: Option<usize>,
    open: usize,
    /// Counts the times that the power came back; a lock of a former time is none.
    power_ups: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    File(u64),
    Folder,
}

#[derive(Clone, Default)]
struct Inode {
    len: u64,
    pages: Vec<Option<Arc<[u8; PAGE]>>>,
    /// For each sector written since the last sync, what it was: on disk, then in between.
    unsynced: BTreeMap<u64, Vec<Sector>>,
    /// The lengths since the last sync, the newest left out.
    unsynced_lens: Vec<u64>,
    /// Sectors that a failed sync has dropped: what the disk has of them.
    dropped: BTreeMap<u64, Sector>,
}

impl Inode {
    fn sector(&self, number: u64) -> Sector {
        let at = number as usize * SECTOR;
        match self.pages.get(at / PAGE) {
            Some(Some(page)) => {
                let from = at % PAGE;
                page[from..from + SECTOR].try_into().expect("a sector")
            }
            _ => [0; SECTOR],
        }
    }

    fn page_mut(&mut self, number: usize) -> &mut [u8; PAGE] {
        if self.pages.len() <= number {
            self.pages.resize(number + 1, None);
        }
        let page = self.pages[number].get_or_insert_with(|| Arc::new([0; PAGE]));
        Arc::make_mut(page)
    }

    fn put_sector(&mut self, number: u64, sector: &Sector) {
        let at = number as usize * SECTOR;
        if *sector == [0; SECTOR] && self.pages.get(at / PAGE).is_none_or(Option::is_none) {
            return;
        }
        self.page_mut(at / PAGE)[at % PAGE..][..SECTOR].copy_from_slice(sector);
    }

    fn remember(&mut self, number: u64) {
        let now = self.sector(number);
        let dropped = self.dropped.remove(&number);
        let images = self.unsynced.entry(number).or_default();
        match dropped {
            Some(on_disk) if images.is_empty() => images.push(on_disk),
            _ if images.len() < IMAGES_MAX => images.push(now),
            _ => images[IMAGES_MAX - 1] = now,
        }
    }

    fn read(&self, bytes: &mut [u8], offset: u64) -> usize {
        let len = self.len.saturating_sub(offset).min(bytes.len() as u64) as usize;
        let mut done = 0;
        while done < len {
            let at = offset as usize + done;
            let part = (PAGE - at % PAGE).min(len - done);
            match self.pages.get(at / PAGE) {
                Some(Some(page)) => {
                    bytes[done..done + part].copy_from_slice(&page[at % PAGE..][..part]);
                }
                _ => bytes[done..done + part].fill(0),
            }
            done += part;
        }
        len
    }

    fn write(&mut self, bytes: &[u8], offset: u64) {
        let Some(last) = (offset + bytes.len() as u64).checked_sub(1) else {
            return;
        };
        if bytes.is_empty() {
            return;
        }
        for sector in offset / SECTOR as u64..=last / SECTOR as u64 {
            self.remember(sector);
        }
        if last + 1 > self.len {
            self.unsynced_lens.push(self.len);
            self.len = last + 1;
        }
        let mut done = 0;
        while done < bytes.len() {
            let at = offset as usize + done;
            let part = (PAGE - at % PAGE).min(bytes.len() - done);
            let is_nothing = bytes[done..done + part].iter().all(|b| *b == 0);
            if !is_nothing || self.pages.get(at / PAGE).is_some_and(Option::is_some) {
                self.page_mut(at / PAGE)[at % PAGE..][..part]
                    .copy_from_slice(&bytes[done..done + part]);
            }
            done += part;
        }
    }

    fn set_len(&mut self, len: u64) {
        if len == self.len {
            return;
        }
        self.unsynced_lens.push(self.len);
        if len < self.len {
            let first = len / SECTOR as u64;
            for sector in first..self.len.div_ceil(SECTOR as u64) {
                self.remember(sector);
                let mut left = self.sector(sector);
                let keep = len
                    .saturating_sub(sector * SECTOR as u64)
                    .min(SECTOR as u64);
                left[keep as usize..].fill(0);
                self.put_sector(sector, &left);
            }
            self.pages.truncate((len as usize).div_ceil(PAGE));
        }
        self.len = len;
    }

    fn sync(&mut self) {
        self.unsynced.clear();
        self.unsynced_lens.clear();
    }

    /// Some sectors get to the disk, others never will, and none is dirty any more.
    fn fail_sync(&mut self, random: &mut Rng) {
        for (sector, images) in std::mem::take(&mut self.unsynced) {
            if random.bool() {
                let on_disk = images.into_iter().next().unwrap_or([0; SECTOR]);
                self.dropped.insert(sector, on_disk);
            }
        }
        // Lengths are the journal's: they get there or stay unsynced.
    }

    fn after_cut(&self, cut: PowerCut, random: &mut Rng) -> Inode {
        let mut found = self.clone();
        found.sync();
        let keeps = matches!(cut, PowerCut::KeepsAll | PowerCut::KeepsData);
        let loses = cut == PowerCut::LosesAll;
        if let Some(on_disk) = self.unsynced_lens.first()
            && !keeps
        {
            let choice = random.usize(..=self.unsynced_lens.len());
            found.len = match loses {
                true => *on_disk,
                false => *self.unsynced_lens.get(choice).unwrap_or(&self.len),
            };
        }
        for (sector, images) in &self.unsynced {
            if keeps {
                continue;
            }
            let image = match loses {
                true => images.first(),
                // As often as not a sector is as it was written last.
                false if random.bool() => None,
                false => images.get(random.usize(..=images.len())),
            };
            if let Some(image) = image {
                found.put_sector(*sector, image);
            }
        }
        for (sector, on_disk) in std::mem::take(&mut found.dropped) {
            found.put_sector(sector, &on_disk);
        }
        found.trim();
        found
    }

    /// Behind the end of a file there is nothing.
    fn trim(&mut self) {
        let len = self.len as usize;
        self.pages.truncate(len.div_ceil(PAGE));
        if !len.is_multiple_of(PAGE) && self.pages.len() == len.div_ceil(PAGE) {
            self.page_mut(len / PAGE)[len % PAGE..].fill(0);
        }
    }
}

fn parent(path: &Path) -> PathBuf {
    path.parent().map(Path::to_path_buf).unwrap_or_default()
}

impl State {
    fn set_name(&mut self, path: &Path, node: Option<Node>) {
        let before = self.names.get(path).copied();
        let path = path.to_path_buf();
        self.unsynced_names
            .entry(path.clone())
            .or_default()
            .push(before);
        match node {
            Some(node) => self.names.insert(path, node),
            None => self.names.remove(&path),
        };
    }

    fn used(&self) -> u64 {
        let mut seen = BTreeSet::new();
        let inodes = self.names.values().filter_map(|node| match node {
            Node::File(inode) if seen.insert(*inode) => self.inodes.get(inode),
            _ => None,
        });
        inodes
            .map(|inode| inode.len.next_multiple_of(PAGE as u64))
            .sum()
    }

    fn chance(&mut self, in_100_000: u32) -> bool {
        let is_hit = in_100_000 > 0 && self.random.u32(..100_000) < in_100_000;
        self.injected += u64::from(is_hit);
        is_hit
    }

    fn check_power(&self) -> io::Result<()> {
        match self.is_off {
            true => Err(io::Error::other("the power is off")),
            false => Ok(()),
        }
    }

    fn file(&self, path: &Path) -> io::Result<u64> {
        match self.names.get(path) {
            Some(Node::File(inode)) => Ok(*inode),
            Some(Node::Folder) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn check_folder(&self, path: &Path) -> io::Result<()> {
        match self.names.get(path) {
            Some(Node::Folder) => Ok(()),
            Some(Node::File(_)) => Err(io::ErrorKind::NotADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn after_cut(&self, cut: PowerCut, random: &mut Rng) -> State {
        let mut names = self.names.clone();
        for (path, images) in &self.unsynced_names {
            let choice = match cut {
                PowerCut::KeepsAll | PowerCut::KeepsNames => continue,
                PowerCut::LosesAll => 0,
                PowerCut::Random | PowerCut::KeepsData => random.usize(..=images.len()),
            };
            match images.get(choice) {
                Some(Some(node)) => names.insert(path.clone(), *node),
                Some(None) => names.remove(path),
                None => None,
            };
        }
        // What was in a folder that is gone is gone with it.
        let has_folders = |path: &Path| {
            let above = path.ancestors().skip(1);
            above
                .filter(|folder| !folder.as_os_str().is_empty())
                .all(|folder| names.get(folder) == Some(&Node::Folder))
        };
        let kept: BTreeMap<_, _> = names
            .iter()
            .filter(|(path, _)| has_folders(path))
            .map(|(path, node)| (path.clone(), *node))
            .collect();
        let mut inodes = BTreeMap::new();
        for node in kept.values() {
            if let Node::File(number) = node
                && let Some(inode) = self.inodes.get(number)
            {
                inodes
                    .entry(*number)
                    .or_insert_with(|| inode.after_cut(cut, random));
            }
        }
        State {
            names: kept,
            unsynced_names: BTreeMap::new(),
            inodes,
            random: random.fork(),
            faults: Faults::default(),
            is_off: false,
            locked: BTreeSet::new(),
            descriptors: None,
            open: 0,
            power_ups: self.power_ups + 1,
            ..*self
        }
    }
}

impl SimDisk {
    /// An empty disk with a root folder.
    pub fn new(seed: u64) -> SimDisk {
        SimDisk::of(State {
            names: BTreeMap::from([(PathBuf::from("/"), Node::Folder)]),
            unsynced_names: BTreeMap::new(),
            inodes: BTreeMap::new(),
            next_inode: 1,
            random: Rng::with_seed(seed),
            faults: Faults::default(),
            ignored_syncs: IgnoredSyncs::default(),
            capacity: u64::MAX,
            operations: 0,
            injected: 0,
            trace_hash: 0,
            is_off: false,
            locked: BTreeSet::new(),
            descriptors: None,
            open: 0,
            power_ups: 0,
        })
    }

    fn of(state: State) -> SimDisk {
        SimDisk(Arc::new(Shared {
            state: Mutex::new(state),
            hook: Mutex::new(None),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        match self.0.state.lock() {
            Ok(state) => state,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    /// Has `hook` called before each operation that changes the disk or waits for it; not for those
    /// that the hook itself makes.
    pub fn set_hook(&self, hook: Option<Hook>) {
        *self.0.hook.lock().unwrap() = hook;
    }

    pub fn set_faults(&self, faults: Faults) {
        self.state().faults = faults;
    }

    pub fn set_ignored_syncs(&self, ignored_syncs: IgnoredSyncs) {
        self.state().ignored_syncs = ignored_syncs;
    }

    pub fn set_capacity(&self, capacity: u64) {
        self.state().capacity = capacity;
    }

    pub fn used(&self) -> u64 {
        self.state().used()
    }

    /// How many operations changed the disk, or waited for it.
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// How many faults there were.
    pub fn injected(&self) -> u64 {
        self.state().injected
    }

    /// Two disks that were done the same to have the same.
    pub fn trace_hash(&self) -> u64 {
        self.state().trace_hash
    }

    /// Fails everything from now on, as if the process were dead; [`SimDisk::revive`] ends it.
    pub fn switch_off(&self) {
        self.state().is_off = true;
    }

    /// How many files and folders may be open at a time.
    pub fn set_descriptors(&self, at_most: Option<usize>) {
        self.state().descriptors = at_most;
    }

    pub fn open_descriptors(&self) -> usize {
        self.state().open
    }

    pub fn is_off(&self) -> bool {
        self.state().is_off
    }

    pub fn faults(&self) -> Faults {
        self.state().faults
    }

    /// The process was killed, the machine goes on: nothing is lost, the locks are free.
    pub fn revive(&self) {
        let mut state = self.state();
        state.is_off = false;
        state.power_ups += 1;
        state.open = 0;
        state.locked.clear();
    }

    /// The power is cut: this disk becomes what is found afterwards.
    pub fn cut(&self, cut: PowerCut) {
        let mut state = self.state();
        let mut random = state.random.fork();
        let after = state.after_cut(cut, &mut random);
        let (faults, ignored_syncs) = (state.faults, state.ignored_syncs);
        *state = State {
            faults,
            ignored_syncs,
            ..after
        };
    }

    /// A disk as this one may be found if the power were cut now.
    pub fn after_cut(&self, cut: PowerCut, seed: u64) -> SimDisk {
        SimDisk::of(self.state().after_cut(cut, &mut Rng::with_seed(seed)))
    }

    /// A disk as this one is for the next process, if this one were killed now. What is unsynced
    /// stays so.
    pub fn after_kill(&self) -> SimDisk {
        let mut state = self.state().clone();
        state.faults = Faults::default();
        state.is_off = false;
        state.power_ups += 1;
        state.open = 0;
        state.descriptors = None;
        state.locked.clear();
        SimDisk::of(state)
    }

    /// A file's bytes as they are seen now.
    pub fn contents(&self, path: &Path) -> Vec<u8> {
        let state = self.state();
        let inode = state.file(path).expect("the file");
        let inode = &state.inodes[&inode];
        let mut bytes = vec![0; inode.len as usize];
        inode.read(&mut bytes, 0);
        bytes
    }

    /// Puts a file where it is to be found, synced and named.
    pub fn place(&self, path: &Path, bytes: &[u8]) {
        let mut state = self.state();
        let number = state.next_inode;
        state.next_inode += 1;
        let mut inode = Inode::default();
        inode.write(bytes, 0);
        inode.sync();
        state.inodes.insert(number, inode);
        state.names.insert(path.to_path_buf(), Node::File(number));
    }

    pub fn place_folder(&self, path: &Path) {
        let mut state = self.state();
        state.names.insert(path.to_path_buf(), Node::Folder);
    }

    fn close(&self, power_ups: u64) {
        let mut state = self.state();
        if state.power_ups == power_ups {
            state.open = state.open.saturating_sub(1);
        }
    }

    /// The names below a folder, for traces.
    pub fn names(&self) -> Vec<String> {
        let state = self.state();
        let named = state.names.iter().map(|(path, node)| match node {
            Node::File(inode) => format!("{} = file {inode}", path.display()),
            Node::Folder => format!("{}/", path.display()),
        });
        named.collect()
    }

    fn begin(&self, what: &'static str, path: &Path) -> io::Result<MutexGuard<'_, State>> {
        let number = {
            let mut state = self.state();
            state.check_power()?;
            state.operations += 1;
            let mixed = path.as_os_str().as_encoded_bytes();
            let mixed = what.as_bytes().iter().chain(mixed);
            for byte in mixed {
                state.trace_hash = (state.trace_hash ^ u64::from(*byte))
                    .wrapping_mul(0x0100_0000_01b3)
                    .rotate_left(5);
            }
            state.operations
        };
        // Taken out while it runs: what it does itself is not told to it.
        let hook = self.0.hook.lock().unwrap().take();
        if let Some(mut hook) = hook {
            let name = path.file_name().map(|name| name.to_string_lossy());
            hook(&Operation {
                what,
                file: name.unwrap_or_default().into_owned(),
                number,
            });
            self.0.hook.lock().unwrap().get_or_insert(hook);
        }
        let state = self.state();
        state.check_power()?;
        Ok(state)
    }
}

impl fmt::Debug for SimDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimDisk")
    }
}

fn no_descriptor() -> io::Error {
    const EMFILE: i32 = 24;
    io::Error::from_raw_os_error(EMFILE)
}

fn input_output() -> io::Error {
    const EIO: i32 = 5;
    io::Error::from_raw_os_error(EIO)
}

fn no_space() -> io::Error {
    io::ErrorKind::StorageFull.into()
}

impl Disk for SimDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.begin("open", path)?;
        let chance = state.faults.open;
        if state.chance(chance) {
            return Err(match state.random.bool() {
                true => no_descriptor(),
                false => input_output(),
            });
        }
        if state.descriptors.is_some_and(|most| state.open >= most) {
            return Err(no_descriptor());
        }
        state.check_folder(&parent(path))?;
        let inode = match (state.file(path), mode) {
            (Ok(inode), OpenMode::Existing) => inode,
            (Ok(inode), OpenMode::Truncated) => {
                if let Some(file) = state.inodes.get_mut(&inode) {
                    file.set_len(0);
                }
                inode
            }
            (Err(e), OpenMode::Truncated) if e.kind() == io::ErrorKind::NotFound => {
                let inode = state.next_inode;
                state.next_inode += 1;
                state.inodes.insert(inode, Inode::default());
                state.set_name(path, Some(Node::File(inode)));
                inode
            }
            (Err(e), _) => return Err(e),
        };
        state.open += 1;
        Ok(Arc::new(SimFile {
            disk: self.clone(),
            inode,
            power_ups: state.power_ups,
            path: path.to_path_buf(),
        }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.begin("rename", from)?;
        let chance = state.faults.name;
        if state.chance(chance) {
            return Err(input_output());
        }
        let inode = state.file(from)?;
        state.set_name(to, Some(Node::File(inode)));
        state.set_name(from, None);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.begin("remove", path)?;
        let chance = state.faults.name;
        if state.chance(chance) {
            return Err(input_output());
        }
        state.file(path)?;
        state.set_name(path, None);
        Ok(())
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<OsString>> {
        let mut state = self.state();
        state.check_power()?;
        let chance = state.faults.read;
        if state.chance(chance) {
            return Err(input_output());
        }
        state.check_folder(folder)?;
        let mut names: Vec<_> = state
            .names
            .keys()
            .filter(|path| path.parent() == Some(folder))
            .filter_map(|path| path.file_name().map(OsString::from))
            .collect();
        state.random.shuffle(&mut names);
        Ok(names)
    }

    fn metadata(&self, path: &Path) -> io::Result<Option<Metadata>> {
        let state = self.state();
        state.check_power()?;
        Ok(match state.names.get(path) {
            None => None,
            Some(Node::Folder) => Some(Metadata::Folder),
            Some(Node::File(inode)) => Some(Metadata::File {
                len: state.inodes.get(inode).map_or(0, |inode| inode.len),
            }),
        })
    }

    fn create_folder(&self, path: &Path) -> io::Result<()> {
        let mut state = self.begin("create folder", path)?;
        state.check_folder(&parent(path))?;
        if state.names.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        state.set_name(path, Some(Node::Folder));
        Ok(())
    }

    fn open_folder(&self, folder: &Path) -> io::Result<Arc<dyn DiskFolder>> {
        let mut state = self.state();
        state.check_power()?;
        let chance = state.faults.open;
        if state.chance(chance) {
            return Err(no_descriptor());
        }
        state.check_folder(folder)?;
        if state.descriptors.is_some_and(|most| state.open >= most) {
            return Err(no_descriptor());
        }
        state.open += 1;
        Ok(Arc::new(SimFolder {
            disk: self.clone(),
            path: folder.to_path_buf(),
            power_ups: state.power_ups,
        }))
    }

    fn free_bytes(&self, _path: &Path) -> Option<u64> {
        let state = self.state();
        Some(state.capacity.saturating_sub(state.used()))
    }

    fn lock(&self, path: &Path) -> io::Result<LockOutcome> {
        let mut state = self.begin("lock", path)?;
        if !state.locked.insert(path.to_path_buf()) {
            return Ok(LockOutcome::InUse { pid: None });
        }
        if !state.names.contains_key(path) {
            let inode = state.next_inode;
            state.next_inode += 1;
            state.inodes.insert(inode, Inode::default());
            state.set_name(path, Some(Node::File(inode)));
        }
        let lock = SimLock {
            disk: self.clone(),
            path: path.to_path_buf(),
            power_ups: state.power_ups,
        };
        Ok(LockOutcome::Held(
            Box::new(lock) as Box<dyn Any + Send + Sync>
        ))
    }
}

struct SimLock {
    disk: SimDisk,
    path: PathBuf,
    power_ups: u64,
}

impl Drop for SimLock {
    fn drop(&mut self) {
        let mut state = self.disk.state();
        if state.power_ups == self.power_ups {
            state.locked.remove(&self.path);
        }
    }
}

#[derive(Debug)]
struct SimFolder {
    disk: SimDisk,
    path: PathBuf,
    power_ups: u64,
}

impl Drop for SimFolder {
    fn drop(&mut self) {
        self.disk.close(self.power_ups);
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        self.disk.close(self.power_ups);
    }
}

impl DiskFolder for SimFolder {
    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.begin("sync folder", &self.path)?;
        check_life(&state, self.power_ups)?;
        let chance = state.faults.name;
        if state.chance(chance) {
            return Err(input_output());
        }
        if !state.ignored_syncs.folder_syncs {
            let folder = &self.path;
            state
                .unsynced_names
                .retain(|path, _| path.parent() != Some(folder));
        }
        Ok(())
    }
}

#[derive(Debug)]
struct SimFile {
    disk: SimDisk,
    inode: u64,
    power_ups: u64,
    path: PathBuf,
}

fn check_life(state: &State, power_ups: u64) -> io::Result<()> {
    match state.power_ups == power_ups {
        true => Ok(()),
        false => Err(io::Error::other("opened before the power was cut")),
    }
}

impl SimFile {
    fn begin(&self, what: &'static str) -> io::Result<MutexGuard<'_, State>> {
        let state = self.disk.begin(what, &self.path)?;
        check_life(&state, self.power_ups)?;
        Ok(state)
    }

    fn with<R>(&self, state: &mut State, act: impl FnOnce(&mut Inode, &mut Rng) -> R) -> R {
        let mut random = state.random.fork();
        let inode = state.inodes.get_mut(&self.inode).expect("an open file");
        act(inode, &mut random)
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.begin("sync")?;
        let chance = state.faults.sync;
        if state.chance(chance) {
            self.with(&mut state, |inode, random| inode.fail_sync(random));
            return Err(input_output());
        }
        if !state.ignored_syncs.file_syncs {
            self.with(&mut state, |inode, _| inode.sync());
        }
        Ok(())
    }

    /// Refuses what would be more than the disk has.
    fn check_room(&self, state: &mut State, end: u64) -> io::Result<()> {
        let len = state.inodes.get(&self.inode).map_or(0, |inode| inode.len);
        let page = PAGE as u64;
        let more = end
            .next_multiple_of(page)
            .saturating_sub(len.next_multiple_of(page));
        if more == 0 {
            return Ok(());
        }
        let chance = state.faults.full;
        if state.chance(chance)
            || state.capacity != u64::MAX && state.used() + more > state.capacity
        {
            return Err(no_space());
        }
        Ok(())
    }
}

/// Whether a write is of one whole sector, which is written or isn't.
fn is_one_sector(bytes: &[u8], offset: u64) -> bool {
    bytes.len() == SECTOR && offset.is_multiple_of(SECTOR as u64)
}

impl DiskFile for SimFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut state = self.disk.state();
        state.check_power()?;
        check_life(&state, self.power_ups)?;
        let faults = state.faults;
        if state.chance(faults.read) {
            return Err(input_output());
        }
        let mut len = bytes.len();
        if len > 1 && !is_one_sector(bytes, offset) && state.chance(faults.short) {
            len = state.random.usize(1..len);
        }
        if state.chance(faults.rot) {
            self.with(&mut state, |inode, random| {
                let at = offset + random.u64(..len.max(1) as u64);
                let mut byte = [0];
                if inode.read(&mut byte, at) == 1 {
                    byte[0] ^= 1 << random.u8(..8);
                    inode.write(&byte, at);
                }
            });
        }
        Ok(self.with(&mut state, |inode, _| inode.read(&mut bytes[..len], offset)))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut state = self.begin("write")?;
        let faults = state.faults;
        self.check_room(&mut state, offset + bytes.len() as u64)?;
        if state.chance(faults.write) {
            self.with(&mut state, |inode, random| {
                let written = match is_one_sector(bytes, offset) {
                    true => random.bool() as usize * SECTOR,
                    false => random.usize(..=bytes.len()),
                };
                inode.write(&bytes[..written], offset);
            });
            return Err(input_output());
        }
        let mut len = bytes.len();
        if len > 1 && !is_one_sector(bytes, offset) && state.chance(faults.short) {
            len = state.random.usize(1..len);
        }
        let is_misdirected = state.chance(faults.misdirected);
        self.with(&mut state, |inode, random| {
            let mut at = offset;
            if is_misdirected && inode.len > bytes.len() as u64 {
                let last = (inode.len - bytes.len() as u64) / SECTOR as u64;
                at = random.u64(..=last) * SECTOR as u64;
            }
            inode.write(&bytes[..len], at);
        });
        Ok(len)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.begin("set length")?;
        let chance = state.faults.write;
        if state.chance(chance) {
            return Err(input_output());
        }
        self.check_room(&mut state, len)?;
        self.with(&mut state, |inode, _| inode.set_len(len));
        Ok(())
    }

    fn discard(&self, offset: u64, len: u64) -> io::Result<()> {
        let mut state = self.begin("discard")?;
        let chance = state.faults.write;
        if state.chance(chance) {
            return Err(input_output());
        }
        self.with(&mut state, |inode, _| {
            let end = inode.len.min(offset + len);
            let zeros = vec![0; end.saturating_sub(offset) as usize];
            inode.write(&zeros, offset);
        });
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        let state = self.disk.state();
        state.check_power()?;
        check_life(&state, self.power_ups)?;
        Ok(state.inodes.get(&self.inode).map_or(0, |inode| inode.len))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.sync()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.sync()
    }
}
