//! Assistants in SQLite.
//!
//! Invariant: an assistant's row only says which of its versions it is now.

use async_trait::async_trait;
use hart_kernel::Timestamp;
use hart_runtime::port::{
    Assistant, AssistantCreated, AssistantPatch, AssistantQuery, AssistantSort, Assistants, Order,
    StoreError, VersionQuery,
};
use hart_types::AssistantId;
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};

use super::SqliteStore;
use super::row::{get_json, get_text, get_time, json, signed, time, unsigned};

/// Every version with its assistant; `now` is whether it is the one shown.
const SELECT: &str = "SELECT a.n, a.id, a.system, a.created_at, a.updated_at, v.version, v.graph, v.name,
        v.description, v.config, v.context, v.metadata, v.made_at
     FROM assistants AS a JOIN assistant_versions AS v ON v.assistant = a.n";
const NOW: &str = "v.version = a.version";

#[async_trait]
impl Assistants for SqliteStore {
    async fn create_assistant(&self, assistant: Assistant) -> Result<AssistantCreated, StoreError> {
        self.write(move |db| {
            if let Some((_, existing)) = find(db, &assistant.id)? {
                return Ok(AssistantCreated::Existing(existing));
            }
            db.prepare_cached(
                "INSERT INTO assistants (id, version, system, created_at, updated_at) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![
                assistant.id.as_str(),
                signed(assistant.version),
                assistant.system,
                time(assistant.created_at),
                time(assistant.updated_at),
            ])?;
            insert_version(db, db.last_insert_rowid(), &assistant, assistant.created_at)?;
            Ok(AssistantCreated::New(assistant))
        })
        .await
    }

    async fn assistant(&self, id: &AssistantId) -> Result<Option<Assistant>, StoreError> {
        let id = id.clone();
        self.look_up(move |db| Ok(find(db, &id)?.map(|(_, assistant)| assistant))).await
    }

    async fn patch_assistant(
        &self,
        id: &AssistantId,
        patch: AssistantPatch,
    ) -> Result<Option<Assistant>, StoreError> {
        let id = id.clone();
        self.write(move |db| {
            let Some((n, mut assistant)) = find(db, &id)? else { return Ok(None) };
            let newest: i64 = db
                .prepare_cached("SELECT max(version) FROM assistant_versions WHERE assistant = ?1")?
                .query_row([n], |row| row.get(0))?;
            assistant.version = unsigned(newest) + 1;
            assistant.graph = patch.graph.unwrap_or(assistant.graph);
            assistant.name = patch.name.unwrap_or(assistant.name);
            assistant.description = patch.description.or(assistant.description);
            assistant.config = patch.config.unwrap_or(assistant.config);
            assistant.context = patch.context.unwrap_or(assistant.context);
            assistant.metadata.extend(patch.metadata);
            insert_version(db, n, &assistant, patch.at)?;
            show(db, n, assistant.version, patch.at)?;
            Ok(Some(Assistant { updated_at: patch.at, ..assistant }))
        })
        .await
    }

    async fn delete_assistant(&self, id: &AssistantId) -> Result<bool, StoreError> {
        let id = id.clone();
        self.write(move |db| {
            db.prepare_cached("DELETE FROM crons WHERE assistant = ?1")?.execute([id.as_str()])?;
            Ok(db.prepare_cached("DELETE FROM assistants WHERE id = ?1")?.execute([id.as_str()])? > 0)
        })
        .await
    }

    async fn search_assistants(&self, query: &AssistantQuery) -> Result<Vec<Assistant>, StoreError> {
        let query = query.clone();
        self.read(move |db| {
            let (clause, mut values) = filter(&query);
            let sql = format!("{SELECT} WHERE {clause} {} LIMIT ? OFFSET ?", order(&query));
            values.extend([Sql::Integer(signed(query.limit)), Sql::Integer(signed(query.offset))]);
            db.prepare_cached(&sql)?.query_map(params_from_iter(values), read)?.collect()
        })
        .await
    }

    async fn count_assistants(&self, query: &AssistantQuery) -> Result<u64, StoreError> {
        let query = query.clone();
        self.read(move |db| {
            let (clause, values) = filter(&query);
            let sql = format!("SELECT count(*) FROM ({SELECT} WHERE {clause})");
            db.prepare_cached(&sql)?.query_row(params_from_iter(values), |row| row.get::<_, i64>(0))
        })
        .await
        .map(unsigned)
    }

    async fn assistant_versions(
        &self,
        id: &AssistantId,
        query: &VersionQuery,
    ) -> Result<Vec<Assistant>, StoreError> {
        let (id, query) = (id.clone(), query.clone());
        self.read(move |db| {
            let sql = format!(
                "{SELECT} WHERE a.id = ?1 AND json_has(v.metadata, ?2) ORDER BY v.version DESC LIMIT ?3 OFFSET ?4"
            );
            let values =
                params![id.as_str(), json(&query.metadata), signed(query.limit), signed(query.offset)];
            let version = |row: &Row<'_>| {
                Ok(Assistant { created_at: get_time(row, "made_at")?, ..read(row)? })
            };
            db.prepare_cached(&sql)?.query_map(values, version)?.collect()
        })
        .await
    }

    async fn set_assistant_version(
        &self,
        id: &AssistantId,
        version: u64,
        at: Timestamp,
    ) -> Result<Option<Assistant>, StoreError> {
        let id = id.clone();
        self.write(move |db| {
            let sql = format!("{SELECT} WHERE a.id = ?1 AND v.version = ?2");
            let found = db
                .prepare_cached(&sql)?
                .query_row(params![id.as_str(), signed(version)], |row| Ok((row.get("n")?, read(row)?)))
                .optional()?;
            let Some((n, assistant)) = found else { return Ok(None) };
            show(db, n, version, at)?;
            Ok(Some(Assistant { updated_at: at, ..assistant }))
        })
        .await
    }
}

