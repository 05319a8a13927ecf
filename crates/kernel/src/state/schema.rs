//! The set of keys an agent knows, and the JSON face of a state.
//!
//! Invariant: what is private never crosses this border, and a stored value that no longer fits its type is kept,
//! not lost and not fatal.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::key::KeySpec;
use super::{LoggedWrite, Messages, Scope, Slot, Slots, State, StateError, StateKey, Update};

/// Built once from an agent's middleware, then frozen.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    keys: BTreeMap<&'static str, KeySpec>,
}

impl Schema {
    pub fn declare<K: StateKey>(&mut self) -> Result<&mut Self, StateError> {
        let spec = KeySpec::of::<K>();
        match self.keys.get(K::NAME) {
            Some(old) if old.type_id != spec.type_id => {
                Err(StateError::Conflict { name: K::NAME, first: old.type_name, second: spec.type_name })
            }
            _ => {
                self.keys.insert(K::NAME, spec);
                Ok(self)
            }
        }
    }

    /// Restores stored values. Keys nobody declares stay as raw JSON and survive the round trip.
    pub fn decode(&self, values: Map<String, Value>) -> State {
        let mut slots = Slots::new();
        for (name, json) in values {
            let slot = match self.keys.get(name.as_str()) {
                Some(spec) => {
                    let private = spec.scope == Scope::Private;
                    (spec.decode)(&json).unwrap_or(Slot::Raw { json, private })
                }
                None => Slot::Raw { json, private: false },
            };
            slots.insert(name.into(), slot);
        }
        State { slots: slots.into() }
    }

    /// Reads JSON from a client (run input, `POST /state`) as the writes a hook would make.
    pub fn parse(&self, values: Map<String, Value>) -> Result<Update, StateError> {
        let mut update = Update::none();
        for (name, json) in values {
            match self.keys.get(name.as_str()) {
                Some(spec) if spec.scope == Scope::Private => return Err(StateError::NotWritable { name }),
                Some(spec) => update.writes.push((spec.parse)(json)?),
                None => {
                    tracing::warn!(key = %name, "ignored: no middleware of this agent declares this state key")
                }
            }
        }
        Ok(update)
    }

    /// Writes of a hook or a tool, as they were when they were noted down.
    pub(crate) fn restore(&self, writes: Vec<LoggedWrite>) -> Update {
        let mut update = Update::none();
        for LoggedWrite { key, value, .. } in writes {
            match self.keys.get(key.as_str()).map(|spec| (spec.parse)(value)) {
                Some(Ok(write)) => update.writes.push(write),
                Some(Err(error)) => tracing::warn!(key, %error, "a write that was noted down no longer fits"),
                None => tracing::warn!(key, "a write that was noted down is of a key that nobody declares"),
            }
        }
        update
    }

    /// Folds one logged step back in; unlike [`Schema::parse`] it may touch private keys, and it never fails:
    /// a write that no longer fits is passed over, so that an old thread opens with a newer hart.
    pub fn replay(&self, state: &mut State, writes: Vec<LoggedWrite>) {
        for LoggedWrite { key, value, private } in writes {
            match self.keys.get(key.as_str()) {
                Some(spec) => {
                    let folded = (spec.parse)(value).and_then(|write| state.apply(write.into()));
                    if let Err(error) = folded {
                        tracing::warn!(key = spec.name, %error, "a stored write no longer fits its key; passed over");
                    }
                }
                // Whoever reduced it is gone; the last write is the best that is known.
                None => {
                    Arc::make_mut(&mut state.slots).insert(key.into(), Slot::Raw { json: value, private });
                }
            }
        }
    }

    /// The `values` object clients see.
    pub fn values(&self, state: &State) -> Map<String, Value> {
        self.visible(state, |_| true)
    }

    pub(crate) fn values_without_messages(&self, state: &State) -> Map<String, Value> {
        self.visible(state, |name| name != Messages::NAME)
    }

    fn visible(&self, state: &State, wanted: impl Fn(&str) -> bool) -> Map<String, Value> {
        let visible = |name: &str, slot: &Slot| match (self.keys.get(name), slot) {
            (Some(key), _) => key.scope != Scope::Private,
            (None, Slot::Raw { private, .. }) => !private,
            (None, Slot::Typed { .. }) => true,
        };
        state
            .slots
            .iter()
            .filter(|(name, slot)| wanted(name) && visible(name, slot))
            .map(|(name, slot)| (name.clone().into_owned(), slot.to_json()))
            .collect()
    }

    /// What a child agent starts with.
    pub fn inherit(&self, state: &State) -> State {
        let shared = |name: &str| self.keys.get(name).is_some_and(|key| key.scope == Scope::Shared);
        let slots = state.slots.iter().filter(|(name, _)| shared(name));
        let slots: Slots = slots.map(|(name, slot)| (name.clone(), slot.clone())).collect();
        State { slots: slots.into() }
    }
}
