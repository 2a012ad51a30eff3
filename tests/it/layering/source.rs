//! Enough of a Rust reader for the house rules: tokens without comments and strings, paths as written out in full.

/// A path that a source mentions: `crate::session::Model`, `std::fs`; `super` resolved.
#[derive(Debug, PartialEq, Eq)]
pub struct Use {
    pub line: usize,
    pub path: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Token {
    line: usize,
    text: String,
}

/// One file, tests taken out.
pub struct Source {
    /// the top-level module it belongs to: `fit`, `main`, `lib`
    pub room: String,
    /// modules from the room down to this file
    module: Vec<String>,
    tokens: Vec<Token>,
}

impl Source {
    /// `path` from the package's root: `src/fit/line.rs`.
    pub fn parse(path: &str, text: &str) -> Self {
        let inner = path.trim_start_matches("src/").trim_end_matches(".rs");
        let mut module: Vec<String> = inner.split('/').map(str::to_owned).collect();
        let room = module[0].clone();
        if module.len() > 1 {
            module.pop_if(|last| last == "mod");
        } else if matches!(room.as_str(), "main" | "lib") {
            module.clear();
        }
        Self { room, module, tokens: without_tests(&tokens(text)) }
    }

    /// Every path of two words or more, `use` trees written out.
    pub fn uses(&self) -> Vec<Use> {
        let mut found = Vec::new();
        // Names of the inline modules around; other braces have none.
        let mut braces: Vec<Option<&str>> = Vec::new();
        let mut at = 0;
        while at < self.tokens.len() {
            match self.text(at) {
                "{" => {
                    let named = at >= 2 && self.text(at - 2) == "mod";
                    braces.push(named.then(|| self.text(at - 1)));
                }
                "}" => drop(braces.pop()),
                _ if at > 0 && self.text(at - 1) == "::" && (at < 2 || is_word(self.text(at - 2))) => {}
                word if is_word(word) && word != "use" || word == "::" => {
                    let depth: Vec<String> = braces.iter().flatten().map(|name| (*name).to_owned()).collect();
                    let module: Vec<String> = self.module.iter().cloned().chain(depth).collect();
                    let in_use = at > 0 && self.text(at - 1) == "use";
                    at = self.tree(at, &mut Vec::new(), &module, in_use, &mut found);
                    continue;
                }
                _ => {}
            }
            at += 1;
        }
        found
    }

    fn text(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |token| &token.text)
    }

    /// One path or, in a `use`, one tree; the index after it.
    fn tree(&self, mut at: usize, prefix: &mut Vec<String>, module: &[String], in_use: bool, found: &mut Vec<Use>) -> usize {
        let line = self.tokens[at].line;
        let length = prefix.len();
        if self.text(at) == "::" {
            at += 1;
        }
        while is_word(self.text(at)) {
            prefix.push(self.text(at).to_owned());
            at += 1;
            if self.text(at) != "::" {
                break;
            }
            at += 1;
        }
        if in_use && self.text(at) == "{" && (at == 0 || matches!(self.text(at - 1), "::" | "use" | "{" | ",")) {
            at += 1;
            while !matches!(self.text(at), "}" | "") {
                let before = at;
                at = self.tree(at, prefix, module, true, found);
                if self.text(at) == "as" {
                    at += 2;
                }
                if self.text(at) == "," || at == before {
                    at += 1;
                }
            }
            at += 1;
        } else {
            // A glob: `::*`.
            if self.text(at) == "*" {
                at += 1;
            }
            if prefix.len() > 1 {
                found.push(Use { line, path: resolve(prefix, module) });
            }
        }
        prefix.truncate(length);
        at
    }

    /// Words that are not allowed everywhere, with their lines.
    pub fn forbidden(&self) -> Vec<(usize, &'static str)> {
        let mut found = Vec::new();
        for at in 0..self.tokens.len() {
            let before = if at > 0 { self.text(at - 1) } else { "" };
            let what = match (before, self.text(at), self.text(at + 1)) {
                (_, "unsafe", _) => "unsafe",
                (".", "unwrap", "(") => "unwrap()",
                (".", "expect", "(") => "expect()",
                (_, "panic", "!") => "panic!",
                (_, "todo", "!") => "todo!",
                (_, "unimplemented", "!") => "unimplemented!",
                _ => continue,
            };
            found.push((self.tokens[at].line, what));
        }
        found
    }
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphanumeric() || c == '_')
}

