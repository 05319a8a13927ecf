//! A web page where a model's answer should be.
//!
//! Invariant: of the page only its title is told.

const LONGEST_TITLE: usize = 100;
/// A page begins with one of these.
const STARTS: [&str; 4] = ["<!doctype html", "<html", "<head", "<body"];

pub(super) fn is_page(body: &[u8]) -> bool {
    let start: Vec<u8> = body.trim_ascii_start().iter().take(16).copied().collect();
    let start = String::from_utf8_lossy(&start).to_ascii_lowercase();
    STARTS.iter().any(|page| start.starts_with(page))
}

/// What came instead of an answer.
pub(super) fn told(body: &[u8]) -> String {
    let title = match title(&String::from_utf8_lossy(body)) {
        Some(title) => format!(" (title “{title}”)"),
        None => String::new(),
    };
    format!("it answered with an HTML page{title}, no model: check `base_url`")
}

fn title(page: &str) -> Option<String> {
    // Lower case is as long as the original: only ASCII is changed.
    let lower = page.to_ascii_lowercase();
    let open = lower.find("<title")?;
    let start = open + lower.get(open..)?.find('>')? + 1;
    let end = start + lower.get(start..)?.find("</title")?;
    let text = page.get(start..end)?.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")]
        .iter()
        .fold(text, |text, (written, meant)| text.replace(written, meant));
    let text: String = text.chars().take(LONGEST_TITLE).collect();
    Some(text).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_told_from_other_texts() {
        for page in ["<html>", "\n <!DOCTYPE HTML PUBLIC \"x\">", "<HEAD><title>x"] {
            assert!(is_page(page.as_bytes()), "{page}");
        }
        for text in ["", "<", "upstream connect error", "<error>no</error>", "{\"html\": \"<html>\"}"] {
            assert!(!is_page(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn a_title_is_found_wherever_it_is_whole() {
        let told = |page: &str| super::told(page.as_bytes());
        assert!(
            told("<Title lang='en'>502\n Bad &lt;gateway&gt;</TITLE>")
                .contains("(title “502 Bad <gateway>”)")
        );
        assert!(!told("<title></title>").contains("title"), "an empty one is none");
        assert!(!told("<title>cut").contains("title"));
        assert!(told(&format!("İ<title>{}</title>", "ü".repeat(500))).len() < 400);
    }
}
