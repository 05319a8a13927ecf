//! `ask_clarification`: ends the run with a question to the user.
//!
//! Invariant: the text says everything the form shows, so a client that knows no forms loses nothing.

use std::collections::HashSet;
use std::fmt::Write as _;

use hart_kernel::{Command, Effect, Goto, ToolContext, ToolError, ToolOutput, TypedTool, async_trait};
use hart_types::ToolCallId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::lenient::{Flag, List};
use crate::sandboxed::failed;

pub(crate) struct AskClarification;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct AskClarificationArgs {
    /// The question. One at a time, specific, answerable in a sentence.
    question: String,
    /// Why you ask: missing_info (something needed was not said), ambiguous_requirement (it can be read in several
    /// ways), approach_choice (several ways lead there), risk_confirmation (something is about to be deleted, sent or
    /// paid), suggestion (you recommend something and want consent).
    #[serde(default)]
    #[schemars(!default)]
    clarification_type: ClarificationType,
    /// What the user needs to know to answer.
    context: Option<String>,
    /// Answers to choose from; the user can still write another. At most 24, each at most 200 characters.
    options: Option<List<Choice>>,
    /// A form, to ask for several values at once instead of one question after the other. At most 16 fields. It takes
    /// the place of `options`.
    fields: Option<List<Field>>,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ClarificationType {
    #[default]
    MissingInfo,
    AmbiguousRequirement,
    ApproachChoice,
    RiskConfirmation,
    Suggestion,
}

/// What to choose: a text, or a label for the user with a value for you.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Choice {
    Text(String),
    Labelled {
        label: String,
        value: Option<String>,
    },
    #[schemars(skip)]
    Number(serde_json::Number),
}

/// One field of a form.
#[derive(Debug, Deserialize, JsonSchema)]
struct Field {
    /// The field's key, unique in the form.
    name: String,
    /// What the user reads; the name if not given.
    label: Option<String>,
    #[serde(rename = "type", default)]
    kind: FieldType,
    /// Whether the form can be sent only with this field filled in (for a checkbox: ticked).
    #[serde(default)]
    required: Flag,
    /// What can be chosen, for select and multi_select.
    options: Option<List<Choice>>,
    /// A hint shown in the empty field.
    placeholder: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum FieldType {
    #[default]
    Text,
    Textarea,
    Number,
    Select,
    MultiSelect,
    Checkbox,
    Date,
}

#[async_trait]
impl TypedTool for AskClarification {
    const NAME: &'static str = "ask_clarification";
    const DESCRIPTION: &'static str = "\
Ask the user a question and stop until they answer.

Use it before you start when the task cannot be done well without the answer: something needed is missing, \
the request can be read in several ways, there are ways to choose from, or a step is risky and needs \
consent. Do not use it for what you can find out yourself or decide without harm.

- An open question: only `question`.
- A choice of one: `options`.
- Several values, or a choice of many: `fields`, as one form.

Ask once, for everything you need, and call no other tool beside it: the run ends with the question, and \
the answer is the user's next message.";
    const EFFECT: Effect = Effect::Pure;
    type Args = AskClarificationArgs;

    async fn run(&self, cx: &ToolContext<'_>, args: AskClarificationArgs) -> Result<ToolOutput, ToolError> {
        let request = Request::check(args)?;
        let human_input = request.payload(cx.call_id);
        let size = human_input.to_string().len();
        if size > MAX_BYTES {
            return Err(failed(format!(
                "the request has {size} bytes, the limit is {MAX_BYTES}; shorten the context, or ask for \
                 less at once"
            )));
        }
        Ok(ToolOutput {
            content: request.text().into(),
            artifact: Some(json!({"human_input": human_input})),
            command: Command::none().goto(Goto::End),
        })
    }
}

// Chat platforms cut longer messages off, and with them fields the user never sees.
const MAX_FIELDS: usize = 16;
const MAX_OPTIONS: usize = 24;
const MAX_CHARS: usize = 200;
const MAX_BYTES: usize = 16_384;

/// Clients keep a form's values in a plain JavaScript object, where these names mean something else.
const RESERVED: [&str; 13] = [
    "__proto__",
    "constructor",
    "prototype",
    "toString",
    "toLocaleString",
    "valueOf",
    "hasOwnProperty",
    "isPrototypeOf",
    "propertyIsEnumerable",
    "__defineGetter__",
    "__defineSetter__",
    "__lookupGetter__",
    "__lookupSetter__",
];

/// A question within the limits, as clients show it.
struct Request {
    question: String,
    kind: ClarificationType,
    context: Option<String>,
    input: Input,
}

enum Input {
    FreeText,
    Choice(Vec<WireOption>),
    Form(Vec<WireField>),
}

#[derive(Serialize)]
struct WireOption {
    id: String,
    label: String,
    value: String,
}

#[derive(Serialize)]
struct WireField {
    name: String,
    label: String,
    #[serde(rename = "type")]
    kind: FieldType,
    required: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    options: Vec<WireOption>,
    #[serde(skip_serializing_if = "Option::is_none")]
    placeholder: Option<String>,
}

impl Request {
    fn check(args: AskClarificationArgs) -> Result<Self, ToolError> {
        if args.question.trim().is_empty() {
            return Err(failed("the question is empty; say what you want to know"));
        }
        let options = options(args.options.unwrap_or_default(), "option", "the question")?;
        let fields = fields(args.fields.unwrap_or_default())?;
        let input = match (fields.is_empty(), options.is_empty()) {
            (false, _) => Input::Form(fields),
            (true, false) => Input::Choice(options),
            (true, true) => Input::FreeText,
        };
        let context = args.context.filter(|context| !context.trim().is_empty());
        Ok(Self { question: args.question, kind: args.clarification_type, context, input })
    }

