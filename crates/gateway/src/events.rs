//! What a subscription of the event protocol hears: a thread's envelopes, filtered and numbered.
//!
//! Invariant: a subscription hears the thread from its first event that is kept; what it was told before has the same id.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use hart_runtime::port::StoreError;
use hart_runtime::{
    Channel, Entry, Envelope, EventRenderer, Recall, Run, Runtime, Spelling, StateError, ThreadEvent,
    ThreadFollower,
};
use hart_types::ThreadId;
use serde_json::{Map, Value, json};

use crate::sse::{CutOff, Source, broke_off, write_event};

/// What of a thread is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Filter {
    channels: Vec<Channel>,
    /// Custom events that are wanted by their names.
    named: Vec<String>,
    /// Each the beginning of a namespace.
    namespaces: Vec<Vec<String>>,
    /// How many levels below those.
    depth: Option<usize>,
    /// Events up to this number are not sent.
    pub(crate) since: u64,
}

impl Filter {
    pub(crate) fn parse(body: &Map<String, Value>) -> Result<Self, String> {
        let names = body.get("channels").and_then(Value::as_array).filter(|names| !names.is_empty());
        let names = names.ok_or("channels is required and must be a non-empty array")?;
        let (mut channels, mut named, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
        for name in names {
            let name = name.as_str().ok_or("channels must be strings")?;
            match (Channel::ALL.iter().find(|channel| channel.as_str() == name), name.strip_prefix("custom:"))
            {
                (Some(channel), _) => channels.push(*channel),
                (None, Some(own)) if !own.is_empty() => named.push(own.to_owned()),
                _ => unknown.push(name),
            }
        }
        if !unknown.is_empty() {
            let allowed: Vec<&str> = Channel::ALL.iter().map(|channel| channel.as_str()).collect();
            return Err(format!(
                "channels contains unsupported entries: {}. Allowed: {}, or any `custom:<name>`.",
                unknown.join(", "),
                allowed.join(", ")
            ));
        }
        let namespaces = match given(body, "namespaces") {
            None => Vec::new(),
            Some(list) => serde_json::from_value(list.clone())
                .map_err(|_| "namespaces must be an array of arrays of strings")?,
        };
        // Whoever names none wants all.
        let namespaces = if namespaces.is_empty() { vec![Vec::new()] } else { namespaces };
        let number = |key: &str| match given(body, key) {
            None => Ok(None),
            Some(number) => {
                number.as_u64().map(Some).ok_or_else(|| format!("{key} must be a non-negative integer"))
            }
        };
        let depth = number("depth")?.map(|depth| usize::try_from(depth).unwrap_or(usize::MAX));
        let since = number("since")?.unwrap_or(0);
        Ok(Self { channels, named, namespaces, depth, since })
    }

    fn matches(&self, envelope: &Envelope) -> bool {
        let named = envelope.name.as_ref().is_some_and(|name| self.named.contains(name));
        (named || self.channels.contains(&envelope.channel))
            && self.namespaces.iter().any(|prefix| self.is_within(prefix, &envelope.namespace))
    }

    fn is_within(&self, prefix: &[String], namespace: &[String]) -> bool {
        let same = |(wanted, own): (&String, &String)| {
            wanted == own
                || (!wanted.contains(':') && own.split_once(':').is_some_and(|(node, _)| node == wanted))
        };
        let Some(below) = namespace.len().checked_sub(prefix.len()) else { return false };
        prefix.iter().zip(namespace).all(same) && self.depth.is_none_or(|depth| below <= depth)
    }
}

fn given<'a>(body: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    body.get(key).filter(|value| !value.is_null())
}

/// Reads a thread for one subscription.
pub(crate) struct EventReader {
    recall: Recall,
    thread: ThreadId,
    follower: ThreadFollower,
    filter: Filter,
    /// The renderer of the run that is being told.
    renderer: Option<EventRenderer>,
    /// What is being rendered.
    entry: Option<(Arc<Run>, Arc<Entry>)>,
    ready: VecDeque<Envelope>,
    /// The course of the run and of the agents inside of it, by namespace.
    course: BTreeMap<Vec<String>, Value>,
}

