//! The rules about what a file says: a pattern each, and how grave it is in a script and in a text.
//!
//! Invariant: every pattern is run over all bytes of every file.

use std::sync::LazyLock;

use regex::bytes::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};

use super::Level::{self, Block, Note, Warn};

pub(super) struct Rule {
    pub(super) name: &'static str,
    pattern: &'static str,
    pub(super) in_scripts: Option<Level>,
    pub(super) in_text: Option<Level>,
    pub(super) message: &'static str,
    pub(super) help: &'static str,
    /// What it finds must not be shown.
    pub(super) secret: bool,
}

const fn rule(
    name: &'static str,
    in_scripts: Level,
    in_text: Option<Level>,
    message: &'static str,
    help: &'static str,
    pattern: &'static str,
) -> Rule {
    Rule { name, pattern, in_scripts: Some(in_scripts), in_text, message, help, secret: false }
}

const fn secret(message: &'static str, pattern: &'static str) -> Rule {
    let help = "remove it, and make a new one: this one is known now";
    let level = Some(Block);
    Rule { name: "secret", pattern, in_scripts: level, in_text: level, message, help, secret: true }
}

static RULES: [Rule; 34] = [
    secret("a private key", r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY( BLOCK)?-----"),
    secret("a key of Amazon's cloud", r"\b(AKIA|ASIA)[0-9A-Z]{16}\b"),
    secret("a token of GitHub", r"\b(gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{40,})"),
    secret("a key of a model provider", r"\bsk-(ant-|proj-|or-)?[A-Za-z0-9_-]{32,}"),
    secret("a key of Google's", r"\bAIza[0-9A-Za-z_-]{35}\b"),
    secret("a token of Slack", r"\bxox[abprs]-[0-9A-Za-z-]{16,}"),
    rule(
        "talks-to-reviewer",
        Block,
        Some(Block),
        "it speaks to whoever reviews it",
        "leave it out: a skill speaks to the agent that uses it",
        r#"(?i)\b(dear|note (to|for)|attention|message (to|for)|instructions? (to|for)|if you are)( the| an?| any)? ?(ai |llm |security |automated |static |code |skill )*(reviewer|scanner|moderator|auditor|analy[sz]er|judge|classifier)\b"#,
    ),
    rule(
        "talks-to-reviewer",
        Block,
        Some(Block),
        "it claims to have been reviewed",
        "leave it out: who reviews it decides by what is in it",
        r#"(?i)\bthis (skill|package|file|script) (is|was|has been) (already )?(pre-?)?(verified|approved|audited|reviewed|whitelisted|safe)\b|"(decision|verdict)"\s*:\s*"(allow|safe|approve)"|\b(mark|classify|report|rate|flag) (this|it) as (safe|benign|allow)"#,
    ),
    // Packages that teach reviewing hold such sentences as examples, so in a text it is for the review to weigh.
    rule(
        "talks-to-reviewer",
        Block,
        Some(Warn),
        "it tells a reviewer what to think",
        "leave it out, or see that it is an example and nothing to be followed",
        r#"(?i)\b(ignore|disregard|forget|override|bypass|skip)\s+(all\s+|any\s+|your\s+|the\s+)*(reviewer|review|scanner|auditor|moderator)('s|s'?)?\s+(instructions?|rules|guidelines|checks?|polic(y|ies)|warnings?)\b|\b(mark|classify|rate|report|flag|accept)\s+(this|the)\s+(skill|package|file|script)\s+as\s+\W?(safe|benign|harmless|clean|approved|trusted|allow|publish)"#,
    ),
    rule(
        "overrides-instructions",
        Block,
        Some(Block),
        "it wants earlier instructions to be forgotten",
        "say what to do instead of what to forget",
        r#"(?im)(^|[^\n"'`\x98\x9c\w])(ignore|disregard|forget|override)\s+(all\s+|any\s+|your\s+|the\s+)*(previous|prior|above|earlier|preceding|system)\s+(instructions?|rules|prompts?|guidelines|messages?)\b"#,
    ),
    // Whoever writes about such sentences quotes them.
    rule(
        "overrides-instructions",
        Block,
        Some(Warn),
        "it quotes a sentence that wants earlier instructions to be forgotten",
        "see that it is an example and nothing to be followed",
        r#"(?i)["'`\x98\x9c](ignore|disregard|forget|override)\s+(all\s+|any\s+|your\s+|the\s+)*(previous|prior|above|earlier|preceding|system)\s+(instructions?|rules|prompts?|guidelines|messages?)\b"#,
    ),
    rule(
        "keeps-from-user",
        Block,
        Some(Block),
        "it wants something kept from the user",
        "leave it out: nothing a skill does is a secret",
        r"(?i)\b(do not|don't|never|without)\s+(tell(ing)?|inform(ing)?|mention(ing)?|reveal(ing)?|notify(ing)?|show(ing)?)\s+(this\s+|it\s+|that\s+|anything\s+)?(to\s+)?(the\s+)?(user|human|operator)\b",
    ),
    rule(
        "download-and-run",
        Block,
        Some(Block),
        "it runs what it downloads",
        "ship what is to be run in the package",
        r#"(?i)\b(curl|wget|fetch|aria2c)\b[^\n;]{0,400}\|\s*(sudo\s+(-\S+\s+)*)?(env\s+)?(/\S*/)?((ba|z|da|k|fi|a)?sh|perl|ruby|node|php|source)\b|\b((ba|z|da|k)?sh|source|\.)\s+<\(\s*(curl|wget)|\beval\s+["']?(\$\(|`)\s*(curl|wget)|\b(iwr|irm|invoke-webrequest|invoke-restmethod)\b[^\n]{0,300}\|\s*(iex|invoke-expression)"#,
    ),
    // Python that is told what to do reads what comes as data: `-m json.tool`, or a program of its own behind `-c`.
    rule(
        "download-and-run",
        Block,
        Some(Block),
        "it runs what it downloads",
        "ship what is to be run in the package",
        r#"(?im)\b(curl|wget|fetch|aria2c)\b[^\n;]{0,400}\|\s*(sudo\s+(-\S+\s+)*)?(env\s+)?(/\S*/)?python[0-9.]*(\s*$|\s*[;&|)"'`#]|\s+-?\s*$|\s+-\s|\s+[^-\s]|\s+-[^mc\s]|\s+-m\s+([^j\s]|j[^s\s])|(?s:\s+-c\b.{0,600}\b(exec|eval|system|popen|subprocess|__import__|importlib|compile)\b))"#,
    ),
    rule(
        "download-and-run",
        Block,
        Some(Block),
        "it runs what it downloads",
        "ship what is to be run in the package",
        r"(?s)\b(exec|eval|compile)\s*\(\s*.{0,80}(urlopen|requests\.get|httpx\.get|urllib\.request)|\b(ba|z)?sh\s+-c\s+.{0,10}\$\(\s*(curl|wget)",
    ),
    rule(
        "encoded-code",
        Block,
        Some(Warn),
        "it runs code that is encoded",
        "write the code as it is",
        r"(?s)\b(exec|eval)\s*\(.{0,120}(b64decode|base64\.|codecs\.decode|zlib\.decompress|marshal\.loads|fromhex|unhexlify|bytes\(\[|atob\(|Buffer\.from\()|\bbase64\s+(-d|-D|--decode)[^\n]{0,200}\|\s*(sudo\s+)?((ba|z|da)?sh|python[0-9.]*|perl)\b|\bmarshal\.loads\s*\(",
    ),
    rule(
        "encoded-blob",
        Block,
        Some(Warn),
        "a long stretch of it is encoded",
        "put data into a file of its own, in a form that can be read",
        r"[A-Za-z0-9+/]{1200,}={0,2}|(\\x[0-9a-fA-F]{2}){100,}|([A-Za-z0-9+/=]{60,80}\r?\n[ \t#]*){16,}",
    ),
    rule(
        "reverse-shell",
        Block,
        Some(Block),
        "it hands a shell to another machine",
        "leave it out",
        r"/dev/(tcp|udp)/|\bnc(at)?\b[^\n]{0,80}\s-(e|c)\s|\bbash\s+-i\s*>&|\bsocat\b[^\n]{0,200}exec:|(?s:socket\.socket.{0,400}os\.dup2)|\bmkfifo\b[^\n]{0,200}\|\s*nc\b",
    ),
    rule(
        "destructive",
        Block,
        Some(Block),
        "it destroys what is not its own",
        "name the very files that are to go",
        r"\brm\s+(-[a-zA-Z]+\s+|--\S+\s+)*(/|/\*|~/?|\$HOME/?|/\{?(usr|etc|home|var|root|mnt)\b[^\s;]*)(\s|;|$)|\bmkfs(\.\w+)?\s|\bdd\b[^\n]{0,100}\bof=/dev/(sd|nvme|hd|vd|mmc)|:\(\)\s*\{\s*:\s*\|\s*:\s*&\s*\}\s*;|\bchmod\s+-R\s+777\s+/(\s|$)|\bshred\b[^\n]{0,60}/dev/",
    ),
    rule(
        "metadata-service",
        Block,
        Some(Block),
        "it asks a cloud for the machine's credentials",
        "leave it out",
        r"169\.254\.169\.254|metadata\.google\.internal|fd00:ec2::254|100\.100\.100\.200",
    ),
    rule(
        "sends-out",
        Block,
        Some(Warn),
        "it names a place where data is dropped off",
        "results go to files that the user is handed",
        r"(?i)discord(app)?\.com/api/webhooks|hooks\.slack\.com/services|webhook\.site|requestbin|pipedream\.net|ngrok(-free)?\.(io|app|dev)|interact\.sh|oast\.(fun|pro|live|me)|burpcollaborator|transfer\.sh|pastebin\.com|api\.telegram\.org/bot",
    ),
    rule(
        "sends-out",
        Block,
        Some(Block),
        "it sends the environment or keys away",
        "leave it out",
        r"(?s)\b(printenv|env|cat\s+\S*(\.ssh|\.aws|\.env|id_rsa)\S*)\s*\|\s*(base64[^|]{0,40}\|\s*)?(curl|wget|nc)\b|(requests|httpx|urllib)\S{0,40}\(.{0,200}(dict\(os\.environ|os\.environ\b\s*[,)}])|json\.dumps\(\s*(dict\()?os\.environ",
    ),
    rule(
        "private-places",
        Block,
        Some(Warn),
        "it reads where people keep secrets",
        "leave it out: a skill works on the thread's own files",
        r"(~|\$HOME|\$\{HOME\}|/root|/home/\w+)/\.(ssh|aws|gnupg|kube|docker|netrc|npmrc|pypirc|config/gcloud)\b|/etc/(shadow|sudoers)\b|\bid_(rsa|ed25519|ecdsa)\b|\.aws/credentials|/proc/(self|\d+|\*)/environ|Login Data|cookies\.sqlite|wallet\.dat|Local State",
    ),
    rule(
        "stays-behind",
        Block,
        Some(Warn),
        "it makes itself run again later",
        "leave it out: a skill is done when the task is",
        r"authorized_keys|\bcrontab\s+(-|\S)|/etc/(cron\.|init\.d|systemd|profile\.d|ld\.so\.preload)|\bsystemctl\s+enable|LaunchAgents|>>\s*(~|\$HOME)/\.(bashrc|zshrc|profile|bash_profile)",
    ),
    rule(
        "escapes",
        Block,
        Some(Warn),
        "it reaches for the machine around the sandbox",
        "leave it out",
        r"\bnsenter\b|/var/run/docker\.sock|--privileged\b|\bunshare\s+-|/proc/1/root|\bptrace\b|release_agent",
    ),
    rule(
        "dynamic-code",
        Warn,
        None,
        "it runs code that it makes",
        "write out what is to be run",
        r"(^|[^.\w])(exec|eval)\s*\(|\b__import__\s*\(|\bimportlib\.import_module\s*\(\s*[^'\x22)]|new Function\s*\(",
    ),
    rule(
        "unsafe-loading",
        Warn,
        None,
        "what it loads can run code",
        "use JSON, or a loader that is safe",
        r"\b(c?pickle|dill|joblib|shelve)\.(loads?|open)\s*\(|\byaml\.(load|unsafe_load)\s*\(\s*[^)]*\)|\btorch\.load\s*\(",
    ),
    rule(
        "shell-in-code",
        Warn,
        None,
        "it builds commands for a shell",
        "pass a list of arguments, without a shell",
        r"\bos\.(system|popen)\s*\(|shell\s*=\s*True|child_process|\bexecSync\s*\(",
    ),
    rule(
        "environment",
        Warn,
        None,
        "it reads the whole environment",
        "ask for the one variable that is needed",
        r"(?m)\bos\.environ\.(copy|items)\s*\(|\bdict\(\s*os\.environ|\bprocess\.env\s*[,)}\];]|^\s*(printenv|env)\s*(>|$)",
    ),
    rule(
        "installs",
        Warn,
        Some(Note),
        "it installs packages when it runs",
        "say in `compatibility` what must be there",
        r"\b(pip3?|uv pip|npm|pnpm|yarn|gem|cargo|apt(-get)?|brew)\s+(-\S+\s+)*(install|add)\b|\bnpx\s+(-\S+\s+)*\w",
    ),
    rule(
        "network",
        Note,
        None,
        "it uses the network",
        "say in SKILL.md what it is for; sandboxes have none unless it is allowed",
        r"\b(requests|httpx|aiohttp|urllib\.request|urllib3|socket)\b|\bfetch\s*\(\s*['\x22`]https?:|\b(curl|wget)\s",
    ),
    rule(
        "cleartext",
        Note,
        Some(Note),
        "it names an address without encryption",
        "use https",
        r"\bhttp://(?:[a-z0-9-]+\.)+[a-z]{2,}",
    ),
    rule(
        "privileges",
        Warn,
        Some(Note),
        "it wants to be the machine's owner",
        "do without: commands in the sandbox have no such right",
        r"\bsudo\s+\S|\bsu\s+-\s|\bsetuid\b|\bchmod\s+[0-7]*[4-7][0-7]{3}\b",
    ),
    rule(
        "turns-off-checks",
        Warn,
        Some(Note),
        "it turns off a check of certificates or signatures",
        "leave the check on",
        r"verify\s*=\s*False|\bcurl\b[^\n]{0,200}\s(-k|--insecure)\b|NODE_TLS_REJECT_UNAUTHORIZED|--no-check-certificate|--trusted-host",
    ),
];

struct Compiled {
    set: RegexSet,
    each: Vec<Regex>,
}

static COMPILED: LazyLock<Option<Compiled>> = LazyLock::new(|| {
    let set = RegexSetBuilder::new(RULES.iter().map(|rule| rule.pattern));
    let set = { set }.unicode(false).size_limit(SIZE_LIMIT).build().ok()?;
    let each = RULES.iter().map(compiled).collect::<Result<_, _>>().ok()?;
    Some(Compiled { set, each })
});

/// Of the compiled patterns, in bytes.
const SIZE_LIMIT: usize = 64 << 20;

/// Bytes, not characters: a file need not be text to hold what is looked for.
fn compiled(rule: &Rule) -> Result<Regex, regex::Error> {
    RegexBuilder::new(rule.pattern).unicode(false).size_limit(SIZE_LIMIT).build()
}

/// The first place of each rule that fits, with what stands there.
pub(super) fn matching(bytes: &[u8]) -> Vec<(&'static Rule, usize, &[u8])> {
    let Some(Compiled { set, each }) = &*COMPILED else {
        // The patterns are fixed, and a test compiles them; should they ever not be there, nothing passes.
        return RULES.iter().take(1).map(|rule| (rule, 0, &b""[..])).collect();
    };
    let fitting = set.matches(bytes).into_iter();
    let place = |nth: usize| {
        let found = each.get(nth)?.find(bytes)?;
        Some((RULES.get(nth)?, found.start(), found.as_bytes()))
    };
    fitting.filter_map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        for rule in &RULES {
            compiled(rule).unwrap_or_else(|error| panic!("{}: {error}", rule.name));
        }
        assert!(COMPILED.is_some());
    }
}
