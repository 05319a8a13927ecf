use hart_kernel::{ModelSettings, OutputFormat};
use hart_types::{Block, ToolCall, ToolCallId, ToolStatus};
use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;

const CHINESE: &str = "鹿群在清晨穿过薄雾笼罩的山谷，沿着溪流寻找新鲜的青草。年长的雄鹿走在最前面，不时停下来\
倾听远处的声音。孩子们躲在树后，屏住呼吸看着这一切，生怕惊动了它们。太阳升起以后，雾气慢慢散去，山谷重新变得明亮。\
我们需要先读取配置文件，然后检查每一个模型的设置是否正确，最后把结果写入数据库。如果出现错误，请把完整的日志发给我。";

fn request(messages: Vec<Message>) -> ChatRequest {
    ChatRequest {
        caller: "lead".into(),
        system: Some("You are a deer.".into()),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: Arc::from([]),
        settings: ModelSettings::default(),
    }
}

fn openai() -> TokenCounter {
    TokenCounter::new(Family::OpenAi)
}

#[test]
fn known_counts() {
    // As OpenAI's own tokenizer counts them.
    for (text, tokens) in [
        ("", 0),
        ("hello world", 2),
        ("tiktoken is great!", 6),
        ("antidisestablishmentarianism", 6),
        ("2 + 2 = 4", 7),
        ("お誕生日おめでとう", 8),
        ("<|endoftext|>", 7),
    ] {
        assert_eq!(openai().count_text(text), tokens, "{text}");
    }
}

#[test]
fn a_run_of_one_character_is_counted_in_pieces_that_add_up() {
    let cases = [("a", 25_000), ("=", 3_125), (" ", 1_563), ("\n", 12_500), ("\n ", 0), ("鹿", 0), ("é", 0)];
    for (character, whole) in cases {
        let text = character.repeat(200_000 / character.len());
        let counted = exact(&text);
        assert!(counted > 0);
        if whole > 0 {
            let off = counted as f64 / f64::from(whole) - 1.0;
            assert!((0.0..0.08).contains(&off), "{character:?}: {counted} instead of {whole}");
        }
    }
}

#[test]
fn ordinary_text_is_never_cut() {
    for text in [include_str!("tokens/text.rs"), include_str!("../../../docs/guide/models.md"), CHINESE] {
        assert_eq!(long_run_free(text), exact(text));
    }
}

fn long_run_free(text: &str) -> u64 {
    tiktoken::get_encoding("o200k_base").unwrap().count(text) as u64
}

#[test]
fn the_estimate_is_within_a_tenth() {
    let code = concat!(
        include_str!("tokens/text.rs"),
        include_str!("sse.rs"),
        include_str!("config.rs"),
        include_str!("openai/request.rs"),
    );
    let prose = concat!(
        include_str!("../../../ARCHITECTURE.md"),
        include_str!("../../../README.md"),
        include_str!("../../../CONTRIBUTING.md"),
    );
    let data = include_str!("../../../contracts/conversations/7cfa5f8f.json");
    for (name, text) in [("code", code), ("prose", prose), ("chinese", CHINESE), ("data", data)] {
        let (estimated, exact) = (estimate(text) as f64, exact(text) as f64);
        let off = estimated / exact - 1.0;
        assert!(off.abs() <= 0.1, "{name}: {estimated} instead of {exact} ({:.1} %)", off * 100.0);
    }
    assert_eq!(estimate(""), 0);
}

#[test]
fn a_megabyte_is_counted_both_ways() {
    let source = include_str!("openai/request.rs");
    let text = source.repeat(1_000_000 / source.len() + 1);
    let (exact, estimated) = (openai().count_text(&text), openai().estimating().count_text(&text));
    assert!((200_000..400_000).contains(&exact), "{exact}");
    assert!((200_000..400_000).contains(&estimated), "{estimated}");
}

#[test]
fn families_are_told_by_name() {
    for (model, family) in [
        ("gpt-5.6", Family::OpenAi),
        ("openai/o3-mini", Family::OpenAi),
        ("claude-sonnet-5-5", Family::Anthropic),
        ("anthropic.claude-opus-4-1-v1:0", Family::Anthropic),
        ("gemini-3.5-flash", Family::Gemini),
        ("deepseek/deepseek-v3.2", Family::DeepSeek),
        ("deepseek-r1-distill-llama-70b", Family::Llama),
        ("DeepSeek-R1-Distill-Qwen-7B", Family::Qwen),
        ("Qwen/Qwen3-235B-A22B", Family::Qwen),
        ("kimi-k2.5", Family::Kimi),
        ("zai-org/GLM-5", Family::Glm),
        ("MiniMax-M2", Family::MiniMax),
        ("mistral-large-latest", Family::Mistral),
        ("grok-5", Family::Grok),
        ("step-3", Family::Other),
        ("", Family::Other),
    ] {
        assert_eq!(Family::of(model), family, "{model}");
    }
}

#[test]
fn a_vocabulary_made_for_chinese_needs_fewer_tokens_for_it() {
    let (kimi, openai) = (TokenCounter::new(Family::Kimi), openai());
    assert!(kimi.count_text(CHINESE) < openai.count_text(CHINESE) * 85 / 100);
    assert!(kimi.count_text("The deer walk.") >= openai.count_text("The deer walk.") - 1);
}

