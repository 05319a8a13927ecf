//! Reads server-sent events as they come.

use hart_testkit::in_time;
use serde_json::Value;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    /// `:` for a comment.
    pub(crate) event: String,
    pub(crate) data: Value,
    pub(crate) id: String,
}

pub(crate) struct Lines {
    response: reqwest::Response,
    text: String,
}

impl Lines {
    pub(crate) async fn open(request: reqwest::RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        assert_eq!(response.status().as_u16(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream; charset=utf-8");
        Self { response, text: String::new() }
    }

    /// The next event or comment; `None` when the server ends the stream.
    pub(crate) async fn next(&mut self) -> Option<Line> {
        loop {
            for end in ["\r\n\r\n", "\n\n"] {
                if let Some((block, rest)) = self.text.split_once(end) {
                    let line = parse(block);
                    self.text = rest.to_owned();
                    return Some(line);
                }
            }
            let bytes = in_time("a line", self.response.chunk()).await.unwrap()?;
            self.text.push_str(std::str::from_utf8(&bytes).unwrap());
        }
    }

    /// The events until one is as wanted, that one as well. Comments are left out.
    pub(crate) async fn until(&mut self, wanted: impl Fn(&Line) -> bool) -> Vec<Line> {
        let mut lines = Vec::new();
        loop {
            let line = self.next().await.expect("the stream ended");
            if line.event == ":" {
                continue;
            }
            let done = wanted(&line);
            lines.push(line);
            if done {
                return lines;
            }
        }
    }
}

fn parse(block: &str) -> Line {
    let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    if block.starts_with(':') {
        return Line { event: ":".into(), data: Value::Null, id: String::new() };
    }
    let data = serde_json::from_str(field("data: ")).unwrap();
    Line { event: field("event: ").to_owned(), data, id: field("id: ").to_owned() }
}