impl EventReader {
    pub(crate) fn new(runtime: Runtime, thread: ThreadId, filter: Filter) -> Self {
        let follower = runtime.follow_whole_thread(&thread);
        Self {
            recall: Recall::new(runtime, thread.clone(), Spelling::Blocks),
            thread,
            follower,
            filter,
            renderer: None,
            entry: None,
            ready: VecDeque::new(),
            course: BTreeMap::new(),
        }
    }

    /// Waits for the next envelope. Nothing is lost when it is not waited for to the end.
    pub(crate) async fn next(&mut self) -> Result<Envelope, StoreError> {
        loop {
            if let Some(envelope) = self.ready.pop_front() {
                return Ok(envelope);
            }
            if self.entry.is_none() {
                let event = self.follower.next().await?;
                self.take(event);
            }
            self.render(false).await?;
        }
    }

    /// How many there are by now, from the first on.
    pub(crate) async fn count(runtime: Runtime, thread: ThreadId, filter: Filter) -> Result<u64, StoreError> {
        let mut reader = Self::new(runtime, thread, filter);
        let mut count = 0;
        while let Some(event) = reader.follower.at_hand().await? {
            reader.take(event);
            reader.render(true).await?;
            count += reader.ready.drain(..).count() as u64;
        }
        Ok(count)
    }

    /// What is at hand beside the one that was just read.
    fn more(&mut self) -> Option<Envelope> {
        self.ready.pop_front()
    }

    fn take(&mut self, event: ThreadEvent) {
        if let ThreadEvent::Logged { run, entry } = event {
            self.entry = Some((run, entry));
        }
    }

    /// States are large; who only counts needs none.
    async fn render(&mut self, counting: bool) -> Result<(), StoreError> {
        let Some((run, entry)) = &self.entry else { return Ok(()) };
        let wants_values = matches!(entry.logged.event, hart_runtime::LogEvent::Values { .. })
            && self.filter.channels.contains(&Channel::Values);
        let values = match wants_values {
            true if counting => Some(Bytes::from_static(b"{}")),
            true => match self.recall.values_of(entry).await {
                Ok(Some(values)) => Some(values),
                Err(StateError::Store(error)) => return Err(error),
                // Numbers count on it: an event whose thread or step is gone has an empty state.
                Ok(None) | Err(_) => Some(Bytes::from_static(b"{}")),
            },
            false => None,
        };
        let renderer = match &mut self.renderer {
            Some(renderer) if renderer.run().id == run.id => renderer,
            other => other.insert(EventRenderer::new(Arc::clone(run))),
        };
        let mut envelopes = renderer.render(entry, values.as_ref());
        for envelope in envelopes.iter().filter(|envelope| envelope.channel == Channel::Lifecycle) {
            note(&mut self.course, envelope);
        }
        envelopes.retain(|envelope| self.filter.matches(envelope));
        self.ready.extend(envelopes);
        self.entry = None;
        Ok(())
    }

    /// The run that was told last and the agents inside of it; nothing if there was none.
    pub(crate) fn tree(&self) -> Option<Value> {
        self.course.contains_key(&Vec::new()).then(|| branch(&self.course, &[]))
    }
}

fn note(course: &mut BTreeMap<Vec<String>, Value>, envelope: &Envelope) {
    let Ok(data) = serde_json::from_slice::<Value>(&envelope.data) else { return };
    if envelope.namespace.is_empty() && data.get("event").and_then(Value::as_str) == Some("running") {
        course.clear();
    }
    course.insert(envelope.namespace.clone(), data);
}

fn branch(course: &BTreeMap<Vec<String>, Value>, namespace: &[String]) -> Value {
    let own = course.get(namespace);
    let of = |key: &str| own.and_then(|own| own.get(key)).cloned().unwrap_or_default();
    let mut branch = json!({"namespace": namespace, "status": of("event"), "graph_name": of("graph_name")});
    let is_below = |other: &&Vec<String>| other.len() == namespace.len() + 1 && other.starts_with(namespace);
    let children: Vec<Value> =
        course.keys().filter(is_below).map(|child| self::branch(course, child)).collect();
    if let (false, Some(map)) = (children.is_empty(), branch.as_object_mut()) {
        map.insert("children".to_owned(), children.into());
    }
    branch
}

