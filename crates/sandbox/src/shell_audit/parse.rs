//! Takes a shell script apart into simple commands.
//!
//! Invariant: quotes and here-documents are data, substitutions are commands; whatever the text, it ends.

use std::collections::VecDeque;
use std::iter::Peekable;
use std::str::CharIndices;

use super::simple::{Redirect, Simple};

/// Deeper nesting is not looked into.
const MAX_DEPTH: usize = 8;

#[derive(Debug, Default)]
pub(super) struct Script {
    /// Commands that feed each other, in order.
    pub(super) pipelines: Vec<Vec<Simple>>,
    /// Names that the script defines as functions.
    pub(super) functions: Vec<String>,
}

pub(super) fn parse(text: &str) -> Script {
    let mut script = Script::default();
    parse_into(text, 0, &mut script);
    script
}

fn parse_into(text: &str, depth: usize, script: &mut Script) {
    let mut parser = Parser::new(text);
    parser.run();
    let Parser { done, functions, .. } = parser;
    script.functions.extend(functions);
    let mut nested = Vec::new();
    for simple in done.iter().flatten() {
        nested.extend(simple.substitutions.iter().cloned());
        nested.extend(simple.script());
    }
    script.pipelines.extend(done);
    if depth < MAX_DEPTH {
        nested.iter().for_each(|text| parse_into(text, depth + 1, script));
    }
}

struct Parser<'a> {
    text: &'a str,
    chars: Peekable<CharIndices<'a>>,
    done: Vec<Vec<Simple>>,
    pipeline: Vec<Simple>,
    simple: Simple,
    word: Option<String>,
    /// The operator whose target is the next word.
    redirect: Option<String>,
    /// Here-documents whose bodies start at the next line.
    documents: VecDeque<Document>,
    functions: Vec<String>,
}

