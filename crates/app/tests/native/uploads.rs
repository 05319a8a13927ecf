//! Files that a client gives to a thread.

use std::path::Path;

use futures_util::{StreamExt as _, stream};
use hart_testkit::Turn;
use reqwest::{Body, Method, StatusCode};
use serde_json::{Value, json};

use super::world::{FORM, World, answered, form};

const NEW: &str = "00000000-0000-4000-8000-00000000000a";

fn names(listed: &Value) -> Vec<&str> {
    listed["files"].as_array().unwrap().iter().map(|file| file["filename"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn the_model_sees_what_was_uploaded() {
    let read = json!({"description": "r", "path": "/mnt/user-data/uploads/figures.csv"});
    let world =
        World::new([Turn::new().tool_call("c1", "read_file", read), Turn::new().text("It has two columns.")])
            .await;
    // A client chooses the id and sends the files before the first message.
    let (status, answer) = world.upload(NEW, &[("figures.csv", b"year,sum\n2024,17\n")]).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    let file = &answer["files"][0];
    assert_eq!(answer["success"], true);
    assert_eq!(file["size"], 17);
    assert_eq!(file["virtual_path"], "/mnt/user-data/uploads/figures.csv");
    assert_eq!(
        file["artifact_url"],
        format!("/api/threads/{NEW}/artifacts/mnt/user-data/uploads/figures.csv")
    );
    let listed =
        json!([{"filename": "figures.csv", "size": 17, "path": file["virtual_path"], "status": "uploaded"}]);
    let message = json!({"type": "human", "content": [{"type": "text", "text": "What is in it?"}],
        "additional_kwargs": {"files": listed}});
    let run = json!({"assistant_id": "lead_agent", "input": {"messages": [message]}});
    world.post(&format!("/api/langgraph/threads/{NEW}/runs/wait"), run).await;
    let requests = world.model.requests();
    let told = requests[0].texts_of("user").join("\n");
    assert!(told.contains("- figures.csv (17") && told.contains("columns: year, sum"), "{told}");
    let result = requests[1].tool_result("c1").unwrap();
    assert!(result.content.contains("2024,17"), "{}", result.content);
}

#[tokio::test]
async fn uploads_are_listed_renamed_and_removed() {
    let world = World::new([]).await;
    let thread = world.thread().await;
    let (status, first) =
        world.upload(&thread, &[("a.txt", b"one"), ("../../b.txt", b"two"), ("..", b"three")]).await;
    assert_eq!(status, StatusCode::OK, "{first}");
    assert_eq!(names(&first), ["a.txt", "b.txt"]);
    assert_eq!(first["skipped_files"], json!([".."]));
    assert_eq!(first["success"], false, "not all of it is there");
    assert_eq!(first["files"][1]["original_filename"], "../../b.txt");
    let (_, again) = world.upload(&thread, &[("a.txt", b"other")]).await;
    assert_eq!(names(&again), ["a_1.txt"], "what was there stays");
    assert_eq!(again["files"][0]["original_filename"], "a.txt");
    let listed = world.get(&format!("/api/threads/{thread}/uploads/list")).await;
    assert_eq!(listed["count"], 3);
    assert_eq!(names(&listed), ["a.txt", "a_1.txt", "b.txt"]);
    let url = listed["files"][0]["artifact_url"].as_str().unwrap();
    let text = world.request(Method::GET, url).send().await.unwrap().text().await.unwrap();
    assert_eq!(text, "one");
    let delete = |name: &str| world.request(Method::DELETE, &format!("/api/threads/{thread}/uploads/{name}"));
    let (status, answer) = answered(delete("a.txt")).await;
    assert_eq!((status, &answer["success"]), (StatusCode::OK, &json!(true)));
    for gone in ["a.txt", "..%2f..%2fhart.db", "nothing"] {
        assert_eq!(answered(delete(gone)).await.0, StatusCode::NOT_FOUND, "{gone}");
    }
    assert_eq!(world.get(&format!("/api/threads/{thread}/uploads/list")).await["count"], 2);
}

/// What is left in the folder of a thread's uploads, whatever its name.
fn left(home: &Path, thread: &str) -> Vec<String> {
    let folder = home.join(".hart/users/default/threads").join(thread).join("user-data/uploads");
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[tokio::test]
async fn limits_hold_and_nothing_of_a_refused_upload_stays() {
    let limits = json!({"max_files": 2, "max_file_size": 1000, "max_total_size": 1500});
    let world = World::with(json!({"uploads": limits}), []).await;
    let thread = world.thread().await;
    assert_eq!(world.get(&format!("/api/threads/{thread}/uploads/limits")).await, limits);
    let large = [b'x'; 1001];
    let nine = [b'x'; 900];
    for (files, why) in [
        (&[("ok", &b"1"[..]), ("large", &large[..])][..], "`large` is larger than 1000 bytes"),
        (&[("a", &nine[..]), ("b", &nine[..])], "the files together are larger than 1 KB"),
        (&[("a", b""), ("b", b""), ("c", b"")], "at most 2 files"),
    ] {
        let (status, answer) = world.upload(&thread, files).await;
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{answer}");
        assert!(answer["detail"].as_str().unwrap().contains(why), "{answer}");
        assert_eq!(left(world.home.path(), &thread), [""; 0], "{why}");
    }
}

#[tokio::test]
async fn the_sandboxes_quota_counts() {
    let world = World::with(json!({"sandbox": {"disk_limit": "1m"}}), []).await;
    let thread = world.thread().await;
    let (status, answer) = world.upload(&thread, &[("large.bin", &vec![7; 2 << 20])]).await;
    assert_eq!(status, StatusCode::INSUFFICIENT_STORAGE, "{answer}");
    assert!(answer["detail"].as_str().unwrap().contains("the limit is 1"), "{answer}");
    assert_eq!(left(world.home.path(), &thread), [""; 0]);
}

#[tokio::test]
async fn what_is_no_form_is_refused_and_what_breaks_off_leaves_nothing() {
    let world = World::new([]).await;
    let path = format!("/api/threads/{NEW}/uploads");
    let post = |kind: &'static str, body: Vec<u8>| {
        answered(world.request(Method::POST, &path).header("content-type", kind).body(body))
    };
    let whole = form(&[("a.txt", b"hello")]);
    for (kind, body) in [
        ("application/json", b"{}".to_vec()),
        ("multipart/form-data", whole.clone()),
        ("multipart/form-data; boundary=other", whole.clone()),
        (FORM, Vec::new()),
        (FORM, form(&[])),
        (FORM, whole[..whole.len() - 12].to_vec()),
    ] {
        let (status, answer) = post(kind, body).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{kind}: {answer}");
        assert!(answer["detail"].is_string(), "{answer}");
    }
    let (status, _) = answered(world.request(Method::POST, "/api/threads/none/uploads")).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    // The client goes away in the middle.
    let mut begun = form(&[("one", b"whole"), ("two", b"half")]);
    begun.truncate(begun.len() - 20);
    let begun = Ok(begun);
    let broken = stream::iter([begun, Err(std::io::Error::other("gone"))]);
    let sent =
        world.request(Method::POST, &path).header("content-type", FORM).body(Body::wrap_stream(broken));
    assert!(sent.send().await.is_err());
    let (status, answer) = world.upload(NEW, &[("last", b"1")]).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    for _ in 0..600 {
        if left(world.home.path(), NEW) == ["last"] {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("{:?}", left(world.home.path(), NEW));
}

/// Larger than any other request may be, and it comes as a stream.
#[tokio::test]
async fn a_large_file_goes_through() {
    let settings = json!({"uploads": {"max_file_size": 100 << 20}, "server": {"max_body_mb": 1}});
    let world = World::with(settings, []).await;
    let thread = world.thread().await;
    let (count, piece) = (100, vec![b'z'; 1 << 20]);
    let whole = form(&[("large.bin", b"")]);
    let (head, tail) = whole.split_at(whole.len() - 14 - 2);
    let pieces = stream::repeat(piece).take(count);
    let all = stream::iter([head.to_vec()]).chain(pieces).chain(stream::iter([tail.to_vec()]));
    let body = Body::wrap_stream(all.map(Ok::<_, std::io::Error>));
    let path = format!("/api/threads/{thread}/uploads");
    let sent = world.request(Method::POST, &path).header("content-type", FORM).body(body);
    let (status, answer) = answered(sent).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    assert_eq!(answer["files"][0]["size"], count << 20);
}
