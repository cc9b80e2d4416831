//! Numbers that look like chance and are the same every time. Each comes from what it is for, not from the ones before
//! it: so the same bead takes equally long in two forecasts that are compared, and only what was changed differs.

/// One sample of what may happen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chance(u64);

impl Chance {
    /// The n-th sample of a seed.
    pub(super) fn new(seed: u64, sample: u32) -> Self {
        Self(mix(seed ^ mix(u64::from(sample))))
    }

    /// A number from 0 to 1, for something about the n-th attempt of somebody.
    pub(super) fn draw(self, who: u64, attempt: u32, what: u32) -> f64 {
        let bits = mix(self.0 ^ who ^ mix(u64::from(attempt) << 32 | u64::from(what)));
        // As many bits as fit into the number.
        (bits >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// A number for a name.
pub(super) fn number_of(name: &str) -> u64 {
    name.bytes().fold(0, |number, byte| mix(number ^ u64::from(byte)))
}

/// The mixer of splitmix64.
fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
