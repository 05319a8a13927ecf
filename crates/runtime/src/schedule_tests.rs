//! Times of schedules, written down by hand.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;

/// The first times after a moment, in a zone.
fn times(schedule: &str, zone: &str, from: &str, count: usize) -> Vec<String> {
    let (schedule, zone) = (Schedule::parse(schedule).unwrap(), TimeZone::get(zone).unwrap());
    let mut at: Timestamp = from.parse().unwrap();
    let next = std::iter::from_fn(|| {
        at = schedule.after(at, &zone)?;
        Some(at.to_string())
    });
    next.take(count).collect()
}

#[test]
fn times_follow_the_five_fields() {
    // 2026-11-15 is a Sunday.
    let now = "2026-11-15T10:30:20Z";
    let table: &[(&str, &[&str])] = &[
        ("* * * * *", &["2026-11-15T10:31:00Z", "2026-11-15T10:32:00Z"]),
        ("30 10 * * *", &["2026-11-16T10:30:00Z", "2026-11-17T10:30:00Z"]),
        ("*/20 * * * *", &["2026-11-15T10:40:00Z", "2026-11-15T11:00:00Z", "2026-11-15T11:20:00Z"]),
        ("5/20 23 * * *", &["2026-11-15T23:05:00Z", "2026-11-15T23:25:00Z", "2026-11-15T23:45:00Z"]),
        ("0 9,17 * * mon-fri", &["2026-11-16T09:00:00Z", "2026-11-16T17:00:00Z", "2026-11-17T09:00:00Z"]),
        ("0 0 * * 7", &["2026-11-22T00:00:00Z"]),
        ("0 0 * * SUN", &["2026-11-22T00:00:00Z"]),
        ("0 0 1 1 *", &["2027-01-01T00:00:00Z", "2028-01-01T00:00:00Z"]),
        ("0 0 29 feb *", &["2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"]),
        // Either day will do when both are named.
        ("0 0 20 * wed", &["2026-11-18T00:00:00Z", "2026-11-20T00:00:00Z", "2026-11-25T00:00:00Z"]),
        ("0 0 */2 * wed", &["2026-11-25T00:00:00Z", "2026-12-09T00:00:00Z"]),
        ("@monthly", &["2026-12-01T00:00:00Z"]),
    ];
    for (schedule, expected) in table {
        assert_eq!(times(schedule, "UTC", now, expected.len()), *expected, "{schedule}");
    }
}

#[test]
fn local_times_that_are_skipped_or_repeated_come_once() {
    let night = "30 2 * * *";
    // Berlin: 02:00 becomes 03:00 on 2026-03-29, and 03:00 becomes 02:00 on 2026-10-25.
    let spring = times(night, "Europe/Berlin", "2026-03-28T00:00:00Z", 3);
    assert_eq!(spring, ["2026-03-28T01:30:00Z", "2026-03-29T01:30:00Z", "2026-03-30T00:30:00Z"]);
    let autumn = times(night, "Europe/Berlin", "2026-10-24T12:00:00Z", 2);
    assert_eq!(autumn, ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]);
    // From within the repeated hour.
    let often = times("*/30 * * * *", "Europe/Berlin", "2026-10-25T01:10:00Z", 2);
    assert_eq!(often, ["2026-10-25T02:00:00Z", "2026-10-25T02:30:00Z"]);
}

#[test]
fn what_is_no_schedule_is_told_why() {
    for (text, why) in [
        ("nope", "it has 1 fields"),
        ("* * * * * *", "it has 6 fields"),
        ("60 * * * *", "`60` is no minute"),
        ("* 1-x * * *", "`x` is no hour"),
        ("* * 0 * *", "`0` is no day"),
        ("* * * 13 *", "`13` is no month"),
        ("* * * * 1-0", "ends before it begins"),
        ("*/0 * * * *", "`/0` in the minute is not a step"),
        ("0 0 30 2 *", "such a day never comes"),
        ("0 0 L * *", "`L` is no day"),
        ("", "it has 0 fields"),
    ] {
        let error = Schedule::parse(text).unwrap_err().to_string();
        assert!(error.contains(why), "{text}: {error}");
    }
}
