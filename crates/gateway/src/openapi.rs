//! The description of the API, made from the types that the handlers take.
//!
//! Invariant: a route cannot be served without being described, and its body is described by the type it is read into.

use axum::Router;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{MatchedPath, State};
use axum::handler::Handler;
use axum::http::HeaderMap;
use axum::routing::{MethodFilter, MethodRouter};
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use crate::Gateway;
use crate::parse::{Bodies, Body, Fields, Form, Path, Query, Raw};

/// All routes, with what there is to say of them.
#[derive(Default)]
pub(crate) struct Table {
    router: Router<Gateway>,
    paths: Vec<(&'static str, Vec<Operation>)>,
}

impl Table {
    pub(crate) fn route(mut self, path: &'static str, operations: Operations) -> Self {
        self.router = self.router.route(path, operations.router);
        self.paths.push((path, operations.described));
        self
    }

    pub(crate) fn into_router(self) -> Router<Gateway> {
        self.router
    }

    /// With what another table has.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.router = self.router.merge(other.router);
        self.paths.extend(other.paths);
        self
    }

    /// OpenAPI 3.1, relative to where it was read from.
    pub(crate) fn document(&self) -> Value {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        });
        let mut generator = settings.into_generator();
        let mut paths = Map::new();
        for (path, operations) in &self.paths {
            let described = operations
                .iter()
                .map(|operation| (operation.method.to_owned(), operation.describe(path, &mut generator)));
            // A part that takes the rest of the path is one like any other here.
            paths.insert(path.replace("{*", "{"), Value::Object(described.collect()));
        }
        let mut schemas = generator.take_definitions(true);
        schemas.insert(
            "Error".to_owned(),
            json!({"type": "object", "properties": {"detail": {"type": "string"}}, "required": ["detail"]}),
        );
        json!({
            "openapi": "3.1.0",
            "info": {
                "title": "hart",
                "version": env!("CARGO_PKG_VERSION"),
                "description": "LangGraph's API over hart's agents, and what hart has beside it.",
            },
            "servers": [{"url": "."}],
            "paths": paths,
            "components": {
                "schemas": schemas,
                "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            },
            "security": [{}, {"token": []}],
        })
    }
}

/// What may be done at one path.
#[derive(Default)]
pub(crate) struct Operations {
    router: MethodRouter<Gateway>,
    described: Vec<Operation>,
}

struct Operation {
    method: &'static str,
    summary: &'static str,
    query: &'static [(&'static str, &'static str)],
    headers: &'static [&'static str],
    /// What the handler takes.
    parts: fn(&mut Parts, &mut SchemaGenerator),
}

/// What a handler's arguments say of themselves.
#[derive(Default)]
pub(crate) struct Parts {
    body: Option<Schema>,
    /// It is a form with files instead.
    form: bool,
    /// It is a form of words instead.
    fields: bool,
}

