//! The routes beside LangGraph's, where a server has neither files nor models: who one is, and what is not here.

use hart_gateway::Access;
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};

use crate::support::Server;

#[tokio::test]
async fn what_is_not_here_is_refused_by_its_name() {
    let server = Server::new(&[]).await;
    for (path, name) in [
        ("/api/memory", "memory"),
        ("/api/memory/facts/f1", "memory"),
        ("/api/mcp/config", "MCP"),
        ("/api/channels/", "channels"),
        ("/api/scheduled-tasks", "scheduler"),
    ] {
        for method in [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            let (status, answer) = server.call(method, path, json!({})).await;
            assert_eq!(status, StatusCode::NOT_IMPLEMENTED, "{path}");
            assert!(answer["detail"].as_str().unwrap().contains(name), "{path}: {answer}");
        }
    }
    let goal = format!("/api/threads/{}/goal", server.thread().await);
    for method in [Method::GET, Method::PUT, Method::DELETE] {
        let (status, answer) = server.call(method, &goal, json!({"objective": "win"})).await;
        assert_eq!(
            (status, &answer["detail"]),
            (StatusCode::NOT_IMPLEMENTED, &json!("`goals` is not a part of this server"))
        );
    }
    for path in ["/api/skills/custom", "/api/skills/custom/poems", "/api/skills/custom/poems/history"] {
        let (status, answer) = server.call(Method::GET, path, Value::Null).await;
        assert_eq!(status, StatusCode::NOT_IMPLEMENTED);
        assert!(answer["detail"].as_str().unwrap().contains("editing skills"), "{answer}");
    }
    assert_eq!(server.call(Method::GET, "/api/nothing", json!({})).await.0, StatusCode::NOT_FOUND);
    server.close().await;
}

#[tokio::test]
async fn langgraphs_routes_are_at_deerflows_addresses_too() {
    let server = Server::new(&["hello"]).await;
    let thread = server.post("/api/threads", json!({"metadata": {"k": 1}})).await;
    let id = thread["thread_id"].as_str().unwrap();
    let run = json!({"assistant_id": "agent", "input": {"messages": [{"role": "user", "content": "hi"}]}});
    server.post(&format!("/api/threads/{id}/runs/wait"), run).await;
    let found = server.post("/api/threads/search", json!({"metadata": {"k": 1}})).await;
    assert_eq!(found[0]["thread_id"], id);
    assert_eq!(
        server.get(&format!("/api/threads/{id}/state")).await["values"]["messages"][1]["content"],
        "hello"
    );
    assert_eq!(server.get("/health").await["status"], "healthy");
    server.close().await;
}

#[tokio::test]
async fn without_a_token_everybody_is_the_user() {
    let server = Server::new(&[]).await;
    let setup = server.get("/api/v1/auth/setup-status").await;
    assert_eq!(setup, json!({"needs_setup": false, "registration_enabled": false}));
    let me = server.get("/api/v1/auth/me").await;
    assert_eq!((&me["id"], &me["system_role"]), (&json!("default"), &json!("admin")));
    // The frontend reads it as an address and takes a host without a dot for a broken server.
    let (_, host) = me["email"].as_str().unwrap().split_once('@').unwrap();
    assert!(host.contains('.'), "{me}");
    server.close().await;
}

/// DeerFlow's frontend looks for the cookie before it asks anything: without one it shows where to sign in.
#[tokio::test]
async fn whoever_signs_in_where_nobody_has_to_gets_cookies_all_the_same() {
    let server = Server::new(&[]).await;
    let form = server.request(Method::POST, "/api/v1/auth/login/local").body("username=a%40b.org&password=x");
    let signed_in = form.send().await.unwrap();
    assert_eq!(signed_in.status(), StatusCode::OK);
    let cookies = cookies(&signed_in).join("; ");
    assert!(cookies.contains("access_token=") && cookies.contains("csrf_token="), "{cookies}");
    let me = server.request(Method::GET, "/api/v1/auth/me").header("cookie", &cookies);
    assert_eq!(me.send().await.unwrap().status(), StatusCode::OK);
    server.close().await;
    // They open no door where one has to.
    let access = Access { token: Some("s3cret-token".to_owned()), ..Access::default() };
    let guarded = Server::with(&[], access).await;
    let me = guarded.request(Method::GET, "/api/v1/auth/me").header("cookie", cookies);
    assert_eq!(me.send().await.unwrap().status(), StatusCode::UNAUTHORIZED);
    guarded.close().await;
}

