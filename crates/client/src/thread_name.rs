//! Threads by names of the user's own.
//!
//! Invariant: a thread's id is a UUID, which every client can say; a name stands for the one that follows from it and
//! from whose thread it is.

use hart_types::{ThreadId, UserId};
use serde_json::{Map, Value};
use uuid::Uuid;

const NAMES: Uuid = Uuid::from_u128(0x6a1f_2c5e_8d0b_4f6e_9f0e_5a7b_3c21_d4e8);

/// What a thread's metadata says of its name.
pub(crate) const KEY: &str = "name";

/// The thread's id, and its name if it was called by one.
pub fn id_of(user: &UserId, thread: &ThreadId) -> (ThreadId, Option<Map<String, Value>>) {
    if Uuid::parse_str(thread.as_str()).is_ok() {
        return (thread.clone(), None);
    }
    let named = Map::from_iter([(KEY.to_owned(), Value::from(thread.as_str()))]);
    (made_of(user, thread.as_str()), Some(named))
}

/// What its user calls a thread: the name it was begun under, or its id.
pub fn name_of(user: &UserId, id: &ThreadId, metadata: &Map<String, Value>) -> ThreadId {
    let name = metadata.get(KEY).and_then(Value::as_str);
    // Others may write a name there that does not lead back.
    name.filter(|name| made_of(user, name) == *id).map_or_else(|| id.clone(), ThreadId::from)
}

fn made_of(user: &UserId, name: &str) -> ThreadId {
    ThreadId::from(Uuid::new_v5(&NAMES, format!("{user}\n{name}").as_bytes()).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_to_a_thread_of_its_user_and_back() {
        let (ada, bob) = (UserId::from("ada"), UserId::from("bob"));
        let name = ThreadId::from("my/odd ../name");
        let (id, named) = id_of(&ada, &name);
        assert!(Uuid::parse_str(id.as_str()).is_ok());
        assert_eq!(id_of(&ada, &name).0, id);
        assert_ne!(id_of(&bob, &name).0, id);
        assert_eq!(name_of(&ada, &id, &named.unwrap()), name);
        let (same, named) = id_of(&ada, &id);
        assert_eq!((same, named), (id.clone(), None));
        let foreign = Map::from_iter([(KEY.to_owned(), Value::from("My chat"))]);
        assert_eq!(name_of(&ada, &id, &foreign), id);
    }
}
