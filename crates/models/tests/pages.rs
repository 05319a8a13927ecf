//! A web page where a model should be: a proxy's error, a sign-in, an address that is wrong.

use hart_kernel::ModelErrorKind as Kind;
use hart_testkit::{ModelServer, Turn};

use crate::support::{DIALECTS, fails, human, model};

const PAGE: &str = "<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8>\n<TITLE>\n  Sign in &amp; go on </TITLE>\
    <style>body{color:red}</style></head><body><h1>Please sign in</h1></body></html>";

#[tokio::test]
async fn it_is_named_and_not_quoted() {
    for dialect in DIALECTS {
        let server = ModelServer::start().await;
        for (turn, kind) in [
            (Turn::status(502).body_text(PAGE), Kind::Overloaded),
            (Turn::status(404).body_text(PAGE).header("content-type", "text/html"), Kind::BadRequest),
            (Turn::status(403).body_text("<html><body>no"), Kind::Auth),
            (Turn::new().body_text(PAGE).header("content-type", "text/html; charset=utf-8"), Kind::Malformed),
        ] {
            let titled = !format!("{turn:?}").contains("<body>no");
            server.push(turn);
            let error = fails(&*model(&server, dialect), human("hi")).await;
            let shown = error.to_string();
            assert_eq!(error.kind, kind, "{dialect:?}: {shown}");
            assert!(shown.contains("an HTML page") && shown.contains("`base_url`"), "{dialect:?}: {shown}");
            assert_eq!(shown.contains("“Sign in & go on”"), titled, "{dialect:?}: {shown}");
            assert!(!shown.contains('<') && !shown.contains("color:red"), "{dialect:?}: {shown}");
        }
    }
}