    fn payload(&self, call: &ToolCallId) -> Value {
        let (version, input_mode) = match self.input {
            Input::FreeText => (1, "free_text"),
            Input::Choice(_) => (1, "choice_with_other"),
            Input::Form(_) => (2, "form"),
        };
        let mut payload = json!({
            "version": version,
            "kind": "human_input_request",
            "source": "ask_clarification",
            "request_id": format!("clarification:{call}"),
            "clarification_type": self.kind,
            "question": self.question,
            "input_mode": input_mode,
            "tool_call_id": call,
        });
        if let Some(map) = payload.as_object_mut() {
            if let Some(context) = &self.context {
                map.insert("context".to_owned(), json!(context));
            }
            match &self.input {
                Input::FreeText => None,
                Input::Choice(options) => map.insert("options".to_owned(), json!(options)),
                Input::Form(fields) => map.insert("fields".to_owned(), json!(fields)),
            };
        }
        payload
    }

    fn text(&self) -> String {
        let icon = match self.kind {
            ClarificationType::MissingInfo => "❓",
            ClarificationType::AmbiguousRequirement => "🤔",
            ClarificationType::ApproachChoice => "🔀",
            ClarificationType::RiskConfirmation => "⚠️",
            ClarificationType::Suggestion => "💡",
        };
        let mut text = match &self.context {
            Some(context) => format!("{icon} {context}\n\n{}", self.question),
            None => format!("{icon} {}", self.question),
        };
        match &self.input {
            Input::FreeText => {}
            Input::Choice(options) => {
                text.push('\n');
                for (index, option) in options.iter().enumerate() {
                    let _ = write!(text, "\n  {}. {}", index + 1, option.label);
                }
            }
            Input::Form(fields) => {
                text.push('\n');
                for (index, field) in fields.iter().enumerate() {
                    let _ = write!(text, "\n  {}. {}", index + 1, field.line());
                }
                text.push_str("\n\nPlease reply with a value for each field.");
            }
        }
        text
    }
}

impl WireField {
    fn line(&self) -> String {
        let mut line = self.label.clone();
        if self.required {
            line.push_str(" (required)");
        }
        if !self.options.is_empty() {
            let labels: Vec<&str> = self.options.iter().map(|option| option.label.as_str()).collect();
            let _ = write!(line, " — options: {}", labels.join(" / "));
        }
        if self.kind == FieldType::MultiSelect {
            line.push_str(" (multiple allowed)");
        }
        line
    }
}

fn fields(fields: List<Field>) -> Result<Vec<WireField>, ToolError> {
    let count = fields.0.len();
    if count > MAX_FIELDS {
        return Err(failed(format!(
            "the form has {count} fields, the limit is {MAX_FIELDS}; ask for less at once"
        )));
    }
    let mut names = HashSet::new();
    fields
        .0
        .into_iter()
        .map(|field| {
            let field = check_field(field)?;
            if !names.insert(field.name.clone()) {
                return Err(failed(format!("two fields are named `{}`; give each its own name", field.name)));
            }
            Ok(field)
        })
        .collect()
}

fn check_field(field: Field) -> Result<WireField, ToolError> {
    let name = field.name.trim().to_owned();
    if name.is_empty() {
        return Err(failed("a field has no name; give each field one"));
    }
    if RESERVED.contains(&name.as_str()) {
        return Err(failed(format!("a field cannot be named `{name}`; choose another name")));
    }
    within_chars(&name, "the name of a field")?;
    let given =
        |text: Option<String>| text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    let label = given(field.label).unwrap_or_else(|| name.clone());
    within_chars(&label, &format!("the label of field `{name}`"))?;
    let placeholder = given(field.placeholder);
    within_chars(placeholder.as_deref().unwrap_or_default(), &format!("the placeholder of field `{name}`"))?;
    let options = if matches!(field.kind, FieldType::Select | FieldType::MultiSelect) {
        let prefix = format!("{name}-option");
        let options = options(field.options.unwrap_or_default(), &prefix, &format!("field `{name}`"))?;
        if options.is_empty() {
            return Err(failed(format!(
                "field `{name}` is to be chosen from, but has no options; add some, or use the type text"
            )));
        }
        options
    } else {
        Vec::new()
    };
    Ok(WireField { name, label, kind: field.kind, required: field.required.0, options, placeholder })
}

/// Blank and repeated ones go: clients refuse a request that has them.
fn options(choices: List<Choice>, prefix: &str, of: &str) -> Result<Vec<WireOption>, ToolError> {
    let mut options: Vec<WireOption> = Vec::new();
    for choice in choices.0 {
        let (label, value) = match choice {
            Choice::Text(text) => (text, None),
            Choice::Number(number) => (number.to_string(), None),
            Choice::Labelled { label, value } => (label, value),
        };
        let label = label.trim().to_owned();
        let value = value.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let value = value.unwrap_or_else(|| label.clone());
        if label.is_empty() || options.iter().any(|option| option.value == value) {
            continue;
        }
        within_chars(&label, &format!("an option of {of}"))?;
        within_chars(&value, &format!("the value of an option of {of}"))?;
        options.push(WireOption { id: format!("{prefix}-{}", options.len() + 1), label, value });
    }
    if options.len() > MAX_OPTIONS {
        let count = options.len();
        return Err(failed(format!(
            "{of} has {count} options, the limit is {MAX_OPTIONS}; offer the likely ones"
        )));
    }
    Ok(options)
}

fn within_chars(text: &str, what: &str) -> Result<(), ToolError> {
    let count = text.chars().count();
    if count <= MAX_CHARS {
        return Ok(());
    }
    Err(failed(format!("{what} has {count} characters, the limit is {MAX_CHARS}; shorten it")))
}