/// Its number and itself.
fn find(db: &Connection, id: &AssistantId) -> rusqlite::Result<Option<(i64, Assistant)>> {
    db.prepare_cached(&format!("{SELECT} WHERE a.id = ?1 AND {NOW}"))?
        .query_row([id.as_str()], |row| Ok((row.get("n")?, read(row)?)))
        .optional()
}

fn insert_version(db: &Connection, n: i64, assistant: &Assistant, at: Timestamp) -> rusqlite::Result<()> {
    db.prepare_cached(
        "INSERT INTO assistant_versions
            (assistant, version, graph, name, description, config, context, metadata, made_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?
    .execute(params![
        n,
        signed(assistant.version),
        assistant.graph,
        assistant.name,
        assistant.description,
        json(&assistant.config),
        json(&assistant.context),
        json(&assistant.metadata),
        time(at),
    ])?;
    Ok(())
}

fn show(db: &Connection, n: i64, version: u64, at: Timestamp) -> rusqlite::Result<()> {
    db.prepare_cached("UPDATE assistants SET version = ?2, updated_at = ?3 WHERE n = ?1")?
        .execute(params![n, signed(version), time(at)])?;
    Ok(())
}

fn filter(query: &AssistantQuery) -> (String, Vec<Sql>) {
    let mut clauses =
        vec![NOW.to_owned(), "(a.system = 0 OR v.graph IN (SELECT value FROM json_each(?)))".to_owned()];
    let mut values = vec![Sql::Text(json(&query.agents))];
    let mut add = |clause: &str, value: String| {
        clauses.push(clause.to_owned());
        values.push(Sql::Text(value));
    };
    if let Some(graph) = &query.graph {
        add("v.graph = ?", graph.clone());
    }
    if let Some(name) = &query.name {
        add("instr(lower(v.name), lower(?)) > 0", name.clone());
    }
    if !query.metadata.is_empty() {
        add("json_has(v.metadata, ?)", json(&query.metadata));
    }
    (clauses.join(" AND "), values)
}

/// The number decides between equals, so that pages do not overlap.
fn order(query: &AssistantQuery) -> String {
    let column = match query.sort {
        AssistantSort::Id => "a.id",
        AssistantSort::Graph => "v.graph",
        AssistantSort::Name => "v.name",
        AssistantSort::Created => "a.created_at",
        AssistantSort::Updated => "a.updated_at",
    };
    let direction = match query.order {
        Order::Ascending => "ASC",
        Order::Descending => "DESC",
    };
    format!("ORDER BY {column} {direction}, a.n {direction}")
}

fn read(row: &Row<'_>) -> rusqlite::Result<Assistant> {
    Ok(Assistant {
        id: get_text(row, "id")?,
        graph: get_text(row, "graph")?,
        name: get_text(row, "name")?,
        description: row.get("description")?,
        config: get_json(row, "config")?,
        context: get_json(row, "context")?,
        metadata: get_json(row, "metadata")?,
        version: unsigned(row.get("version")?),
        system: row.get("system")?,
        created_at: get_time(row, "created_at")?,
        updated_at: get_time(row, "updated_at")?,
    })
}
