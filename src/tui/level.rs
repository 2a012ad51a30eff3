use std::env;

use termprofile::{DetectorSettings, EnvVarSource, IsTerminal, TermProfile, TermVars};

use crate::ramp::Level;

/// Colours to draw with: what `--color` says, else what the environment (`NO_COLOR`, `FORCE_COLOR`, `CLICOLOR_FORCE`)
/// says, else what the terminal is known for.
pub fn level(flag: Option<Level>) -> Level {
    level_from(flag, &Environment)
}

struct Environment;

impl EnvVarSource for Environment {
    fn var(&self, key: &str) -> Option<String> {
        env::var(key).ok()
    }
}

/// What is drawn to is a terminal, though it need not be one of the standard streams.
struct Terminal;

impl IsTerminal for Terminal {
    fn is_terminal(&self) -> bool {
        true
    }
}

fn level_from(flag: Option<Level>, source: &impl EnvVarSource) -> Level {
    if let Some(level) = flag {
        return level;
    }
    // Any text in NO_COLOR counts (no-color.org), and numbers in FORCE_COLOR are levels (force-color.org); termprofile
    // takes both for yes or no.
    if source.var("NO_COLOR").is_some_and(|value| !value.is_empty()) {
        return Level::None;
    }
    match source.var("FORCE_COLOR").as_deref() {
        Some("2") => return Level::Ansi256,
        Some("3") => return Level::TrueColor,
        _ => {}
    }
    // Asking tmux means to start a process, which a rank of an MPI job had better not.
    let settings = DetectorSettings::new().enable_tmux_info(false);
    match TermProfile::detect_with_vars(TermVars::from_source(source, &Terminal, settings)) {
        TermProfile::NoTty | TermProfile::NoColor => Level::None,
        TermProfile::Ansi16 => Level::Ansi16,
        TermProfile::Ansi256 => Level::Ansi256,
        TermProfile::TrueColor => Level::TrueColor,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_flag_goes_before_the_environment_and_that_before_the_terminal() {
        let of = |flag, vars: &[(&str, &str)]| {
            level_from(flag, &vars.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect::<BTreeMap<_, _>>())
        };
        let (term, none) = (("TERM", "xterm-256color"), ("NO_COLOR", "1"));
        assert_eq!(of(None, &[term]), Level::Ansi256);
        assert_eq!(of(None, &[term, ("COLORTERM", "truecolor")]), Level::TrueColor);
        assert_eq!(of(None, &[term, none]), Level::None);
        assert_eq!(of(None, &[term, ("NO_COLOR", "0")]), Level::None);
        assert_eq!(of(None, &[term, ("NO_COLOR", "")]), Level::Ansi256);
        assert_eq!(of(Some(Level::TrueColor), &[term, none]), Level::TrueColor);
        assert_eq!(of(None, &[("TERM", "dumb")]), Level::None);
        assert_eq!(of(None, &[("TERM", "xterm")]), Level::Ansi16);
        assert_eq!(of(None, &[("TERM", "xterm"), ("FORCE_COLOR", "3")]), Level::TrueColor);
        assert!(of(None, &[("TERM", "dumb"), ("CLICOLOR_FORCE", "1")]) >= Level::Ansi16);
    }
}
