//! The page in front of the API.

use hart_gateway::Access;
use reqwest::{Method, header};

use crate::support::Server;

#[tokio::test]
async fn a_browser_gets_a_page_and_a_program_the_api() {
    let access = Access { token: Some("secret".into()), ..Access::default() };
    let server = Server::with(&[], access).await;
    for path in ["/", "/chat/0190a5a0-0000-7000-8000-000000000000"] {
        let page =
            server.request(Method::GET, path).header(header::ACCEPT, "text/html").send().await.unwrap();
        assert!(page.status().is_success(), "{path} without a token: {}", page.status());
        assert!(page.headers().contains_key("x-request-id"), "{path}");
        let policy = page.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap().to_owned();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{path}: {policy}");
        assert!(page.headers()[header::CONTENT_TYPE].to_str().unwrap().starts_with("text/html"), "{path}");
        assert!(page.text().await.unwrap().contains("<!doctype html>"), "{path}");
    }
    for path in ["/info", "/threads/x", "/api/langgraph/info", "/api/models", "/chat", "/chat/a/b", "/index"]
    {
        let answer =
            server.request(Method::GET, path).header(header::ACCEPT, "text/html").send().await.unwrap();
        assert_eq!(answer.status(), 401, "{path} is the API's, which asks for a token");
    }
    assert_eq!(server.request(Method::POST, "/").send().await.unwrap().status(), 401);
    server.close().await;
}
