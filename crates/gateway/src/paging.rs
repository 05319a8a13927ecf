//! Searches in pages.
//!
//! Invariant: a page asks for one row more than it shows, which tells whether another one follows.

use axum::http::{HeaderMap, HeaderValue};

use crate::error::ApiResult;
use crate::parse::limit_of;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    limit: u64,
    offset: u64,
}

impl Page {
    pub(crate) fn of(limit: Option<u64>, offset: u64) -> ApiResult<Self> {
        Ok(Self { limit: limit_of(limit, 10)?, offset })
    }

    /// How many rows to ask for.
    pub(crate) fn rows(self) -> u64 {
        self.limit + 1
    }

    /// The rows to show, and what LangGraph's clients are told of the others. The total is a lower bound: what was
    /// seen, and one more if there is more.
    pub(crate) fn cut<T>(self, mut rows: Vec<T>) -> (HeaderMap, Vec<T>) {
        let more = rows.len() as u64 > self.limit;
        rows.truncate(usize::try_from(self.limit).unwrap_or(usize::MAX));
        let next = self.offset.saturating_add(self.limit);
        let seen = self.offset.saturating_add(rows.len() as u64);
        let mut headers = HeaderMap::new();
        headers.insert(
            "x-pagination-total",
            HeaderValue::from(if more { next.saturating_add(1) } else { seen }),
        );
        if more {
            headers.insert("x-pagination-next", HeaderValue::from(next));
        }
        (headers, rows)
    }
}