#[test]
fn everything_in_a_request_counts() {
    let counter = openai();
    let mut asked = request(vec![Message::human("hello world")]);
    let mut before = counter.count_request(&asked);
    assert_eq!(before, 3 + (5 + 4) + (2 + 4), "reply, system and user");
    let mut grows = |asked: &ChatRequest, by: std::ops::RangeInclusive<u64>, what: &str| {
        let now = counter.count_request(asked);
        assert!(by.contains(&(now - before)), "{what}: {before} → {now}");
        before = now;
    };
    let spec = ToolSpec {
        effect: hart_kernel::Effect::Pure,
        name: "ls".into(),
        description: "Lists a folder.".into(),
        input_schema: json!({"type": "object", "properties": {"path": {"type": "string"}}}),
    };
    asked.tools = [Arc::new(spec)].into();
    grows(&asked, 20..=40, "a tool");
    let mut answer = Message::ai("I look.");
    if let hart_types::Body::Ai(ai) = &mut answer.body {
        let args = Map::from_iter([("path".to_owned(), json!("/mnt/user-data"))]);
        ai.tool_calls.push(ToolCall::new("call_1", "ls", args));
    }
    asked.messages.push(answer.into());
    grows(&asked, 20..=40, "a call");
    let result = Message::tool(&ToolCallId::from("call_1"), "ls", ToolStatus::Success, "a.txt\nb.txt");
    asked.messages.push(result.into());
    grows(&asked, 8..=20, "a result");
    let data = "QUJD".repeat(10_000);
    asked.messages.push(Message::human(vec![Block::image_base64("image/png", &data)]).into());
    grows(&asked, 700..=800, "an image counts by its kind, not by its bytes");
    asked.messages.push(Message::human(vec![Block::file_base64("application/pdf", &data, "a.pdf")]).into());
    grows(&asked, 2000..=2100, "a page");
    asked.settings.output = OutputFormat::Json { name: "x".into(), schema: json!({"type": "object"}) };
    grows(&asked, 10..=20, "a schema");
}

#[test]
fn reasoning_counts_where_it_is_sent_back() {
    let thought = Message::ai(vec![Block::reasoning("word ".repeat(100)), Block::text("ok")]);
    let config = |provider: &str, model: &str| {
        let entry = json!({"use": provider, "model": model, "api_key": "k"});
        ModelConfig::resolve(serde_json::from_value(entry).unwrap(), &|_| None).unwrap()
    };
    for (provider, model, counts) in [
        // Responses takes reasoning back, chat completions do not.
        ("openai", "gpt-5", true),
        ("groq", "openai/gpt-oss-120b", false),
        ("deepseek", "deepseek-chat", true),
        ("anthropic", "claude-sonnet-5-5", true),
    ] {
        let tokens = TokenCounter::of(&config(provider, model)).count_message(&Arc::new(thought.clone()));
        assert_eq!(tokens > 100, counts, "{provider}: {tokens}");
    }
}

#[test]
fn a_longer_conversation_counts_as_if_anew_but_only_its_end_is_looked_at() {
    let messages: Vec<Message> = (0..300).map(|n| Message::human(format!("message number {n}"))).collect();
    let mut asked = request(messages);
    let counter = openai();
    let first = counter.count_request(&asked);
    asked.messages.push(Message::human("one more").into());
    let second = counter.count_request(&asked);
    assert_eq!(second, openai().count_request(&asked));
    assert_eq!(second - first, 2 + 4);
    let state = counter.lock();
    assert_eq!(state.conversations.len(), 1, "the longer one has replaced the one it continues");
    assert_eq!(state.conversations.back().unwrap().sums.len(), 301);
    drop(state);
    // Another beginning shares nothing, and a shorter one only its own part.
    let other = request(vec![Message::human("other")]);
    assert_eq!(counter.count_request(&other), openai().count_request(&other));
    let shorter = ChatRequest { messages: asked.messages.iter().take(7).cloned().collect(), ..asked };
    assert_eq!(counter.count_request(&shorter), openai().count_request(&shorter));
}

#[test]
fn it_learns_from_the_provider_within_bounds() {
    let counter = TokenCounter::new(Family::Anthropic);
    let text = "The deer walk through the valley. ".repeat(200);
    let plain = counter.count_text(&text);
    let truth = plain * 13 / 10;
    counter.observe(plain, truth);
    assert_eq!(counter.count_text(&text), truth, "the first answer is believed");
    for _ in 0..50 {
        counter.observe(counter.count_text(&text), plain);
    }
    assert!(counter.count_text(&text).abs_diff(plain) <= 1, "later ones pull it along");
    for _ in 0..50 {
        counter.observe(1000, u64::MAX);
    }
    assert!((counter.ratio() - BOUNDS.1).abs() < 1e-3);
    let before = counter.ratio();
    counter.observe(1000, 1);
    assert_eq!(counter.ratio(), before, "nobody counts that little");
    counter.observe(3, 500);
    counter.observe(1000, 0);
    assert_eq!(counter.ratio(), before, "nothing is learnt from a tiny request or from no count");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_text_is_counted_and_more_of_it_counts_more(a in "\\PC{0,200}", b in "[ -~\\n鹿é🦌]{0,200}") {
        for counter in [openai(), openai().estimating(), TokenCounter::new(Family::Mistral)] {
            let one = counter.count_text(&a);
            // One blank line apart, so that no word is completed by the next one.
            let both = counter.count_text(&format!("{a}\n\n{b}"));
            prop_assert!(both + 2 >= one, "{one} {both}");
        }
        prop_assert!(exact(&a) <= a.len() as u64);
        prop_assert!(estimate(&a) <= 2 * a.len() as u64 + 1);
    }
}
