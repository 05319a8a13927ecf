//! Files of a thread: parts of them, packages, edits.

use hart_testkit::Turn;
use reqwest::{Method, Response, StatusCode};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::world::World;

fn path(thread: &str, name: &str) -> String {
    format!("/api/threads/{thread}/artifacts/mnt/user-data/uploads/{name}")
}

fn header<'a>(response: &'a Response, name: &str) -> &'a str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

fn sha256(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn parts_of_a_file() {
    let world = World::new([]).await;
    let thread = world.thread().await;
    // Larger than what is read at once.
    let content: Vec<u8> = (0..700_000_u32).map(|at| at as u8).collect();
    world.upload(&thread, &[("film.mp4", &content)]).await;
    let at = path(&thread, "film.mp4");
    let get = |range: &'static str| world.request(Method::GET, &at).header("range", range).send();
    for (range, from, to) in
        [("bytes=0-9", 0, 10), ("bytes=262140-262150", 262_140, 262_151), ("bytes=-5", 699_995, 700_000)]
    {
        let part = get(range).await.unwrap();
        assert_eq!(part.status(), StatusCode::PARTIAL_CONTENT, "{range}");
        assert_eq!(header(&part, "content-range"), format!("bytes {from}-{}/700000", to - 1));
        assert_eq!(header(&part, "content-type"), "video/mp4");
        assert_eq!(part.bytes().await.unwrap(), content[from..to], "{range}");
    }
    let whole = get("bytes=0-1,4-5").await.unwrap();
    assert_eq!((whole.status(), header(&whole, "accept-ranges")), (StatusCode::OK, "bytes"));
    assert_eq!(whole.bytes().await.unwrap(), content);
    let none = get("bytes=700000-").await.unwrap();
    assert_eq!(none.status(), StatusCode::RANGE_NOT_SATISFIABLE);
    assert_eq!(header(&none, "content-range"), "bytes */700000");
    let head = world.request(Method::HEAD, &at).send().await.unwrap();
    assert_eq!(header(&head, "content-length"), "700000");
}

#[tokio::test]
async fn what_could_act_is_kept_and_what_is_asked_for_is_named() {
    let world = World::new([]).await;
    let thread = world.thread().await;
    let page = b"<script>alert(1)</script>";
    world.upload(&thread, &[("page.html", page), ("größe 1.txt", b"text")]).await;
    let get = |name: &str, query: &str| {
        world.request(Method::GET, &format!("{}{query}", path(&thread, name))).send()
    };
    let page = get("page.html", "").await.unwrap();
    assert!(header(&page, "content-disposition").starts_with("attachment"));
    assert_eq!(header(&page, "content-security-policy"), "sandbox; default-src 'none'");
    assert_eq!(header(&page, "x-content-type-options"), "nosniff");
    let text = get("gr%C3%B6%C3%9Fe%201.txt", "").await.unwrap();
    assert_eq!(header(&text, "content-disposition"), "");
    let text = get("gr%C3%B6%C3%9Fe%201.txt", "?download=true").await.unwrap();
    let named = "attachment; filename*=UTF-8''gr%C3%B6%C3%9Fe%201.txt";
    assert_eq!(header(&text, "content-disposition"), named);
    for gone in ["nothing.txt", "page.html/inside", "..%2f..%2f..%2fhart.db"] {
        assert_eq!(get(gone, "").await.unwrap().status(), StatusCode::NOT_FOUND, "{gone}");
    }
    let elsewhere = format!("/api/threads/{thread}/artifacts/etc/passwd");
    assert_eq!(world.request(Method::GET, &elsewhere).send().await.unwrap().status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn files_in_packages() {
    let world = World::new([]).await;
    let thread = world.thread().await;
    let package = package("pack/SKILL.md", b"# Skill");
    world.upload(&thread, &[("my.skill", &package), ("broken.skill", b"no archive")]).await;
    let get = |name: &str| world.request(Method::GET, &path(&thread, name)).send();
    let skill = get("my.skill/SKILL.md").await.unwrap();
    assert_eq!(
        (skill.status(), header(&skill, "content-type")),
        (StatusCode::OK, "text/plain; charset=utf-8")
    );
    assert_eq!(skill.text().await.unwrap(), "# Skill");
    assert_eq!(get("my.skill/other.md").await.unwrap().status(), StatusCode::NOT_FOUND);
    assert_eq!(get("broken.skill/SKILL.md").await.unwrap().status(), StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(get("none.skill/SKILL.md").await.unwrap().status(), StatusCode::NOT_FOUND);
}

/// An archive with one file that is not packed.
fn package(name: &str, content: &[u8]) -> Vec<u8> {
    let (len, name_len) = (content.len() as u32, name.len() as u16);
    let about = [
        &[20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0][..],
        &crc(content).to_le_bytes(),
        &len.to_le_bytes(),
        &len.to_le_bytes(),
        &name_len.to_le_bytes(),
        &[0, 0],
    ]
    .concat();
    let local = [b"PK\x03\x04", &about[..], name.as_bytes(), content].concat();
    let central = [b"PK\x01\x02\x14\0", &about[..], &[0; 14], name.as_bytes()].concat();
    let sizes = [(central.len() as u32).to_le_bytes(), (local.len() as u32).to_le_bytes()].concat();
    let end = [b"PK\x05\x06", &[0, 0, 0, 0, 1, 0, 1, 0][..], &sizes, &[0, 0]].concat();
    [local, central, end].concat()
}

fn crc(content: &[u8]) -> u32 {
    !content.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    })
}

#[tokio::test]
async fn an_edit_replaces_what_its_author_has_seen() {
    let world = World::new([]).await;
    let thread = world.thread().await;
    world.upload(&thread, &[("note.md", b"old"), ("picture.png", b"\x89PNG\xff\xfe")]).await;
    let at = path(&thread, "note.md");
    let edit = |at: &str, content: &str, seen: &str| {
        let body = json!({"content": content, "expected_sha256": seen});
        let at = at.to_owned();
        let world = &world;
        async move { world.call(Method::PUT, &at, body).await }
    };
    let (status, answer) = edit(&at, "new", &sha256(b"old").to_uppercase()).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    let expected = json!({"path": "/mnt/user-data/uploads/note.md", "sha256": sha256(b"new"), "size": 3});
    assert_eq!(answer, expected);
    let (status, answer) = edit(&at, "mine", &sha256(b"old")).await;
    assert_eq!(status, StatusCode::PRECONDITION_FAILED, "{answer}");
    assert!(answer["detail"].as_str().unwrap().contains("has changed"), "{answer}");
    let text = world.request(Method::GET, &at).send().await.unwrap().text().await.unwrap();
    assert_eq!(text, "new");
    let picture = path(&thread, "picture.png");
    let (status, _) = edit(&picture, "text", &sha256(b"\x89PNG\xff\xfe")).await;
    assert_eq!(status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    let (status, _) = edit(&path(&thread, "none.md"), "text", &sha256(b"")).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let (status, _) = edit(&at, &"x".repeat((2 << 20) + 1), &sha256(b"new")).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    let (status, _) = world.call(Method::PUT, &at, json!({"content": "x"})).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    // While a run is on the thread, what changes is the run's.
    world.model.push(Turn::hang());
    let run = json!({"assistant_id": "lead_agent", "input": {"messages": "hi"}});
    world.post(&format!("/threads/{thread}/runs"), run).await;
    let (status, answer) = edit(&at, "mine", &sha256(b"new")).await;
    assert_eq!(status, StatusCode::CONFLICT, "{answer}");
}
