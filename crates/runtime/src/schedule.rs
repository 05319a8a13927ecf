//! When a cron is due: five fields, in a time zone.
//!
//! Invariant: a time follows from the schedule, the zone and the time before it alone; it is always later than that.

use hart_kernel::Timestamp;
use jiff::ToSpan as _;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;

/// Minute, hour, day of the month, month, day of the week, as `cron` reads them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    minutes: Field,
    hours: Field,
    days: Field,
    months: Field,
    weekdays: Field,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{schedule}` is not a schedule: {problem}; one is written like `30 9 * * mon-fri`")]
pub struct ScheduleError {
    schedule: String,
    problem: String,
}

impl Schedule {
    pub fn parse(text: &str) -> Result<Self, ScheduleError> {
        let problem = |problem: String| ScheduleError { schedule: text.to_owned(), problem };
        let spelled = match text.trim() {
            "@hourly" => "0 * * * *",
            "@daily" | "@midnight" => "0 0 * * *",
            "@weekly" => "0 0 * * 0",
            "@monthly" => "0 0 1 * *",
            "@yearly" | "@annually" => "0 0 1 1 *",
            other => other,
        };
        let fields: Vec<&str> = spelled.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = fields.as_slice() else {
            return Err(problem(format!(
                "it has {} fields, not five (minute, hour, day, month, weekday)",
                fields.len()
            )));
        };
        let schedule = Self {
            minutes: Field::parse(minutes, &MINUTES).map_err(problem)?,
            hours: Field::parse(hours, &HOURS).map_err(problem)?,
            days: Field::parse(days, &DAYS).map_err(problem)?,
            months: Field::parse(months, &MONTHS).map_err(problem)?,
            weekdays: Field::parse(weekdays, &WEEKDAYS).map_err(problem)?.sunday_is_zero(),
        };
        match schedule.after(Timestamp::UNIX_EPOCH, &TimeZone::UTC) {
            Some(_) => Ok(schedule),
            None => Err(problem("such a day never comes".to_owned())),
        }
    }

    /// The first time after this one. A time that the clocks skip is when they have; one they repeat is its first.
    pub fn after(&self, before: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let mut from = before.to_zoned(zone.clone()).datetime();
        // The clocks may go back between the two: then the next local times lie before.
        for _ in 0..ATTEMPTS {
            from = self.after_local(from)?;
            let found = zone.to_ambiguous_timestamp(from).compatible().ok()?;
            if found > before {
                return Some(found);
            }
        }
        None
    }

    fn after_local(&self, before: DateTime) -> Option<DateTime> {
        let mut day = before.date();
        let mut from = self.time_from(before.time(), true);
        for _ in 0..DAYS_AHEAD {
            if self.has_day(day)
                && let Some(time) = from
            {
                return Some(day.to_datetime(time));
            }
            day = day.checked_add(1.day()).ok()?;
            from = self.time_from(Time::midnight(), false);
        }
        None
    }

    /// The first time of a day from `from` on, or after it.
    fn time_from(&self, from: Time, after: bool) -> Option<Time> {
        let start = (from.hour(), from.minute());
        let mut times = (0..24).filter(|hour| self.hours.has(*hour)).flat_map(|hour| {
            (0..60).filter(|minute| self.minutes.has(*minute)).map(move |minute| (hour, minute))
        });
        let (hour, minute) = times.find(|time| if after { *time > start } else { *time >= start })?;
        Time::new(hour, minute, 0, 0).ok()
    }

    /// A day of the month or of the week: either will do when both are named.
    fn has_day(&self, day: Date) -> bool {
        let of_month = self.days.has(day.day());
        let of_week = self.weekdays.has(day.weekday().to_sunday_zero_offset());
        let fits = match (self.days.any, self.weekdays.any) {
            (false, false) => of_month || of_week,
            _ => of_month && of_week,
        };
        self.months.has(day.month()) && fits
    }
}

/// A leap day comes after eight years at the latest.
const DAYS_AHEAD: u32 = 366 * 9;
/// Local times that are repeated lie within a day.
const ATTEMPTS: u32 = 24 * 60;

/// The numbers a field allows, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Field {
    bits: u64,
    /// It does not restrict anything.
    any: bool,
}

/// What a field is made of.
struct Range {
    name: &'static str,
    first: i8,
    last: i8,
    /// Words for the numbers from `first` on.
    words: &'static [&'static str],
}

const MINUTES: Range = Range { name: "minute", first: 0, last: 59, words: &[] };
const HOURS: Range = Range { name: "hour", first: 0, last: 23, words: &[] };
const DAYS: Range = Range { name: "day", first: 1, last: 31, words: &[] };
const MONTHS: Range = Range {
    name: "month",
    first: 1,
    last: 12,
    words: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
const WEEKDAYS: Range =
    Range { name: "weekday", first: 0, last: 7, words: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] };

impl Field {
    fn parse(text: &str, range: &Range) -> Result<Self, String> {
        let mut bits = 0;
        for part in text.split(',') {
            let (span, step) = match part.split_once('/') {
                None => (part, None),
                Some((span, step)) => match step.parse::<usize>() {
                    Ok(step) if step > 0 => (span, Some(step)),
                    _ => return Err(format!("`/{step}` in the {} is not a step", range.name)),
                },
            };
            let (from, to) = match span.split_once('-') {
                _ if matches!(span, "*" | "?") => (range.first, range.last),
                Some((from, to)) => (range.number(from)?, range.number(to)?),
                None if step.is_some() => (range.number(span)?, range.last),
                None => (range.number(span)?, range.number(span)?),
            };
            if from > to {
                return Err(format!("`{span}` in the {} ends before it begins", range.name));
            }
            for number in (from..=to).step_by(step.unwrap_or(1)) {
                bits |= 1_u64 << number;
            }
        }
        Ok(Self { bits, any: text.starts_with(['*', '?']) })
    }

    fn has(self, number: i8) -> bool {
        self.bits & (1_u64 << number) != 0
    }

    /// Sunday goes by two numbers.
    fn sunday_is_zero(self) -> Self {
        Self { bits: (self.bits | (self.bits >> 7)) & 0x7f, any: self.any }
    }
}

impl Range {
    fn number(&self, text: &str) -> Result<i8, String> {
        let word = self.words.iter().position(|word| word.eq_ignore_ascii_case(text));
        let number = match word {
            Some(at) => i8::try_from(at).ok().map(|at| at + self.first),
            None => text.parse().ok(),
        };
        number.filter(|number| (self.first..=self.last).contains(number)).ok_or_else(|| {
            format!(
                "`{text}` is no {} ({} to {}; lists, ranges and steps are)",
                self.name, self.first, self.last
            )
        })
    }
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;
