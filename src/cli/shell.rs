//! What an installation brings along besides the program: completions of shells, and man pages.

use std::path::Path;

use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_complete::Shell;

use super::args::Cli;
use super::{FINE, print};

/// The name that it is started by.
const NAME: &str = "toposcope";

/// Completions for a shell, on standard output.
pub(super) fn completions(shell: Shell) -> u8 {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), NAME, &mut script);
    print(&String::from_utf8_lossy(&script));
    FINE
}

/// The man page of the program on standard output, or a page of it and of each of its commands in a folder.
pub(super) fn man(folder: Option<&Path>) -> Result<u8> {
    let program = Cli::command();
    let Some(folder) = folder else {
        let mut page = Vec::new();
        clap_mangen::Man::new(program).render(&mut page)?;
        print(&String::from_utf8_lossy(&page));
        return Ok(FINE);
    };
    let at = || format!("--out {}", folder.display());
    std::fs::create_dir_all(folder).with_context(at)?;
    clap_mangen::generate_to(program.disable_help_subcommand(true), folder).with_context(at)?;
    Ok(FINE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_and_the_hidden_one_has_none() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(man(Some(folder.path())).unwrap(), FINE);
        let page = |name: &str| std::fs::read_to_string(folder.path().join(format!("{name}.1")));
        let whole = page("toposcope").unwrap();
        let shown = Cli::command();
        for command in shown.get_subcommands() {
            let name = format!("toposcope-{}", command.get_name());
            assert_eq!(page(&name).is_ok(), !command.is_hide_set(), "{name}");
            assert_eq!(whole.contains(&name.replace('-', "\\-")), !command.is_hide_set(), "{name} in the page of the program");
        }
        // What a script goes by stands in the page and in --help.
        for text in [whole.as_str(), Cli::command().render_long_help().to_string().as_str()] {
            for words in ["Exit codes:", "0  done as asked", "1  something was found", "2  wrong input", "config.toml"] {
                assert!(text.contains(words), "{words:?} is not in {text}");
            }
        }
        assert!(page("toposcope-sweep").unwrap().contains("\\-\\-patterns"));
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = man(Some(&file.path().join("below"))).unwrap_err();
        assert!(error.to_string().contains("--out") && error.to_string().contains("below"), "{error}");
    }
}