/// One envelope as it goes out.
pub(crate) fn encode(envelope: &Envelope, seq: u64) -> String {
    let data = String::from_utf8_lossy(&envelope.data);
    format!(
        r#"{{"type":"event","event_id":{},"seq":{seq},"method":"{}","params":{{"namespace":{},"timestamp":{},"data":{data}}}}}"#,
        json!(envelope.id),
        envelope.channel.method(),
        json!(envelope.namespace),
        envelope.ms,
    )
}

/// A subscription that is a connection of its own.
pub(crate) struct EventLines {
    reader: EventReader,
    seq: u64,
}

impl EventLines {
    pub(crate) fn new(reader: EventReader) -> Self {
        Self { reader, seq: 0 }
    }

    fn write(&mut self, out: &mut BytesMut, envelope: &Envelope) {
        self.seq += 1;
        if self.seq > self.reader.filter.since {
            let data = encode(envelope, self.seq);
            write_event(out, envelope.channel.method(), data.as_bytes(), self.seq);
        }
    }
}

impl Source for EventLines {
    async fn next(&mut self) -> Result<Option<Bytes>, CutOff> {
        loop {
            let envelope = self.reader.next().await;
            let envelope = envelope.map_err(|error| broke_off(&self.reader.thread, error))?;
            let mut out = BytesMut::new();
            self.write(&mut out, &envelope);
            while let Some(envelope) = self.reader.more() {
                self.write(&mut out, &envelope);
            }
            if !out.is_empty() {
                return Ok(Some(out.freeze()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(body: Value) -> Result<Filter, String> {
        Filter::parse(body.as_object().unwrap())
    }

    #[test]
    fn what_is_wanted() {
        let envelope = |channel, namespace: &[&str], name: Option<&str>| Envelope {
            id: "1-4".into(),
            channel,
            namespace: namespace.iter().map(|&segment| segment.to_owned()).collect(),
            ms: 1,
            data: Bytes::from_static(b"{}"),
            name: name.map(str::to_owned),
        };
        let root = envelope(Channel::Messages, &[], None);
        let child = envelope(Channel::Messages, &["tools:1"], None);
        let grandchild = envelope(Channel::Messages, &["tools:1", "tools:2"], None);
        for (body, wanted) in [
            (json!({"channels": ["messages"]}), [true, true, true]),
            (json!({"channels": ["lifecycle"]}), [false, false, false]),
            (json!({"channels": ["messages"], "namespaces": []}), [true, true, true]),
            (json!({"channels": ["messages"], "namespaces": [[]], "depth": 0}), [true, false, false]),
            (json!({"channels": ["messages"], "namespaces": [[]], "depth": 1}), [true, true, false]),
            (json!({"channels": ["messages"], "namespaces": [["tools"]]}), [false, true, true]),
            (
                json!({"channels": ["messages"], "namespaces": [["tools:1"]], "depth": 0}),
                [false, true, false],
            ),
            (json!({"channels": ["messages"], "namespaces": [["tools:2"]]}), [false, false, false]),
        ] {
            let filter = filter(body.clone()).unwrap();
            assert_eq!([&root, &child, &grandchild].map(|one| filter.matches(one)), wanted, "{body}");
        }
        let named = envelope(Channel::Custom, &[], Some("a2a"));
        assert!(filter(json!({"channels": ["custom:a2a"]})).unwrap().matches(&named));
        assert!(!filter(json!({"channels": ["custom:b"]})).unwrap().matches(&named));
        assert!(filter(json!({"channels": ["custom"]})).unwrap().matches(&named));
    }

    #[test]
    fn what_is_refused() {
        for (body, why) in [
            (json!({}), "required"),
            (json!({"channels": []}), "non-empty"),
            (json!({"channels": ["zz"]}), "unsupported entries: zz"),
            (json!({"channels": ["custom:"]}), "unsupported"),
            (json!({"channels": [1]}), "strings"),
            (json!({"channels": ["values"], "namespaces": "x"}), "namespaces"),
            (json!({"channels": ["values"], "depth": -1}), "depth"),
            (json!({"channels": ["values"], "since": "x"}), "since"),
        ] {
            let error = filter(body.clone()).unwrap_err();
            assert!(error.contains(why), "{body}: {error}");
        }
    }
}