struct Document {
    end: String,
    strip_tabs: bool,
    quoted: bool,
    /// Which command it feeds: its pipeline and its place there.
    of: (usize, usize),
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            chars: text.char_indices().peekable(),
            done: Vec::new(),
            pipeline: Vec::new(),
            simple: Simple::default(),
            word: None,
            redirect: None,
            documents: VecDeque::new(),
            functions: Vec::new(),
        }
    }

    fn run(&mut self) {
        while let Some((_, c)) = self.chars.next() {
            self.character(c);
        }
        self.end_pipeline();
    }

    fn character(&mut self, c: char) {
        match c {
            '\\' => match self.chars.next() {
                Some((_, '\n')) | None => {}
                Some((_, escaped)) => self.push(escaped),
            },
            '\'' => {
                let quoted = self.until('\'');
                self.word.get_or_insert_default().push_str(quoted);
            }
            '"' => self.double_quoted(),
            '`' => {
                let inner = self.until('`').to_owned();
                self.substitution(inner);
            }
            '$' => self.dollar(),
            '#' if self.word.is_none() => while self.chars.next_if(|(_, c)| *c != '\n').is_some() {},
            '\n' => {
                self.end_pipeline();
                self.read_documents();
            }
            c if c.is_whitespace() => self.end_word(),
            ';' => self.end_pipeline(),
            '&' if self.next_is('>') => self.redirection('>'),
            '&' => {
                self.take('&');
                self.end_pipeline();
            }
            '|' => {
                if self.take('|') {
                    self.end_pipeline();
                } else {
                    self.take('&');
                    self.end_simple();
                }
            }
            '(' => {
                let defines = self.text_continues_with(')');
                if let Some(name) = self.word.take_if(|_| defines) {
                    self.functions.push(name);
                }
                self.end_pipeline();
            }
            ')' => self.end_pipeline(),
            '<' | '>' if self.next_is('(') => {
                self.chars.next();
                let inner = self.closing(')');
                self.substitution(inner);
            }
            '<' | '>' => self.redirection(c),
            c => self.push(c),
        }
    }

    fn text_continues_with(&mut self, wanted: char) -> bool {
        let rest = self.chars.peek().and_then(|(at, _)| self.text.get(*at..)).unwrap_or_default();
        rest.trim_start_matches([' ', '\t']).starts_with(wanted)
    }

    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn next_is(&mut self, wanted: char) -> bool {
        self.chars.peek().is_some_and(|(_, c)| *c == wanted)
    }

    fn take(&mut self, wanted: char) -> bool {
        self.chars.next_if(|(_, c)| *c == wanted).is_some()
    }

    /// Up to the next `end`, which is consumed; to the end of the text if there is none.
    fn until(&mut self, end: char) -> &'a str {
        let start = self.chars.peek().map_or(self.text.len(), |(at, _)| *at);
        for (at, c) in self.chars.by_ref() {
            if c == end {
                return self.text.get(start..at).unwrap_or_default();
            }
        }
        self.text.get(start..).unwrap_or_default()
    }

    fn double_quoted(&mut self) {
        self.word.get_or_insert_default();
        while let Some((_, c)) = self.chars.next() {
            match c {
                '"' => return,
                '\\' => match self.chars.next() {
                    Some((_, '\n')) | None => {}
                    Some((_, c @ ('"' | '\\' | '$' | '`'))) => self.push(c),
                    Some((_, c)) => {
                        self.push('\\');
                        self.push(c);
                    }
                },
                '`' => {
                    let inner = self.until('`').to_owned();
                    self.substitution(inner);
                }
                '$' => self.dollar(),
                c => self.push(c),
            }
        }
    }

    fn dollar(&mut self) {
        if self.take('(') {
            let inner = self.closing(')');
            // `$((…))` is arithmetic, and only a substitution in it runs anything.
            match inner.strip_prefix('(').filter(|_| inner.ends_with(')')) {
                Some(arithmetic) if !arithmetic.contains("$(") && !arithmetic.contains('`') => {
                    self.word.get_or_insert_default().push('0');
                }
                _ => self.substitution(inner),
            }
        } else if self.take('{') {
            let inner = self.closing('}');
            let word = self.word.get_or_insert_default();
            word.push_str("${");
            word.push_str(&inner);
            word.push('}');
            if inner.contains("$(") || inner.contains('`') {
                self.simple.substitutions.extend(commands_in(&inner));
            }
        } else {
            self.push('$');
        }
    }

    fn substitution(&mut self, inner: String) {
        let word = self.word.get_or_insert_default();
        word.push_str("$(");
        word.push_str(&inner);
        word.push(')');
        self.simple.substitutions.push(inner);
    }

    /// What stands before the bracket that closes the one just opened; quotes hide brackets.
    fn closing(&mut self, close: char) -> String {
        let open = if close == ')' { '(' } else { '{' };
        let start = self.chars.peek().map_or(self.text.len(), |(at, _)| *at);
        let (mut depth, mut quote) = (1_usize, None);
        while let Some((at, c)) = self.chars.next() {
            match (quote, c) {
                (None | Some('"'), '\\') => {
                    self.chars.next();
                }
                (Some(open), c) if c == open => quote = None,
                (None, '\'' | '"') => quote = Some(c),
                (None, c) if c == open => depth += 1,
                (None, c) if c == close => {
                    depth -= 1;
                    if depth == 0 {
                        return self.text.get(start..at).unwrap_or_default().to_owned();
                    }
                }
                _ => {}
            }
        }
        self.text.get(start..).unwrap_or_default().to_owned()
    }

    fn redirection(&mut self, first: char) {
        // `2>`: the number belongs to the operator.
        if self.word.as_ref().is_some_and(|word| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit()))
        {
            self.word = None;
        }
        self.end_word();
        let mut operator = String::from(first);
        while let Some((_, c)) = self.chars.next_if(|(_, c)| matches!(c, '<' | '>' | '&' | '|')) {
            operator.push(c);
            if operator == "<<<" {
                break;
            }
        }
        if operator == "<<" && self.take('-') {
            operator.push('-');
        }
        if operator.starts_with("<<") && operator != "<<<" {
            self.document(operator == "<<-");
        } else {
            self.redirect = Some(operator);
        }
    }

    fn document(&mut self, strip_tabs: bool) {
        while self.chars.next_if(|(_, c)| matches!(c, ' ' | '\t')).is_some() {}
        let (mut end, mut quoted) = (String::new(), false);
        while let Some((_, c)) = self.chars.next_if(|(_, c)| !c.is_whitespace() && !";&|<>()".contains(*c)) {
            match c {
                '\'' | '"' => {
                    quoted = true;
                    end.push_str(self.until(c));
                }
                '\\' => {
                    quoted = true;
                    end.extend(self.chars.next().map(|(_, c)| c));
                }
                c => end.push(c),
            }
        }
        let of = (self.done.len(), self.pipeline.len());
        self.documents.push_back(Document { end, strip_tabs, quoted, of });
    }

    fn read_documents(&mut self) {
        while let Some(document) = self.documents.pop_front() {
            let mut body = String::new();
            while self.chars.peek().is_some() {
                let line = self.until('\n');
                let stripped = if document.strip_tabs { line.trim_start_matches('\t') } else { line };
                if stripped == document.end {
                    break;
                }
                body.push_str(stripped);
                body.push('\n');
            }
            let (pipeline, at) = document.of;
            if let Some(simple) = self.done.get_mut(pipeline).and_then(|pipeline| pipeline.get_mut(at)) {
                if !document.quoted {
                    simple.substitutions.extend(commands_in(&body));
                }
                simple.input = Some(body);
            }
        }
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        match self.redirect.take() {
            Some(operator) if operator == "<<<" => self.simple.input = Some(word),
            Some(operator) => self.simple.redirects.push(Redirect { operator, target: word }),
            None => self.simple.words.push(word),
        }
    }

    fn end_simple(&mut self) {
        self.end_word();
        self.redirect = None;
        let simple = std::mem::take(&mut self.simple);
        // A command that is only a here-document has no words yet; it keeps its place for the body.
        let waits =
            self.documents.iter().any(|document| document.of == (self.done.len(), self.pipeline.len()));
        if !simple.words.is_empty()
            || !simple.redirects.is_empty()
            || !simple.substitutions.is_empty()
            || waits
        {
            self.pipeline.push(simple);
        }
    }

    fn end_pipeline(&mut self) {
        self.end_simple();
        if !self.pipeline.is_empty() {
            self.done.push(std::mem::take(&mut self.pipeline));
        }
    }
}

/// The substitutions in text that the shell expands but does not split into words.
fn commands_in(text: &str) -> Vec<String> {
    let mut parser = Parser::new(text);
    while let Some((_, c)) = parser.chars.next() {
        match c {
            '\\' => {
                parser.chars.next();
            }
            '`' => {
                let inner = parser.until('`').to_owned();
                parser.simple.substitutions.push(inner);
            }
            '$' if parser.next_is('(') => parser.dollar(),
            _ => {}
        }
    }
    parser.simple.substitutions
}
