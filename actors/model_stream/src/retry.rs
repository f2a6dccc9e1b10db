//! How long to wait before a request is tried again. Pure.

use std::time::{Duration, SystemTime};

/// The first wait (default of the original); it doubles each time.
const BASE: Duration = Duration::from_millis(200);
/// The longest wait of our own.
const CAP: Duration = Duration::from_secs(30);
/// The longest wait that a server may ask for; beyond it the turn fails and says so.
pub const LONGEST_ASKED: Duration = Duration::from_secs(120);

/// The wait before retry `n` (from 1). `jitter` is in -1..1 and moves it by at most a tenth. What the server asks is a
/// lower bound: jitter then only adds.
#[must_use]
pub fn wait(n: u32, asked: Option<Duration>, jitter: f64) -> Duration {
    if let Some(asked) = asked {
        return asked
            + asked
                .min(Duration::from_secs(1))
                .mul_f64(jitter.abs() * 0.1);
    }
    let doubled = BASE
        .saturating_mul(1 << n.saturating_sub(1).min(16))
        .min(CAP);
    doubled.mul_f64(1.0 + jitter.clamp(-1.0, 1.0) * 0.1)
}

/// `Retry-After`: seconds, or a date.
#[must_use]
pub fn asked(header: &str, now: SystemTime) -> Option<Duration> {
    let header = header.trim();
    if let Ok(seconds) = header.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = httpdate::parse_http_date(header).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_cap_and_a_servers_wish_is_a_lower_bound() {
        let waits: Vec<u128> = (1..=10).map(|n| wait(n, None, 0.0).as_millis()).collect();
        assert_eq!(
            waits,
            [200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000]
        );
        for jitter in [-1.0, 0.0, 1.0] {
            let asked = Duration::from_secs(2);
            assert!(wait(1, Some(asked), jitter) >= asked);
        }
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = httpdate::parse_http_date("Tue, 01 Dec 2026 12:00:00 GMT").expect("a date");
        assert_eq!(asked("2", now), Some(Duration::from_secs(2)));
        assert_eq!(asked("0.5", now), Some(Duration::from_millis(500)));
        assert_eq!(
            asked("Tue, 01 Dec 2026 12:00:03 GMT", now),
            Some(Duration::from_secs(3))
        );
        assert_eq!(
            asked("Tue, 01 Dec 2026 11:00:00 GMT", now),
            Some(Duration::ZERO)
        );
        assert_eq!(asked("soon", now), None);
        assert_eq!(asked("-1", now), None);
    }
}