macro_rules! methods {
    ($($name:ident $filter:ident;)*) => {
        impl Operations {
            $(
                pub(crate) fn $name<H, M, A>(mut self, summary: &'static str, handler: H) -> Self
                where
                    H: Handler<M, Gateway> + Described<A>,
                    M: 'static,
                {
                    self.router = self.router.on(MethodFilter::$filter, handler);
                    self.described.push(Operation {
                        method: stringify!($name),
                        summary,
                        query: &[],
                        headers: &[],
                        parts: <H as Described<A>>::describe,
                    });
                    self
                }
            )*
        }
    };
}

methods! { get GET; post POST; put PUT; patch PATCH; delete DELETE; }

/// What a path's first operation is.
macro_rules! first {
    ($($name:ident)*) => {
        $(
            pub(crate) fn $name<H, M, A>(summary: &'static str, handler: H) -> Operations
            where
                H: Handler<M, Gateway> + Described<A>,
                M: 'static,
            {
                Operations::default().$name(summary, handler)
            }
        )*
    };
}

first! { get post put delete }

impl Operations {
    /// Headers that the operation that was named last looks at.
    pub(crate) fn headers(mut self, headers: &'static [&'static str]) -> Self {
        if let Some(last) = self.described.last_mut() {
            last.headers = headers;
        }
        self
    }

    /// Parameters of the query string of the operation that was named last: names and types. A type is one of JSON's,
    /// `list` for several words, or the words there are: `a|b`.
    pub(crate) fn query(mut self, query: &'static [(&'static str, &'static str)]) -> Self {
        if let Some(last) = self.described.last_mut() {
            last.query = query;
        }
        self
    }
}

impl Operation {
    fn describe(&self, path: &str, generator: &mut SchemaGenerator) -> Value {
        let mut parts = Parts::default();
        (self.parts)(&mut parts, generator);
        let in_path = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        let in_path = in_path.map(|name| name.trim_start_matches('*'));
        let in_path = in_path.map(|name| {
            let schema = match name {
                "thread" | "run" | "cron" => json!({"type": "string", "format": "uuid"}),
                _ => json!({"type": "string"}),
            };
            json!({"name": name, "in": "path", "required": true, "schema": schema})
        });
        let in_query = self
            .query
            .iter()
            .map(|(name, kind)| json!({"name": name, "in": "query", "schema": parameter(kind)}));
        let in_headers = self
            .headers
            .iter()
            .map(|name| json!({"name": name, "in": "header", "schema": {"type": "string"}}));
        let parameters: Vec<Value> = in_path.chain(in_query).chain(in_headers).collect();
        let error = json!({"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}});
        let mut operation = json!({
            "summary": self.summary,
            "tags": [path.trim_start_matches("/api").split('/').nth(1).unwrap_or_default()],
            "parameters": parameters,
            "responses": {
                "2XX": {"description": "It is so."},
                "4XX": {"description": "What was asked cannot be.", "content": error},
            },
        });
        if let (Some(body), Some(map)) = (parts.body.take(), operation.as_object_mut()) {
            let content = json!({"application/json": {"schema": body}});
            map.insert("requestBody".to_owned(), json!({"required": true, "content": content}));
        }
        let form = match parts {
            Parts { form: true, .. } => {
                let files = json!({"type": "array", "items": {"type": "string", "format": "binary"}});
                let schema = json!({"type": "object", "properties": {"files": files}});
                Some(json!({"multipart/form-data": {"schema": schema}}))
            }
            Parts { fields: true, .. } => {
                Some(json!({"application/x-www-form-urlencoded": {"schema": {"type": "object"}}}))
            }
            _ => None,
        };
        if let (Some(content), Some(map)) = (form, operation.as_object_mut()) {
            map.insert("requestBody".to_owned(), json!({"required": true, "content": content}));
        }
        operation
    }
}

fn parameter(kind: &str) -> Value {
    match kind {
        "list" => json!({"type": "array", "items": {"type": "string"}}),
        words if words.contains('|') => {
            json!({"type": "string", "enum": words.split('|').collect::<Vec<_>>()})
        }
        kind => json!({ "type": kind }),
    }
}

/// A handler whose arguments can all say what they are.
pub(crate) trait Described<A> {
    fn describe(parts: &mut Parts, generator: &mut SchemaGenerator);
}

/// One argument of a handler.
pub(crate) trait Part {
    fn describe(_: &mut Parts, _: &mut SchemaGenerator) {}
}

impl Part for State<Gateway> {}
impl<T> Part for Path<T> {}
impl Part for Query {}
impl Part for HeaderMap {}
impl Part for MatchedPath {}

impl<T: JsonSchema> Part for Body<T> {
    fn describe(parts: &mut Parts, generator: &mut SchemaGenerator) {
        parts.body = Some(generator.subschema_for::<T>());
    }
}

impl Part for Result<WebSocketUpgrade, WebSocketUpgradeRejection> {}

impl Part for Fields {
    fn describe(parts: &mut Parts, _: &mut SchemaGenerator) {
        parts.fields = true;
    }
}

impl Part for Form {
    fn describe(parts: &mut Parts, _: &mut SchemaGenerator) {
        parts.form = true;
    }
}

/// Read by the handler itself.
impl Part for Raw {
    fn describe(parts: &mut Parts, generator: &mut SchemaGenerator) {
        parts.body = Some(generator.subschema_for::<Map<String, Value>>());
    }
}

impl<T: JsonSchema> Part for Bodies<T> {
    fn describe(parts: &mut Parts, generator: &mut SchemaGenerator) {
        parts.body = Some(generator.subschema_for::<Vec<T>>());
    }
}

macro_rules! described {
    ($($part:ident)*) => {
        impl<F, Fut, $($part: Part),*> Described<($($part,)*)> for F
        where
            F: Fn($($part),*) -> Fut,
        {
            #[allow(unused_variables, reason = "a handler may take nothing")]
            fn describe(parts: &mut Parts, generator: &mut SchemaGenerator) {
                $($part::describe(parts, generator);)*
            }
        }
    };
}

described! {}
described! { A }
described! { A B }
described! { A B C }
described! { A B C D }
described! { A B C D E }
