//! The numbers of RAND(N), and of RAND() where `rand_seed1` and `rand_seed2` are set.

/// What states are taken by.
const MODULUS: u64 = 0x3FFF_FFFF;

/// MySQL's sequence of random numbers: the same for the same seeds.
#[derive(Clone, Copy, Debug, Default)]
pub struct RandomSequence {
    first: u64,
    second: u64,
}

impl RandomSequence {
    /// The sequence of RAND(seed), of which the lower 32 bits count.
    pub fn of_seed(seed: u64) -> RandomSequence {
        let seed = seed & 0xFFFF_FFFF;
        let mut sequence = RandomSequence::default();
        sequence.set_first(seed * 0x1_0001 + 55_555_555);
        sequence.set_second(seed * 0x1000_0001);
        sequence
    }

    /// `rand_seed1`.
    pub fn set_first(&mut self, seed: u64) {
        self.first = (seed & 0xFFFF_FFFF) % MODULUS;
    }

    /// `rand_seed2`.
    pub fn set_second(&mut self, seed: u64) {
        self.second = (seed & 0xFFFF_FFFF) % MODULUS;
    }

    /// The next number: at least 0, at most 1.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> f64 {
        self.first = (self.first * 3 + self.second) % MODULUS;
        self.second = (self.first + self.second + 33) % MODULUS;
        self.first as f64 / MODULUS as f64
    }
}
