//! Stored maps name a tensor by a pattern that matches its name only: `^model\.norm\.weight$`.

/// What a regular expression gives a meaning, as Python's `re.escape` sees it.
const MEANING: &str = "()[]{}?*+-|^$\\.&~# \t\n\r\u{b}\u{c}";

/// The pattern that matches a name only.
pub(super) fn pattern(name: &str) -> String {
    let mut pattern = "^".to_owned();
    for letter in name.chars() {
        if MEANING.contains(letter) {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern.push('$');
    pattern
}

/// The name that a pattern matches; a text without `^` and `$` around it is a name itself. `None` where it matches several.
pub(super) fn name(pattern: &str) -> Option<String> {
    let Some(inner) = pattern.strip_prefix('^').and_then(|rest| rest.strip_suffix('$')) else {
        return Some(pattern.to_owned());
    };
    let mut name = String::new();
    let mut letters = inner.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => name.push(letters.next().filter(|letter| !letter.is_ascii_alphanumeric())?),
            '(' | ')' | '[' | ']' | '{' | '}' | '?' | '*' | '+' | '|' | '^' | '$' | '.' => return None,
            letter => name.push(letter),
        }
    }
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_comes_back_from_its_pattern() {
        for own in ["model.layers.0.attn-qkv.weight", "a b#c", "über[0]", "", "^x$", "a\\b"] {
            assert_eq!(name(&pattern(own)).as_deref(), Some(own), "{own}");
        }
        assert_eq!(pattern("a.b-c"), "^a\\.b\\-c$");
    }

    #[test]
    fn a_pattern_that_matches_several_is_no_name_and_a_bare_name_is_itself() {
        for several in ["^a.b$", "^.*$", "^layers\\.\\d+$", "^a\\$"] {
            assert_eq!(name(several), None, "{several}");
        }
        assert_eq!(name("a.b").as_deref(), Some("a.b"));
    }
}
