//! What this person set once, laid under what was typed: command line, else environment, else `config.toml`, else the default.

use anyhow::Result;
use clap::ValueEnum;

use super::args::{BuffersArg, Color, Commands, Global, SweepArgs};
use crate::config::{self, Config};

/// True for commands that the settings concern; the others work beside a broken file, so that it can be mended.
pub(super) fn concern(command: Option<&Commands>) -> bool {
    !matches!(
        command,
        Some(
            Commands::Fabrics { .. }
                | Commands::Doctor { .. }
                | Commands::Keys { .. }
                | Commands::Themes { .. }
                | Commands::Schema { .. }
                | Commands::Completions { .. }
                | Commands::Man { .. }
                | Commands::Guard
        )
    )
}

/// Read this person's settings, and lay them under what was typed.
pub(super) fn lay(global: &mut Global, sweeps: Vec<&mut SweepArgs>) -> Result<()> {
    let config = config::load()?;
    lay_global(&config, global);
    for sweep in sweeps {
        lay_sweep(&config, sweep)?;
    }
    check_theme(&config, global)?;
    global.config = config;
    Ok(())
}

fn lay_global(config: &Config, global: &mut Global) {
    if global.theme.is_none() {
        global.theme = config.word("theme");
    }
    // NO_COLOR is of the environment, which goes before the file.
    let asked = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let from_file = config.place("color").is_some_and(|place| !place.starts_with("TOPOSCOPE_"));
    if global.color.is_none() && !(asked && from_file) {
        global.color = config.word("color").and_then(|word| Color::from_str(&word, false).ok());
    }
}

/// A sweep that is taken up keeps its session's settings.
fn lay_sweep(config: &Config, args: &mut SweepArgs) -> Result<()> {
    fn number<T: std::str::FromStr>(config: &Config, name: &str) -> Result<Option<T>>
    where
        T::Err: std::error::Error + Send + Sync + 'static,
    {
        Ok(config.word(name).map(|word| word.parse()).transpose()?)
    }
    if args.resume.is_some() {
        return Ok(());
    }
    // What is typed of these two decides about both.
    if args.repeats.is_none() && args.ci.is_none() {
        (args.repeats, args.ci) = (number(config, "sweep.repeats")?, number(config, "sweep.ci")?);
    }
    let texts = [
        (&mut args.patterns, "sweep.patterns"),
        (&mut args.sizes, "sweep.sizes"),
        (&mut args.widths, "sweep.widths"),
        (&mut args.peers, "sweep.peers"),
        (&mut args.shifts, "sweep.shifts"),
        (&mut args.budget, "sweep.budget"),
        (&mut args.timeout, "sweep.timeout"),
        (&mut args.arena, "sweep.arena"),
    ];
    for (typed, name) in texts {
        if typed.is_none() {
            *typed = config.word(name);
        }
    }
    args.pairs = args.pairs.map_or_else(|| number(config, "sweep.pairs"), |pairs| Ok(Some(pairs)))?;
    args.warmup = args.warmup.map_or_else(|| number(config, "sweep.warmup"), |warmup| Ok(Some(warmup)))?;
    args.window = args.window.map_or_else(|| number(config, "sweep.window"), |window| Ok(Some(window)))?;
    if args.buffers.is_none() {
        args.buffers = config.word("sweep.buffers").and_then(|word| BuffersArg::from_str(&word, false).ok());
    }
    Ok(())
}

/// A theme that the settings name and that is not there is told where it stands, before anything starts.
#[cfg(feature = "tui")]
fn check_theme(config: &Config, global: &Global) -> Result<()> {
    use anyhow::Context;
    let (Some(name), Some(place)) = (config.word("theme"), config.place("theme")) else { return Ok(()) };
    if global.theme.as_deref() == Some(name.as_str()) {
        let themes = crate::tui::theme::Themes::new(super::look::themes());
        themes.load(&name, crate::ramp::Level::None).with_context(|| format!("{place}: theme"))?;
    }
    Ok(())
}

#[cfg(not(feature = "tui"))]
#[allow(clippy::unnecessary_wraps, reason = "with the screen it can fail")]
fn check_theme(_: &Config, _: &Global) -> Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn config(text: &str) -> Config {
        Config::load(Some(text), Path::new("c"), |_| None).unwrap()
    }

    #[test]
    fn what_is_typed_goes_before_the_settings() {
        let own = config("[sweep]\nsizes = '1M'\nwarmup = 3\nrepeats = 9\nwindow = 4\nbuffers = 'reuse'\npatterns = 'duplex'\n");
        let mut args = SweepArgs { sizes: Some("4K".into()), ..SweepArgs::default() };
        lay_sweep(&own, &mut args).unwrap();
        assert_eq!((args.sizes.as_deref(), args.patterns.as_deref()), (Some("4K"), Some("duplex")));
        assert_eq!((args.warmup, args.window, args.repeats, args.ci), (Some(3), Some(4), Some(9), None));
        assert_eq!(args.buffers, Some(BuffersArg::Reuse));
        // An interval that is typed is not held to the file's number of repeats.
        let mut args = SweepArgs { ci: Some(0.01), ..SweepArgs::default() };
        lay_sweep(&own, &mut args).unwrap();
        assert_eq!((args.repeats, args.ci), (None, Some(0.01)));
    }

    #[test]
    fn a_session_that_is_taken_up_keeps_its_own() {
        let mut args = SweepArgs { resume: Some("s".into()), ..SweepArgs::default() };
        lay_sweep(&config("[sweep]\nsizes = '1M'\nwarmup = 3"), &mut args).unwrap();
        assert_eq!((args.sizes, args.warmup), (None, None));
    }

    #[cfg(feature = "tui")]
    #[test]
    fn tabs_that_can_be_named_are_those_of_the_screen() {
        for tab in crate::tui::Tab::ALL {
            config(&format!("first_tab = '{}'", tab.title().to_lowercase()));
        }
        assert!(Config::load(Some("first_tab = 'tab'"), Path::new("c"), |_| None).is_err());
    }
}
