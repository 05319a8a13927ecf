use futures_util::stream;

use super::*;

/// The parts of a body that comes in pieces of this size: names and contents.
async fn parts(body: &[u8], piece: usize) -> ApiResult<Vec<(Option<String>, Vec<u8>)>> {
    let pieces: Vec<Result<Bytes, std::io::Error>> =
        body.chunks(piece).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, "multipart/form-data; boundary=\"xX\"".parse().unwrap());
    let body = Body::from_stream(stream::iter(pieces));
    let mut form = Multipart::new(&headers, body, Duration::from_secs(60))?;
    let mut found = Vec::new();
    while let Some(head) = form.next().await? {
        let mut content = Vec::new();
        while let Some(piece) = form.piece().await? {
            content.extend_from_slice(&piece);
        }
        found.push((head.filename, content));
    }
    Ok(found)
}

#[tokio::test]
async fn a_form_is_the_same_however_it_is_cut() {
    let body = b"--xX\r\nContent-Disposition: form-data; name=\"files\"; filename=\"a;b.txt\"\r\n\
                 Content-Type: text/plain\r\n\r\none\r\n--x\r\n--xY two\r\n--xX\r\n\
                 content-disposition: form-data; name=\"note\"\r\n\r\n\r\n--xX--\r\nrest";
    for piece in 1..body.len() {
        let found = parts(body, piece).await.unwrap();
        let expected =
            vec![(Some("a;b.txt".to_owned()), b"one\r\n--x\r\n--xY two".to_vec()), (None, Vec::new())];
        assert_eq!(found, expected, "in pieces of {piece}");
    }
}

#[tokio::test]
async fn what_is_no_form_is_an_error() {
    for body in [&b""[..], b"hello", b"--xX\r\n", b"--xX\r\nname: x\r\n\r\ncontent", b"--xX\r\n\r\nc\r\n--xX"]
    {
        assert!(parts(body, 3).await.is_err(), "{}", String::from_utf8_lossy(body));
    }
    let endless = [b"--xX\r\n".to_vec(), vec![b'h'; 2 * HEAD]].concat();
    assert!(parts(&endless, 1000).await.is_err());
    for kind in ["", "text/plain; boundary=x", "multipart/form-data", "multipart/form-data; boundary="] {
        assert_eq!(boundary(kind), None, "{kind}");
    }
    assert_eq!(boundary("Multipart/Form-Data; charset=utf-8; Boundary=abc"), Some("abc".to_owned()));
}

#[test]
fn names_in_all_spellings() {
    for (head, name) in [
        ("filename=\"a.txt\"", "a.txt"),
        ("filename=a.txt", "a.txt"),
        ("filename=\"a%22b.txt\"", "a\"b.txt"),
        ("filename=\"a\\\"b.txt\"", "a\"b.txt"),
        ("filename=\"C:\\dir\\a.txt\"", "C:\\dir\\a.txt"),
        ("filename=\"x\"; filename*=UTF-8''%e2%82%ac%20rates", "€ rates"),
        ("filename=\"Größe.csv\"", "Größe.csv"),
    ] {
        let head = format!("Content-Disposition: form-data; name=\"files\"; {head}\r\n\r\n");
        assert_eq!(PartHead::read(&head).filename.as_deref(), Some(name), "{head}");
    }
    assert_eq!(PartHead::read("nothing").filename, None);
}