/// The frontend uploads before it makes the thread, which is then there.
#[tokio::test]
async fn at_deerflows_addresses_a_thread_that_is_there_may_be_made_again() {
    let server = Server::new(&[]).await;
    let id = "6f0c0a52-4f6b-4d2e-9c63-0d6f3f2b7a11";
    server.post("/threads", json!({"thread_id": id, "metadata": {"k": 1}})).await;
    for at in ["/api/threads", "/api/langgraph/threads"] {
        let again = server.post(at, json!({"thread_id": id, "metadata": {"k": 2}})).await;
        assert_eq!((&again["thread_id"], &again["metadata"]["k"]), (&json!(id), &json!(1)), "{at}");
        let (status, _) = server.call(Method::POST, at, json!({"thread_id": id, "if_exists": "raise"})).await;
        assert_eq!(status, StatusCode::CONFLICT, "{at}");
    }
    let (status, _) = server.call(Method::POST, "/threads", json!({"thread_id": id})).await;
    assert_eq!(status, StatusCode::CONFLICT, "as LangGraph has it");
    server.close().await;
}

fn cookies(response: &Response) -> Vec<String> {
    let set = response.headers().get_all("set-cookie").iter();
    set.map(|cookie| cookie.to_str().unwrap().split(';').next().unwrap().to_owned()).collect()
}

async fn detail(response: Response) -> (StatusCode, Value) {
    let status = response.status();
    let answer: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    (status, answer["detail"].clone())
}

#[tokio::test]
async fn the_token_is_the_password_and_cookies_stand_for_it() {
    let access = Access { token: Some("s3cret-token".to_owned()), ..Access::default() };
    let server = Server::with(&[], access).await;
    let send = |method: Method, path: &str, headers: &[(&'static str, String)], body: &'static str| {
        let request = server.request(method, path).body(body);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, value));
        async move { request.send().await.unwrap() }
    };
    let (get, post) = (Method::GET, Method::POST);
    assert_eq!(send(get.clone(), "/api/v1/auth/setup-status", &[], "").await.status(), StatusCode::OK);
    let (status, why) = detail(send(get.clone(), "/api/v1/auth/me", &[], "").await).await;
    assert_eq!((status, &why["code"]), (StatusCode::UNAUTHORIZED, &json!("not_authenticated")));
    let login = "/api/v1/auth/login/local";
    let (status, why) = detail(send(post.clone(), login, &[], "username=a&password=wrong").await).await;
    assert_eq!((status, &why["code"]), (StatusCode::UNAUTHORIZED, &json!("invalid_credentials")));
    let form = "username=me%40example.org&password=s3cret-token&remember_me=true";
    let signed_in = send(post.clone(), login, &[], form).await;
    assert_eq!(signed_in.status(), StatusCode::OK);
    let cookies = cookies(&signed_in);
    assert!(cookies.iter().all(|cookie| !cookie.contains("s3cret")), "{cookies:?}");
    let all = ("cookie", cookies.join("; "));
    let me = send(get.clone(), "/api/v1/auth/me", std::slice::from_ref(&all), "").await;
    assert_eq!(me.status(), StatusCode::OK);
    // Writing needs a word that only this page can read.
    let (status, why) = detail(send(post.clone(), "/threads", std::slice::from_ref(&all), "{}").await).await;
    assert_eq!((status, &why["code"]), (StatusCode::FORBIDDEN, &json!("csrf_failed")));
    let said = cookies[1].strip_prefix("csrf_token=").unwrap().to_owned();
    let made = send(post.clone(), "/threads", &[all, ("x-csrf-token", said)], "{}").await;
    assert_eq!(made.status(), StatusCode::OK);
    let forged = ("cookie", "access_token=s3cret-token; csrf_token=1".to_owned());
    assert_eq!(send(get, "/threads/x", &[forged], "").await.status(), StatusCode::UNAUTHORIZED);
    let bearer = ("authorization", "Bearer s3cret-token".to_owned());
    assert_eq!(send(post, "/threads", &[bearer], "{}").await.status(), StatusCode::OK);
    server.close().await;
}
