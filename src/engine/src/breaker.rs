//! The circuit breaker: a bead that cannot be *started* is not tried for ever. Exits of started workers go through
//! the retry policy instead; capacity, pause, parked rigs and host load never count.

/// Whether so many failed starts in a row open the breaker. There is no automatic reset: `retry` re-arms.
pub fn trips(failures: u32, max_dispatch_failures: u32) -> bool {
    failures >= max_dispatch_failures.max(1)
}