/// `super` and `self` in terms of the crate; our own name from outside is the crate too.
fn resolve(path: &[String], module: &[String]) -> String {
    let mut here = module.to_vec();
    let mut rest = path;
    let mut ours = false;
    while let Some(first) = rest.first() {
        match first.as_str() {
            "super" => drop(here.pop()),
            "self" if !ours => {}
            "crate" | "toposcope" if !ours => here.clear(),
            _ => break,
        }
        ours = true;
        rest = &rest[1..];
    }
    let rest = rest.iter().filter(|word| *word != "self").cloned();
    if ours {
        ["crate".to_owned()].into_iter().chain(here).chain(rest).collect::<Vec<_>>().join("::")
    } else {
        rest.collect::<Vec<_>>().join("::")
    }
}

/// Words, `::` and single punctuation; comments, strings, characters and lifetimes left out.
fn tokens(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let peek = |at: usize| chars.get(at).copied().unwrap_or('\0');
    let (mut found, mut at, mut line) = (Vec::new(), 0, 1);
    while at < chars.len() {
        let start = at;
        match chars[at] {
            '/' if peek(at + 1) == '/' => {
                while at < chars.len() && chars[at] != '\n' {
                    at += 1;
                }
            }
            '/' if peek(at + 1) == '*' => {
                let mut depth = 0;
                while at < chars.len() {
                    match (chars[at], peek(at + 1)) {
                        ('/', '*') => (depth, at) = (depth + 1, at + 2),
                        ('*', '/') => (depth, at) = (depth - 1, at + 2),
                        _ => at += 1,
                    }
                    if depth == 0 {
                        break;
                    }
                }
            }
            '"' => at = string_end(&chars, at),
            '\'' => {
                // A character is closed by a quote; a lifetime is not.
                if peek(at + 1) == '\\' {
                    at += 3;
                    while at < chars.len() && chars[at] != '\'' {
                        at += 1;
                    }
                    at += 1;
                } else if peek(at + 2) == '\'' {
                    at += 3;
                } else {
                    at += 1;
                    while is_word(&peek(at).to_string()) {
                        at += 1;
                    }
                }
            }
            c if is_word(&c.to_string()) => {
                while is_word(&peek(at).to_string()) {
                    at += 1;
                }
                let word: String = chars[start..at].iter().collect();
                let hashes = chars[at.min(chars.len())..].iter().take_while(|c| **c == '#').count();
                match (word.as_str(), peek(at + hashes)) {
                    ("r" | "br" | "cr", '"') => {
                        let end: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
                        at += hashes + 1;
                        while at < chars.len() && !chars[at..].starts_with(&end) {
                            at += 1;
                        }
                        at += end.len();
                    }
                    ("b" | "c", '"') if hashes == 0 => at = string_end(&chars, at),
                    // A raw word: r#type.
                    ("r", _) if hashes == 1 => at += 1,
                    // b'x': the character is taken by itself.
                    ("b", '\'') => {}
                    _ => found.push(Token { line, text: word }),
                }
            }
            ':' if peek(at + 1) == ':' => {
                found.push(Token { line, text: "::".to_owned() });
                at += 2;
            }
            c => {
                if !c.is_whitespace() {
                    found.push(Token { line, text: c.to_string() });
                }
                at += 1;
            }
        }
        at = at.min(chars.len());
        line += chars[start..at].iter().filter(|c| **c == '\n').count();
    }
    found
}

fn string_end(chars: &[char], mut at: usize) -> usize {
    at += 1;
    while at < chars.len() && chars[at] != '"' {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}

/// Without the items behind `#[cfg(test)]` (or a cfg that needs `test`).
fn without_tests(tokens: &[Token]) -> Vec<Token> {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    let (mut kept, mut at) = (Vec::new(), 0);
    while at < tokens.len() {
        let attribute = text(at) == "#" && text(at + 1) == "[";
        let tests = text(at + 2) == "cfg" && (text(at + 4) == "test" || (text(at + 4) == "all" && text(at + 6) == "test"));
        if !(attribute && tests) {
            kept.push(tokens[at].clone());
            at += 1;
            continue;
        }
        // The attribute, any others after it, then the item up to its body's end or its semicolon.
        while text(at) == "#" {
            at = past(&text, at + 1, tokens.len());
        }
        while at < tokens.len() && text(at) != ";" {
            if text(at) == "{" {
                at = past(&text, at, tokens.len());
                break;
            }
            at = if matches!(text(at), "(" | "[") { past(&text, at, tokens.len()) } else { at + 1 };
        }
        // A braced list in a `use` is followed by one too.
        if text(at) == ";" {
            at += 1;
        }
    }
    kept
}

/// The index after the bracket that closes the one at `at`.
fn past<'a>(text: &impl Fn(usize) -> &'a str, mut at: usize, end: usize) -> usize {
    let mut depth = 0;
    while at < end {
        match text(at) {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            break;
        }
    }
    at
}
