//! A checksum for every page of the tree's file, kept beside the pages.
//!
//! redb verifies its own page checksums only when it repairs a file, hence whatever a disk does to
//! a page between two starts would be read as rows. So the file has another checksum for each 4
//! KiB, verified whenever the page is read. They lie in pages of checksums between the others, so
//! that pages stay aligned, and a page whose write was lost is noticed, too:
//!
//! ```text
//! page in the file     0       1       2 … 513      514     515 … 1026    1027
//!                      header  sums₀   512 pages    sums₁   512 pages     sums₂ …
//! redb's page          0               1 … 512              513 … 1024
//! ```
//!
//! A checksum is XXH3-64 of the page, seeded with the page's number and the store's identity: a
//! page in another's place, or from another file, doesn't match. Zero stands for "never written".
//!
//! A page of checksums needs no checksum of its own: damage to one checksum makes one page
//! unreadable, and that is reported with its place. It may be torn by a power cut, too. What a
//! commit has on disk isn't written again before the next commit is, so the checksums of a commit's
//! pages are the same bytes before and after, whichever sectors of the page of checksums arrive.
//! Pages that no commit refers to may disagree with their checksums, and are written before they
//! are read.

use std::collections::VecDeque;

use hashbrown::HashMap;
use twox_hash::XxHash3_64;

pub(crate) const PAGE_BYTES: usize = 4096;
const PAGE: u64 = PAGE_BYTES as u64;
/// Pages that one page of checksums covers.
pub(crate) const PAGES_PER_CHECKSUM_PAGE: u64 = PAGE / 8;

/// A random number that identifies a store: it is in the tree's header, in every page's checksum
/// and in the log's segments. Never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StoreId(pub u64);

impl StoreId {
    pub(crate) fn random() -> StoreId {
        use std::hash::{BuildHasher, RandomState};
        // A file of zeros must not have a valid identity.
        StoreId(RandomState::new().hash_one(0x706f_7270_6f69_7365_u64) | 1)
    }
}

/// Where one of redb's pages lies in the file.
pub(crate) fn page_offset(page: u64) -> u64 {
    match page.checked_sub(1) {
        None => 0,
        Some(below) => (below + below / PAGES_PER_CHECKSUM_PAGE + 2) * PAGE,
    }
}

/// The page of checksums that covers a page other than the first, and the place of its checksum
/// there.
pub(crate) fn checksum_page_of(page: u64) -> (u64, usize) {
    let below = page.saturating_sub(1);
    (
        below / PAGES_PER_CHECKSUM_PAGE,
        (below % PAGES_PER_CHECKSUM_PAGE) as usize,
    )
}

/// Where a page of checksums lies in the file.
pub(crate) fn checksum_page_offset(group: u64) -> u64 {
    (1 + group * (PAGES_PER_CHECKSUM_PAGE + 1)) * PAGE
}

/// The length of a file that holds so many bytes for redb.
pub(crate) fn file_len(logical: u64) -> u64 {
    match logical.div_ceil(PAGE).checked_sub(1) {
        None => 0,
        Some(last) => page_offset(last) + PAGE,
    }
}

/// How many of redb's pages, from this one on, are contiguous in the file.
pub(crate) fn run_from(page: u64) -> u64 {
    match page {
        0 => 1,
        _ => PAGES_PER_CHECKSUM_PAGE - (page - 1) % PAGES_PER_CHECKSUM_PAGE,
    }
}

pub(crate) fn checksum_of(id: StoreId, page: u64, bytes: &[u8]) -> u64 {
    let seed = id.0 ^ page.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    // Zero stands for "never written".
    XxHash3_64::oneshot_with_seed(seed, bytes).max(1)
}

/// The checksums of 512 pages, as they lie on disk.
#[derive(Debug)]
pub(crate) struct ChecksumPage {
    sums: Box<[u64; PAGES_PER_CHECKSUM_PAGE as usize]>,
    /// Counts the changes since it was last on disk.
    changes: u64,
    was_used: bool,
}

impl ChecksumPage {
    pub fn empty() -> ChecksumPage {
        ChecksumPage {
            sums: Box::new([0; PAGES_PER_CHECKSUM_PAGE as usize]),
            changes: 0,
            was_used: true,
        }
    }

    pub fn from_bytes(bytes: &[u8; PAGE_BYTES]) -> ChecksumPage {
        let mut group = ChecksumPage::empty();
        let (words, _) = bytes.as_chunks::<8>();
        for (sum, word) in group.sums.iter_mut().zip(words) {
            *sum = u64::from_le_bytes(*word);
        }
        group
    }

    pub fn to_bytes(&self) -> [u8; PAGE_BYTES] {
        let mut bytes = [0; PAGE_BYTES];
        let (words, _) = bytes.as_chunks_mut::<8>();
        for (word, sum) in words.iter_mut().zip(self.sums.iter()) {
            *word = sum.to_le_bytes();
        }
        bytes
    }

    pub fn get(&self, place: usize) -> u64 {
        self.sums[place]
    }
}

/// The pages of checksums in memory: all that were changed since the last sync, and as many others
/// as there is room for (CLOCK).
#[derive(Debug)]
pub(crate) struct ChecksumCache {
    checksums: HashMap<u64, ChecksumPage>,
    clock: VecDeque<u64>,
    room: usize,
}

/// A page of checksums that a sync is writing, and how often it had been changed by then.
pub(crate) struct WrittenChecksums {
    group: u64,
    changes: u64,
}

impl ChecksumCache {
    pub fn new(room: usize) -> ChecksumCache {
        ChecksumCache {
            checksums: HashMap::new(),
            clock: VecDeque::new(),
            room: room.max(1),
        }
    }

