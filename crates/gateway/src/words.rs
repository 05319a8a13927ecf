//! How the words that a field may be are described.
//!
//! Invariant: the description lists the words that the type reads, and no others.

use std::borrow::Cow;
use std::marker::PhantomData;

use hart_types::{
    CancelAction, Durability, IfExists, IfNotExists, MultitaskStrategy, OnCompletion, OnDisconnect,
    PruneStrategy, RunStatus, StreamMode, ThreadStatus,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// A field that is one of a type's words.
#[derive(Debug)]
pub(crate) struct Word<T>(PhantomData<T>);

/// One of them, or a list.
#[derive(Debug)]
pub(crate) struct OneOrMany<T>(PhantomData<T>);

/// `"*"`, a name, or a list of names.
#[derive(Debug)]
pub(crate) struct NodeNames;

pub(crate) trait Words {
    fn all() -> Vec<&'static str>;
}

macro_rules! words {
    ($($name:ident)*) => { $(
        impl Words for $name {
            fn all() -> Vec<&'static str> {
                $name::ALL.iter().map(|word| word.as_str()).collect()
            }
        }
    )* };
}

words! {
    CancelAction Durability IfExists IfNotExists MultitaskStrategy OnCompletion OnDisconnect PruneStrategy RunStatus
    StreamMode ThreadStatus
}

impl<T: Words> JsonSchema for Word<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Word".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "enum": T::all()})
    }
}

impl<T: Words> JsonSchema for OneOrMany<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "OneOrMany".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = Word::<T>::json_schema(generator);
        json_schema!({"anyOf": [one, {"type": "array", "items": one}]})
    }
}

impl JsonSchema for NodeNames {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "NodeNames".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})
    }
}
