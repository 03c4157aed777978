//! Sets of slots: which rows an expression reads, which tables a join has brought together.

use porpoise_expr::SlotId;
use smallvec::SmallVec;

/// A bit a slot; a statement rarely has more than 64.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SlotSet(SmallVec<[u64; 2]>);

impl SlotSet {
    pub fn one(slot: SlotId) -> SlotSet {
        let mut set = SlotSet::default();
        set.insert(slot);
        set
    }

    pub fn insert(&mut self, slot: SlotId) {
        let (word, bit) = (slot.0 as usize / 64, slot.0 % 64);
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << bit;
    }

    pub fn contains(&self, slot: SlotId) -> bool {
        self.0
            .get(slot.0 as usize / 64)
            .is_some_and(|word| word >> (slot.0 % 64) & 1 == 1)
    }

    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    pub fn add(&mut self, other: &SlotSet) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            *word |= more;
        }
    }

    pub fn remove(&mut self, other: &SlotSet) {
        for (word, less) in self.0.iter_mut().zip(&other.0) {
            *word &= !less;
        }
    }

    pub fn union(&self, other: &SlotSet) -> SlotSet {
        let mut all = self.clone();
        all.add(other);
        all
    }

    /// The slots that both have; equal sets have one form.
    pub fn intersection(&self, other: &SlotSet) -> SlotSet {
        let mut both: SmallVec<[u64; 2]> =
            self.0.iter().zip(&other.0).map(|(a, b)| a & b).collect();
        while both.last() == Some(&0) {
            both.pop();
        }
        SlotSet(both)
    }

    pub fn is_subset(&self, of: &SlotSet) -> bool {
        self.0
            .iter()
            .enumerate()
            .all(|(at, word)| word & !of.0.get(at).copied().unwrap_or(0) == 0)
    }

    pub fn intersects(&self, other: &SlotSet) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }

    pub fn iter(&self) -> impl Iterator<Item = SlotId> + '_ {
        self.0.iter().enumerate().flat_map(|(at, word)| {
            (0..64u16)
                .filter(move |bit| word >> bit & 1 == 1)
                .map(move |bit| SlotId(at as u16 * 64 + bit))
        })
    }
}

impl FromIterator<SlotId> for SlotSet {
    fn from_iter<T: IntoIterator<Item = SlotId>>(slots: T) -> SlotSet {
        let mut set = SlotSet::default();
        for slot in slots {
            set.insert(slot);
        }
        set
    }
}