    pub fn get(&mut self, group: u64) -> Option<&ChecksumPage> {
        let found = self.checksums.get_mut(&group)?;
        found.was_used = true;
        Some(found)
    }

    /// Adds a page that was read, evicting unchanged ones.
    pub fn admit(&mut self, number: u64, group: ChecksumPage) {
        let mut rounds = 2 * self.clock.len();
        while self.checksums.len() >= self.room && rounds > 0 {
            rounds -= 1;
            let Some(next) = self.clock.pop_front() else {
                break;
            };
            let stays = self.checksums.get_mut(&next).is_some_and(|group| {
                let was_used = std::mem::take(&mut group.was_used);
                was_used || group.changes > 0
            });
            match stays {
                true => self.clock.push_back(next),
                false => drop(self.checksums.remove(&next)),
            }
        }
        if self.checksums.insert(number, group).is_none() {
            self.clock.push_back(number);
        }
    }

    /// Notes the checksum of a page that was written. The page of checksums must be in memory.
    pub fn set(&mut self, group: u64, place: usize, sum: u64) {
        if let Some(group) = self.checksums.get_mut(&group) {
            group.sums[place] = sum;
            group.changes += 1;
        }
    }

    /// The pages that a sync has to write, in the order of the file.
    pub fn changed(&self) -> Vec<u64> {
        let changed = self.checksums.iter().filter(|(_, group)| group.changes > 0);
        let mut changed: Vec<u64> = changed.map(|(&number, _)| number).collect();
        changed.sort_unstable();
        changed
    }

    /// The bytes to write for one of them.
    pub fn bytes_to_write(&self, number: u64) -> Option<(WrittenChecksums, [u8; PAGE_BYTES])> {
        let group = self.checksums.get(&number)?;
        let written = WrittenChecksums {
            group: number,
            changes: group.changes,
        };
        Some((written, group.to_bytes()))
    }

    /// Notes after the sync that these are on disk. Not before, since a sync that fails may have
    /// dropped them.
    pub fn note_synced(&mut self, written: &[WrittenChecksums]) {
        for WrittenChecksums { group, changes } in written {
            if let Some(group) = self.checksums.get_mut(group) {
                group.changes = group.changes.saturating_sub(*changes);
            }
        }
    }

    /// Drops the pages that are as on disk, so that they are read again.
    pub fn forget_unchanged(&mut self) {
        self.checksums.retain(|_, group| group.changes > 0);
        let checksums = &self.checksums;
        self.clock.retain(|number| checksums.contains_key(number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_pages_share_a_place_and_none_lies_on_a_page_of_sums() {
        let mut taken = std::collections::BTreeSet::new();
        for page in 0..3 * PAGES_PER_CHECKSUM_PAGE {
            assert!(taken.insert(page_offset(page)), "page {page}");
            assert_eq!(file_len((page + 1) * PAGE), page_offset(page) + PAGE);
        }
        for group in 0..3 {
            assert!(taken.insert(checksum_page_offset(group)), "group {group}");
        }
        let last = *taken.last().unwrap();
        assert_eq!(taken.len() as u64, last / PAGE + 1, "no gaps");
        assert_eq!(file_len(0), 0);
    }

    #[test]
    fn runs_are_contiguous_and_end_at_a_page_of_sums() {
        for page in 1..2 * PAGES_PER_CHECKSUM_PAGE {
            let run = run_from(page);
            assert_eq!(
                page_offset(page + run - 1),
                page_offset(page) + (run - 1) * PAGE
            );
            assert_eq!(checksum_page_of(page).0, checksum_page_of(page + run - 1).0);
            assert_ne!(checksum_page_of(page).0, checksum_page_of(page + run).0);
            assert!(checksum_page_offset(checksum_page_of(page).0) < page_offset(page));
        }
    }

    #[test]
    fn a_sum_knows_the_bytes_the_page_and_the_store() {
        let bytes = [7; PAGE_BYTES];
        let sum = checksum_of(StoreId(1), 5, &bytes);
        assert_eq!(sum, checksum_of(StoreId(1), 5, &bytes));
        assert_ne!(sum, checksum_of(StoreId(1), 6, &bytes));
        assert_ne!(sum, checksum_of(StoreId(3), 5, &bytes));
        for byte in [0, 100, PAGE_BYTES - 1] {
            let mut other = bytes;
            other[byte] ^= 1;
            assert_ne!(sum, checksum_of(StoreId(1), 5, &other));
        }
    }

    #[test]
    fn changed_groups_stay_until_they_are_synced() {
        let mut checksums = ChecksumCache::new(2);
        for number in 0..5 {
            checksums.admit(number, ChecksumPage::empty());
            checksums.set(number, 1, 10 + number);
        }
        assert_eq!(checksums.changed(), [0, 1, 2, 3, 4]);
        let (_, bytes) = checksums.bytes_to_write(0).unwrap();
        assert_eq!(ChecksumPage::from_bytes(&bytes).get(1), 10);
        let written = checksums
            .changed()
            .into_iter()
            .map(|group| checksums.bytes_to_write(group));
        let written: Vec<_> = written.map(|written| written.unwrap().0).collect();
        checksums.set(3, 2, 99);
        checksums.note_synced(&written);
        assert_eq!(
            checksums.changed(),
            [3],
            "changed while the sync was under way"
        );
        checksums.admit(7, ChecksumPage::empty());
        checksums.admit(8, ChecksumPage::empty());
        assert!(
            checksums.checksums.len() <= 3,
            "{}",
            checksums.checksums.len()
        );
        assert!(checksums.checksums.contains_key(&3));
        checksums.forget_unchanged();
        assert_eq!(checksums.checksums.len(), 1);
    }
}
