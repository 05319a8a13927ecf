//! Items: a small memory of its own for agents and clients, by namespace and key.
//!
//! Invariant: a namespace is a list of labels; an item is found under exactly one.

use async_trait::async_trait;
use hart_kernel::Timestamp;
use serde_json::{Map, Value};

use super::StoreError;

#[async_trait]
pub trait Items {
    /// Replaces what is there; the time of making stays.
    async fn put_item(&self, item: Item) -> Result<(), StoreError>;

    /// Expired ones are not there.
    async fn item(&self, namespace: &[String], key: &str, now: Timestamp)
    -> Result<Option<Item>, StoreError>;

    async fn delete_item(&self, namespace: &[String], key: &str) -> Result<(), StoreError>;

    /// Those below a namespace, newest first.
    async fn search_items(&self, query: &ItemQuery, now: Timestamp) -> Result<Vec<Item>, StoreError>;

    /// Namespaces that have items, in order.
    async fn namespaces(&self, prefix: &[String], now: Timestamp) -> Result<Vec<Vec<String>>, StoreError>;
}

#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    pub namespace: Vec<String>,
    pub key: String,
    pub value: Map<String, Value>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub expires_at: Option<Timestamp>,
}

#[derive(Clone, Debug, Default)]
pub struct ItemQuery {
    pub prefix: Vec<String>,
    /// Each key of the value must meet its condition.
    pub filter: Vec<(String, Condition)>,
    /// Words to look for in the value.
    pub words: Option<String>,
    pub limit: u64,
    pub offset: u64,
}

/// What a value must be, compared as JSON.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    Equal(Value),
    NotEqual(Value),
    Above(Value),
    AtLeast(Value),
    Below(Value),
    AtMost(Value),
}

impl Condition {
    pub fn holds(&self, value: Option<&Value>) -> bool {
        let ordered = |wanted: &Value, order: fn(std::cmp::Ordering) -> bool| {
            value.and_then(|value| compare(value, wanted)).is_some_and(order)
        };
        match self {
            Self::Equal(wanted) => value == Some(wanted),
            Self::NotEqual(wanted) => value != Some(wanted),
            Self::Above(wanted) => ordered(wanted, std::cmp::Ordering::is_gt),
            Self::AtLeast(wanted) => ordered(wanted, std::cmp::Ordering::is_ge),
            Self::Below(wanted) => ordered(wanted, std::cmp::Ordering::is_lt),
            Self::AtMost(wanted) => ordered(wanted, std::cmp::Ordering::is_le),
        }
    }
}

/// Numbers with numbers, texts with texts.
fn compare(left: &Value, right: &Value) -> Option<std::cmp::Ordering> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.as_f64()?.partial_cmp(&right.as_f64()?),
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        _ => None,
    }
}
